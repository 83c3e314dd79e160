"""The timeline of a run: a row for each step or group, in the order in which they began."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from starlette.requests import Request
from starlette.responses import Response

from holdfast.cli.ending import last_sign
from holdfast.cli.say import seconds
from holdfast.core.state import Phase, State
from holdfast.core.timeline import Axis, Bar, Worked, axis_of, critical_path, folded
from holdfast.core.views import shown_phase
from holdfast.model.items import key_in
from holdfast.model.plan import StepId
from holdfast.web.look import Look
from holdfast.web.run import Asked, asked_in, values_of
from holdfast.web.screens import address, page, run_path, screen
from holdfast.web.steps import Tree, kept_tree, mark_of

PATH = "/timeline"
PAGE = 200  # rows on a page
LEFT, ROW, THICK, TOP = 260, 22, 12, 40  # of the drawing: where time begins, how rows lie
WIDE = 1260
_LETTER = 6.8  # how wide a letter of a label is
DRAWN = {"wide": WIDE, "left": LEFT, "row": ROW, "thick": THICK, "top": TOP}
LONGEST = 34
_SECONDS = re.compile(r"\d{1,10}(\.\d{1,3})?")
_TICKS = 6
_FINE = 2000  # milliseconds: a shorter time is told in these
KINDS = {
    "": "steps that were worked on or waited",
    "all": "all steps",
    "failed": "steps that failed",
    "again": "steps that were tried more than once",
    "waited": "steps that waited for a person",
    "path": "the path that decided how long it took",
}


@dataclass(frozen=True, slots=True)
class Piece:
    """An attempt or a wait as it is drawn."""

    x: float
    width: float
    how: str
    words: str


@dataclass(frozen=True, slots=True)
class Row:
    """A step, or a group of them, with what was done for it."""

    step: StepId
    name: str
    depth: int
    phase: Phase
    y: int
    pieces: tuple[Piece, ...]
    label: str
    critical: bool
    size: int = 0  # steps in a group; 0 if it is none
    is_open: bool = False

    @property
    def mark(self) -> str:
        """The name of its element."""
        return mark_of(self.step)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Time that is cut out, or a mark on the axis, with its words."""

    x: float
    width: float
    words: str
    waiting: bool = False
    label: str = ""  # the words, where there is room for them

    @property
    def is_late(self) -> bool:
        """Whether its label ends where it ends, so as not to leave the drawing."""
        return self.x > WIDE / 2


@dataclass(frozen=True, slots=True)
class Chart:
    """A page of rows over one axis."""

    rows: tuple[Row, ...]
    cuts: tuple[Stretch, ...]
    ticks: tuple[Stretch, ...]
    known: int
    first: int
    left_out: int  # steps that nothing was done for
    knots: str = (
        ""  # places and seconds between which time is drawn alike, for a drag over the axis
    )

    @property
    def height(self) -> int:
        """Of the drawing."""
        return TOP + len(self.rows) * ROW + 10

    @property
    def pages(self) -> int:
        """How many pages of rows there are."""
        return max(1, -(-self.known // PAGE))

    @property
    def number(self) -> int:
        """Which of them this is."""
        return self.first // PAGE + 1


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which rows, which groups are open, and from when to when (milliseconds since the run began)."""

    kind: str = ""
    page: int = 1
    opened: tuple[str, ...] = ()
    begin: int = 0
    end: int = 0


def worked_in(look: Look, state: State) -> Worked:
    """What the run's journal says about time; only what is new is read."""
    found = look.made(state, "worked", Worked, until=0)
    for recorded in look.store.read(f"run:{state.run}", found.seq):
        found.take(recorded)
    return found


def chart_of(look: Look, state: State, wanted: Wanted) -> Chart:
    """The rows that are asked for, drawn."""
    worked, tree = worked_in(look, state), kept_tree(look, state)
    now = look.now if look.is_driven(state) or state.counts["waiting"] else last_sign(state)
    now = worked.last if worked.over else max(now, worked.last)
    path = look.made(state, "path", lambda: frozenset(critical_path(state.graph, worked)))
    bars = {step: found for step, found in worked.all(now).items() if step in state.steps}
    begin = state.started_at + wanted.begin
    end = min(now, state.started_at + wanted.end) if wanted.end > wanted.begin else now
    end = max(end, begin + 1)

    def drawn_axis() -> Axis:
        return axis_of((bar for found in bars.values() for bar in found), begin, end)

    axis = look.made(state, "axis", drawn_axis, until=hash((state.seq, begin, end)))
    rows = look.made(
        state,
        "rows",
        lambda: _order(tree, bars, _shown(state, bars, path, wanted.kind), wanted.opened, state),
        until=hash((state.seq, wanted.kind, wanted.opened)),
    )
    first = min(max(0, wanted.page - 1) * PAGE, max(0, (len(rows) - 1) // PAGE * PAGE))
    draw = _Draw(state, tree, bars, axis, path, begin, end)
    drawn = [
        draw.row(place, step, depth, is_open=step in wanted.opened)
        for place, (step, depth) in enumerate(rows[first : first + PAGE])
    ]
    cuts = [
        Stretch(
            _x(cut.left),
            _width(cut.left, cut.right),
            _cut_words(cut.lasted, cut.waiting),
            cut.waiting,
        )
        for cut in axis.cuts
    ]
    ticks = _ticks(axis, state.started_at)
    left_out = len(state.steps) - len(bars) if wanted.kind == "" else 0
    knots = " ".join(
        f"{_x(place)}:{(moment - state.started_at) / 1000:.3f}"
        for moment, place in zip(axis.moments, axis.places, strict=True)
    )
    return Chart(tuple(drawn), tuple(labelled(cuts)), ticks, len(rows), first, left_out, knots)


def labelled(cuts: Iterable[Stretch]) -> Iterator[Stretch]:
    """Stretches with labels that do not run into each other; the words of each are in its title too."""
    taken = 0.0
    for cut in cuts:
        long = len(cut.words) * _LETTER
        left = cut.x + cut.width - long if cut.is_late else cut.x
        if left < taken:
            yield cut
            continue
        taken = left + long + _LETTER
        yield replace(cut, label=cut.words)


def _cut_words(lasted: int, waiting: bool) -> str:
    return f"{seconds(lasted)} {'waiting for a person' if waiting else 'nobody worked'}"


def _shown(
    state: State, bars: Mapping[StepId, Sequence[Bar]], path: Collection[StepId], kind: str
) -> Collection[StepId]:
    """The steps that have a row of their own, as far as their group is open."""
    tests: dict[str, Callable[[StepId], bool]] = {
        "": lambda step: step in bars,
        "all": lambda _: True,
        "failed": lambda step: state.steps[step].phase == "failed",
        "again": lambda step: state.steps[step].attempts > 1,
        "waited": lambda step: any(bar.how == "waiting" for bar in bars.get(step, ())),
        "path": path.__contains__,
    }
    test = tests.get(kind, tests[""])
    return {step for step in state.graph.order if test(step)}


def _order(
    tree: Tree,
    bars: Mapping[StepId, Sequence[Bar]],
    shown: Collection[StepId],
    opened: Collection[str],
    state: State,
) -> list[tuple[StepId, int]]:
    """Rows in the order in which they began; what never began comes last, as the plan has it."""
    first: dict[StepId, tuple[int, int]] = {}
    for step in state.graph.order:
        if step not in shown:
            continue
        moment = min((bar.begun for bar in bars.get(step, ())), default=2**62)
        here: StepId | None = step
        while here is not None:
            first[here] = min(first.get(here, (2**63, 0)), (moment, state.graph.rank[step]))
            here = tree.above.get(here)
    found: list[tuple[StepId, int]] = []
    left = [(step, 0) for step in _last_first(tree.tops, first)]
    while left:
        step, depth = left.pop()
        found.append((step, depth))
        if step in opened:
            left += [(one, depth + 1) for one in _last_first(tree.inside.get(step, ()), first)]
    return found


def _last_first(steps: Iterable[StepId], first: dict[StepId, tuple[int, int]]) -> list[StepId]:
    return sorted((step for step in steps if step in first), key=first.__getitem__, reverse=True)


@dataclass(frozen=True, slots=True)
class _Draw:
    """What every row needs to be drawn."""

    state: State
    tree: Tree
    bars: Mapping[StepId, Sequence[Bar]]
    axis: Axis
    path: Collection[StepId]
    begin: int
    end: int

    def row(self, place: int, step: StepId, depth: int, *, is_open: bool) -> Row:
        inner = self.tree.inside.get(step, ())
        members = [step, *self._below(step)] if inner and not is_open else [step]
        bars = [bar for one in members for bar in self.bars.get(one, ())]
        if len(members) > 1:
            bars = [*folded(bars)]
        pieces = tuple(self._piece(bar) for bar in bars if self._is_seen(bar))
        head = self.tree.above.get(step)
        name = step if head is None else key_in(head, step)
        phase = shown_phase(self.state, step)
        told = "; ".join(piece.words for piece in pieces[:6]) or "nothing was done"
        critical = any(one in self.path for one in members)
        decided = ", on the path that decided how long it took" if critical else ""
        size = len([one for one in members if one not in self.tree.inside]) if inner else 0
        several = f", {size:,} steps" if inner and not is_open else ""
        return Row(
            step=step,
            name=name,
            depth=depth,
            phase=phase,
            y=TOP + place * ROW,
            pieces=pieces,
            label=f"{step}{several}: {phase}, {told}{decided}",
            critical=critical,
            size=len(inner) if inner else 0,
            is_open=is_open,
        )

    def _below(self, step: StepId) -> Iterator[StepId]:
        left = [*self.tree.inside.get(step, ())]
        while left:
            one = left.pop()
            yield one
            left += self.tree.inside.get(one, ())

    def _is_seen(self, bar: Bar) -> bool:
        return bar.ended >= self.begin and bar.begun <= self.end

    def _piece(self, bar: Bar) -> Piece:
        left, right = self.axis.at(bar.begun), self.axis.at(bar.ended)
        took = seconds(bar.ended - bar.begun)
        words = f"waited {took}" if bar.how == "waiting" else f"{bar.how}, {took}"
        if bar.attempt:
            words = f"attempt {bar.attempt} {words}"
        return Piece(_x(left), max(1.5, _width(left, right)), bar.how, words)


def _x(place: float) -> float:
    return round(LEFT + place * (WIDE - LEFT - 20) / 1000, 1)


def _width(left: float, right: float) -> float:
    return round((right - left) * (WIDE - LEFT - 20) / 1000, 1)


def _ticks(axis: Axis, origin: int) -> tuple[Stretch, ...]:
    """A few moments on the axis, as time since the run began; none inside of a cut."""
    found, fine = [], axis.moments[-1] - axis.moments[0] < _FINE
    for number in range(_TICKS + 1):
        place = 1000 * number / _TICKS
        if not any(cut.left - 40 < place < cut.right + 40 for cut in axis.cuts):
            moment = _moment(axis, place)
            found.append(Stretch(_x(place), 0, _since(moment - origin, fine=fine)))
    return tuple(found)


def _since(moment: int, *, fine: bool) -> str:
    return f"{moment} ms" if fine else seconds(moment)


def _moment(axis: Axis, place: float) -> int:
    for one, two, left, right in zip(
        axis.moments, axis.moments[1:], axis.places, axis.places[1:], strict=False
    ):
        if left <= place <= right:
            return int(one + (two - one) * (place - left) / max(1e-9, right - left))
    return axis.moments[-1]


def wanted_in(request: Request, asked: Asked) -> Wanted:
    """Read which rows an address asks for."""
    query = request.query_params
    kind = query.get("show", "")
    return Wanted(
        kind if kind in KINDS else "",
        asked.page,
        asked.opened,
        _ms(query.get("from")),
        _ms(query.get("to")),
    )


def _ms(text: str | None) -> int:
    """Seconds of an address as milliseconds."""
    return int(float(text) * 1000) if text and _SECONDS.fullmatch(text) else 0


@dataclass(frozen=True, slots=True)
class Links:
    """The same timeline with something else."""

    asked: Asked
    wanted: Wanted

    def path(self, **other: object) -> str:
        """Where the same is shown with something else."""
        said: dict[str, object] = {
            "show": self.wanted.kind,
            "page": self.wanted.page if self.wanted.page > 1 else "",
            "open": "\n".join(self.wanted.opened),
            "from": self.wanted.begin / 1000 or "",
            "to": self.wanted.end / 1000 or "",
            "step": self.asked.step,
        }
        return address(run_path(self.asked.run, PATH), **{**said, **other})

    def turned(self, number: int) -> str:
        """Another page of rows."""
        return self.path(page=number)

    def toggled(self, step: str) -> str:
        """The same with a group opened, or folded."""
        rest = [one for one in self.wanted.opened if one != step]
        return self.path(open="\n".join(rest if step in self.wanted.opened else [*rest, step]))


def show(look: Look, request: Request) -> Response:
    """The timeline of a run."""
    state = look.find(request.path_params["run"])
    with look.speaking(state.line, state.file):
        asked = asked_in(request, state)
        wanted = wanted_in(request, asked)
        values = {
            "tab": "timeline",
            "chart": chart_of(look, state, wanted),
            "links": Links(asked, wanted),
            "wanted": wanted,
            "kinds": KINDS,
            "drawn": DRAWN,
            "longest": LONGEST,
            **values_of(look, request, state),
        }
        return page(look, request, "timeline.html", values)


ROUTES = [screen(f"/runs/{{run}}{PATH}", show)]
