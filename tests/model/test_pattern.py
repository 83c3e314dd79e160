"""A pattern is compiled when it is first used."""

import copy
import re

import pytest

from holdfast.model.pattern import Pattern


def test_it_finds_what_the_compiled_one_finds() -> None:
    lazy, real = Pattern(r"(\d)x", re.IGNORECASE), re.compile(r"(\d)x", re.IGNORECASE)
    text = "1x 2X 3y"
    assert lazy.findall(text) == real.findall(text) == ["1", "2"]
    assert [found.span() for found in lazy.finditer(text)] == [(0, 2), (3, 5)]
    assert lazy.sub("-", text) == real.sub("-", text)
    assert lazy.split(text) == real.split(text)
    assert (lazy.match("1x"), lazy.fullmatch("1xx"), lazy.search("a1X")) != (None, None, None)
    assert lazy.fullmatch("1xx") is None
    assert lazy.pattern == r"(\d)x"


def test_a_wrong_one_is_refused_when_it_is_used() -> None:
    wrong = Pattern("(")
    with pytest.raises(re.error):
        wrong.match("")


def test_it_can_be_copied() -> None:
    lazy = Pattern("a")
    assert copy.copy(lazy).match("a") is not None
    assert lazy.__dict__.keys() == {"_written", "_flags"}
