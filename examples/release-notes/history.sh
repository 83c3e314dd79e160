#!/bin/sh
# Makes the little history that the notes are about: repo/, with a tag and eight commits after it.
# Names and dates are fixed, so the commits have the same ids everywhere. `sh history.sh more` adds one.
set -eu
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_AUTHOR_NAME="Ida Quist" GIT_AUTHOR_EMAIL=ida@example.org
export GIT_COMMITTER_NAME="Ida Quist" GIT_COMMITTER_EMAIL=ida@example.org

commit() { # day, subject, body
  export GIT_AUTHOR_DATE="2026-05-${1}T09:00:00+0000" GIT_COMMITTER_DATE="2026-05-${1}T09:00:00+0000"
  git add -A
  git commit -q -m "$2" ${3:+-m "$3"}
}

change() { # file, what to replace, with what
  sed "s/$2/$3/" "$1" > changed && mv changed "$1"
}

if [ "${1:-}" = more ]; then
  cd repo
  change bell.py 'QUIET = range(22, 24)' 'QUIET = (22, 23, 0, 1, 2, 3, 4, 5)'
  commit 21 "Keep quiet after midnight, too" "The quiet hours ended at 24:00; the bell rang at one."
  exit 0
fi

rm -rf repo && mkdir repo && cd repo
git init -q -b main .

cat > bell.py <<'END'
import sys


def ring(hour):
    return hour % 12


if __name__ == "__main__":
    print("ding " * ring(int(sys.argv[1])))
END
echo "# Harbour bell: strikes the hours" > README.md
commit 01 "Strike the hours"
git tag v1.3.0

change bell.py 'return hour % 12' 'return hour % 12 or 12'
commit 04 "Strike twelve times at noon" "It struck not at all: 12 % 12 is 0."

printf '\n\ndef half(minute):\n    return minute == 30\n' >> bell.py
commit 06 "Ring once at half past"

echo "Try it without a bell: python bell.py 7" >> README.md
commit 07 "Say how to try it without a bell"

change bell.py 'def ring' 'def strikes' && change bell.py 'ring(int' 'strikes(int'
commit 11 "Call the function strikes, as it returns a number"

printf '\n\nQUIET = range(22, 24)\n' >> bell.py
commit 12 "Keep quiet at night" "From 22:00 on the bell is silent; set QUIET for other hours."

printf 'import os\n\nZONE = os.environ.get("TZ", "UTC")\n' > zone.py
commit 15 "Read the time zone from TZ" "The option --zone is gone. Whoever used it sets TZ instead."

printf 'from bell import strikes\n\nassert [strikes(h) for h in (0, 1, 12, 13)] == [12, 1, 12, 1]\n' > test_bell.py
commit 18 "Test the hours around noon and midnight"

change bell.py 'minute == 30' '29 <= minute <= 30'
commit 20 "Ring half past also if the clock is a minute slow"
