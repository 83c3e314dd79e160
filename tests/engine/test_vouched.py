"""verify reads the lines by itself: what happened without a person's word is found."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from holdfast.core.approvals import Approval
from holdfast.engine.audit import audit
from holdfast.engine.decisions import Decisions, Given, Person
from holdfast.engine.referee import read
from holdfast.engine.runs import resume_run
from holdfast.engine.vouched import unvouched
from holdfast.model.artifact import Verdict
from holdfast.model.digest import Digest
from holdfast.model.plan import Guard, Need, Plan, Step, StepId
from holdfast.ports import Candidate, Job, Raw
from holdfast.store.memory import MemoryStore
from holdfast.testing import ScriptedExecutor
from tests.laws.harness import LINE, Bed, Stage, drive, start

Body = dict[str, object]
Change = Callable[[Raw, Body], list[tuple[Raw, Body]]]
JOURNAL = f"line:{LINE}"


def step(name: str, *needs: Need, approve: str = "", guards: tuple[Guard, ...] = ()) -> Step:
    return Step(StepId(name), shell=name, needs=needs, approve=approve, guards=guards)  # type: ignore[arg-type]


PLAN = Plan(
    "law",
    {
        StepId("a"): step("a"),
        StepId("b"): step("b", Need(StepId("a"), "approval", approver="lead")),
        StepId("c"): step("c", approve="always"),
        StepId("d"): step("d", guards=(Guard("all", items=(Guard("human", name="eye"),)),)),
    },
)


def asking() -> ScriptedExecutor:
    """Makes each step's name; the guard of `d` asks a person."""

    def judge(job: Job, _: Candidate) -> Verdict:
        if job.step.id != "d":
            return Verdict("accept")
        return Verdict("ask", "all", items=(Verdict("ask", "eye"),))

    return ScriptedExecutor(lambda job: job.step.id, judge=judge)


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Bed:
    """A run in which each way of asking happened and was answered."""
    made = Bed(MemoryStore(), str(tmp_path_factory.mktemp("vouched")))
    executor = asking()
    state = start(made, Stage(PLAN), executor)
    assert state.counts["waiting"] == 3
    decisions = Decisions(made.store, "", LINE, made.clock)
    for wanted in decisions.wanted():
        decisions.decide(wanted, Person("me"), Given(), yes=True)
    world = made.world(executor)
    state = drive(lambda: resume_run(world, state.run))
    assert state.status == "completed"
    return made


def found(bed: Bed, change: Change, journal: str = JOURNAL) -> list[str]:
    """What is found when some rows of a journal are other than they were."""

    class Tampered(MemoryStore):
        def raw(self, name: str) -> Iterator[Raw]:
            rows = list(bed.store.raw(name))
            if name != journal:
                yield from rows
                return
            changed = [pair for row in rows for pair in change(row, json.loads(row.body))]
            for seq, (row, body) in enumerate(changed, 1):
                yield row._replace(seq=seq, body=json.dumps(body))

        def get(self, digest: Digest) -> bytes:
            return bed.store.get(digest)

    store = Tampered()
    (row,) = bed.store.runs(LINE)
    plan = json.loads(bed.store.get(next(iter(bed.store.read(f"run:{row.run}"))).event.plan))  # type: ignore[union-attr,arg-type]
    reading = read(store.raw(f"run:{row.run}"), plan)
    assert reading.problems == []
    return list(unvouched(store, [row], {row.run: reading}))


def same(row: Raw, body: Body) -> list[tuple[Raw, Body]]:
    return [(row, body)]


def on(kind: str, change: Callable[[Body], list[Body]], step: str = "") -> Change:
    """Change the rows of one kind, perhaps only those of the approvals of a step."""
    known: dict[object, object] = {}

    def apply(row: Raw, body: Body) -> list[tuple[Raw, Body]]:
        if row.kind == "approval_requested":
            known[body["approval"]] = body["step"]
        if row.kind != kind or (step and known.get(body["approval"]) != step):
            return [(row, body)]
        return [(row, changed) for changed in change(body)]

    return apply


def without(_: Body) -> list[Body]:
    return []


def with_(**values: object) -> Callable[[Body], list[Body]]:
    return lambda body: [{**body, **values}]


@pytest.mark.req("I11")
def test_what_was_asked_and_answered_is_in_order(bed: Bed) -> None:
    assert found(bed, same) == []
    assert audit(bed.store).problems == ()


@pytest.mark.req("I11")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            on("approval_used", without, "b"),
            "attempt 1 of step 'b' began without the approval after 'a'",
        ),
        (
            on("approval_used", without, "c"),
            "attempt 1 of step 'c' began without an approval (step)",
        ),
        (
            on("approval_used", without, "d"),
            "'d' was accepted without the person that guard 'all/eye' asks",
        ),
        (on("approval_used", with_(attempt=2), "c"), "step 'c' began without an approval"),
        (on("approval_decided", without, "c"), "is used and was not given"),
        (on("approval_decided", with_(yes=False), "c"), "is used and was not given"),
        (on("approval_decided", with_(until=1), "c"), "is used after its end"),
        (on("approval_decided", with_(scope="run", run="r-other"), "c"), "by another run"),
        (on("approval_decided", with_(subject="0" * 64), "c"), "is decided for something else"),
        (on("approval_decided", lambda body: [body, body], "c"), "is decided twice"),
        (on("approval_used", lambda body: [body, body], "c"), "for one attempt is used twice"),
        (on("approval_requested", without, "c"), "was never asked for"),
        (on("approval_requested", with_(step="b"), "c"), "step 'c' began without an approval"),
        (on("plan_versioned", with_(w_ref="0" * 64)), "step 'b' began without the approval"),
    ],
)
def test_what_happened_without_a_word_is_found(bed: Bed, change: Change, said: str) -> None:
    problems = found(bed, change)
    assert any(said in problem for problem in problems), problems


@pytest.mark.req("I11")
def test_an_approval_that_was_revoked_before_its_use_is_found(bed: Bed) -> None:
    def apply(row: Raw, body: Body) -> list[tuple[Raw, Body]]:
        if row.kind != "approval_decided":
            return [(row, body)]
        taken = row._replace(kind="approval_revoked")
        return [(row, body), (taken, {"approval": body["approval"], "by": "me"})]

    assert any("after it was revoked" in problem for problem in found(bed, apply))


@pytest.mark.req("I11")
def test_an_attempt_that_names_no_approval_is_found(bed: Bed) -> None:
    (row,) = bed.store.runs(LINE)
    change = on("attempt_started", with_(approvals=[]), "")

    def apply(raw: Raw, body: Body) -> list[tuple[Raw, Body]]:
        return (
            change(raw, {**body, "approval": ""})
            if raw.kind == "attempt_started"
            else [(raw, body)]
        )

    problems = found(bed, apply, f"run:{row.run}")
    assert len(problems) == 2


def test_a_situation_that_is_other_is_another_question(bed: Bed) -> None:
    """The same plan with one more step: nothing that was approved once covers it."""
    decisions = Decisions(bed.store, "", LINE, bed.clock)
    before: list[Approval] = list(decisions.book)
    more = replace(PLAN, steps={**PLAN.steps, StepId("e"): step("e")})
    state = start(bed, Stage(more), asking())
    assert state.counts["reused"] == 4
    decisions.refresh()
    assert list(decisions.book) == before
