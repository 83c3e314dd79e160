# A guard: exit 0 accepts. Otherwise what it prints is the feedback for the next try.
words=$(wc -w < "$1")
[ "$words" -le 30 ] || { echo "$words words; a report has at most 30"; exit 1; }
