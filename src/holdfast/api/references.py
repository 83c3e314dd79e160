"""Values that are not there yet: what a step will have made, and params of the plan.

They stand for themselves in the arguments of a step, also inside lists, mappings and f-strings, and
become `${{ … }}` in the plan. Whatever would need the value itself is refused: it is known when the plan
runs, not while it is made.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import NoReturn

from holdfast.api.typed import plain
from holdfast.errors import UsageError
from holdfast.model.digest import Json
from holdfast.model.expression import CLOSE, OPEN, literal

_FIELD = re.compile(r"[\w\-]+\Z")
_BEGIN, _END = "\uf8f0", "\uf8f1"  # letters that no alphabet has
_MARK = (
    f"{_BEGIN}{secrets.token_hex(8)}:"  # what a reference looks like inside a text of the program
)
_MARKED = re.compile(rf"{_MARK}([^{_END}]*){_END}")


class Later:
    """A reference: `steps.ID.output`, `item`, or what is in their JSON."""

    __slots__ = ("_path", "_step")

    def __init__(self, path: str, step: str = "") -> None:
        self._path = path
        self._step = step  # whose whole artifact it is

    def __getattr__(self, name: str) -> Later:
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, key: object) -> Later:
        if isinstance(key, bool) or not isinstance(key, str | int) or not _FIELD.match(str(key)):
            raise UsageError(
                f"'{self._path}' cannot be read at {key!r}", hint="name one field, or one place"
            )
        if isinstance(key, int) and key < 0:
            raise UsageError(
                f"'{self._path}' cannot be read at {key!r}: its length is known when the plan runs",
                hint="count from 0, or do that in a step",
            )
        return Later(f"{self._path}.{key}")

    def __format__(self, spec: str) -> str:
        if spec:
            self._refuse("formatted")
        return str(self)

    def __str__(self) -> str:
        return f"{_MARK}{self._path}{_END}"

    def __repr__(self) -> str:
        # Not for a text of the plan: the mark has that refused.
        return f"<{self._path}, known when the plan runs{_END}>"

    def __bool__(self) -> bool:  # noqa: PLE0304 - gives nothing
        self._refuse("decided on")

    def __iter__(self) -> Iterator[object]:
        self._refuse("counted through", "give it to STEP.map(…)")

    def __len__(self) -> int:  # noqa: PLE0303 - gives nothing
        self._refuse("counted")

    def __contains__(self, _other: object) -> bool:
        self._refuse("searched")

    def __call__(self, *_: object, **__: object) -> NoReturn:
        self._refuse("called")

    def _compared(self, _other: object) -> bool:
        self._refuse("compared")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _compared
    __hash__ = object.__hash__

    def _computed(self, *_: object) -> object:
        self._refuse("computed with")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __neg__ = _computed
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _computed
    __int__ = __float__ = __index__ = _computed

    def _refuse(self, how: str, hint: str = "do that in a step") -> NoReturn:
        message = f"'{self._path}' cannot be {how} here: it is known when the plan runs"
        raise UsageError(message, hint=hint)


class LaterList(Later):
    """What a step will have made of each item of a list."""

    __slots__ = ()


class TextParam(str):
    """A param of the plan that is text: its value, which remembers where it comes from."""

    __slots__ = ("param",)
    param: str


class WholeParam(int):
    """A param of the plan that is a whole number."""

    param: str


def as_param(name: str, value: Json) -> Json:
    """What a plan function gets for a param. A truth value is only itself."""
    found: TextParam | WholeParam
    if isinstance(value, bool) or not isinstance(value, str | int):
        return value
    found = TextParam(value) if isinstance(value, str) else WholeParam(value)
    found.param = name
    return found


def whole_of(value: object) -> str:
    """The step whose whole artifact a value is; nothing if it is something else."""
    return value._step if isinstance(value, Later) else ""  # noqa: SLF001 - our own


def as_value(value: object) -> Json:
    """An argument as a value of a plan, with `${{ … }}` for what is not there yet."""
    match value:
        case Later():
            return _expression(value._path)  # noqa: SLF001 - our own
        case TextParam() | WholeParam():
            return _expression(f"params.{value.param}")
        case str():
            return _text(value)
        case None | bool() | int() | float():
            return value
        case PurePath():
            return str(value)
        case Mapping():
            return {_key(key): as_value(item) for key, item in value.items()}
        case list() | tuple():
            return [as_value(item) for item in value]
        case _:
            made = plain(value)
            if made is value:
                kind = type(value).__name__
                raise UsageError(f"a value of type '{kind}' cannot be given to a step")
            return as_value(made)


def _expression(path: str) -> str:
    return f"{OPEN} {path} {CLOSE}"


def _key(key: object) -> str:
    """The key of a mapping, which stands in the plan as it is."""
    text = str(key)
    if _BEGIN in text or _END in text:
        raise UsageError(
            "a reference is a key of a mapping: it is known when the plan runs",
            hint="make the mapping in a step",
        )
    return text


def _text(value: str) -> str:
    """A text as a template; references that were put into it by the program stay references."""
    pieces: list[str] = []
    done = 0
    for found in _MARKED.finditer(value):
        before = value[done : found.start()]
        pieces += (literal(before), "$" * (len(before) - len(before.rstrip("$"))))
        pieces.append(_expression(found[1]))
        done = found.end()
    rest = value[done:]
    if any(mark in _MARKED.sub("", value) for mark in (_BEGIN, _END)):
        raise UsageError("a reference was cut apart in a text", hint="use it whole, as in f'…{x}…'")
    return "".join((*pieces, literal(rest)))
