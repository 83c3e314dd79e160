"""The versions of a line's plan: as runs began with them, or as models planned them for a goal."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import cast

from holdfast.core.refs import structure
from holdfast.engine.lines import Line, line_journal, tell_line
from holdfast.errors import IntegrityError
from holdfast.model.digest import Digest, Json
from holdfast.model.event import Recorded
from holdfast.model.fixed import fixed
from holdfast.model.line import LineEvent, PlansForgotten, PlanVersioned, ReplanAnswered
from holdfast.model.plan import Plan, RunId, plan_bytes, plan_from_json
from holdfast.ports import Store

_DIGITS = re.compile("[0-9a-f]{8,64}")
PLANNED = frozenset({"planned", "replanned"})
PREPARED = "prepared"  # it was ready to take the place of the one before
_BEGUN = frozenset({"", PREPARED})  # a run began with it


@fixed
class Version:
    """One version of a line's plan; `parent` is the one before it. `run` planned it, if a model did."""

    plan: Digest
    w_ref: Digest
    parent: Digest | None
    reason: str
    run: RunId
    by: str
    at: int
    answers: tuple[str, ...] = ()  # what spoke against the version before it


def versions_in(journal: Iterable[Recorded]) -> list[Version]:
    """The versions that a journal of a line tells of, oldest first; not those that runs grew to."""
    found: list[Version] = []
    for recorded in journal:
        event = recorded.event
        if isinstance(event, PlansForgotten):
            found.clear()
        elif isinstance(event, ReplanAnswered) and found and found[-1].plan == event.plan:
            found[-1] = replace(found[-1], answers=event.triggers)
        elif isinstance(event, PlanVersioned) and event.reason in _BEGUN | PLANNED:
            found.append(
                Version(
                    event.plan,
                    event.w_ref,
                    event.parent,
                    event.reason,
                    event.run,
                    event.by,
                    recorded.at,
                )
            )
    return found


def versions(store: Store, project: str, line: str) -> list[Version]:
    """The versions of a line's plan, oldest first."""
    return versions_in(store.read(line_journal(project, line)))


def forget_versions(
    store: Store, project: str, line: str, by: str, clock: Callable[[], int]
) -> None:
    """Let the versions of a line's plan count no more."""
    tell_line(store, project, line, lambda: (clock(), PlansForgotten(by), []))


def lines_of(store: Store) -> list[tuple[str, str]]:
    """All lines of which a store has runs or plans, as project and name; the order is that of names."""
    found = {(row.project, row.line) for row in store.runs(imported=True)}
    known = {line_journal(*line) for line in found}
    for journal in store.journals():
        if journal.startswith("line:") and journal not in known:
            for version in versions_in(store.read(journal))[-1:]:
                plan = kept_plan(store, version.plan)
                found.add((plan.project, plan.name))
    return sorted(found)


def planned(store: Store, project: str, line: str) -> Version | None:
    """The latest plan that a model made for the goal of a line."""
    found = [one for one in versions(store, project, line) if one.reason in PLANNED]
    return found[-1] if found else None


def find_version(store: Store, project: str, line: str, given: str) -> Version | None:
    """The one version of a line's plan whose digest begins so; None if there is none, or several."""
    if not _DIGITS.fullmatch(given):
        return None
    found = {
        version.plan: version
        for version in versions(store, project, line)
        if version.plan.startswith(given)
    }
    return next(iter(found.values())) if len(found) == 1 else None


def kept_plan(store: Store, digest: Digest) -> Plan:
    """A plan by its digest; IntegrityError if what is stored under it is none."""
    data = cast("dict[str, Json]", json.loads(store.get(digest)))
    if not isinstance(data, dict):
        raise IntegrityError(f"the content '{digest}' is no plan")
    return plan_from_json(data)


def keep_planned(store: Store, plan: Plan, run: RunId, by: str, clock: Callable[[], int]) -> None:
    """Make a plan that a model made in `run` the line's latest version; once, whoever else does the same."""
    digest, ref = store.put(plan_bytes(plan)), store.put(structure(plan))
    line, told = Line(store, plan.project, plan.name, clock), list[Recorded]()

    def say() -> LineEvent | None:
        found = versions_in(told)
        if found and (found[-1].plan, found[-1].run) == (digest, run):
            return None
        parent = found[-1].plan if found else None
        reason = "replanned" if any(one.reason in PLANNED for one in found) else "planned"
        return PlanVersioned(digest, ref, parent, reason, run, by=by)

    line.tell(say, lambda: told.extend(line.news()))
