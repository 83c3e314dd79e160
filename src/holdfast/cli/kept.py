"""Lines as a store keeps them: versions and last run; found by name, by words, by the first digits."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast import wire
from holdfast.cli.history import run_word
from holdfast.cli.place import Place, goal_line, is_goal
from holdfast.cli.titles import brief, is_planning, line_title
from holdfast.engine.journals import read_state, runs_of
from holdfast.engine.versions import PLANNED, Version, kept_plan, lines_of, versions
from holdfast.errors import IntegrityError, UsageError
from holdfast.model.digest import Json
from holdfast.model.plan import Plan, RunId
from holdfast.model.text import is_count
from holdfast.planner.goal import PLANNING
from holdfast.ports import Store

SHORTEST = 6


@dataclass(frozen=True, slots=True)
class Kept:
    """A line as the store has it: its versions, oldest first, and its last run."""

    project: str
    line: str
    versions: tuple[Version, ...]
    plan: Plan | None  # the latest version
    runs: int
    last: RunId | None
    status: str
    at: int  # when it last changed

    @property
    def goal(self) -> str:
        """The goal of the latest plan."""
        return self.plan.goal if self.plan is not None else ""

    @property
    def title(self) -> str:
        """The line as people know it."""
        return line_title(self.line, self.goal)


def all_kept(where: Place, *, every: bool) -> list[Kept]:
    """The lines that have a plan, the last changed first; with `every`, also those that plans are made on."""
    if not where.exists():
        return []
    store = where.open(readonly=True)
    try:
        lines = [kept_line(store, *line) for line in lines_of(store)]
    finally:
        store.close()
    there = [item for item in lines if item.versions or item.runs]  # not forgotten
    shown = [item for item in there if every or (item.versions and not is_planning(item.line))]
    return sorted(shown, key=lambda item: (-item.at, item.line))


def kept_line(store: Store, project: str, line: str) -> Kept:
    """One line as the store has it."""
    found = versions(store, project, line)
    rows = runs_of(store, project, line)
    state = read_state(store, rows[-1].run) if rows else None
    live = wire.live_runs(store)
    status = run_word(rows[-1], state, driven=rows[-1].run in live) if rows and state else ""
    times = [one.at for one in found[-1:]]
    if state is not None:
        times.append(state.ended_at or state.since or state.started_at)
    plan = None
    if found:
        try:
            plan = kept_plan(store, found[-1].plan)
        except IntegrityError:  # a person had it removed
            plan = None
    last = rows[-1].run if rows else None
    return Kept(project, line, tuple(found), plan, len(rows), last, status, max(times, default=0))


def line_json(item: Kept) -> dict[str, Json]:
    """A line as programs read it."""
    return {
        "line": item.line,
        "project": item.project,
        "goal": item.goal or None,
        "plan": item.versions[-1].plan if item.versions else None,
        "steps": len(item.plan.steps) if item.plan is not None else 0,
        "versions": len(item.versions),
        "planned": bool(item.versions) and item.versions[-1].reason in PLANNED,
        "runs": item.runs,
        "last_run": item.last,
        "status": item.status or None,
        "changed_at": item.at,
    }


def chosen(where: Place, store: Store, given: str | None) -> Kept:
    """The line that is meant: by its name, the words of a goal, or the first digits of its digest."""
    lines = lines_of(store)
    name = given if given is not None else where.line()
    if name is not None and is_goal(name):
        name = goal_line(name)
    if name is None:
        mine = [line for line in lines if not is_planning(line[1])]
        if len(mine) != 1:
            raise UsageError("which line is meant?", hint="holdfast plans list")
        return kept_line(store, *mine[0])
    found = [line for line in lines if line[1] == name]
    if not found and len(name) >= SHORTEST:
        start, plans = name.removesuffix(PLANNING), is_planning(name)
        found = [
            line for line in lines if line[1].startswith(start) and is_planning(line[1]) == plans
        ]
    if len(found) == 1:
        return kept_line(store, *found[0])
    if not found:
        raise UsageError(f"there is no line '{name}'", hint="holdfast plans list")
    raise UsageError(f"'{name}' fits {len(found)} lines", hint="holdfast plans list")


def standing(item: Kept) -> Version:
    """The version that a run would take: of a goal the last that was planned, else the latest."""
    made = [one for one in item.versions if one.reason in {"planned", "replanned"}]
    return made[-1] if made else version_of(item, None)


def version_of(item: Kept, given: str | None) -> Version:
    """A version by the first digits of its digest, or counted back: @ is the latest, @-1 the one before."""
    if not item.versions:
        raise UsageError(f"no plan of '{brief(item.line)}' is kept", hint="holdfast plans list")
    if given is None or given == "@":
        return item.versions[-1]
    if given.startswith("@-") and is_count(given[2:]):
        back = int(given[2:])
        if back < len(item.versions):
            return item.versions[-1 - back]
    found = {one.plan: one for one in item.versions if one.plan.startswith(given.lower())}
    if len(given) >= SHORTEST and len(found) == 1:
        return next(iter(found.values()))
    raise UsageError(
        f"'{brief(item.line)}' has no version '{given}'",
        hint=f"holdfast plans show {brief(item.line)}",
    )
