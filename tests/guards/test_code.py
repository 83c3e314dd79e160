"""The python guard: a function of the project answers, in a process of its own."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from holdfast.errors import GuardBroken
from holdfast.guards.code import PythonGuard
from holdfast.model.artifact import Form, Verdict
from holdfast.model.digest import Json
from holdfast.model.plan import Guard, Step, StepId
from holdfast.ports import Job
from tests.generators.builders import ENGINE, Project, wait
from tests.guards.builders import accepted, candidate, judge, rejected

GUARD = Guard("python", "mod:check", name="check")


class Answering:
    """Stands for the pool of processes: gives one answer, keeps what it was asked."""

    def __init__(self, answer: Json) -> None:
        self._answer = answer
        self.asked: tuple[object, ...] = ()
        self.env: Mapping[str, str] = {}

    async def __call__(
        self,
        target: str,
        subject: tuple[Form, str],
        job: Job,
        env: Mapping[str, str],
        timeout: float,
    ) -> bytes:
        self.asked = (target, subject[0], Path(subject[1]).read_bytes(), timeout)  # noqa: ASYNC240 - a fake
        self.env = env
        return json.dumps(self._answer).encode()


def closure(module: str, root: str) -> Mapping[str, Json]:
    return {"code": {f"{module}.py": root}}


@pytest.mark.parametrize(
    "answer, verdict",
    [
        (True, accepted(GUARD)),
        (None, accepted(GUARD)),
        (False, rejected(GUARD, "'check' said no")),
        ("too short", rejected(GUARD, "too short")),
        ("", rejected(GUARD, "")),
        ({"accept": True, "feedback": "well"}, accepted(GUARD)),
        ({"accept": False, "feedback": "why"}, rejected(GUARD, "why")),
        ({"accept": False}, rejected(GUARD, "'check' said no")),
        ({"accept": False, "fatal": True, "feedback": "end"}, Verdict("fatal", "check", "end")),
        ({"fatal": True}, Verdict("fatal", "check", "'check' said never")),
    ],
)
def test_an_answer_is_a_verdict(project: Project, answer: Json, verdict: Verdict) -> None:
    kind = PythonGuard(Answering(answer), closure, ENGINE)
    assert judge(project, kind, GUARD, candidate("x")) == verdict


@pytest.mark.parametrize("answer", [1, 0, [], {}, {"accept": "yes"}])
def test_any_other_answer_breaks_the_guard(project: Project, answer: Json) -> None:
    kind = PythonGuard(Answering(answer), closure, ENGINE)
    with pytest.raises(GuardBroken, match="answered neither"):
        judge(project, kind, GUARD, candidate("x"))


def test_the_function_gets_the_candidate_and_the_environment_of_a_guard(project: Project) -> None:
    call = Answering(answer=True)
    kind = PythonGuard(call, closure, ENGINE)
    job = project.job(Step(StepId("step"), produces=("out.json",)))
    wait(kind.judge(GUARD, candidate("{}"), job))
    assert call.asked == ("mod:check", "bytes", b"{}", 60.0)
    assert call.env["HOLDFAST_ARTIFACT"].endswith("/out.json")
    assert call.env.keys() == {
        "PATH", "LANG", "HOME", "TMPDIR",
        "HOLDFAST_STEP", "HOLDFAST_ATTEMPT", "HOLDFAST_ROOT", "HOLDFAST_ARTIFACT",
    }  # fmt: skip


def test_the_identity_is_that_of_the_module() -> None:
    kind = PythonGuard(Answering(answer=True), closure, ENGINE)
    assert kind.identity(GUARD, "/r") == {"code": {"mod.py": "/r"}}
