# One word a line, in small letters. Slow on purpose: there must be time to pull the plug.
sleep 0.5
tr 'A-Z' 'a-z' < "$1" | tr -cs 'a-z' '\n'
