"""Which boxes stand for the steps of a large plan, and what is inside of each: bounded, level by level.

A plan has families of its own: the items of a `for_each` with the step that gathers them, and the steps of a
sub-plan. Each is one box. If that is still too much, boxes are joined: chains, then boxes between the same
neighbours, then neighbouring ranks, at last runs of boxes in the order of the plan. Whoever opens a box sees
what is inside of it, joined in the same way, so a few levels lead to every step.

All of it depends on the steps and their needs alone: what happens to a step moves nothing. A place in such a
picture is named by a step and a depth: so many boxes are opened on the way to that step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from holdfast.core.layout import Box, Picture
from holdfast.core.waves import Graph
from holdfast.model.items import base_of
from holdfast.model.plan import GATHER, Step, StepId

MOST_BOXES: Final = 300
MOST_ARROWS: Final = 1500
_WORTH: Final = 0.7  # of the boxes may be left by joining chains and neighbours, else it is no help
_COLUMNS, _ROWS = 6, 12  # of boxes without arrows: at most, and at least
_NEARLY_ALL: Final = 0.9  # of the steps of a level in one box: it is opened along with the level

Families = Mapping[StepId, tuple[StepId, ...]]


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a plan: its name, the steps in it, and how deep into families it has gone."""

    name: str
    steps: tuple[StepId, ...]
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Opened:
    """A picture and the levels that lead to it, the whole plan first."""

    picture: Picture
    levels: tuple[Level, ...]


def families(steps: Mapping[StepId, Step]) -> dict[StepId, tuple[StepId, ...]]:
    """For each step the families that it is in, the outermost first. One that gathers is in its own."""
    heads = {base for step_id in steps if (base := base_of(step_id)) is not None}
    heads |= {StepId(step.within) for step in steps.values() if step.within}
    known: dict[StepId, tuple[StepId, ...]] = {}
    for head in sorted(
        heads, key=len
    ):  # the name of an inner one begins with that of the outer one
        known[head] = (*_above(head, known), head)
    found: dict[StepId, tuple[StepId, ...]] = {}
    for step_id, step in steps.items():
        base = base_of(step_id)
        if step_id in known:
            found[step_id] = known[step_id]
        elif base is not None:
            found[step_id] = known[base]
        elif step.within:
            found[step_id] = known[StepId(step.within)]
        else:
            found[step_id] = _above(step_id, known) if step.uses == GATHER else ()
    return found


def _above(head: StepId, known: Families) -> tuple[StepId, ...]:
    """The families around one: a sub-plan gives its steps ids that begin with its own."""
    name = head.rpartition(".")[0]
    while name:
        if (found := known.get(StepId(name))) is not None:
            return found
        name = name.rpartition(".")[0]
    return ()


def whole(graph: Graph, name: str) -> Level:
    """The level at which everything begins."""
    return Level(name, graph.order)


def opened(graph: Graph, kin: Families, name: str, toward: StepId | None, depth: int) -> Opened:
    """The picture after so many boxes were opened on the way to a step; fewer if there are no more."""
    levels = [whole(graph, name)]
    drawn = scene(graph, kin, levels[-1])
    while toward is not None:
        box = next((box for box in drawn.boxes if toward in box.steps), None)
        if box is None or len(box.steps) == 1:
            break
        if len(levels) > 1 and len(box.steps) >= _NEARLY_ALL * len(levels[-1].steps):
            levels[-1] = replace(inside(levels[-1], box), name=levels[-1].name)
        elif len(levels) <= depth:
            levels.append(inside(levels[-1], box))
        else:
            break
        drawn = scene(graph, kin, levels[-1])
    return Opened(drawn, tuple(levels))


def inside(level: Level, box: Box) -> Level:
    """The level that a box opens; that of a family is deeper."""
    is_family = box.kind in {"items", "sub-plan"}
    return Level(box.name, box.steps, level.depth + 1 if is_family else level.depth)


def depth_of(graph: Graph, kin: Families, step_id: StepId) -> int:
    """How many boxes have to be opened until a step is one of its own."""
    return len(opened(graph, kin, "", step_id, len(graph.order)).levels) - 1


def around(graph: Graph, step_id: StepId, up: int, down: int) -> tuple[StepId, ...]:
    """A step with what it needs so many levels up, and what needs it so many down, in the plan's order."""
    found = {step_id}
    for count, above in ((up, True), (down, False)):
        edge = [step_id]
        for _ in range(count):
            near = (s for one in edge for s in _beside(graph, one, above=above))
            edge = [s for s in dict.fromkeys(near) if s not in found]
            found.update(edge)
    return tuple(sorted(found, key=graph.rank.__getitem__))


def _beside(graph: Graph, step_id: StepId, *, above: bool) -> Iterable[StepId]:
    if above:
        return (need.step for need in graph.steps[step_id].needs)
    return graph.dependents.get(step_id, ())


# --- one level ------------------------------------------------------------------------------------------


def scene(
    graph: Graph,
    kin: Families,
    level: Level,
    *,
    alone: Collection[StepId] = (),
    most_boxes: int = MOST_BOXES,
    most_arrows: int = MOST_ARROWS,
) -> Picture:
    """The boxes of a level, no more than allowed; the steps in `alone` are boxes of their own.

    Of several boxes at least two are left, so what is inside of one is always less than the whole.
    """
    drawn = _first(graph, _by_family(kin, level, alone), alone)
    helps = True
    while helps and not _fits(drawn, most_boxes, most_arrows):
        before = len(drawn.boxes)
        for join in (_chains, _alike):
            fewer = _merged(drawn, join(drawn))
            if len(fewer.boxes) > 1 and not _fits(drawn, most_boxes, most_arrows):
                drawn = fewer
        helps = len(drawn.boxes) <= before * _WORTH
    if not _fits(drawn, most_boxes, most_arrows):
        drawn = _bounded(graph, drawn, most_boxes, most_arrows)
    ranks = _ranks(graph, drawn)
    if not any(drawn.below):  # no rank says anything: in columns they are easier to look through
        columns = min(_COLUMNS, -(-len(ranks) // _ROWS))
        ranks = [place // -(-len(ranks) // columns) for place in range(len(ranks))]
    return Picture(
        tuple(replace(box, rank=rank) for box, rank in zip(drawn.boxes, ranks, strict=True)),
        tuple((one, two) for one, others in enumerate(drawn.below) for two in others),
    )


@dataclass(frozen=True, slots=True)
class _Drawn:
    """Boxes, with those that stand above and below each by their places."""

    boxes: Sequence[Box]
    above: Sequence[Sequence[int]]
    below: Sequence[Sequence[int]]
    fixed: frozenset[int]  # those that are joined with no other


def _fits(drawn: _Drawn, most_boxes: int, most_arrows: int) -> bool:
    return len(drawn.boxes) <= most_boxes and sum(map(len, drawn.below)) <= most_arrows


def _by_family(kin: Families, level: Level, alone: Collection[StepId]) -> list[Box]:
    """The steps of a level, each family together."""
    groups: dict[tuple[StepId, bool], list[StepId]] = {}
    for step_id in level.steps:
        own = kin[step_id]
        is_inner = len(own) > level.depth and step_id not in alone
        groups.setdefault((own[level.depth] if is_inner else step_id, is_inner), []).append(step_id)
    return [_family(name, members) for (name, _), members in groups.items()]


def _family(name: StepId, members: Sequence[StepId]) -> Box:
    if len(members) == 1:
        return Box(members[0], tuple(members), 0)
    items = sum(base_of(step_id) == name for step_id in members)
    if items:
        return Box(f"{name} ×{items:,}", tuple(members), 0, "items")
    return Box(f"{name}: {len(members):,} steps", tuple(members), 0, "sub-plan")


def _first(graph: Graph, boxes: Sequence[Box], alone: Collection[StepId]) -> _Drawn:
    place = {step: index for index, box in enumerate(boxes) for step in box.steps}
    arrows = {
        (place[need.step], index): None
        for index, box in enumerate(boxes)
        for step in box.steps
        for need in graph.steps[step].needs
        if need.step in place and place[need.step] != index
    }
    fixed = frozenset(i for i, box in enumerate(boxes) if box.steps[0] in alone)
    return _wired(boxes, arrows, fixed)


def _wired(
    boxes: Sequence[Box], arrows: Iterable[tuple[int, int]], fixed: frozenset[int]
) -> _Drawn:
    above: list[list[int]] = [[] for _ in boxes]
    below: list[list[int]] = [[] for _ in boxes]
    for one, other in arrows:
        below[one].append(other)
        above[other].append(one)
    for places in (*above, *below):
        places.sort()
    return _Drawn(boxes, above, below, fixed)


@dataclass(frozen=True, slots=True)
class _Group:
    """Boxes that become one, by their places, and what that is called; one alone stays as it is."""

    places: Sequence[int]
    name: str = ""
    kind: str = "steps"


def _merged(drawn: _Drawn, groups: Sequence[_Group]) -> _Drawn:
    place = {old: new for new, group in enumerate(groups) for old in group.places}
    boxes = []
    for group in groups:
        if len(group.places) == 1:
            boxes.append(drawn.boxes[group.places[0]])
            continue
        steps = tuple(step for old in group.places for step in drawn.boxes[old].steps)
        boxes.append(Box(group.name, steps, 0, group.kind))
    arrows = {
        (place[one], place[two]): None
        for one, others in enumerate(drawn.below)
        for two in others
        if place[one] != place[two]
    }
    return _wired(boxes, arrows, frozenset(place[one] for one in drawn.fixed))


def _chains(drawn: _Drawn) -> list[_Group]:
    """Boxes of which each leads only to the next, and the next comes only from it."""
    follows: dict[int, int] = {}
    for one, others in enumerate(drawn.below):
        alone = len(others) == 1 and len(drawn.above[others[0]]) == 1
        if alone and drawn.fixed.isdisjoint((one, others[0])):
            follows[one] = others[0]
    inner = set(follows.values())
    groups = []
    for one in range(len(drawn.boxes)):
        if one in inner:
            continue
        places = [one]
        while (following := follows.get(places[-1])) is not None:
            places.append(following)
        first, last = (drawn.boxes[places[end]].name for end in (0, -1))
        groups.append(_Group(places, f"{first} → {last}", "chain"))
    return groups


def _alike(drawn: _Drawn) -> list[_Group]:
    """Boxes between the same neighbours."""
    found: dict[object, list[int]] = {}
    for place in range(len(drawn.boxes)):
        key = (tuple(drawn.above[place]), tuple(drawn.below[place]))
        found.setdefault(place if place in drawn.fixed else key, []).append(place)
    return [
        _Group(places, f"{drawn.boxes[places[0]].name} and {len(places) - 1:,} more")
        for places in found.values()
    ]


def _bounded(graph: Graph, drawn: _Drawn, most_boxes: int, most_arrows: int) -> _Drawn:
    """Neighbouring ranks become one box, as many as it takes; without ranks, neighbours in the plan."""
    ranks = _ranks(graph, drawn)
    room = max(2, most_boxes - len(drawn.fixed))
    if max(ranks) == 0:
        free = [place for place in range(len(drawn.boxes)) if place not in drawn.fixed]
        size = -(-len(free) // room)
        bands = {place: number // size for number, place in enumerate(free)}
        return _banded(graph, drawn, bands)
    width = -(-(max(ranks) + 1) // room)
    while True:
        bands = {p: rank // width for p, rank in enumerate(ranks) if p not in drawn.fixed}
        fewer = _banded(graph, drawn, bands)
        if _fits(fewer, most_boxes, most_arrows) or width * 2 > max(ranks):
            return fewer
        width *= 2


def _banded(graph: Graph, drawn: _Drawn, bands: Mapping[int, int]) -> _Drawn:
    found: dict[object, list[int]] = {}
    for place in range(len(drawn.boxes)):
        key = ("band", bands[place]) if place in bands else ("alone", place)
        found.setdefault(key, []).append(place)
    return _merged(
        drawn, [_Group(places, _band(graph, drawn, places)) for places in found.values()]
    )


def _band(graph: Graph, drawn: _Drawn, places: Sequence[int]) -> str:
    boxes = [drawn.boxes[place] for place in places]
    waves = [graph.wave[step] for box in boxes for step in box.steps]
    size = f"{len(waves):,} steps"
    if not any(drawn.below[place] or drawn.above[place] for place in places):
        return f"{boxes[0].name} … {boxes[-1].name}: {size}"
    first, last = min(waves) + 1, max(waves) + 1
    return f"wave {first}: {size}" if first == last else f"waves {first} to {last}: {size}"


def _ranks(graph: Graph, drawn: _Drawn) -> list[int]:
    """One more than the highest rank above. Joined boxes may need each other: the earliest goes first."""
    missing = [len(above) for above in drawn.above]
    ranks = [-1] * len(drawn.boxes)
    wave = [min(graph.wave[step] for step in box.steps) for box in drawn.boxes]
    waiting = deque(sorted(range(len(drawn.boxes)), key=lambda place: (wave[place], place)))
    ready = deque(place for place in waiting if not missing[place])
    while True:
        if not ready:
            if not waiting:
                return ranks
            ready.append(waiting.popleft())
        place = ready.popleft()
        if ranks[place] >= 0:
            continue
        ranks[place] = 1 + max((ranks[above] for above in drawn.above[place]), default=-1)
        for below in drawn.below[place]:
            missing[below] -= 1
            if not missing[below]:
                ready.append(below)
