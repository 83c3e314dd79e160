"""A model that plays a script: for tests, demonstrations and replays, through the very path of the others.

    schema: holdfast.script/1
    cycles:
      - - {use: read, with: {path: tides.py}}          one turn
        - [{use: edit, with: {edit: "…"}}, {use: run, with: {command: pytest -q}}]
        - {use: finish, with: {summary: done, ready: true}}
      - attempts: [[…], […]]                           a cycle whose first attempt the checks refuse

Which turn comes next is read off the conversation, so after a kill it goes on where it was.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from holdfast.errors import CallError, UsageError
from holdfast.model.call import Answer, Request, ToolUse, Usage
from holdfast.model.digest import Json, digest_bytes
from holdfast.ports import Rates
from holdfast.worker.written import read_plain

SCHEMA = "holdfast.script/1"
PROVIDER = "script"
_WHERE = re.compile(r"# CYCLE\n(\d+) of at most \d+, attempt (\d+)")

Turn = Sequence[Mapping[str, Json]]


class Script:
    """The turns of a script, by cycle and attempt."""

    def __init__(self, cycles: Sequence[Sequence[Sequence[Turn]]], digest: str) -> None:
        self._cycles = cycles
        self.model = f"{PROVIDER}:{digest[:12]}"

    def cost(self, model: str, usage: Usage) -> int | None:
        """Nobody is paid."""
        del model, usage
        return 0

    def room(self, provider: str) -> Rates:
        """As fast as anybody asks."""
        del provider
        return Rates()

    def load(self, provider: str) -> None:
        """There is nothing to load."""

    async def ask(
        self, request: Request, listen: Callable[[str], None], leaves: Callable[[], None]
    ) -> Answer:
        """The next turn; CallError if the script has none."""
        del leaves
        found = _WHERE.search(request.messages[1].text)
        if found is None:
            raise CallError("a script plays cycles of tickets alone", reason="call_refused")
        cycle, attempt = int(found[1]), int(found[2])
        number = sum(1 for message in request.messages if message.role == "assistant")
        try:
            turn = self._cycles[cycle - 1][attempt - 1][number]
        except IndexError:
            where = f"turn {number + 1} of attempt {attempt} of cycle {cycle}"
            raise CallError(f"the script has no {where}", reason="call_refused") from None
        text = "".join(str(item["say"]) for item in turn if "say" in item)
        listen(text)
        return Answer(
            text or "(a turn of the script)", tuple(_uses(turn, number)), "tools", Usage(1, 1)
        )

    async def close(self) -> None:
        """Nothing is kept."""


def read_script(text: str) -> Script:
    """The script in a text, YAML or JSON; UsageError says what is wrong with it."""
    data = read_plain(text, "the script")
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise UsageError(f"the script does not say 'schema: {SCHEMA}'")
    cycles = data.get("cycles")
    if not isinstance(cycles, list) or not cycles:
        raise UsageError("the script has no cycles", hint="cycles: [[{use: finish, with: {…}}]]")
    read = [_attempts(cycle, at) for at, cycle in enumerate(cycles, 1)]
    return Script(read, digest_bytes(text.encode()))


def _attempts(cycle: object, at: int) -> list[list[Turn]]:
    if isinstance(cycle, dict) and isinstance(cycle.get("attempts"), list):
        return [_turns(attempt, at) for attempt in cycle["attempts"]]
    return [_turns(cycle, at)]


def _turns(given: object, at: int) -> list[Turn]:
    if not isinstance(given, list):
        raise UsageError(f"cycle {at} of the script is no list of turns")
    return [_turn(turn if isinstance(turn, list) else [turn], at) for turn in given]


def _turn(items: Sequence[object], at: int) -> Turn:
    for item in items:
        is_use = isinstance(item, dict) and isinstance(item.get("use"), str)
        if not is_use and not (isinstance(item, dict) and isinstance(item.get("say"), str)):
            raise UsageError(
                f"a turn of cycle {at} of the script uses nothing and says nothing",
                hint="{use: TOOL, with: {…}} or {say: TEXT}",
            )
    return cast("Turn", items)


def _uses(turn: Turn, number: int) -> list[ToolUse]:
    uses = [item for item in turn if "use" in item]
    return [
        ToolUse(f"t{number}-{at}", str(item["use"]), json.dumps(item.get("with") or {}))
        for at, item in enumerate(uses)
    ]
