title=$(cat "$HOLDFAST_INPUTS/title")
{
  echo "<!doctype html><title>$title</title><h1>$title</h1><pre>"
  sed 's/&/\&amp;/g; s/</\&lt;/g' "$1"
  echo "</pre>"
} > page.html
