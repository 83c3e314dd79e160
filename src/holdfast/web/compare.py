"""Two runs or versions of a plan: what differs, in the words of `holdfast diff`; what is equal is hidden."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from holdfast.cli.diff import Difference, Wanted, cost_words, difference, outputs_words, time_words
from holdfast.cli.differing import Told, piece_lines, plan_words, value_lines
from holdfast.cli.pieces import Piece
from holdfast.cli.say import seconds
from holdfast.cli.sides import Side, side
from holdfast.core.compare import StepChange
from holdfast.core.state import COMPLETE
from holdfast.core.views import shown_phase
from holdfast.errors import UsageError
from holdfast.model.money import dollars
from holdfast.model.plan import StepId
from holdfast.web.look import Look
from holdfast.web.screens import address, number, page, screen

PAGE = 100  # steps on a page
_MEANT = re.compile(r"@(-\d{1,4})?|r-[0-9a-f-]{1,36}|[0-9a-f]{6,64}")
_ALL = Wanted(plan=False, outputs=False, time=False, cost=False, full=False, steps=frozenset())


@dataclass(frozen=True, slots=True)
class Changed:
    """A step that is not the same on both sides, or of which it is wanted to be seen that it is."""

    step: StepId
    how: str  # added, removed, changed or equal
    states: tuple[str, str]
    took: str
    cost: str
    keys: tuple[str, ...]
    lines: tuple[Told, ...]
    pieces: tuple[tuple[str, tuple[Told, ...]], ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """A page of what differs, with its sums."""

    before: Side
    after: Side
    sums: tuple[tuple[str, str], ...]
    head: tuple[Told, ...]
    rows: tuple[Changed, ...]
    known: int
    equal: int
    number: int

    @property
    def shown(self) -> str:
        """Which of the steps are on this page."""
        if len(self.rows) == self.known:
            return f"{self.known:,} shown"
        first = (self.number - 1) * PAGE
        return f"{first + 1:,} to {first + len(self.rows):,} of {self.known:,} shown"

    @property
    def pages(self) -> int:
        """How many pages of steps there are."""
        return max(1, -(-self.known // PAGE))


def compared(found: Difference, *, every: bool, wanted: int) -> Compared:
    """The page that is asked for; with `every`, also what is equal."""
    changes = {change.step: change for change in found.plan.changed}
    outputs: dict[StepId, list[Piece]] = {}
    for piece in found.outputs or ():
        outputs.setdefault(piece.step, []).append(piece)
    differing = {*found.plan.added, *found.plan.removed, *changes, *outputs, *_verdicts(found)}
    order = dict.fromkeys([*found.before.plan.steps, *found.after.plan.steps])
    shown = [step for step in order if every or step in differing]
    first = min(max(0, wanted - 1) * PAGE, max(0, (len(shown) - 1) // PAGE * PAGE))
    rows = [
        _changed(found, step, changes.get(step), outputs.get(step, ()), differing)
        for step in shown[first : first + PAGE]
    ]
    return Compared(
        before=found.before,
        after=found.after,
        sums=tuple(_sums(found)),
        head=tuple(line for key in found.plan.top for line in value_lines(key, full=False)),
        rows=tuple(rows),
        known=len(shown),
        equal=len(order) - len(differing),
        number=first // PAGE + 1,
    )


def _verdicts(found: Difference) -> Iterable[StepId]:
    """Steps that came out well on one side only."""
    one, two = found.before.state, found.after.state
    if one is None or two is None:
        return
    for step in one.steps:
        if step in two.steps:
            ends = {state.steps[step].phase in COMPLETE for state in (one, two)}
            if len(ends) > 1:
                yield step


def _sums(found: Difference) -> Iterable[tuple[str, str]]:
    yield "plan", plan_words(found.plan)
    if found.outputs is not None:
        yield "outputs", outputs_words(found)
    if found.times:
        yield "time", time_words(found.times)
    if found.costs:
        yield "cost", cost_words(found.costs)


def _changed(
    found: Difference,
    step: StepId,
    change: StepChange | None,
    pieces: Sequence[Piece],
    differing: set[StepId],
) -> Changed:
    how = "changed" if step in differing else "equal"
    how = "added" if step in found.plan.added else how
    how = "removed" if step in found.plan.removed else how
    old, new = found.times.get(step, (0, 0))
    before, after = found.costs.get(step, (0, 0))
    keys = change.keys if change is not None else ()
    return Changed(
        step=step,
        how=how,
        states=(_phase(found.before, step), _phase(found.after, step)),
        took=f"{seconds(old)} → {seconds(new)}" if old != new else "",
        cost=f"{dollars(before)} → {dollars(after)}" if before != after else "",
        keys=tuple(key.path for key in keys),
        lines=tuple(line for key in keys for line in value_lines(key, full=False)),
        pieces=tuple(
            (f"{piece.name}: {piece.words()}", tuple(piece_lines(piece, full=False)))
            for piece in pieces
        ),
    )


def _phase(one: Side, step: StepId) -> str:
    if one.state is None or step not in one.state.steps:
        return ""
    return shown_phase(one.state, step)


def sides_in(request: Request) -> tuple[str, str] | None:
    """The two things that an address names; None if it names none. Only runs and kept plans are meant."""
    query = request.query_params
    given = query.getlist("run") or [query.get("a", ""), query.get("b", "")]
    if not any(given):
        return None
    if len(given) != 2 or not all(_MEANT.fullmatch(one) for one in given):  # noqa: PLR2004 - a pair
        raise UsageError("two runs or two versions of a plan are compared", hint="tick two runs")
    return given[0], given[1]


def show(look: Look, request: Request) -> Response:
    """What differs between two runs or plans."""
    with look.speaking():
        given = sides_in(request)
        if given is None:
            rows = [*reversed(look.rows())][:50]
            return page(look, request, "comparewhat.html", {"rows": rows})
        before, after = (side(look.where, look.store, one) for one in given)
        if before.state and after.state and before.state.started_at > after.state.started_at:
            before, after, given = after, before, (given[1], given[0])
        every = request.query_params.get("all", "") == "1"
        differing = difference(look.store, before, after, _ALL)
        wanted = number(request.query_params.get("page"), 1)
        found = compared(differing, every=every, wanted=wanted)

        def turned(wanted: int) -> str:
            return address("/compare", a=given[0], b=given[1], all=int(every), page=wanted)

        values = {
            "found": found,
            "given": given,
            "every": every,
            "turned": turned,
            "other": address("/compare", a=given[0], b=given[1], all=0 if every else 1),
        }
        return page(look, request, "compare.html", values)


ROUTES = [screen("/compare", show)]
