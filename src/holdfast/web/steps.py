"""The steps of a run as a list: groups folded, one page at a time, the same with ten and ten thousand.

What a step gathers (the items of `for_each`, the steps of a sub-plan) stands below it and is folded until
somebody opens it. Only what a page shows is worked out; counts of groups are kept with the run.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from holdfast.cli.failure import refusal
from holdfast.cli.status import answered_words, ran_words, step_notes
from holdfast.core.select import select
from holdfast.core.state import PHASES, Phase, State
from holdfast.core.views import shown_phase
from holdfast.core.waves import Graph
from holdfast.errors import UsageError
from holdfast.model.items import key_in
from holdfast.model.plan import GATHER, StepId
from holdfast.model.text import first_line
from holdfast.web.look import Look

PAGE = 200  # rows on a page
_SELECTS = re.compile(r"[:+*?\[,]|\Achanged\Z")

Counts = Mapping[Phase, int]


@dataclass(frozen=True, slots=True)
class Tree:
    """Which step stands below which: by the one that gathers it."""

    tops: tuple[StepId, ...]
    inside: Mapping[StepId, tuple[StepId, ...]]
    above: Mapping[StepId, StepId]


@dataclass(frozen=True, slots=True)
class Row:
    """A step as the list shows it. `counts` are those of what it gathers; None if it gathers nothing."""

    step: StepId
    name: str
    depth: int
    phase: Phase
    notes: str
    counts: Counts | None = None
    is_open: bool = False
    ran: int | None = None  # milliseconds, while it is running

    @property
    def mark(self) -> str:
        """The name of its element: an id may hold anything, this does not."""
        return mark_of(self.step)


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of the list, and how many rows there are in all."""

    rows: tuple[Row, ...]
    first: int
    known: int

    @property
    def pages(self) -> int:
        """How many pages there are."""
        return max(1, -(-self.known // PAGE))

    @property
    def number(self) -> int:
        """Which of them this is."""
        return self.first // PAGE + 1


def mark_of(step: StepId) -> str:
    """A name for the element of a step."""
    return "s-" + blake2b(step.encode(), digest_size=8).hexdigest()


def tree_of(graph: Graph) -> Tree:
    """Which steps stand below which; in the order of the plan, a group where its first step stands."""
    heads = {step_id for step_id in graph.order if graph.steps[step_id].uses == GATHER}
    above = {s: head for s in graph.order if (head := _head(s, heads)) is not None}
    tops: dict[StepId, None] = {}
    inside: dict[StepId, dict[StepId, None]] = {}
    for step_id in graph.order:
        here = step_id
        while (head := above.get(here)) is not None:
            inside.setdefault(head, {}).setdefault(here)
            here = head
        tops.setdefault(here)
    return Tree(tuple(tops), {head: tuple(found) for head, found in inside.items()}, above)


def _head(step: StepId, heads: Collection[StepId]) -> StepId | None:
    """The nearest step that gathers this one: ids of what is gathered begin with that of who gathers."""
    for place in range(len(step) - 1, 0, -1):
        if step[place] in ".[" and step[:place] in heads:
            return StepId(step[:place])
    return None


def counts_of(state: State, tree: Tree) -> Mapping[StepId, Counts]:
    """For each group how many of the steps in it stand where, groups in it not counted themselves."""
    found: dict[StepId, dict[Phase, int]] = {head: dict.fromkeys(PHASES, 0) for head in tree.inside}
    for step_id in state.graph.order:
        if step_id in tree.inside:
            continue
        phase, here = shown_phase(state, step_id), step_id
        while (head := tree.above.get(here)) is not None:
            found[head][phase] += 1
            here = head
    return found


def kept_tree(look: Look, state: State) -> Tree:
    """The tree of a run; it changes only if the run grows."""
    return look.made(state, "tree", lambda: tree_of(state.graph), until=len(state.steps))


def listing(
    look: Look, state: State, *, page: int = 1, wanted: str = "", opened: Collection[str] = ()
) -> Listing:
    """One page of the list; `wanted` are selectors, or a part of an id, and then nothing is folded."""
    tree = kept_tree(look, state)
    if wanted:
        found: Sequence[tuple[StepId, int]] = [(step, 0) for step in chosen(state, wanted)]
    else:
        shown = hash((len(state.steps), *sorted(opened)))
        found = look.made(state, "rows", lambda: [*_visible(tree, opened)], until=shown)
    first = min(max(0, page - 1) * PAGE, max(0, (len(found) - 1) // PAGE * PAGE))
    rows = rows_of(look, state, found[first : first + PAGE], opened=opened, flat=bool(wanted))
    return Listing(tuple(rows), first, len(found))


def _visible(tree: Tree, opened: Collection[str]) -> Iterator[tuple[StepId, int]]:
    left = [(step, 0) for step in reversed(tree.tops)]
    while left:
        step, depth = left.pop()
        yield step, depth
        if step in opened:
            left += [(inner, depth + 1) for inner in reversed(tree.inside.get(step, ()))]


def chosen(state: State, wanted: str) -> list[StepId]:
    """The steps that selectors name; words without any sign of one are looked for in ids."""
    if not _SELECTS.search(wanted):
        words = [word.casefold() for word in wanted.split()]
        return [s for s in state.graph.order if all(word in s.casefold() for word in words)]
    found = select(
        state.graph,
        [wanted],
        states=lambda: {s: shown_phase(state, s) for s in state.graph.order},
        changed=_nothing,
    )
    return [s for s in state.graph.order if s in found]


def _nothing() -> Collection[StepId]:
    """What would change now is for a preview to say; a run has had its changes."""
    raise UsageError("'changed' is about the next run", hint="holdfast plan -s changed")


def rows_of(
    look: Look,
    state: State,
    found: Collection[tuple[StepId, int]],
    *,
    opened: Collection[str] = (),
    flat: bool = False,
) -> Iterator[Row]:
    """Steps as rows, each with how deep it stands."""
    tree = kept_tree(look, state)
    counts = look.made(state, "counts", lambda: counts_of(state, tree)) if tree.inside else {}
    now = look.now if state.status == "running" and look.is_driven(state) else 0
    for step_id, depth in found:
        head = tree.above.get(step_id)
        yield Row(
            step_id,
            step_id if flat or head is None else key_in(head, step_id),
            depth,
            shown_phase(state, step_id),
            _notes(look, state, step_id, now),
            counts.get(step_id),
            step_id in opened,
            _ran(state, step_id, now),
        )


def _ran(state: State, step_id: StepId, now: int) -> int | None:
    """For how many milliseconds a step is running, as far as somebody drives it."""
    step = state.steps[step_id]
    return max(0, now - step.started_at) if now and step.phase == "running" else None


def _notes(look: Look, state: State, step_id: StepId, now: int) -> str:
    step = state.steps[step_id]
    said = look.answered(state).get(step_id, "")
    notes = step_notes(state, step_id, now, answered_words(said) if said else "")
    if _ran(state, step_id, now) is not None:  # a clock that goes on says it
        notes.remove(ran_words(step, now))
    if step.phase == "failed" and step.said is not None and look.store.has(step.said):
        words = first_line(look.store.get(step.said)[:4096].decode("utf-8", "replace"))
        notes.append(" ".join([*refusal(step), words]))
    return ", ".join(notes)
