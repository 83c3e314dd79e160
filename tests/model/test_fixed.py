"""Nouns declared at a small price are data classes in every other respect."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from typing import Any, ClassVar

import pytest

from holdfast.model.fixed import fixed, frozen, varying


@fixed
class Place:
    """With a default and a factory."""

    row: int
    name: str = "here"
    notes: list[str] = field(default_factory=list)

    def told(self) -> str:
        return f"{self.name} {self.row}"


@frozen
class Kept:
    """The same, and it refuses to change."""

    row: int
    name: str = "here"
    notes: list[str] = field(default_factory=list)

    def told(self) -> str:
        return f"{self.name} {self.row}"


@varying
class Varied:
    """The same, and it may change."""

    row: int
    name: str = "here"
    notes: list[str] = field(default_factory=list)

    def told(self) -> str:
        return f"{self.name} {self.row}"


@frozen
class Positive:
    """One that looks at what it was given."""

    count: int

    def __post_init__(self) -> None:
        if self.count < 0:
            raise ValueError("too small")


@fixed
class Counted:
    """One with a value of the class, of no common kind."""

    most: ClassVar[int] = 3
    count: int = 0


@dataclass(frozen=True, slots=True)
class Plain:
    """What they are compared with."""

    row: int
    name: str = "here"
    notes: list[str] = field(default_factory=list)


EACH = pytest.mark.parametrize("noun", [Place, Kept, Varied])


@EACH
def test_one_is_made_shown_and_compared_as_any_data_class(noun: Callable[..., Any]) -> None:
    one = noun(1, notes=["x"])
    assert one == noun(1, "here", ["x"]) != noun(2, notes=["x"])
    assert one != Plain(1, notes=["x"])
    assert repr(one).replace(type(one).__name__, "Plain") == repr(Plain(1, notes=["x"]))
    assert one.told() == "here 1"
    assert noun(1).notes is not noun(1).notes
    assert replace(one, row=4) == noun(4, notes=["x"])
    assert [(item.name, item.type) for item in fields(one)] == [
        (item.name, item.type) for item in fields(Plain)
    ]
    assert not hasattr(one, "__dict__")
    assert inspect.signature(noun) == inspect.signature(Plain) or str(
        inspect.signature(noun)
    ) == str(inspect.signature(Plain))


@EACH
def test_a_wrong_call_is_refused(noun: Callable[..., Any]) -> None:
    for words in ({}, {"row": 1, "nothing": 2}):
        with pytest.raises(TypeError, match="__init__"):
            noun(**words)


@EACH
def test_one_is_found_by_its_parts(noun: type) -> None:
    match noun(3, "there"):
        case Place(row, name) | Kept(row, name) | Varied(row, name):
            assert (row, name) == (3, "there")
        case _:
            pytest.fail("no match")
    assert hash(Positive(3)) == hash(Positive(3))
    assert {Positive(3): 1}[Positive(3)] == 1


@EACH
def test_copies_are_equal(noun: Callable[..., Any]) -> None:
    one = noun(1, notes=["x"])
    assert pickle.loads(pickle.dumps(one)) == one
    assert copy.deepcopy(one) == one == copy.copy(one)
    assert copy.deepcopy(one).notes is not one.notes


def test_a_frozen_one_refuses_to_change() -> None:
    one = Kept(1)
    with pytest.raises(FrozenInstanceError, match="row"):
        one.row = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match="row"):
        del one.row
    with pytest.raises(AttributeError):
        one.other = 2  # type: ignore[attr-defined]
    assert one.row == 1


def test_one_that_varies_is_changed_and_has_no_hash() -> None:
    one = Varied(1)
    one.row = 2
    assert one == Varied(2)
    with pytest.raises(AttributeError):
        one.other = 2  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


@EACH
def test_it_says_of_itself_what_a_data_class_says(noun: Any) -> None:
    told = noun.__dataclass_params__
    assert (told.init, told.frozen) == (True, noun is Kept)
    assert dataclasses.asdict(noun(1)) == {"row": 1, "name": "here", "notes": []}


def test_what_looks_at_its_parts_does_so() -> None:
    with pytest.raises(ValueError, match="too small"):
        Positive(-1)
    assert dataclasses.is_dataclass(Positive)


def test_a_value_of_the_class_is_no_field() -> None:
    assert [item.name for item in fields(Counted)] == ["count"]
    assert (Counted(2).most, Counted(2)) == (3, Counted(2))


def test_nothing_is_written_before_it_is_asked_for() -> None:
    @frozen
    class Unused:
        """Declared, and not made."""

        row: int

    assert not inspect.isfunction(Unused.__dict__["__init__"])
    assert Unused(1).row == 1
    assert inspect.isfunction(Unused.__dict__["__init__"])
    assert "row" not in str(Unused.__dict__["__dataclass_fields__"])
    assert [item.name for item in fields(Unused)] == ["row"]
