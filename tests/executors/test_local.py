"""The local executor: from a job to an outcome."""

import asyncio
from collections.abc import Mapping

import pytest

from holdfast.errors import AttemptError, GuardBroken
from holdfast.executors.identity import implied
from holdfast.executors.local import LocalExecutor
from holdfast.generators.inline import InlineFunctions
from holdfast.generators.shell import ShellGenerator
from holdfast.guards.command import CommandGuard
from holdfast.guards.compose import CompositeGuard
from holdfast.guards.content import OutputsGuard
from holdfast.guards.schema import JsonSchemaGuard
from holdfast.model.artifact import Verdict
from holdfast.model.digest import Json
from holdfast.model.plan import Guard, Step, StepId
from holdfast.ports import Candidate, GuardKind, Job, Outcome
from tests.generators.builders import ENGINE, Project, wait


class Making:
    """A generator that makes, raises or waits, as told."""

    def __init__(self, result: Candidate | BaseException | None) -> None:
        self._result = result
        self.is_closed = False

    def identity(self, step: Step, root: str) -> Mapping[str, Json]:
        return {"code": {"a.py": "1"}, "unresolved": ["x"]}

    async def generate(self, job: Job) -> Candidate:
        if isinstance(self._result, BaseException):
            raise self._result
        if self._result is None:
            await asyncio.Event().wait()
            raise AssertionError
        return self._result

    async def close(self) -> None:
        self.is_closed = True


class Saying:
    """A guard that answers with its config: a call, or an error to raise."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def identity(self, guard: Guard, root: str) -> Mapping[str, Json]:
        return {"files": {"made": "1", "check.sh": "2"}, "unresolved": [f"{guard.config} here"]}

    async def judge(self, guard: Guard, candidate: Candidate, job: Job) -> Verdict:
        self.asked.append(guard.name)
        match guard.config:
            case "accept":
                return Verdict("accept", guard.name)
            case "reject":
                return Verdict("reject", guard.name, "not good")
            case "fatal":
                return Verdict("fatal", guard.name, "never good")
            case "broken":
                raise GuardBroken("no verdict")
            case _:
                raise ZeroDivisionError("a bug in the guard")


MADE = Candidate("bytes", b"made", log=b"log")


def executor(result: Candidate | BaseException | None = MADE) -> tuple[LocalExecutor, Saying]:
    saying = Saying()
    return LocalExecutor({"shell": Making(result)}, {"says": saying}), saying


def step(*answers: str, **fields: object) -> Step:
    guards = tuple(Guard("says", answer, name=f"g{at}") for at, answer in enumerate(answers))
    return Step(StepId("step"), guards=guards, **fields)  # type: ignore[arg-type]  # fields by name


def test_without_guards_a_candidate_is_accepted_but_not_verified(project: Project) -> None:
    outcome = wait(executor()[0].run(project.job(step())))
    assert outcome == Outcome("accepted", candidate=MADE, log=b"log")


def test_guards_are_asked_in_order_and_verify(project: Project) -> None:
    local, saying = executor()
    outcome = wait(local.run(project.job(step("accept", "accept"))))
    verdict = Verdict("accept", items=(Verdict("accept", "g0"), Verdict("accept", "g1")))
    assert outcome == Outcome("accepted", "", MADE, verdict, verified=True, log=b"log")
    assert saying.asked == ["g0", "g1"]


@pytest.mark.req("R77")
def test_the_first_refusal_ends_the_attempt_with_its_feedback(project: Project) -> None:
    local, saying = executor()
    outcome = wait(local.run(project.job(step("accept", "reject", "accept"))))
    verdict = Verdict("reject", "g1", "not good")
    assert outcome == Outcome(
        "rejected", "guard_rejected", MADE, verdict, feedback="not good", log=b"log"
    )
    assert saying.asked == ["g0", "g1"]


@pytest.mark.req("R77")
def test_a_fatal_verdict_is_fatal(project: Project) -> None:
    outcome = wait(executor()[0].run(project.job(step("fatal"))))
    verdict = Verdict("fatal", "g0", "never good")
    assert outcome == Outcome(
        "fatal", "guard_fatal", MADE, verdict, feedback="never good", log=b"log"
    )


def test_a_broken_guard_loses_the_attempt(project: Project) -> None:
    outcome = wait(executor()[0].run(project.job(step("broken"))))
    assert outcome == Outcome("lost", "guard_broken", MADE, feedback="no verdict", log=b"log")


def test_a_guard_that_is_not_there_loses_the_attempt(project: Project) -> None:
    job = project.job(Step(StepId("step"), guards=(Guard("other"),)))
    outcome = wait(executor()[0].run(job))
    assert (outcome.ended, outcome.code) == ("lost", "guard_broken")
    assert outcome.feedback == "there is no guard of kind 'other' here"


@pytest.mark.parametrize("reason", ["timed_out", "lost"])
def test_an_attempt_without_an_answer_is_lost(project: Project, reason: str) -> None:
    error = AttemptError("gone", reason=reason, log=b"so far")
    outcome = wait(executor(error)[0].run(project.job(step("accept"))))
    assert outcome == Outcome("lost", reason, feedback="gone", log=b"so far")


def test_a_failed_command_is_failed(project: Project) -> None:
    error = AttemptError("exit 3", reason="command_failed", log=b"so far")
    outcome = wait(executor(error)[0].run(project.job(step("accept"))))
    assert outcome == Outcome("failed", "command_failed", feedback="exit 3", log=b"so far")


def test_a_missing_output_is_rejected_by_the_guard_produces(project: Project) -> None:
    error = AttemptError("no 'x'", reason="guard_rejected", log=b"so far")
    outcome = wait(executor(error)[0].run(project.job(step("accept"))))
    verdict = Verdict("reject", "produces", "no 'x'")
    assert outcome == Outcome(
        "rejected", "guard_rejected", verdict=verdict, feedback="no 'x'", log=b"so far"
    )


def test_a_crash_of_a_generator_becomes_a_fact(project: Project) -> None:
    outcome = wait(executor(ZeroDivisionError("oops"))[0].run(project.job(step())))
    assert (outcome.ended, outcome.code, outcome.candidate) == ("failed", "command_failed", None)
    assert outcome.feedback.endswith("ZeroDivisionError: oops\n")


def test_a_crash_of_a_guard_becomes_a_fact(project: Project) -> None:
    outcome = wait(executor()[0].run(project.job(step("crash"))))
    assert (outcome.ended, outcome.code, outcome.candidate) == ("failed", "command_failed", MADE)
    assert outcome.feedback.endswith("ZeroDivisionError: a bug in the guard\n")


def test_an_unknown_way_to_run_is_failed(project: Project) -> None:
    outcome = wait(executor()[0].run(project.job(step(uses="agent"))))
    assert (outcome.ended, outcome.feedback) == ("failed", "nothing here runs 'agent' steps")


def test_a_cancellation_passes_through(project: Project) -> None:
    async def cancel() -> None:
        task = asyncio.create_task(executor(None)[0].run(project.job(step())))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    wait(cancel())


def test_judge_only_guards(project: Project) -> None:
    local, _ = executor(AssertionError("not to be called"))
    kept = Candidate("bytes", b"kept")
    outcome = wait(local.judge(project.job(step("accept")), kept))
    assert (outcome.ended, outcome.candidate, outcome.verified) == ("accepted", kept, True)


def test_close_closes_the_generators() -> None:
    making = Making(MADE)
    wait(LocalExecutor({"shell": making}, {}, InlineFunctions({})).close())
    assert making.is_closed


# --- implied guards, identity -------------------------------------------------------------------


def test_outputs_and_schema_are_guards() -> None:
    assert implied(Step(StepId("step"))) == ()
    assert implied(Step(StepId("step"), outputs=("a",), schema={"type": "object"})) == (
        Guard("outputs", ["a"], name="outputs"),
        Guard("json-schema", {"type": "object"}, name="schema"),
    )


@pytest.mark.parametrize(
    "content, guard", [(b'{"a": 1}', None), (b"{}", "outputs"), (b'{"a": "x"}', "schema")]
)
def test_implied_guards_are_asked_first(
    project: Project, content: bytes, guard: str | None
) -> None:
    kinds: dict[str, GuardKind] = {
        "outputs": OutputsGuard(),
        "json-schema": JsonSchemaGuard(),
        "says": Saying(),
    }
    local = LocalExecutor({"shell": Making(Candidate("bytes", content))}, kinds)
    schema: Json = {"properties": {"a": {"type": "integer"}}}
    outcome = wait(local.run(project.job(step("accept", outputs=("a",), schema=schema))))
    assert outcome.verified == (guard is None)
    assert outcome.verdict is not None
    if guard is not None:
        assert (outcome.ended, outcome.verdict.guard) == ("rejected", guard)


@pytest.mark.req("R4", "R161")
def test_the_identity_joins_generator_and_guards() -> None:
    local, _ = executor()
    assert local.identity(step("a", "b", produces=("made",)), "/") == {
        "code": {"a.py": "1"},
        "unresolved": ["a here", "b here", "x"],
        "guards": [
            {"files": {"check.sh": "2"}, "unresolved": ["a here"]},
            {"files": {"check.sh": "2"}, "unresolved": ["b here"]},
        ],
    }


@pytest.mark.req("R161")
@pytest.mark.parametrize(
    "strange",
    [Step(StepId("step"), uses="agent"), Step(StepId("step"), guards=(Guard("other"),))],
)
def test_what_has_no_identity_is_unresolved(strange: Step) -> None:
    assert executor()[0].identity(strange, "/").keys() == {"unresolved"}


def test_outputs_are_left_out_inside_composites_too() -> None:
    kinds: dict[str, GuardKind] = {"says": Saying()}
    kinds["all"] = CompositeGuard(kinds)
    local = LocalExecutor({"shell": Making(MADE)}, kinds)
    guard = Guard("all", items=(Guard("says", "a"),))
    found = local.identity(Step(StepId("step"), guards=(guard,), produces=("made",)), "/")
    inner = {"files": {"check.sh": "2"}, "unresolved": ["a here"]}
    assert found["guards"] == [{"items": [inner]}]
    assert found["unresolved"] == ["a here", "x"]


# --- functions of this process ------------------------------------------------------------------


def inline(**functions: object) -> LocalExecutor:
    table = {StepId(name): function for name, function in functions.items()}
    registry = InlineFunctions(table)  # type: ignore[arg-type]  # functions by name
    return LocalExecutor({"shell": Making(MADE)}, {"says": Saying()}, registry)


def test_a_plain_function_has_its_outcome_at_once(project: Project) -> None:
    outcome = inline(step=lambda: "done").at_once(project.job(step()))
    assert outcome == Outcome("accepted", candidate=Candidate("bytes", b"done"))


def test_what_needs_more_than_a_call_is_not_done_at_once(project: Project) -> None:
    async def later() -> str:
        return "later"

    local = inline(step=lambda: "done", later=later)
    assert local.at_once(project.job(step("accept"))) is None
    assert local.at_once(project.job(step(outputs=("a",)))) is None
    assert local.at_once(project.job(Step(StepId("later")))) is None
    assert local.at_once(project.job(Step(StepId("other")))) is None
    assert executor()[0].at_once(project.job(step())) is None


def test_a_function_of_this_process_can_be_guarded_and_awaited(project: Project) -> None:
    async def later() -> str:
        return "later"

    local = inline(step=lambda: "done", later=later)
    outcome = wait(local.run(project.job(step("accept"))))
    assert outcome.candidate == Candidate("bytes", b"done")
    assert outcome.verified
    assert wait(local.run(project.job(Step(StepId("later"))))).candidate == Candidate(
        "bytes", b"later"
    )
    assert wait(local.run(project.job(Step(StepId("other"))))).candidate == MADE


def test_a_function_that_raises_fails_at_once(project: Project) -> None:
    outcome = inline(step=lambda: ENGINE["no such"]).at_once(project.job(step()))
    assert outcome is not None
    assert (outcome.ended, outcome.code) == ("failed", "command_failed")
    assert outcome.feedback.endswith("KeyError: 'no such'\n")


# --- the real parts together --------------------------------------------------------------------


@pytest.mark.req("R77")
def test_a_command_is_generated_and_guarded(project: Project) -> None:
    local = LocalExecutor({"shell": ShellGenerator(ENGINE)}, {"command": CommandGuard(ENGINE)})
    guard = Guard("command", ["grep", "-q", "good", "out.txt"])
    good = Step(StepId("step"), shell="echo good > out.txt", produces=("out.txt",), guards=(guard,))
    outcome = wait(local.run(project.job(good)))
    assert (outcome.ended, outcome.verified) == ("accepted", True)
    bad = Step(StepId("step"), shell="echo bad > out.txt", produces=("out.txt",), guards=(guard,))
    assert wait(local.run(project.job(bad))).ended == "rejected"
    assert local.identity(good, str(project.root)) == {}, "the step's own output is no input"
