"""Answers that were paid for and never acted on: whoever goes on with a line takes them, once."""

import pytest

from holdfast.engine.inheritance import Beside, left_answers
from holdfast.engine.journals import read_state
from holdfast.model.digest import Digest
from holdfast.model.event import (
    AnswersKept,
    AttemptAccepted,
    AttemptLost,
    AttemptRejected,
    AttemptStarted,
    CallAnswered,
    CallStarted,
    Options,
    Reason,
    RunEnded,
    RunEvent,
    RunResumed,
    RunStarted,
)
from holdfast.model.plan import Plan, RunId, Step, StepId, plan_bytes
from holdfast.ports import Append, Batch
from holdfast.store.memory import MemoryStore

X = StepId("x")
PLAN = Plan("line", {X: Step(X, uses="llm", model="far:m", prompt={"task": "do it"})})
FIRST, SECOND, THIRD = (RunId(f"r-00{number}") for number in (1, 2, 3))
ENDED = RunEnded("superseded")


class Line:
    """A line whose runs are told event by event."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.plan = self.store.put(plan_bytes(PLAN))
        self.request = self.store.put(b"what is asked")

    def begin(self, run: RunId, *events: RunEvent, joined: bool = True) -> None:
        options = Options(joined=joined)
        start = RunStarted(run, "line", "", self.plan, self.plan, options, "engine", None)
        journal = Append(f"run:{run}", 0, [(0, event) for event in (start, *events)], 1)
        self.store.open_run(run, "", "line", Batch([journal]))

    def tell(self, run: RunId, *events: RunEvent) -> None:
        journal = f"run:{run}"
        said = [(0, event) for event in events]
        self.store.commit(Batch([Append(journal, self.store.last(journal), said, 1)]))

    def asks(self, attempt: int = 1) -> list[RunEvent]:
        started = AttemptStarted(X, attempt, self.plan, self.plan, self.plan, Reason("never_ran"))
        return [started, CallStarted(X, attempt, 1, "far:m", self.request)]

    def answered(self, text: str, attempt: int = 1) -> CallAnswered:
        return CallAnswered(X, attempt, 1, self.store.put(text.encode()), 1, 1)

    def heard(self, text: str, attempt: int = 1) -> list[RunEvent]:
        """An attempt has its answer, and is lost."""
        answer = self.answered(text, attempt)
        return [*self.asks(attempt), answer, AttemptLost(X, attempt, "interrupted")]

    def kept(self, *texts: str) -> AnswersKept:
        return AnswersKept(X, tuple((self.request, self.store.put(t.encode())) for t in texts))

    def rejected(self, attempt: int) -> list[RunEvent]:
        """The next attempt acts on what there is, and is refused."""
        word = self.store.put(b"no")
        return [self.asks(attempt)[0], AttemptRejected(X, attempt, "g", word)]

    def left(self, *driven: RunId) -> list[AnswersKept]:
        return left_answers(self.store, PLAN, "line", driven)

    def beside(self, run: RunId, *, shared: bool = False) -> AnswersKept | None:
        state = read_state(self.store, run)
        assert state is not None
        return Beside(self.store, state).answers(X, shared=shared)


@pytest.fixture
def line() -> Line:
    return Line()


def test_a_run_takes_over_what_any_run_before_it_left(line: Line) -> None:
    line.begin(FIRST, joined=False)
    line.begin(SECOND)
    line.tell(FIRST, *line.heard("one"), ENDED)
    line.tell(SECOND, ENDED)
    assert line.left() == [line.kept("one")]


def test_every_answer_is_taken_over_each_once(line: Line) -> None:
    line.begin(FIRST, *line.heard("one"), joined=False)
    line.begin(SECOND, line.kept("one"), *line.heard("two"), ENDED)
    line.tell(FIRST, ENDED)
    (found,) = line.left()
    assert sorted(found.items) == sorted(line.kept("one", "two").items)


def test_equal_answers_to_equal_questions_are_all_taken_over(line: Line) -> None:
    again = [line.asks()[0]]
    for number in (1, 2):
        again += [CallStarted(X, 1, number, "far:m", line.request)]
        again += [CallAnswered(X, 1, number, line.store.put(b"one"), 1, 1)]
    line.begin(FIRST, *again, AttemptLost(X, 1, "interrupted"), ENDED)
    assert line.left() == [line.kept("one", "one")]


def test_what_a_run_that_is_driven_has_is_left_to_it(line: Line) -> None:
    line.begin(FIRST, *line.heard("one"))
    assert line.left(FIRST) == []
    assert line.left() == [line.kept("one")]


def test_what_one_run_acted_on_is_used_up_for_all(line: Line) -> None:
    line.begin(FIRST, *line.heard("one"), joined=False)
    line.begin(SECOND, line.kept("one"), *line.rejected(1), *line.heard("two", 2), ENDED)
    line.tell(FIRST, ENDED)
    assert line.left() == [line.kept("two")]


def test_what_a_completed_run_acted_on_is_used_up_for_all(line: Line) -> None:
    line.begin(FIRST, *line.heard("one"))
    accepted = AttemptAccepted(X, 1, line.plan)
    line.begin(SECOND, line.kept("one"), line.asks()[0], accepted, RunEnded("completed"))
    line.tell(FIRST, ENDED)
    assert line.left() == []


def test_nobody_looks_behind_a_run_that_began_alone(line: Line) -> None:
    line.begin(FIRST, *line.heard("one"), ENDED)
    line.begin(SECOND, ENDED, joined=False)
    assert line.left() == []


def test_content_that_is_gone_is_not_taken_over(line: Line) -> None:
    gone = Digest("1" * 64)
    line.begin(FIRST, AnswersKept(X, ((line.request, gone),)), ENDED)
    assert line.left() == []


@pytest.mark.parametrize("shared", [False, True])
def test_a_run_that_is_resumed_takes_over_from_those_beside_it(line: Line, *, shared: bool) -> None:
    line.begin(FIRST, *line.rejected(1), joined=False)
    line.begin(SECOND, *line.heard("one"), ENDED)
    line.tell(FIRST, RunResumed("again"))
    assert line.beside(FIRST, shared=shared) == line.kept("one")


def test_what_a_run_has_or_used_is_not_taken_over_again(line: Line) -> None:
    line.begin(FIRST, *line.heard("one"), joined=False)
    line.begin(SECOND, line.kept("one"), *line.heard("two"), ENDED)
    assert line.beside(FIRST) == line.kept("two")
    line.tell(FIRST, line.kept("two"), *line.rejected(2))
    assert line.beside(FIRST) is None


def test_a_run_that_shares_its_line_follows_the_others(line: Line) -> None:
    line.begin(FIRST, *line.asks())
    line.begin(SECOND)
    state = read_state(line.store, SECOND)
    assert state is not None
    beside = Beside(line.store, state)
    assert beside.answers(X, shared=True) is None
    line.tell(FIRST, line.answered("one"))
    assert beside.answers(X, shared=True) == line.kept("one")
    line.begin(THIRD, line.kept("one"), *line.rejected(1))
    assert beside.answers(X, shared=True) is None
