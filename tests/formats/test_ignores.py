"""Rules of a `.gitignore` are a stranger's patterns: none of them may take for ever."""

import pytest

from holdfast import wire
from holdfast.errors import UsageError

USUAL = [
    "# ****** generated, do not edit ******",
    "*.py[cod]",
    "/build/**/out/*.tmp",
    "**/node_modules/**",
    "!keep/*.log",
    "a/*/b/*/c/*/d/*/e",
    ".*.sw?",
]
HOSTILE = ["*a" * 20 + "b", "**/a/" * 12 + "b"]


@pytest.mark.req("D35")
@pytest.mark.parametrize("line", HOSTILE)
def test_a_hostile_line_is_matched_at_once(line: str) -> None:
    """With a backtracking matcher this would not end."""
    ignored = wire.ignore_rules([line])
    assert not ignored("a" * 250 + "/a" * 250 + "!")


@pytest.mark.req("D35")
@pytest.mark.parametrize("line", HOSTILE)
def test_where_only_a_backtracking_matcher_is_there_it_is_refused(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire.workshop, "is_installed", lambda library: library != "re2")
    with pytest.raises(UsageError, match="too many stars") as raised:
        wire.ignore_rules(["*.log", line])
    assert raised.value.hint == "pip install 'holdfast[regex]'"
    ignored = wire.ignore_rules(USUAL)
    assert [ignored("x.pyc"), ignored("x.py"), ignored("a/1/b/2/c/3/d/4/e")] == [True, None, True]
