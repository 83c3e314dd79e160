"""Whether the outputs that a step reads by name were really produced."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from holdfast.model.digest import Json
from holdfast.model.plan import Step, StepId


def lacking(step: Step, read: Callable[[StepId], bytes | None]) -> tuple[str, ...]:
    """The named outputs that are not there, each with the step that should have given it.

    `read` gives the artifact of a step; None if that is several files, which have no keys.
    """
    keyed = [need for need in step.needs if need.key and not need.optional]
    missing = [need for need in keyed if need.key not in _keys(read(need.step))]
    return tuple([f"'{need.key}' of {need.step}" for need in missing])


def _keys(content: bytes | None) -> Mapping[str, Json]:
    """The artifact as a JSON object; one that is none has no keys."""
    if content is None:
        return {}
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, Mapping) else {}
