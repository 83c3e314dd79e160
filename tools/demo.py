"""The first minute: run, kill -9 half way, resume, change one thing, see what runs again and why."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path("holdfast-demo")
HOLDFAST = [sys.executable, "-m", "holdfast"]
SOURCES = {
    "tides": "Kelp holds fast to the rock\nwhile the tide pulls at it twice a day.\n",
    "storms": "After a storm the beach is full of kelp\nthat had nothing to hold on to.\n",
    "roots": "A holdfast is not a root:\nit feeds nothing, it only never lets go.\n",
}
PLAN = """\
schema: holdfast.plan/1
name: kelp
goal: Count the words of three notes and report on them.

steps:
  clean-tides:
    run: [sh, clean.sh, notes/tides.txt]
    inputs: [notes/tides.txt]
  clean-storms:
    run: [sh, clean.sh, notes/storms.txt]
    inputs: [notes/storms.txt]
  clean-roots:
    run: [sh, clean.sh, notes/roots.txt]
    inputs: [notes/roots.txt]
  count:
    uses: python
    run: words:count
    needs: [clean-tides, clean-storms, clean-roots]
    outputs: [words, longest]
  report:
    run: [sh, report.sh]
    needs: [count]
    produces: report.md
    retries: 1
    guards:
      - regex: {pattern: '(?m)^# '}
"""
FILES = {
    "plan.yaml": PLAN,
    "clean.sh": "sleep 0.6\ntr 'A-Z' 'a-z' < \"$1\" | tr -d ',.:'\n",
    "words.py": '''"""Counts words."""

from collections import Counter


def count(clean_tides: str, clean_storms: str, clean_roots: str) -> dict[str, object]:
    words = Counter((clean_tides + clean_storms + clean_roots).split())
    return {"words": dict(sorted(words.items())), "longest": max(words, key=lambda w: (len(w), w))}
''',
    "report.sh": """sleep 0.3
# The first try forgets the title; the guard says so, and the second try has read it.
[ -n "$HOLDFAST_FEEDBACK" ] && echo '# Kelp' > report.md || : > report.md
echo "The longest word: $(grep -o '"longest":"[a-z]*"' "$HOLDFAST_INPUTS/count")" >> report.md
""",
}


def say(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n### {text}", flush=True)


def show(*words: str, expect: int = 0) -> None:
    print(f"$ holdfast {' '.join(words)}", flush=True)
    done = subprocess.run([*HOLDFAST, *words], cwd=FOLDER, check=False)
    if done.returncode != expect:
        sys.exit(f"the demo expected exit code {expect}, not {done.returncode}")


def finished() -> int:
    """How many steps the running engine has finished so far, as another process sees it."""
    asked = subprocess.run(
        [*HOLDFAST, "status", "--json"], cwd=FOLDER, check=False, capture_output=True
    )
    return int(json.loads(asked.stdout)["totals"]["done"]) if asked.returncode == 0 else 0


def crash() -> None:
    print("$ holdfast run -j 1 &", flush=True)
    engine = subprocess.Popen([*HOLDFAST, "run", "-j", "1"], cwd=FOLDER)
    deadline = time.monotonic() + 60
    while finished() < 2:  # noqa: PLR2004 - two of five: half way
        if engine.poll() is not None or time.monotonic() > deadline:
            sys.exit("the demo's engine ended before it could be killed")
    os.kill(engine.pid, signal.SIGKILL)
    engine.wait()
    print("$ kill -9 %1", flush=True)


def main() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    (FOLDER / "notes").mkdir(parents=True)
    for name, text in FILES.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    for name, text in SOURCES.items():
        (FOLDER / "notes" / f"{name}.txt").write_text(text, encoding="utf-8")

    say("1. A plan of five steps. Nothing has run; this is what would happen:")
    show("plan")
    say("2. It runs, and half way the engine is killed with SIGKILL:")
    crash()
    show("status")
    say("3. Resume. What was finished is kept; only the interrupted step runs again:")
    show("resume", "-j", "2")
    say("4. One note changes. The preview knows what that touches, and why:")
    with (FOLDER / "notes" / "roots.txt").open("a", encoding="utf-8") as note:
        note.write("It outlives the blade by years.\n")
    show("plan")
    show("why", "report")
    show("run")
    say("5. Nothing changed since: nothing to do. And the store is whole:")
    show("run")
    show("verify")
    print(f"\nThe project is in ./{FOLDER}. Try there (with .venv/bin on the PATH):")
    print(
        "  edit notes/tides.txt, then 'holdfast plan'; edit report.md by hand, then 'holdfast run';"
    )
    print("  'holdfast show count'; 'holdfast trace'; 'holdfast --help'.")


main()
