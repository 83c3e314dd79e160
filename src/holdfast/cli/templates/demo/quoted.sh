# A guard: exit 0 accepts. Otherwise what it prints is the feedback for the next try.
# Whatever stands in "double quotes" must stand in a note, word for word.
notes=$(cat notes/*.txt | tr -s '\n' ' ')
found=0
while IFS= read -r quote; do
  [ -n "$quote" ] || continue
  case "$notes" in
    *"$quote"*) found=1 ;;
    *) echo "no note says \"$quote\""; exit 1 ;;
  esac
done <<END
$(grep -o '"[^"]*"' "$HOLDFAST_ARTIFACT" | tr -d '"')
END
[ "$found" = 1 ] || { echo "nothing is quoted"; exit 1; }
