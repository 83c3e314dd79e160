# A note in one line. Slow on purpose: there must be time to pull the plug.
sleep 0.5
tr -s '\n' ' ' < "$1"
