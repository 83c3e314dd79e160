# One word a line, in small letters.
tr 'A-Z' 'a-z' < "$1" | tr -cs 'a-z' '\n'
