"""The plans that are killed: the reference plan, and one so small that it can be killed often.

Every step notes in a file beside the project that it begins and that it ends. The place of that file
is found through `HOLDFAST_ROOT`, so a project can be copied in the middle of its run and go on.
"""

import json
from pathlib import Path
from typing import Any

LOG = '"$HOLDFAST_ROOT/../ran.txt"'

WORK = """
import json
import os


def note(word):
    place = os.path.join(os.environ["HOLDFAST_ROOT"], os.pardir, "ran.txt")
    log = os.open(place, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(log, f"{word} {os.environ['HOLDFAST_STEP']}\\n".encode())
    os.close(log)


def middle(read):
    note("begin")
    made = {"words": len(read.split())}
    note("end")
    return made


def join(left, middle, right):
    note("begin")
    made = "\\n".join([left.strip(), json.dumps(json.loads(middle)), right.strip(), ""])
    note("end")
    return made
"""

# Changes one file, makes one, removes one, and moves one inside a directory.
EDIT = """
mkdir tree
printf 'kept, now changed\\n' > keep.txt
printf 'moves from name to name\\n' > tree/renamed.txt
cp "$HOLDFAST_INPUTS/join" tree/made.txt
"""

# Its first candidate is rejected, so what was there before is put back in between.
AGAIN = """
if [ -n "$HOLDFAST_FEEDBACK" ] && grep -q 'not good' "$HOLDFAST_FEEDBACK"; then
  echo good > again.txt; else echo bad > again.txt; fi
"""

REFERENCE_FILES = {
    "words.txt": "tide rock kelp\n",
    "work.py": WORK,
    "left.sh": f'set -e\necho "begin left" >> {LOG}\ntr a-z A-Z < "$HOLDFAST_INPUTS/read"\n'
    f'echo "end left" >> {LOG}\n',
    "keep.txt": "kept, old\n",
    "tree/gone.txt": "goes away\n",
    "tree/name.txt": "moves from name to name\n",
    "pages.txt": "what was there before\n",
    "again.txt": "what was there before\n",
}


def noted(body: str) -> str:
    """A shell line that notes its begin and, if all went well, its end."""
    begin, end = (f'echo "{word} $HOLDFAST_STEP" >> {LOG}' for word in ("begin", "end"))
    return f"set -e; {begin}\n{body.strip()}\n{end}"


def reference() -> dict[str, Any]:
    """Ten steps: a fan-out of three, their join, an edit in scratch, a rejection, shared outputs."""
    good = 'grep -q good "$HOLDFAST_ARTIFACT" || { echo not good; exit 1; }'
    return {
        "name": "reference",
        "steps": {
            "read": {"shell": noted("cat words.txt"), "inputs": ["words.txt"]},
            "large": {"shell": noted("seq 1 8000")},
            "left": {"run": ["sh", "left.sh"], "needs": ["read"]},
            "middle": {
                "uses": "python",
                "run": "work:middle",
                "needs": ["read"],
                "outputs": ["words"],
            },
            "right": {
                "shell": noted('rev "$HOLDFAST_INPUTS/read" > right.txt'),
                "needs": ["read"],
                "produces": "right.txt",
                "workspace": "shared",
            },
            "join": {"uses": "python", "run": "work:join", "needs": ["left", "middle", "right"]},
            "edit": {
                "shell": noted(EDIT),
                "needs": ["join"],
                "produces": ["keep.txt", "tree"],
                "workspace": "scratch",
            },
            "again": {
                "shell": noted(AGAIN),
                "needs": [{"step": "large", "type": "sequence"}],
                "produces": "again.txt",
                "retries": 1,
                "guards": [{"command": ["sh", "-c", good]}],
            },
            "pages": {
                "shell": noted(
                    "cat tree/made.txt keep.txt > pages.txt\n"
                    "printf '#!/bin/sh\\necho pages\\n' > pages.sh; chmod 755 pages.sh"
                ),
                "needs": ["edit"],
                "produces": ["pages.txt", "pages.sh"],
                "guards": [{"file": {"path": "pages.txt", "min_bytes": 1}}],
            },
            "report": {
                "shell": noted(
                    'cat pages.txt "$HOLDFAST_INPUTS/again" > report.txt; '
                    'wc -l < "$HOLDFAST_INPUTS/large" >> report.txt'
                ),
                "needs": ["pages", "again", "large"],
                "produces": "report.txt",
                "workspace": "scratch",
            },
        },
    }


def small() -> dict[str, Any]:
    """Six tiny steps in three waves, two of them with files in the project."""
    return {
        "name": "small",
        "steps": {
            "a": {"shell": noted("echo a")},
            "b": {"shell": noted("echo b > b.txt"), "produces": "b.txt"},
            "c": {"shell": noted('cat "$HOLDFAST_INPUTS/a"; echo c'), "needs": ["a"]},
            "d": {
                "shell": noted(
                    'cat "$HOLDFAST_INPUTS/a" "$HOLDFAST_INPUTS/b" > d.txt; echo d > e.txt'
                ),
                "needs": ["a", "b"],
                "produces": ["d.txt", "e.txt"],
                "workspace": "scratch",
            },
            "e": {"shell": noted("seq 1 5000"), "needs": ["c"]},
            "f": {
                "shell": noted('cat d.txt b.txt "$HOLDFAST_INPUTS/c"'),
                "needs": ["c", "d", "b", {"step": "e", "type": "sequence"}],
            },
        },
    }


SMALL_FILES = {"d.txt": "before\n"}


def joint() -> dict[str, Any]:
    """Three layers of steps that engines can share, the last with a file in the project."""
    steps: dict[str, Any] = {}
    for layer in "abc":
        above = [name for name in steps if name[0] == chr(ord(layer) - 1)]
        for place in range(3):
            read = 'cat "$HOLDFAST_INPUTS"/*; ' if above else ""
            steps[f"{layer}{place}"] = {
                "shell": noted(f"{read}echo {layer}{place}"),
                "needs": [above[place], above[place - 1]] if above else [],
            }
    whole = noted('cat "$HOLDFAST_INPUTS"/* > whole.txt')
    needs = [name for name in steps if name[0] == "c"]
    steps["whole"] = {"shell": whole, "needs": needs, "produces": "whole.txt"}
    return {"name": "joint", "defaults": {"workspace": "scratch"}, "steps": steps}


def copies() -> dict[str, Any]:
    """Steps that change project files in copies: a scratch directory, and two worktrees in a row."""
    changes = {"effects": "workspace"}
    return {
        "name": "copies",
        "steps": {
            "scratch": {
                "shell": noted("echo more >> keep.txt; mkdir -p new; echo n > new/n.txt"),
                "inputs": ["keep.txt"],
                "workspace": "scratch",
                **changes,
            },
            "tree": {
                "shell": noted(
                    "echo changed > tree/a.txt; git mv -f tree/b.txt tree/c.txt; rm tree/gone.txt\n"
                    "echo made > made.txt; chmod 755 tree/a.txt"
                ),
                "workspace": "worktree",
                **changes,
            },
            "after": {
                "shell": noted("cat tree/c.txt made.txt >> tree/a.txt; ls tree > ls.txt"),
                "needs": [{"step": "tree", "type": "sequence"}],
                "workspace": "worktree",
                "produces": "ls.txt",
                **changes,
            },
            "end": {
                "shell": noted("cat keep.txt new/n.txt tree/a.txt ls.txt"),
                "needs": ["scratch", "after"],
            },
        },
    }


COPIES_FILES = {
    "keep.txt": "kept\n",
    "tree/a.txt": "a\n",
    "tree/b.txt": "b\n",
    "tree/gone.txt": "goes away\n",
}


def tiny() -> dict[str, Any]:
    """Two steps: what is killed is the start of the run."""
    return {
        "name": "tiny",
        "steps": {
            "a": {"shell": noted("echo a > a.txt"), "produces": "a.txt"},
            "b": {"shell": noted("cat a.txt"), "needs": ["a"]},
        },
    }


def patient(waits: int) -> dict[str, Any]:
    """A step whose first attempts wait for what never comes, one beside it and one below."""
    wait = f'if [ "$HOLDFAST_ATTEMPT" -le {waits} ]; then read x < "$HOLDFAST_ROOT/../gate"; fi'
    return {
        "name": "patient",
        "steps": {
            "beside": {"shell": noted("echo beside")},
            "waits": {"shell": noted(f"echo half > waits.txt; {wait}"), "produces": "waits.txt"},
            "below": {"shell": noted("cat waits.txt"), "needs": ["waits", "beside"]},
        },
    }


def write_project(root: Path, plan: dict[str, Any], files: dict[str, str]) -> None:
    """A project directory with its plan; JSON is YAML, and cannot be indented wrongly."""
    root.mkdir(parents=True)
    for path, text in {**files, "plan.yaml": json.dumps(plan, indent=1)}.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
