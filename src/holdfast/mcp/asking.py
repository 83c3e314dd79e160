"""why, diff, ledger_query: questions about steps, runs and what was learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from holdfast.cli.diff import Wanted, compared
from holdfast.cli.ledger import PARTS, Part, learned_in, ledger_json, nothing_words, rows_of
from holdfast.cli.place import find_run
from holdfast.cli.say import heard, plain
from holdfast.cli.why import told_of, with_commands
from holdfast.cli.whytext import print_told, told_json
from holdfast.core.confidence import certainties
from holdfast.core.ledger import counting
from holdfast.core.single import One, narrowed
from holdfast.mcp.answer import Answer, Next, offset, page, without_next
from holdfast.mcp.desk import Desk
from holdfast.mcp.given import Given
from holdfast.model.digest import Json
from holdfast.model.event import Options

MOST_LINES = 80  # lines of one answer
_KEYS: Mapping[Part, str] = {"uncertain": "uncertainties"}  # where programs find a part
_PAGED = ("plan", "outputs", "time", "cost")


def why(desk: Desk, given: Given) -> Answer:
    """Why a step would run or be reused now, or did in a run."""
    step, run, against = given.text("step"), given.maybe("run_id"), given.maybe("against")
    with desk.here() as where:
        told = with_commands(told_of(where, step, Options(), run, against))
        with heard() as said:
            print_told(told)
        lines, commands = without_next(said.lines)
        data = told_json(told)
    data["next_commands"] = data.pop("next", None)
    following = [Next("step_read", {"ref": told.step.id, "part": "result"})]
    if told.decision in {"run", "maybe"}:
        following = [Next("plan_preview", {})]
    elif told.decision in {"failed", "waiting", "wait"}:
        following = [Next("run_status", {"run_id": told.run} if told.run else {})]
    return Answer(lines, data, following, commands)


def diff(desk: Desk, given: Given) -> Answer:
    """What differs between two runs, plans or attempts."""
    what, before, after = given.maybe("what") or "summary", given.text("a"), given.maybe("b")
    plans, outputs, times, costs = (what == name for name in _PAGED)
    wanted = Wanted(plans, outputs, times, costs, what != "summary", frozenset())
    with desk.here() as where:
        found = compared(where, before, after, wanted)
        with heard() as said:
            found.say()
    lines, _ = without_next(said.lines)
    start = offset(given.maybe("cursor"))
    end = start + MOST_LINES
    cursor = str(end) if end < len(lines) else None
    data = {**found.data, "differs": found.differs, "cursor": cursor}
    asked: dict[str, Json] = {"a": before, **({"b": after} if after else {})}
    following = []
    if cursor is not None:
        following.append(Next("diff", {**asked, "what": what, "cursor": cursor}))
    elif what == "summary" and found.differs:
        following += [Next("diff", {**asked, "what": name}) for name in ("plan", "outputs")]
    return Answer(lines[start:end], data, following or [Next("run_status", {})])


def ledger_query(desk: Desk, given: Given) -> Answer:
    """What was learned: entries of a kind, open ones, or those with a text in them."""
    kind = given.maybe("kind")
    part = next((one for one in PARTS if one == kind), None)
    with desk.here() as where:
        store = where.open(readonly=True)
        try:
            run = find_run(store, given.maybe("run_id"), where.line())
            found = learned_in(store, where.location, run).ledger
        finally:
            store.close()
    certain = certainties(counting(found))
    one = One(narrowed(found, part, (), unanswered=given.flag("open_only")))
    wanted = (given.maybe("text") or "").casefold()
    entries = ledger_json(one, certain)
    rows: list[Json] = []
    for name, written in rows_of(one, certain).items():
        for row, entry in zip(written, _entries(entries, name), strict=False):
            if not wanted or wanted in row.line.casefold():
                rows.append({"kind": name, "text": row.line, "entry": entry})
    shown = page(rows, given.maybe("cursor"))
    lines = [plain(f"{_at(row, 'kind')}: {_at(row, 'text')}") for row in shown.rows]
    data: dict[str, Json] = {
        "run": run,
        "count": len(rows),
        "entries": [{"kind": _at(row, "kind"), **_entry(row)} for row in shown.rows],
        "cursor": shown.cursor,
    }
    following = [Next("run_status")]
    if shown.cursor is not None:
        following.insert(0, Next("ledger_query", {**given.values, "cursor": shown.cursor}))
    empty = nothing_words(found, part, None, unanswered=given.flag("open_only"))
    return Answer(lines or [empty], data, following)


def _entries(data: Mapping[str, Json], part: Part) -> Sequence[Json]:
    found = data[_KEYS.get(part, part)]
    if isinstance(found, Mapping):
        return list(found.values())
    return cast("Sequence[Json]", found)


def _entry(row: Json) -> Mapping[str, Json]:
    return cast("Mapping[str, Json]", cast("Mapping[str, Json]", row)["entry"])


def _at(row: Json, name: str) -> Json:
    return cast("Mapping[str, Json]", row)[name]
