"""A yes to the repetition of an effect is about the last that may have happened, and about no other."""

import pytest

from holdfast.core.approvals import Book, Use
from holdfast.model.digest import digest_bytes
from holdfast.model.event import Recorded
from holdfast.model.line import ApprovalDecided, ApprovalRequested, ApprovalUsed, LineEvent
from holdfast.model.plan import RunId, StepId

DEP, FIRST, SECOND = StepId("dep"), RunId("r-1"), RunId("r-2")


def asked(run: RunId) -> ApprovalRequested:
    return ApprovalRequested(f"a-{run}", "effect", DEP, run, digest_bytes(run.encode()))


def yes(run: RunId) -> ApprovalDecided:
    return ApprovalDecided(f"a-{run}", digest_bytes(run.encode()), yes=True, by="me")


def told(*events: LineEvent) -> Book:
    book = Book()
    for number, event in enumerate(events, 1):
        book.take(Recorded(number, number, event))
    return book


@pytest.mark.req("R49")
def test_a_yes_ends_when_the_effect_is_begun_again_under_another() -> None:
    used = ApprovalUsed("a-r-1", FIRST, DEP, 2)
    book = told(asked(FIRST), asked(SECOND), yes(FIRST), yes(SECOND), used)
    assert book.by_id["a-r-1"].stand(9) == "used"
    assert book.by_id["a-r-2"].stand(9) == "expired"
    assert not book.by_id["a-r-2"].covers(Use(SECOND, DEP, 1), 9)


@pytest.mark.req("R49")
def test_a_yes_that_is_given_after_that_stands() -> None:
    used = ApprovalUsed("a-r-1", FIRST, DEP, 2)
    book = told(asked(FIRST), asked(SECOND), yes(FIRST), used, yes(SECOND))
    assert book.by_id["a-r-2"].stand(9) == "approved"
