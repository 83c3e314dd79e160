"""What a yes stands for, for whom, and until when."""

from dataclasses import replace

import pytest

from holdfast.core.approvals import Book, Use, allowed_scopes, usual_scope
from holdfast.model.digest import Digest
from holdfast.model.event import Recorded, RunResumed
from holdfast.model.line import (
    ApprovalDecided,
    ApprovalRequested,
    ApprovalRevoked,
    ApprovalUsed,
    Gate,
    LineEvent,
    Scope,
)
from holdfast.model.plan import RunId
from tests.core.builders import ref, sid

R1, R2, S = RunId("r-1"), RunId("r-2"), sid("s")
SUBJECT = ref("subject")
ASKED = ApprovalRequested("a-1", "step", S, R1, SUBJECT)
FIRST, SECOND = Use(R1, S, 1), Use(R1, S, 2)
ELSEWHERE = Use(R2, S, 1)


def yes(scope: Scope = "once", *, until: int = 0, run: RunId = R1) -> ApprovalDecided:
    return ApprovalDecided("a-1", SUBJECT, yes=True, by="me", scope=scope, until=until, run=run)


NO = replace(yes(), yes=False)
USED = ApprovalUsed("a-1", *FIRST)
REVOKED = ApprovalRevoked("a-1", "me")


def told(*events: LineEvent) -> Book:
    book = Book()
    for number, event in enumerate(events, 1):
        assert book.take(Recorded(number, 10 * number, event))
    return book


def may(book: Book, use: Use, now: int = 100, subject: Digest = SUBJECT) -> bool:
    return book.granted(subject, use, now) is not None


def test_nothing_runs_before_a_yes_nor_after_a_no() -> None:
    asked = told(ASKED)
    assert asked.by_id["a-1"].stand(0) == "open"
    assert asked.open(SUBJECT) is asked.by_id["a-1"]
    assert not may(asked, FIRST)
    refused = told(ASKED, NO)
    assert refused.by_id["a-1"].stand(0) == "rejected"
    assert refused.open(SUBJECT) is None
    assert not may(refused, FIRST)


def test_a_yes_once_is_for_one_attempt_which_may_also_begin_again() -> None:
    fresh = told(ASKED, yes())
    assert fresh.by_id["a-1"].stand(0) == "approved"
    assert may(fresh, SECOND)
    used = told(ASKED, yes(), USED)
    assert used.by_id["a-1"].stand(0) == "used"
    assert may(used, FIRST)
    assert not may(used, SECOND)
    assert not may(used, ELSEWHERE)
    twice = told(ASKED, yes(), USED, USED)
    assert twice.by_id["a-1"].uses == [FIRST]
    assert may(twice, FIRST)


def test_a_yes_for_a_run_is_for_every_attempt_of_that_run() -> None:
    book = told(ASKED, yes("run"), USED)
    assert book.by_id["a-1"].stand(0) == "approved"
    assert may(book, SECOND)
    assert not may(book, ELSEWHERE)


def test_a_yes_for_content_is_for_every_run_with_the_same_subject() -> None:
    book = told(ASKED, yes("content"), USED)
    assert may(book, SECOND)
    assert may(book, ELSEWHERE)
    assert not may(book, FIRST, subject=ref("another subject"))


@pytest.mark.parametrize("scope", ["once", "run", "content"])
def test_a_yes_ends_at_its_moment(scope: Scope) -> None:
    book = told(ASKED, yes(scope, until=50))
    assert may(book, FIRST, now=49)
    assert not may(book, FIRST, now=50)
    assert book.by_id["a-1"].stand(50) == "expired"


def test_a_yes_that_was_taken_back_stands_for_nothing() -> None:
    book = told(ASKED, yes("content"), REVOKED, replace(REVOKED, by="another"))
    assert book.by_id["a-1"].stand(0) == "revoked"
    assert book.by_id["a-1"].revoked == REVOKED  # the first word counts
    assert not may(book, FIRST)


def test_the_first_decision_counts_and_none_after_it_was_taken_back() -> None:
    book = told(ASKED, NO, yes("content"))
    assert not may(book, FIRST)
    assert book.by_id["a-1"].decision == NO
    assert book.by_id["a-1"].decided_at == 20
    late = told(ASKED, REVOKED, yes("content"))
    assert late.by_id["a-1"].decision is None


def test_the_same_question_twice_is_one_and_a_word_about_none_is_nothing() -> None:
    book = told(ASKED, yes(), ASKED)
    assert [one.at for one in book] == [10]
    assert may(book, FIRST)
    assert list(told(yes(), USED, REVOKED)) == []
    assert not Book().take(Recorded(1, 10, RunResumed("e")))


def test_the_newest_yes_is_the_one_that_is_used() -> None:
    again = replace(ASKED, approval="a-2")
    book = told(ASKED, yes("content"), again, replace(yes("content"), approval="a-2"))
    granted = book.granted(SUBJECT, FIRST, 100)
    assert granted is not None
    assert granted.id == "a-2"


def test_a_question_has_the_same_id_in_every_process_and_the_next_another() -> None:
    empty = Book()
    first = empty.next_id(SUBJECT)
    assert Book().next_id(SUBJECT) == first
    assert empty.next_id(ref("another")) != first
    book = told(replace(ASKED, approval=first))
    assert book.next_id(SUBJECT) not in {first, Book().next_id(ref("another"))}
    assert len(first) == 14


def test_a_beginning_of_another_kind_overtakes_no_yes() -> None:
    other = replace(ASKED, approval="a-2", subject=ref("another"))
    decided = replace(yes(), approval="a-2", subject=ref("another"))
    book = told(ASKED, other, yes(), decided, USED)
    assert book.by_id["a-2"].stand(0) == "approved"


def test_a_yes_without_a_scope_has_the_one_that_its_step_means() -> None:
    assert usual_scope("step", "") == "run"
    assert usual_scope("step", "always") == "once"
    assert usual_scope("step", "on_change") == "content"
    assert usual_scope("guard", "") == "content"
    assert usual_scope("edge", "") == "once"
    assert usual_scope("effect", "") == "once"


def test_what_a_person_wants_to_be_asked_each_time_is_never_decided_for_content() -> None:
    assert allowed_scopes("answer", "") == ("once",)
    assert allowed_scopes("effect", "on_change") == ("once",)
    assert allowed_scopes("stuck", "") == ("once",)
    assert allowed_scopes("budget", "") == ("once", "run")
    assert allowed_scopes("step", "always") == ("once", "run")
    assert allowed_scopes("edge", "always") == ("once", "run", "content")
    assert allowed_scopes("step", "on_change") == ("once", "run", "content")


@pytest.mark.parametrize(
    ("gate", "scope", "alone"),
    [
        ("step", "once", False),
        ("step", "content", False),
        ("step", "run", True),
        ("effect", "once", True),
        ("stuck", "once", True),
    ],
)
def test_a_yes_that_only_one_run_may_use(gate: Gate, scope: Scope, alone: bool) -> None:
    asked = replace(ASKED, gate=gate)
    (found,) = told(asked, yes(scope))
    assert (found.stands_for(R1, 100), found.stands_for(R2, 100)) == (alone, False)
    for nothing in ([asked], [asked, yes(scope, until=50)], [asked, NO]):
        (found,) = told(*nothing)
        assert not found.stands_for(R1, 100)
