"""The selector language: which steps of a plan are meant.

    build           one step, or several by wildcards (`extract*`); with `for_each` its items, too
    extract[nl]     the step of one item by its key; `extract[*]` those of all
    +build          the step and everything it needs; `2+build` at most two levels up
    build+          the step and everything that needs it; `build+2` at most two levels down
    state:failed    steps that are in this state in the line's last run
    agent:reviewer  steps that this agent does
    changed         steps that would not simply be reused now

Blanks and repeated options add selections, a comma keeps what both sides name: `state:failed,+report`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase

from holdfast.core.waves import Graph
from holdfast.errors import UsageError
from holdfast.model.items import base_of, key_of, step_named
from holdfast.model.pattern import Pattern
from holdfast.model.plan import GATHER, StepId

_TERM = Pattern(
    r"(?:(?P<up>\d*)(?P<above>\+))?(?P<body>(?:\[.*\]|[^+])+?)(?:(?P<below>\+)(?P<down>\d*))?\Z",
    re.DOTALL,
)
_WORD = Pattern(r"(?:\[.*?\](?=[\s,+]|\Z)|\S)+", re.DOTALL)  # keys of items may hold blanks
_COMMA = Pattern(r",(?![^\[\]]*\])")
_ITEM = Pattern(r"([^\[]+)\[(.*)\]\Z", re.DOTALL)
_STATES = ("pending", "running", "waiting", "done", "reused", "failed", "skipped")


def select(
    graph: Graph,
    words: Iterable[str],
    *,
    states: Callable[[], Mapping[StepId, str]],
    changed: Callable[[], Collection[StepId]],
) -> set[StepId]:
    """The steps that the words name; UsageError for a word that means nothing here."""
    chosen: set[StepId] = set()
    for word in (part for text in words for part in _WORD.findall(text)):
        both = [_term(graph, term, states, changed) for term in _COMMA.split(word)]
        chosen |= set.intersection(*both)
    return chosen


def _term(
    graph: Graph,
    term: str,
    states: Callable[[], Mapping[StepId, str]],
    changed: Callable[[], Collection[StepId]],
) -> set[StepId]:
    found = _TERM.match(term)
    if found is None:
        raise UsageError(
            f"'{term}' is no selector", hint="step, +step, step+, state:failed, agent:NAME, changed"
        )
    base = _base(graph, found["body"], states, changed)
    chosen = set(base)
    if found["above"]:
        chosen |= _reach(base, lambda s: [need.step for need in graph.steps[s].needs], found["up"])
    if found["below"]:
        chosen |= _reach(base, lambda s: graph.dependents.get(s, ()), found["down"])
    return chosen


def _base(
    graph: Graph,
    body: str,
    states: Callable[[], Mapping[StepId, str]],
    changed: Callable[[], Collection[StepId]],
) -> set[StepId]:
    named = step_named(body, graph.steps)
    if named is not None:
        return {named, *_items(graph, named)}
    if body == "changed":
        return {step for step in changed() if step in graph.steps}
    if body.startswith("state:"):
        wanted = body.removeprefix("state:")
        if wanted not in _STATES:
            raise UsageError(f"'{wanted}' is no state of a step", hint=", ".join(_STATES))
        return {step for step, state in states().items() if state == wanted and step in graph.steps}
    if body.startswith("agent:"):
        return _of_agent(graph, body.removeprefix("agent:"))
    if any(sign in body for sign in "*?["):
        found = _fitting(graph, body)
        if found:
            return found
        raise UsageError(f"no step fits '{body}'", hint="holdfast ls")
    near = get_close_matches(body, graph.order, n=1)
    hint = f"did you mean '{near[0]}'?" if near else "holdfast ls"
    raise UsageError(f"the plan has no step '{body}'", hint=hint)


def _items(graph: Graph, step_id: StepId) -> tuple[StepId, ...]:
    """The steps of the items that a step gathers."""
    step = graph.steps[step_id]
    return step.data_needs if step.uses == GATHER else ()


def _fitting(graph: Graph, pattern: str) -> set[StepId]:
    """The steps that wildcards fit; brackets at the end hold the key of an item, else they are a set."""
    item = _ITEM.match(pattern)
    found = set()
    if item is not None:
        for step in graph.order:
            base = base_of(step)
            fits = base is not None and fnmatchcase(base, item[1])
            if fits and fnmatchcase(key_of(step), item[2]):
                found.add(step)
    return found or {step for step in graph.order if fnmatchcase(step, pattern)}


def _of_agent(graph: Graph, wanted: str) -> set[StepId]:
    found = {step for step in graph.order if graph.steps[step].agent == wanted}
    if found:
        return found
    agents = sorted({step.agent for step in graph.steps.values() if step.agent})
    near = get_close_matches(wanted, agents, n=1)
    hint = f"did you mean '{near[0]}'?" if near else f"its agents: {', '.join(agents) or 'none'}"
    raise UsageError(f"no step of the plan is done by '{wanted}'", hint=hint)


def _reach(
    base: Collection[StepId], following: Callable[[StepId], Iterable[StepId]], levels: str
) -> set[StepId]:
    """Everything that can be reached, at most so many levels away."""
    reached: set[StepId] = set()
    level, left = set(base), int(levels) if levels else -1
    while level and left:
        level = {step for start in level for step in following(start)} - reached
        reached |= level
        left -= 1
    return reached
