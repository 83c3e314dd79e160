"""The contents that a history needs."""

import pytest

from holdfast.engine.needed import named_by
from holdfast.model.digest import Digest
from holdfast.model.event import (
    AnswersKept,
    CallAnswered,
    CallStarted,
    Event,
    ToolStarted,
    ToolUsed,
    Used,
)
from holdfast.model.plan import StepId

A = StepId("a")
ONE, TWO, THREE, USE = (Digest(letter * 64) for letter in "123f")


@pytest.mark.req("R75")
@pytest.mark.parametrize(
    ("event", "needed"),
    [
        (CallStarted(A, 1, 1, "p:m", ONE), [ONE]),
        (CallAnswered(A, 1, 1, TWO, 1, 1), [TWO]),
        (ToolStarted(A, 1, USE, "add", ONE), [ONE]),
        (ToolUsed(A, 1, USE, "add", ONE, TWO), [TWO, ONE]),
        (AnswersKept(A, ((ONE, TWO),), (Used(USE, THREE),), (USE,)), [ONE, TWO, THREE]),
    ],
)
def test_what_models_and_tools_said_is_needed(event: Event, needed: list[Digest]) -> None:
    assert list(named_by(event)) == [(digest, False) for digest in needed]
