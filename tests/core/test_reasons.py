"""The list of reasons is closed."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.core.moves import INTERRUPTED
from holdfast.core.reasons import CODES, SENTENCES, UNANSWERED, sentence
from holdfast.errors import BugError
from holdfast.model.event import Reason

SOURCE = Path(__file__).parents[2] / "src" / "holdfast"
CALLS = {"Reason": 0, "Skipped": 1, "StepsReset": 1, "AttemptFailed": 2, "AttemptLost": 2}

PUBLISHED = """
    never_ran input_changed upstream_changed prompt_changed model_changed parameters_changed
    guard_changed generator_changed command_changed contract_changed specification_changed
    context_changed dependencies_changed tools_changed environment_changed previous_failed
    previous_incomplete previous_interrupted output_missing output_modified expired
    evidence_contested forced resampled retried approved conflict_settled answered resumed
    reopened undone key_version condition_open items_open additions_unfit unchanged
    unchanged_content amended accepted_by_person reguarded forked skipped_by_person
    items_changed key_missing dependency_failed dependency_skipped not_selected condition_unmet
    condition_above awaiting_approval awaiting_person conflict_open replan_wanted
    effect_unconfirmed limit_reached stopped guard_rejected guard_fatal guard_broken
    command_failed call_failed call_refused credentials_missing model_refused answer_cut
    answer_empty answer_too_large budget_spent turns_spent tool_unconfirmed timed_out lost
    not_recorded rejected_by_person stagnated stuck reopening critical_failed fatal_verdict
    wave_failed deadlocked receipt_gone effect_doubted
"""


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


def test_journals_of_years_are_read_with_the_codes_that_they_were_written_with() -> None:
    assert set(PUBLISHED.split()) == CODES
    assert UNANSWERED <= CODES


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


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("run",), "its command changed: run"),
        (("shell", "x.sh"), "its command changed: shell, x.sh"),
        (("x.sh",), "a file of its command changed: x.sh"),
        (
            ("cc cannot be resolved",),
            "nobody can tell whether its command changed: cc cannot be resolved",
        ),
        ((), "its command changed"),
    ],
)
def test_a_changed_command_says_whether_its_words_or_its_files_changed(
    names: tuple[str, ...], said: str
) -> None:
    assert sentence(Reason("command_changed", names)) == said


def test_without_names_a_sentence_ends_before_them() -> None:
    assert sentence(Reason("command_failed")) == "its command failed"
    assert sentence(Reason("dependency_failed")) == "Dependency failed"
    assert sentence(Reason("upstream_changed")) == "a step it needs changed"
    assert sentence(Reason("upstream_changed", tuple("abcde"))).endswith(": a, b, c, d, e")
    assert sentence(Reason("upstream_changed", tuple("abcdef"))).endswith("d, e and 1 more")
