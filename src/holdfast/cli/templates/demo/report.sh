# Writes report.md. A model would do it like this too: on a second try it finds in
# HOLDFAST_FEEDBACK what was wrong with the first.
facts="$HOLDFAST_INPUTS/count"
value() { sed "s/.*\"$1\": *\"\{0,1\}\([^\",}]*\).*/\1/" "$facts"; }
{
  echo "# Kelp"
  echo
  echo "$(value total) words; the longest is '$(value longest)'."
  if [ -z "$HOLDFAST_FEEDBACK" ]; then
    echo
    echo "It should also be mentioned that this report was made with great care,"
    echo "that every note was read from its first word to its last, and that much"
    echo "more could be said about kelp by anybody who is paid by the word."
  fi
} > report.md
