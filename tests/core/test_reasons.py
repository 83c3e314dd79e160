"""The list of reasons is closed."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.core.moves import INTERRUPTED
from holdfast.core.reasons import CODES, SENTENCES, sentence
from holdfast.errors import BugError
from holdfast.model.event import Reason

SOURCE = Path(__file__).parents[2] / "src" / "holdfast"
CALLS = {"Reason": 0, "Skipped": 1, "StepsReset": 1, "AttemptFailed": 2, "AttemptLost": 2}


def literal_codes() -> Iterator[tuple[str, str]]:
    """Every code that the source spells out where a reason is made, with its place."""
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            given = {word.arg: word.value for word in node.keywords}
            place = CALLS.get(name)
            if place is not None and len(node.args) > place:
                yield from _texts(node.args[place], f"{file.name}:{node.lineno}")
            if name == "AttemptError" and "reason" in given:
                yield from _texts(given["reason"], f"{file.name}:{node.lineno}")
            if name == "Outcome" and len(node.args) > 1:
                yield from _texts(node.args[1], f"{file.name}:{node.lineno}")


def _texts(node: ast.expr, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.IfExp):
        yield from _texts(node.body, place)
        yield from _texts(node.orelse, place)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
        yield node.value, place


@pytest.mark.req("R170")
def test_every_code_in_the_source_is_in_the_list() -> None:
    found = list(literal_codes())
    assert len({code for code, _ in found}) > 15
    assert [item for item in found if item[0] not in CODES] == []
    assert INTERRUPTED in CODES


@pytest.mark.req("R170", "R56")
@pytest.mark.parametrize("code", sorted(SENTENCES))
def test_every_code_has_a_sentence_with_and_without_names(code: str) -> None:
    for because in ((), ("a",), ("a", "b", "c", "d", "e", "f", "g")):
        said = sentence(Reason(code, because))
        assert said
        assert "{" not in said
        assert said == said.strip().rstrip(".:")
        assert said[0].islower() or code == "dependency_failed", "words that others look for"


def test_many_names_are_counted() -> None:
    reason = Reason("upstream_changed", tuple("abcdefg"))
    assert sentence(reason) == "a step it needs changed: a, b, c, d, e and 2 more"
    assert sentence(Reason("upstream_changed", ("a",))) == "a step it needs changed: a"


def test_a_code_outside_the_list_is_a_bug() -> None:
    with pytest.raises(BugError, match="'because' is not in the list"):
        sentence(Reason("because"))


def test_five_names_are_said_and_the_others_counted() -> None:
    five = tuple("abcde")
    assert "'a', 'b', 'c', 'd', 'e' failed" in sentence(Reason("dependency_failed", five))
    seven = sentence(Reason("dependency_failed", (*five, "f", "g")))
    assert "'e' and 2 more failed" in seven
    assert sentence(Reason("timed_out")) == "it took longer than it may"
    assert sentence(Reason("command_failed", ("no shell",))) == "it cannot run: no shell"
