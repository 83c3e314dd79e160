"""What a step is given of what it needs: artifacts, and the values that it reads from them."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.core.values import Content, filled, has_expressions
from holdfast.errors import AttemptError
from holdfast.model.plan import Step, StepId
from holdfast.ports import Given, Listed


def with_values(step: Step, given: Mapping[StepId, Given]) -> Step:
    """The step with what it reads from its needs filled in; AttemptError if it is not there."""
    if not has_expressions(step):
        return step

    def read(need: StepId) -> Content:
        found = given.get(need)
        return None if found is None else readable(found)

    lost = [need.step for need in step.needs if need.optional and need.step not in given]
    return filled(step, read, lost)


def readable(given: Given) -> Content:
    """An artifact as expressions read it: its bytes, those of each item; nothing if it is several files."""
    if given.form != "tree":
        return given.content()
    return None if given.items is None else _listed(given.items)


def _listed(items: Listed) -> Content:
    found = [_listed(get) if isinstance(get, Listed) else get and get() for get in items.contents]
    return found if items.keys is None else dict(zip(items.keys, found, strict=True))


def with_known_values(step: Step, given: Mapping[StepId, Given]) -> Step:
    """The step for guards only: what cannot be filled in is their affair, if they read it."""
    try:
        return with_values(step, given)
    except AttemptError:
        return step


def by_names(step: Step, given: Mapping[StepId, Given]) -> Mapping[StepId, Given]:
    """What a step is given, by the names that it knows."""
    return {step.called(need): found for need, found in given.items()} if step.within else given
