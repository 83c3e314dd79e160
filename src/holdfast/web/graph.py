"""The graph of a run: a bounded picture, level by level, in which nothing moves when states change.

Which boxes there are and where each stands is worked out of the plan alone and kept; a request adds only the
states. A place in the picture is `at` a step, so many levels deep (see `core.collapse`); `focus` shows what
lies around one step instead.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from starlette.requests import Request
from starlette.responses import Response

from holdfast.cli.drawings import HEIGHT, LONGEST, Grid, arrow, cut, grid_of
from holdfast.core.collapse import Families, Level, around, families, opened, scene
from holdfast.core.layout import Box, Picture
from holdfast.core.state import Phase, State
from holdfast.core.views import shown_phase
from holdfast.model.items import base_of, spelled_out, step_named
from holdfast.model.plan import StepId
from holdfast.model.text import clean
from holdfast.web.look import Look
from holdfast.web.run import asked_in, values_of
from holdfast.web.screens import address, number, page, run_path, screen
from holdfast.web.steps import mark_of

PATH = "/graph"
WORST: tuple[Phase, ...] = (
    "failed",
    "waiting",
    "running",
    "pending",
    "skipped",
    "done",
    "reused",
)
MOST_AROUND = 9  # levels up and down that a focus shows
_KEPT = 16  # pictures of one run
_DEEPEST = 99


@dataclass(frozen=True, slots=True)
class View:
    """What of a run's graph is looked at."""

    at: str = ""
    depth: int = 0
    focus: str = ""
    up: int = 2
    down: int = 2

    def query(self) -> dict[str, object]:
        """As it stands in an address."""
        if self.focus:
            return {"focus": self.focus, "up": str(self.up), "down": str(self.down)}
        return {"at": self.at, "depth": self.depth} if self.depth else {}


@dataclass(frozen=True, slots=True)
class Sketch:
    """What the plan alone decides: boxes, where each stands, the levels that lead here."""

    picture: Picture
    grid: Grid
    levels: tuple[Level, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the bar of a box: so many of its steps are in one state."""

    phase: Phase
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class Drawn:
    """A box as it is drawn now."""

    x: int
    y: int
    width: int
    name: str
    words: str
    label: str
    phase: Phase
    href: str
    step: StepId | None
    parts: tuple[Part, ...] = ()
    mark: str = ""
    dim: bool = False
    is_selected: bool = False


@dataclass(frozen=True, slots=True)
class Drawing:
    """Everything that the picture shows."""

    width: int
    height: int
    box_height: int
    boxes: tuple[Drawn, ...]
    arrows: tuple[str, ...]
    found: int | None  # boxes that fit what was looked for; None if nothing was


Link = Callable[[Box], str]


def sketch_of(look: Look, state: State, view: View) -> Sketch:
    """The picture of a view, worked out once for a plan."""
    size = len(state.steps)
    kept: OrderedDict[View, Sketch] = look.made(state, "graph", OrderedDict, until=size)
    if view not in kept:
        kin = look.made(state, "families", lambda: families(state.plan.steps), until=size)
        kept[view] = sketched(state, kin, view)
        if len(kept) > _KEPT:
            kept.popitem(last=False)
    return kept[view]


def sketched(state: State, kin: Families, view: View) -> Sketch:
    """The picture of a view."""
    graph, name = state.graph, state.line
    focus = step_named(view.focus, state.steps) if view.focus else None
    if focus is not None:
        level = Level(f"around {focus}", around(graph, focus, view.up, view.down))
        drawn = scene(graph, kin, level, alone=(focus,))
        return Sketch(drawn, grid_of(spelled(drawn)), (Level(name, graph.order), level))
    toward = step_named(view.at, state.steps) if view.at else None
    found = opened(graph, kin, name, toward, view.depth)
    return Sketch(found.picture, grid_of(spelled(found.picture)), found.levels)


def spelled(drawn: Picture) -> Picture:
    """The same with names as people read them, so that each has the room it takes."""
    boxes = (replace(box, name=clean(spelled_out(box.name))) for box in drawn.boxes)
    return replace(drawn, boxes=tuple(boxes))


def draw(
    sketch: Sketch, states: Mapping[StepId, Phase], link: Link, *, find: str = "", step: str = ""
) -> Drawing:
    """A picture with the states of its steps; what does not fit `find` is drawn faintly."""
    wanted = [word.casefold() for word in find.split()]
    grid, drawn = sketch.grid, sketch.picture
    above: dict[int, list[int]] = {}
    for one, other in drawn.arrows:
        above.setdefault(other, []).append(one)
    boxes = []
    for place, box in enumerate(drawn.boxes):
        after = [drawn.boxes[one].name for one in above.get(place, ())]
        shown = _drawn(box, grid, grid.placed.at[place], states, after, link(box))
        fits = not wanted or _fits(box, wanted)
        boxes.append(replace(shown, dim=not fits, is_selected=bool(step) and step in box.steps))
    arrows = [
        arrow(grid, (grid.placed.at[one], *path, grid.placed.at[other]))
        for (one, other), path in zip(drawn.arrows, grid.placed.paths, strict=True)
    ]
    found = sum(not box.dim for box in boxes) if wanted else None
    return Drawing(grid.width, grid.height, HEIGHT, tuple(boxes), tuple(arrows), found)


def _fits(box: Box, wanted: Sequence[str]) -> bool:
    return any(all(word in step.casefold() for word in wanted) for step in box.steps)


def _drawn(
    box: Box,
    grid: Grid,
    place: tuple[int, int],
    states: Mapping[StepId, Phase],
    after: Sequence[str],
    href: str,
) -> Drawn:
    phases = {states[step] for step in box.steps}
    phase = next(word for word in WORST if word in phases)
    counts = Counter(states[step] for step in box.steps if box.kind != "items" or base_of(step))
    is_one = len(box.steps) == 1
    words = phase if is_one else _words(counts)
    x, y, width = grid.lefts[place[0]], grid.top(place), grid.widths[place[0]]
    several = f"{len(after)} boxes" if len(after) > 3 else ", ".join(after)  # noqa: PLR2004 - a breath
    label = f"{box.name}: {words}" + (f", after {several}" if after else "")
    return Drawn(
        x=x,
        y=y,
        width=width,
        name=cut(clean(spelled_out(box.name)), LONGEST),
        words=words if is_one else cut(words, int(width / 6)),
        label=label if is_one else f"{label}; opens",
        phase=phase,
        href=href,
        step=box.steps[0] if is_one else None,
        parts=() if is_one else _parts(counts, x, width),
        mark=mark_of(box.steps[0]),
    )


def _words(counts: Mapping[Phase, int]) -> str:
    return ", ".join(f"{counts[word]:,} {word}" for word in WORST if counts.get(word))


def _parts(counts: Mapping[Phase, int], x: int, width: int) -> tuple[Part, ...]:
    whole, left, found = sum(counts.values()), float(x), []
    for phase in reversed(WORST):
        if counts.get(phase):
            share = width * counts[phase] / whole
            found.append(Part(phase, round(left, 2), round(share, 2)))
            left += share
    return tuple(found)


def states_of(state: State) -> dict[StepId, Phase]:
    """Where every step stands, in the words that are shown."""
    return {step: shown_phase(state, step) for step in state.steps}


def view_in(request: Request, state: State) -> View:
    """Read which part of the graph an address asks for."""
    query = request.query_params
    focus, at = query.get("focus", ""), query.get("at", "")
    return View(
        at=at if at and step_named(at, state.steps) else "",
        depth=min(_DEEPEST, number(query.get("depth"), 0)),
        focus=focus if focus and step_named(focus, state.steps) else "",
        up=min(MOST_AROUND, number(query.get("up"), 2)),
        down=min(MOST_AROUND, number(query.get("down"), 2)),
    )


def show(look: Look, request: Request) -> Response:
    """The graph of a run."""
    state = look.find(request.path_params["run"])
    with look.speaking(state.line, state.file):
        asked, view = asked_in(request, state), view_in(request, state)
        find = request.query_params.get("find", "").strip()
        sketch = sketch_of(look, state, view)
        where = run_path(state.run, PATH)

        def link(box: Box) -> str:
            if len(box.steps) == 1:
                return address(where, **view.query(), find=find, step=box.steps[0])
            depth = _DEEPEST if view.focus else len(sketch.levels)
            return address(where, at=box.steps[0], depth=depth, find=find)

        drawing = draw(sketch, states_of(state), link, find=find, step=asked.step)
        trail = [
            (level, address(where, at=sketch.levels[-1].steps[0], depth=depth, find=find))
            for depth, level in enumerate(sketch.levels)
        ]
        if view.focus:
            trail[0] = (sketch.levels[0], address(where, find=find))
        values = {
            "tab": "graph",
            "drawing": drawing,
            "trail": trail,
            "view": view,
            "find": find,
            "there": where,
            **values_of(look, request, state),
        }
        return page(look, request, "graph.html", values)


ROUTES = [screen(f"/runs/{{run}}{PATH}", show)]
