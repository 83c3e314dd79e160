{
  echo "<!doctype html><title>Kelp</title><pre>"
  sed 's/&/\&amp;/g; s/</\&lt;/g' "$1"
  echo "</pre>"
} > page.html
