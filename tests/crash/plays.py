"""Work that takes several commands, and is broken in each of them: the reference plan, and one of each kind.

The reference plan is what a person would do in an hour: a run with a fan-out of three, an edit of four files,
a rejection and a model, which waits for a yes and goes on; then a ticket, whose commit the engine makes and
brings to a branch. Ten steps. The small ones have one thing each, so that they can be killed everywhere.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tests.crash import plans
from tests.crash.plans import AGAIN, noted
from tests.gitrepo.repository import repository

RUN = ("run", "-j", "1", "--yes")
RESUME = ("resume", "-j", "1", "--yes")
APPROVE = ("approve", "publish", "--yes")
CHECK = "grep -q new notes.txt"
WORK = (
    *("work", "Write the notes", "--id", "notes", "--validate", CHECK),
    *("--script", "../script.json", "--quiet"),
)
WAITS = 3
BRANCH = "holdfast/notes"

PERSON = "[user]\n\tname = Ann Example\n\temail = ann@example.org\n"
CONFIG = """
[providers.fake]
kind = "openai"
base_url = "{url}"

[prices."fake:m"]
input = 1
output = 2
"""

# Changes one file, makes one, removes one, and moves one inside a directory.
EDIT = """
mkdir tree
printf 'kept, now changed\\n' > keep.txt
printf 'moves from name to name\\n' > tree/renamed.txt
cat "$HOLDFAST_INPUTS/left" "$HOLDFAST_INPUTS/right" > tree/made.txt
"""
EDITED = {
    "keep.txt": "kept, old\n",
    "tree/gone.txt": "goes away\n",
    "tree/name.txt": "moves from name to name\n",
}


class Act(NamedTuple):
    """One command, and how it ends if nothing disturbs it."""

    words: tuple[str, ...]
    code: int = 0

    @property
    def name(self) -> str:
        return self.words[0]


@dataclass(frozen=True)
class Play:
    """A project and the commands that bring it to its end."""

    name: str
    plan: Callable[[], dict[str, Any]] | None
    acts: tuple[Act, ...]
    files: Mapping[str, str]
    models: bool = False  # a server answers
    shared: bool = False  # its store is a schema of a PostgreSQL server
    ticket: bool = False

    def lay(self, folder: Path, url: str = "") -> None:
        """Write the project, and what the person has at home."""
        root, home = folder / "project", folder / "home"
        plans.write_project(root, self.plan() if self.plan else {}, dict(self.files))
        if self.plan is None:
            (root / "plan.yaml").unlink()
        config = home / ".config" / "holdfast" / "config.toml"
        config.parent.mkdir(parents=True)
        config.write_text(CONFIG.format(url=url) if self.models else "")
        if self.ticket:
            (home / ".gitconfig").write_text(PERSON)
            (folder / "script.json").write_text(json.dumps(SCRIPT))
            repository(root, {".gitignore": ".holdfast/\n"})


def _turn(use: str, **given: Any) -> dict[str, Any]:
    return {"use": use, "with": given}


_WRITTEN = "{}\n<<<<<<< SEARCH\n{}=======\n{}>>>>>>> REPLACE\n"
SCRIPT = {
    "schema": "holdfast.script/1",
    "cycles": [
        [
            [
                _turn("edit", edit=_WRITTEN.format("notes.txt", "old\n", "new\n")),
                _turn("finish", summary="Write the notes", ready=True),
            ]
        ]
    ],
}


def whole() -> dict[str, Any]:
    """Eight steps; the ticket after them has two."""
    good = 'grep -q good "$HOLDFAST_ARTIFACT" || { echo not good; exit 1; }'
    return {
        "name": "whole",
        "steps": {
            "read": {"shell": noted("cat words.txt"), "inputs": ["words.txt"]},
            "left": {"shell": noted("seq 1 8000"), "needs": ["read"]},
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
            "edit": {
                "shell": noted(EDIT),
                "needs": ["left", "middle", "right"],
                "produces": ["keep.txt", "tree"],
                "workspace": "scratch",
            },
            "again": {
                "shell": noted(AGAIN),
                "needs": [{"step": "edit", "type": "sequence"}],
                "produces": "again.txt",
                "retries": 1,
                "guards": [{"command": ["sh", "-c", good]}],
            },
            "ask": {"prompt": "name a tide", "model": "fake:m", "needs": ["again"]},
            "publish": {
                "shell": noted('cat "$HOLDFAST_INPUTS/ask" keep.txt > site.txt'),
                "needs": ["ask", "edit"],
                "produces": "site.txt",
                "approve": "always",
            },
        },
    }


def linear() -> dict[str, Any]:
    """Three steps in a row."""
    return {
        "name": "linear",
        "steps": {
            "a": {"shell": noted("echo a")},
            "b": {"shell": noted('cat "$HOLDFAST_INPUTS/a"; echo b'), "needs": ["a"]},
            "c": {
                "shell": noted('cat "$HOLDFAST_INPUTS/b" > c.txt'),
                "needs": ["b"],
                "produces": "c.txt",
            },
        },
    }


def fan_out() -> dict[str, Any]:
    """One, three at once, and their join."""
    steps: dict[str, Any] = {"a": {"shell": noted("echo a")}}
    for name in "bcd":
        body = f'cat "$HOLDFAST_INPUTS/a"; echo {name}'
        steps[name] = {"shell": noted(body), "needs": ["a"]}
    steps["e"] = {"shell": noted('cat "$HOLDFAST_INPUTS"/*'), "needs": ["b", "c", "d"]}
    return {"name": "fan-out", "steps": steps}


def approval() -> dict[str, Any]:
    """One step that waits for a yes, between two."""
    return {
        "name": "approval",
        "project": "shop",
        "steps": {
            "build": {"shell": noted("echo site")},
            "publish": {
                "shell": noted('cat "$HOLDFAST_INPUTS/build" > site.txt'),
                "needs": ["build"],
                "produces": "site.txt",
                "approve": "always",
            },
            "tell": {"shell": noted("cat site.txt"), "needs": ["publish"]},
        },
    }


def edit() -> dict[str, Any]:
    """Four files in one edit."""
    steps = {
        name: {"shell": noted(f"echo {name}")} for name in ("left", "right")
    }  # what the edit is made of
    return {
        "name": "edit",
        "steps": {
            **steps,
            "edit": {
                "shell": noted(EDIT),
                "needs": ["left", "right"],
                "produces": ["keep.txt", "tree"],
                "workspace": "scratch",
            },
        },
    }


ANSWERED: Sequence[Act] = (Act(RUN, WAITS), Act(APPROVE), Act(RESUME))
REF = Play(
    "reference",
    whole,
    (*ANSWERED, Act(WORK)),
    {
        **EDITED,
        "words.txt": "tide rock kelp\n",
        "work.py": plans.WORK,
        "again.txt": "what was there before\n",
        "notes.txt": "old\n",
    },
    models=True,
    ticket=True,
)
PLAYS = {
    play.name: play
    for play in (
        REF,
        Play("linear", linear, (Act(RUN),), {}),
        Play("fan-out", fan_out, (Act(("run", "-j", "3", "--yes")),), {}),
        Play("approval", approval, tuple(ANSWERED), {}),
        Play("edit", edit, (Act(RUN),), EDITED),
        Play("git", None, (Act(WORK),), {"notes.txt": "old\n"}, ticket=True),
        Play("PostgreSQL", approval, tuple(ANSWERED), {}, shared=True),
    )
}
