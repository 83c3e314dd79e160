"""Lines that belong together: a fork begins with what another line made, and both write the same files."""

from __future__ import annotations

from holdfast.model.event import RunStarted
from holdfast.model.plan import RunId
from holdfast.ports import Store


def forked_with(store: Store, project: str, line: str) -> tuple[str, ...]:
    """The other lines of a line's family. Only the first run of a line can be a fork."""
    lines: dict[str, RunId] = {}
    of_run: dict[RunId, str] = {}
    for row in store.runs():
        if row.project == project:
            lines.setdefault(row.line, row.run)
            of_run[row.run] = row.line
    if len(lines) < 2:  # noqa: PLR2004 - a family has at least two
        return ()
    related: dict[str, set[str]] = {name: set() for name in lines}
    for name, run in lines.items():
        origin = of_run.get(_forked(store, run) or RunId(""))
        if origin is not None:
            related[name].add(origin)
            related[origin].add(name)
    family, pending = {line}, [line]
    while pending:
        fresh = related.get(pending.pop(), set()) - family
        family |= fresh
        pending += fresh
    return tuple(sorted(family - {line}))


def _forked(store: Store, run: RunId) -> RunId | None:
    for recorded in store.read(f"run:{run}"):
        event = recorded.event
        return event.forked if isinstance(event, RunStarted) else None
    return None
