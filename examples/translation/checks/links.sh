# A guard: every page that a translated page links to was translated, too.
cd manual-de || exit 1
lost=$(grep -oh '](\([^)#]*\.md\)' ./*.md | sed 's/](//' | sort -u | while read -r page; do
  [ -e "$page" ] || echo "no page \"$page\", and one links to it"
done)
[ -z "$lost" ] || { echo "$lost"; exit 1; }
