# A guard is any command: exit 0 accepts; otherwise what it prints goes to the next try.
lines=$(wc -l < "$1")
if [ "$lines" -gt 10 ] || [ "$lines" -lt 1 ]; then
  echo "a summary has 1 to 10 lines, not $lines"
  exit 1
fi
