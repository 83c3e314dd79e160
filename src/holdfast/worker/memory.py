"""What a cycle knows of itself: a fold over the tools that were used and what they answered.

Nothing else is remembered, so after a kill the stored answers bring back exactly what was known before.
What a tool did stands in the first lines of its answer, in a form that is read back here:

    state 4b825dc6…                    the files are as this state holds them
    file src/tides.py 9f86d081…        the model has seen, or made, this content
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from holdfast.model.digest import Json
from holdfast.model.fixed import fixed

_STATE = re.compile(r"state ([0-9a-f]{40,64})\Z")
_FILE = re.compile(r"file (.+) ([0-9a-f]{64}|-)\Z")
_OVER = frozenset({"finish", "ask"})

TAKEN_BACK = "what it changed was taken back: "


@fixed
class Mark:
    """A commit that the model wants: the files at this state, under this message, for these nodes."""

    state: str
    message: str
    nodes: tuple[str, ...] = ()


@dataclass(slots=True)
class Memory:
    """What is known after some uses of tools; `state` is where the files are."""

    state: str
    saw: dict[str, str | None] = field(default_factory=dict)
    marks: list[Mark] = field(default_factory=list)
    nodes: list[Mapping[str, Json]] = field(default_factory=list)
    plan: tuple[str, ...] = ()
    ended: str = ""  # finish or ask
    last: Mapping[str, Json] = field(default_factory=dict)  # what was said at the end
    used: dict[tuple[str, str, str], int] = field(default_factory=dict)  # and in which turn
    lost: list[str] = field(default_factory=list)  # why what commands changed was taken back
    refused: int = 0  # uses in a row that were tried before in the same state

    def key(self, tool: str, arguments: str) -> tuple[str, str, str]:
        """What makes a use the same as an earlier one."""
        return tool, _canonical(arguments), self.state

    def learn(self, tool: str, arguments: str, answer: str, turn: int, *, ok: bool) -> None:
        """Take in one use and its answer."""
        self.used.setdefault(self.key(tool, arguments), turn)
        self._look(answer)
        if tool == "run":  # after its state and how it ended; what it said itself comes later
            self.lost += [line for line in answer.splitlines()[1:3] if line.startswith(TAKEN_BACK)]
        if ok:
            self._heed(tool, cast("Mapping[str, Json]", json.loads(arguments or "{}")))

    def _look(self, answer: str) -> None:
        for line in answer.splitlines():
            if state := _STATE.match(line):
                self.state = state[1]
            elif file := _FILE.match(line):
                self.saw[file[1]] = None if file[2] == "-" else file[2]
            else:
                return

    def _heed(self, tool: str, given: Mapping[str, Json]) -> None:
        if tool == "commit":
            nodes = tuple(cast("list[str]", given.get("nodes", [])))
            self.marks.append(Mark(self.state, str(given["message"]), nodes))
        elif tool == "tree":
            self.nodes += cast("list[Mapping[str, Json]]", given["nodes"])
        elif tool == "plan":
            self.plan = tuple(cast("list[str]", given.get("steps", self.plan)))
        elif tool in _OVER:
            self.ended, self.last = tool, given


def _canonical(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments or "{}"), sort_keys=True)
    except ValueError:
        return arguments
