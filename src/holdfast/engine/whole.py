"""Whether a store still knows what was done: looked at before anybody acts on it, or takes it elsewhere.

A damaged row of the tables hides a run, or what a step made, as if it had never been. What runs did outside
would be done again. So the tables are compared with themselves, and with what the journals tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.engine.lines import line_journal
from holdfast.engine.rebuilt import holds
from holdfast.errors import IntegrityError
from holdfast.model.artifact import Artifact
from holdfast.model.digest import Digest
from holdfast.model.event import AttemptAccepted, Event
from holdfast.model.line import ContentPurged, RunCollected, RunImported, RunOpened
from holdfast.model.plan import Plan, RunId, StepId
from holdfast.ports import RunRow, Store

_FEW = 16  # steps that are asked for one by one
MEND = "holdfast repair"  # which says what is left to do, if there is something
_SAID: dict[type[Event], str] = {
    RunOpened: "run_opened",
    RunImported: "run_imported",
    RunCollected: "run_collected",
}


def assure(store: Store) -> None:
    """IntegrityError if a store may have forgotten anything that was done."""
    store.assure()
    assure_runs(store)


def assure_runs(store: Store) -> None:
    """IntegrityError if runs may be forgotten; what they made can be indexed again."""
    _refuse(unmatched(store))


def assure_plan(store: Store, plan: Plan, line: str) -> None:
    """The same for a line, if its plan has steps that nobody may repeat unasked."""
    for step in plan.steps.values():
        if step.done_once:
            store.assure()
            _refuse(unmatched(store, line_journal(plan.project, line)))
            _refuse(_untrue(store, plan, line))
            return


def _refuse(problems: Iterator[str]) -> None:
    for told in problems:
        raise IntegrityError(f"the store is damaged: {told}", hint=MEND)


def unmatched(store: Store, journal: str | None = None) -> Iterator[str]:
    """Runs of which the lines, the rows and the journals do not say the same; of one line if it is named.

    Runs may begin or be collected while it looks. So what it saw counts if a second look, which begins when
    the first one has ended, sees the same.
    """
    if seen := list(_unmatched_now(store, journal)):
        again = set(_unmatched_now(store, journal))
        yield from (told for told in seen if told in again)


def _unmatched_now(store: Store, journal: str | None) -> Iterator[str]:
    journals = store.journals()
    lines = [name for name in journals if name.startswith("line:") and journal in {None, name}]
    said, rows = _said_of_runs(store, lines), dict[RunId, RunRow]()
    for row in store.runs(imported=True):
        name = line_journal(row.project, row.line)
        if journal in {None, name}:
            rows[row.run] = row
            yield from _run_unmatched(store, row, said.get((name, row.run), ""))
    lost = [run for (_, run), kind in said.items() if kind != "run_collected" and run not in rows]
    yield from (f"run '{run}': its line names it, and it is not there" for run in lost)
    for name in sorted(journals) if journal is None else ():
        run = RunId(name.removeprefix("run:"))
        if name.startswith("run:") and run not in rows and run not in lost:
            yield f"journal '{name}': its run is not there"


def _run_unmatched(store: Store, row: RunRow, said: str) -> Iterator[str]:
    wanted = "run_imported" if row.imported else "run_opened"
    if not said:
        yield f"run '{row.run}': its line does not name it"
    elif said != wanted:
        yield f"run '{row.run}': its line has '{said}' of it, its row says '{wanted}'"
    if not store.last(f"run:{row.run}"):
        yield f"run '{row.run}': it has no journal"


def _said_of_runs(store: Store, lines: Sequence[str]) -> dict[tuple[str, RunId], str]:
    """By line and run: the last that the line has of its being there or not."""
    found: dict[tuple[str, RunId], str] = {}
    for journal, recorded in store.told(lines, _SAID):
        event = recorded.event
        if isinstance(event, RunOpened | RunImported | RunCollected):
            found[journal, event.run] = _SAID[type(event)]
    return found


def _untrue(store: Store, plan: Plan, line: str) -> Iterator[str]:
    """What stands of steps that nobody may repeat, and is unfit or old by the index alone."""
    made: dict[str, dict[tuple[StepId, int], Artifact]] = {}
    for row in _standing(store, plan, line):
        if not row.reusable or plan.steps[row.step].fresh_for is not None:
            made.setdefault(f"run:{row.run}", {})[row.step, row.attempt] = row
    if not made:
        return
    purged: set[Digest] | None = None
    for journal, (_, at, event) in store.told(made, [AttemptAccepted]):
        assert isinstance(event, AttemptAccepted)  # only those were asked for
        found = made[journal].get((event.step, event.attempt))
        if found is None:
            continue
        unfit = event.reusable and not found.reusable
        if unfit and purged is None:
            purged = _purged(store)
        if at != found.at or (unfit and not holds(store, found, purged or set())):
            yield f"the index has a wrong row of step '{found.step}' in run '{found.run}'"


def _standing(store: Store, plan: Plan, line: str) -> Iterator[Artifact]:
    """The newest that such steps gave."""
    once = [step.id for step in plan.steps.values() if step.done_once]
    if len(once) > _FEW:
        newest = store.newest_of_all(plan.project, line)
        yield from (newest[step] for step in once if step in newest)
        return
    yield from filter(None, (store.newest(plan.project, line, step) for step in once))


def _purged(store: Store) -> set[Digest]:
    lines = [name for name in store.journals() if name.startswith("line:")]
    events = (recorded.event for _, recorded in store.told(lines, [ContentPurged]))
    return {d for event in events if isinstance(event, ContentPurged) for d in event.digests}
