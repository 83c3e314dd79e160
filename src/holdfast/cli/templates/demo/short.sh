# A guard: at most eight words.
words=$(wc -w < "$HOLDFAST_ARTIFACT")
[ "$words" -le 8 ] || { echo "$words words; a title has at most 8"; exit 1; }
