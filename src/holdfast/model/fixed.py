"""Data classes for nouns of which many are declared or made; most of them never change.

Declaring one costs a twentieth of what `dataclass` takes: comparing, hashing and showing are the same code
for all of them, and how one is made, with the table of its fields, is written when it is first asked for.
There are some two hundred, and a command declares most of them and makes a few.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field
from operator import attrgetter
from typing import TypeVar, cast, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def fixed(noun: type[T]) -> type[T]:
    """A data class with slots whose fields the type checker lets nobody assign.

    `frozen` refuses it at run time as well, and pays for that whenever one is made: 1.8 µs for the start of
    an attempt, which this makes in 0.3 µs. An attempt makes six such nouns.
    """
    if (made := _declared(noun, frozen=False)) is not None:
        return made
    made = dataclass(slots=True, eq=False, repr=False)(noun)
    for name, method in _SHARED.items():
        setattr(made, name, method)
    return made


def varied(noun: T, *names: str) -> Callable[..., T]:
    """Makes many that differ from a noun in these fields alone, given in this order.

    `dataclasses.replace` asks for every field each time: 15 µs for a step, which this makes in 2 µs.
    """
    known: list[str] = list(noun.__dataclass_fields__)  # type: ignore[attr-defined]
    values = [getattr(noun, name) for name in known]
    places = [known.index(name) for name in names]

    def make(*new: object) -> T:
        for place, value in zip(places, new, strict=True):
            values[place] = value
        return type(noun)(*values)

    return make


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(noun: type[T]) -> type[T]:
    """As `dataclass(frozen=True, slots=True)`, at the price of declaring a fixed one."""
    return _declared(noun, frozen=True) or dataclass(frozen=True, slots=True)(noun)


@dataclass_transform(field_specifiers=(field,))
def varying(noun: type[T]) -> type[T]:
    """As `dataclass(slots=True)`, at the price of declaring a fixed one: it may change, and has no hash."""
    made = _declared(noun, frozen=False) or dataclass(slots=True)(noun)
    made.__hash__ = None  # type: ignore[assignment]
    return made


def _declared(noun: type[T], *, frozen: bool) -> type[T] | None:
    """The class with its slots, the rest of which is written later; None if it is of no common kind."""
    parts = dict(noun.__dict__)
    kinds: dict[str, object] = parts.get("__annotations__", {})
    if noun.__bases__ != (object,) or not all(map(_is_common, kinds.values())):
        return None
    given = {name: parts.pop(name) for name in kinds if name in parts}
    if any(isinstance(value, Field) and not _is_plain(value) for value in given.values()):
        return None
    for name in ("__dict__", "__weakref__"):
        parts.pop(name, None)
    shared = {**_SHARED, **_REFUSING} if frozen else _SHARED
    recipe = _Recipe({**given, **{name: parts[name] for name in _NAMED if name in parts}}, frozen)
    parts |= {name: _Later(name, recipe) for name in ("__init__", *_REST)} | shared
    parts["__slots__"] = parts["__match_args__"] = tuple(kinds)
    recipe.noun = type(noun.__name__, (), parts)
    recipe.noun.__qualname__ = noun.__qualname__
    return cast("type[T]", recipe.noun)


def _is_common(kind: object) -> bool:
    """Whether an annotation says that this is a field like others."""
    return isinstance(kind, str) and not kind.startswith(("ClassVar", "InitVar", "KW_ONLY"))


def _is_plain(given: Field[object]) -> bool:
    if given.default_factory is MISSING:
        return False
    said = given.init and given.repr and given.compare and given.hash is None and not given.metadata
    return said and given.kw_only in {False, MISSING}


class _Recipe:
    """What is needed to write the rest of a class."""

    def __init__(self, given: dict[str, object], frozen: bool) -> None:
        self._given = given
        self._frozen = frozen
        self.noun: type = object

    def write_init(self) -> None:
        """How one is made, as `dataclass` writes it."""
        kinds = cast("dict[str, object]", self._given["__annotations__"])
        known: dict[str, object] = {"_set": object.__setattr__, "_made": _FACTORY}
        words, lines = ["self"], []
        for name in kinds:
            word, value = name, name
            if name in self._given:
                default = self._given[name]
                if isinstance(default, Field):
                    known[f"_new_{name}"], default = default.default_factory, _FACTORY
                    value = f"_new_{name}() if {name} is _made else {name}"
                known[f"_given_{name}"] = default
                word = f"{name}=_given_{name}"
            words.append(word)
            lines.append(
                f"_set(self, {name!r}, {value})" if self._frozen else f"self.{name} = {value}"
            )
        if "__post_init__" in self._given:
            lines.append("self.__post_init__()")
        text = f"def __init__({', '.join(words)}):\n " + "\n ".join(lines or ["pass"])
        exec(text, known)  # noqa: S102 - names and nothing else are written there
        made = cast("Callable[..., None]", known["__init__"])
        made.__qualname__ = f"{self.noun.__qualname__}.__init__"
        made.__annotations__ = {**kinds, "return": None}
        self.noun.__init__ = made  # type: ignore[misc]

    def write_rest(self) -> None:
        """The table of fields, which few ask for: of a twin without methods, as writing those takes time."""
        given = {**self._given, "__doc__": self.noun.__name__}  # without words, it writes some
        bare = dataclass(init=False, eq=False, repr=False, match_args=False)
        twin: type = bare(type("", (), given))
        said = twin.__dict__["__dataclass_params__"]
        said.init, said.frozen = True, self._frozen
        for name in _REST:
            setattr(self.noun, name, twin.__dict__[name])


class _Later:
    """Stands for what `dataclass` writes until it is first asked for."""

    def __init__(self, name: str, recipe: _Recipe) -> None:
        self._name = name
        self._recipe = recipe

    def __get__(self, instance: object, owner: type) -> object:
        if self._name == "__init__":
            self._recipe.write_init()
        else:
            self._recipe.write_rest()
        return getattr(owner if instance is None else instance, self._name)


class _Factory:
    """The default of a field that is made anew each time."""

    def __repr__(self) -> str:
        return "<factory>"


def _values(self: object) -> tuple[object, ...]:
    try:
        return cast("tuple[object, ...]", _getters[self.__class__](self))
    except KeyError:
        names: tuple[str, ...] = self.__slots__  # type: ignore[attr-defined]
        if len(names) < 2:  # noqa: PLR2004 - of one name it would not be a tuple
            return tuple([getattr(self, name) for name in names])
        _getters[self.__class__] = attrgetter(*names)
        return _values(self)


def _equal(self: object, other: object) -> object:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return _values(self) == _values(other)


def _hash(self: object) -> int:
    return hash(_values(self))


def _shown(self: object) -> str:
    names: tuple[str, ...] = self.__match_args__  # type: ignore[attr-defined]
    inside = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
    return f"{type(self).__qualname__}({inside})"


def _refuse_to_set(self: object, name: str, value: object) -> None:
    if name in self.__match_args__:  # type: ignore[attr-defined]
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _refuse_to_delete(self: object, name: str) -> None:
    if name in self.__match_args__:  # type: ignore[attr-defined]
        raise FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _state(self: object) -> list[object]:
    return [*_values(self)]


def _restore(self: object, state: list[object]) -> None:
    for name, value in zip(self.__match_args__, state, strict=True):  # type: ignore[attr-defined]
        object.__setattr__(self, name, value)


_FACTORY = _Factory()
_getters: dict[type, Callable[[object], object]] = {}  # of classes that were compared or hashed
_REST = ("__dataclass_fields__", "__dataclass_params__")
_NAMED = ("__annotations__", "__module__", "__doc__", "__post_init__")
_SHARED = {"__eq__": _equal, "__hash__": _hash, "__repr__": _shown}
_REFUSING = {
    "__setattr__": _refuse_to_set,
    "__delattr__": _refuse_to_delete,
    "__getstate__": _state,
    "__setstate__": _restore,
}
