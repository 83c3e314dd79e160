"""Composite guards: their truth tables."""

from collections.abc import Mapping

import pytest

from holdfast.errors import GuardBroken
from holdfast.guards.compose import CompositeGuard
from holdfast.model.artifact import Verdict
from holdfast.model.digest import Json
from holdfast.model.plan import Guard, Step, StepId
from holdfast.ports import Candidate, GuardKind, Job
from tests.generators.builders import Project, wait
from tests.guards.builders import broken, candidate, judge

LETTERS = {"A": "accept", "R": "reject", "F": "fatal"}


class Scripted:
    """Answers as its config says: A, R, F, or B for broken; remembers what it was asked."""

    def __init__(self) -> None:
        self.asked = ""

    def identity(self, guard: Guard, root: str) -> Mapping[str, Json]:
        return {"files": {"x": "1"}} if guard.config == "A" else {}

    async def judge(self, guard: Guard, candidate: Candidate, job: Job) -> Verdict:
        letter = str(guard.config)
        self.asked += letter
        match letter:
            case "A":
                return Verdict("accept", "scripted")
            case "R":
                return Verdict("reject", "scripted", "no")
            case "F":
                return Verdict("fatal", "scripted", "never")
            case _:
                raise GuardBroken("broken")


def ask(project: Project, kind: str, letters: str) -> tuple[str, str]:
    """The letter of the answer, and the guards that were asked."""
    scripted = Scripted()
    kinds: dict[str, GuardKind] = {"scripted": scripted}
    items = tuple(Guard("scripted", letter) for letter in letters)
    job = project.job(Step(StepId("step")))
    try:
        verdict = wait(CompositeGuard(kinds).judge(Guard(kind, items=items), candidate(""), job))
    except GuardBroken:
        return "B", scripted.asked
    assert verdict.guard == kind
    return next(key for key, name in LETTERS.items() if name == verdict.call), scripted.asked


@pytest.mark.parametrize(
    "letters, answer, asked",
    [
        ("", "A", ""),
        ("A", "A", "A"),
        ("AA", "A", "AA"),
        ("ARA", "R", "AR"),
        ("RF", "R", "R"),
        ("AF", "F", "AF"),
        ("FR", "F", "F"),
        ("B", "B", "B"),
        ("AB", "B", "AB"),
        ("BA", "B", "BA"),
        ("RB", "R", "R"),
        ("BR", "R", "BR"),
        ("BF", "F", "BF"),
    ],
)
def test_all(project: Project, letters: str, answer: str, asked: str) -> None:
    assert ask(project, "all", letters) == (answer, asked)


@pytest.mark.parametrize(
    "letters, answer, asked",
    [
        ("", "R", ""),
        ("A", "A", "A"),
        ("RA", "A", "RA"),
        ("AR", "A", "A"),
        ("FA", "A", "FA"),
        ("RR", "R", "RR"),
        ("RF", "R", "RF"),
        ("FF", "F", "FF"),
        ("AB", "A", "A"),
        ("BA", "A", "BA"),
        ("RB", "B", "RB"),
        ("BF", "B", "BF"),
    ],
)
def test_any(project: Project, letters: str, answer: str, asked: str) -> None:
    assert ask(project, "any", letters) == (answer, asked)


@pytest.mark.parametrize(
    "letters, answer, asked",
    [
        ("", "R", ""),
        ("A", "A", "A"),
        ("AR", "R", "AR"),
        ("AAR", "A", "AA"),
        ("RAA", "A", "RAA"),
        ("ARR", "R", "ARR"),
        ("ARF", "R", "ARF"),
        ("FFF", "F", "FFF"),
        ("RFF", "R", "RFF"),
        ("AARR", "R", "AARR"),
        ("ABA", "A", "ABA"),
        ("BAA", "A", "BAA"),
        ("BAR", "B", "BAR"),
        ("BRR", "R", "BRR"),
        ("BFF", "R", "BFF"),
        ("BBA", "B", "BBA"),
        ("AB", "B", "AB"),
    ],
)
def test_majority(project: Project, letters: str, answer: str, asked: str) -> None:
    assert ask(project, "majority", letters) == (answer, asked)


def composite() -> tuple[CompositeGuard, dict[str, GuardKind]]:
    kinds: dict[str, GuardKind] = {"scripted": Scripted()}
    compose = CompositeGuard(kinds)
    kinds |= {"all": compose, "any": compose, "majority": compose}
    return compose, kinds


def test_the_feedback_of_all_is_that_of_the_guard_that_refused(project: Project) -> None:
    compose, _ = composite()
    guard = Guard("all", items=(Guard("scripted", "A"), Guard("scripted", "F")), name="both")
    verdict = judge(project, compose, guard, candidate(""))
    items = (Verdict("accept", "scripted"), Verdict("fatal", "scripted", "never"))
    assert verdict == Verdict("fatal", "both", "never", items)


@pytest.mark.parametrize("kind", ["any", "majority"])
def test_feedbacks_of_the_others_are_joined(project: Project, kind: str) -> None:
    compose, _ = composite()
    guard = Guard(kind, items=(Guard("scripted", "R"), Guard("scripted", "F")))
    assert judge(project, compose, guard, candidate("")).feedback == "scripted: no\nscripted: never"


def test_composites_hold_composites(project: Project) -> None:
    compose, _ = composite()
    accept, reject = Guard("scripted", "A"), Guard("scripted", "R")
    inner = Guard("any", items=(reject, accept))
    assert judge(project, compose, Guard("all", items=(inner, accept)), candidate("")).passed
    refusing = Guard("all", items=(inner, Guard("majority", items=(reject, accept))))
    assert not judge(project, compose, refusing, candidate("")).passed


def test_a_kind_that_is_not_there_breaks_the_composite(project: Project) -> None:
    compose, _ = composite()
    says = broken(project, compose, Guard("all", items=(Guard("other"),)), candidate(""))
    assert says == "there is no guard of kind 'other' here"


@pytest.mark.req("R4", "E2")
def test_the_identity_holds_those_of_the_guards_inside() -> None:
    compose, _ = composite()
    inner = Guard("any", items=(Guard("scripted", "A"),))
    guard = Guard("all", items=(Guard("scripted", "R"), inner))
    assert compose.identity(guard, "/") == {"items": [{}, {"items": [{"files": {"x": "1"}}]}]}
    assert compose.identity(Guard("all", items=(Guard("scripted", "R"),)), "/") == {}
