"""Events that a stranger wrote: every value is what its class says, or the event is refused.

The codec does not check types again, because in a store the chain vouches for the bytes. In a file from
elsewhere anybody can make a chain that holds.
"""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Literal, Union, get_args, get_origin, get_type_hints

from holdfast.errors import IntegrityError
from holdfast.model.digest import Digest
from holdfast.model.event import Event
from holdfast.model.plan import RunId, StepId

_DIGEST = re.compile("[0-9a-f]{64}")
_RUN = re.compile(r"r-[A-Za-z0-9-]{1,80}")
_LARGEST = 1 << 53
_hints: dict[type, dict[str, object]] = {}


def is_digest(value: object) -> bool:
    """Whether this is the SHA-256 of something, in hex."""
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


def is_run(value: object) -> bool:
    """Whether this is the id of a run; it may become the name of a directory."""
    return isinstance(value, str) and _RUN.fullmatch(value) is not None


def check_event(event: Event) -> None:
    """IntegrityError if a field of an event holds something else than its class says."""
    for name, hint in _of(type(event)).items():
        if not _fits(getattr(event, name), hint):
            raise IntegrityError(f"an event '{type(event).__name__}' has a strange '{name}'")


def _of(noun: type) -> dict[str, object]:
    known = _hints.get(noun)
    if known is None:
        known = _hints[noun] = dict(get_type_hints(noun))
    return known


def _fits(value: object, hint: object) -> bool:
    if hint is Digest:
        return is_digest(value)
    if hint is RunId:
        return value == "" or is_run(value)
    if hint is StepId:
        return isinstance(value, str)
    if hint is int:
        return type(value) is int and -_LARGEST < value < _LARGEST
    origin = get_origin(hint)
    if origin is Literal:
        return value in get_args(hint)
    if origin in {UnionType, Union}:
        return any(_fits(value, item) for item in get_args(hint))
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(item, get_args(hint)[0]) for item in value)
    if not isinstance(hint, type):
        return False
    if hint is NoneType:
        return value is None
    if type(value) is not hint:
        return False
    if is_dataclass(hint):
        return all(_fits(getattr(value, f.name), _of(hint)[f.name]) for f in fields(hint))
    if issubclass(hint, tuple):
        return all(_fits(getattr(value, name), kind) for name, kind in _of(hint).items())
    return hint in {str, bool}
