"""Judging candidates with one guard."""

import pytest

from holdfast.errors import GuardBroken
from holdfast.model.artifact import Verdict
from holdfast.model.digest import Json
from holdfast.model.plan import Guard, Step, StepId
from holdfast.ports import Candidate, File, GuardKind
from tests.generators.builders import Project, wait


def candidate(content: bytes | str) -> Candidate:
    return Candidate("bytes", content.encode() if isinstance(content, str) else content)


def tree(**files: str) -> Candidate:
    """Several files; `_` in a name stands for a dot."""
    made = tuple(File(name.replace("_", "."), text.encode()) for name, text in files.items())
    return Candidate("tree", files=made)


def judge(
    project: Project,
    kind: GuardKind,
    guard: Guard,
    made: Candidate,
    *,
    produces: tuple[str, ...] = (),
) -> Verdict:
    job = project.job(Step(StepId("step"), produces=produces))
    return wait(kind.judge(guard, made, job))


def broken(project: Project, kind: GuardKind, guard: Guard, made: Candidate) -> str:
    """What a guard says that cannot give a verdict."""
    with pytest.raises(GuardBroken) as caught:
        judge(project, kind, guard, made)
    return str(caught.value)


def accepted(guard: Guard) -> Verdict:
    return Verdict("accept", guard.name or guard.kind)


def rejected(guard: Guard, feedback: str) -> Verdict:
    return Verdict("reject", guard.name or guard.kind, feedback)


def identity(kind: GuardKind, config: Json, root: str) -> dict[str, Json]:
    return dict(kind.identity(Guard("kind", config), root))
