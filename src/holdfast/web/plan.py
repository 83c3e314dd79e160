"""The plan as it is in its file, what `holdfast check` says of it, and the versions that are kept of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from holdfast import wire
from holdfast.cli.check import check_words, is_held
from holdfast.cli.differing import plan_words
from holdfast.cli.kept import Kept, chosen
from holdfast.cli.plans import version_words
from holdfast.core.compare import plan_change
from holdfast.core.waves import graph_of
from holdfast.engine.versions import Version, kept_plan
from holdfast.errors import HoldfastError, IntegrityError, PlanError, Problem, UsageError
from holdfast.formats.heading import python_part
from holdfast.formats.planfile import read_file
from holdfast.formats.planout import plan_yaml
from holdfast.web.look import Look
from holdfast.web.screens import page, screen

VERSIONS = 10
MOST_LINES = 5000
MOST_STEPS = 1000  # of a plan that is compared or written out while somebody waits for the page


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found in a plan: a sentence, and problems or warnings by their places."""

    words: str
    ok: bool
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Past:
    """A kept version, how it came about, and how it differs from the one before."""

    version: Version
    words: str
    change: str


@dataclass(frozen=True, slots=True)
class Text:
    """The lines of a plan that are shown, those with a problem marked."""

    name: str
    lines: tuple[str, ...]
    left_out: int
    marked: frozenset[int]


def checked(look: Look) -> Checked:
    """The plan file as it is now; a problem of it is an answer, not an error."""
    try:
        loaded = look.where.load(held=is_held)
        graph = graph_of(loaded.plan)
    except PlanError as error:
        count = len(error.problems)
        return Checked(
            f"{count} problem{'' if count == 1 else 's'}", ok=False, problems=error.problems
        )
    except UsageError as error:
        return Checked(error.message, ok=False)
    return Checked(check_words(look.where, loaded, graph), ok=True, problems=loaded.warnings)


def text_of(look: Look, found: Checked, item: Kept | None) -> Text | None:
    """The plan file; without one the latest version that is kept, written as a file."""
    file, marked = look.where.file, frozenset(problem.line for problem in found.problems)
    if file is not None:
        path = python_part(file)[0] or file
        content, _ = read_file(path, walls=wire.walls_at(look.where.root))
        return _text(os.path.basename(path), content.decode("utf-8", "replace"), marked)
    if item is not None and item.plan is not None and len(item.plan.steps) <= MOST_STEPS:
        return _text(f"plan {item.versions[-1].plan[:12]}", plan_yaml(item.plan), frozenset())
    return None


def _text(name: str, text: str, marked: frozenset[int]) -> Text:
    lines = text.splitlines()
    return Text(name, tuple(lines[:MOST_LINES]), max(0, len(lines) - MOST_LINES), marked)


def history_of(look: Look, item: Kept) -> Sequence[Past]:
    """The last versions, newest first, each with how it differs from the one before it."""
    found, now = [], look.now
    newest = [*reversed(item.versions)]
    for place, version in enumerate(newest[:VERSIONS]):
        before = newest[place + 1] if place + 1 < len(newest) else None
        small = item.plan is not None and len(item.plan.steps) <= MOST_STEPS
        change = _change(look, before, version) if before is None or small else "compare"
        found.append(Past(version, version_words(version, now), change))
    return found


def _change(look: Look, before: Version | None, after: Version) -> str:
    if before is None:
        return "the first"
    try:
        old, new = (kept_plan(look.store, one.plan) for one in (before, after))
    except IntegrityError:
        return "no longer kept"
    return plan_words(plan_change(old, new))


def show(look: Look, request: Request) -> Response:
    """The plan with what is wrong with it, and its versions."""
    with look.speaking():
        try:
            item: Kept | None = chosen(look.where, look.store, None)
        except HoldfastError:
            item = None
        found = checked(look)
        values = {
            "found": found,
            "item": item,
            "text": text_of(look, found, item),
            "past": history_of(look, item) if item is not None else (),
        }
        return page(look, request, "plan.html", values)


ROUTES = [screen("/plan", show)]
