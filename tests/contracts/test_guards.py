"""Every guard kind keeps the port's contract: deterministic, and with an identity."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from holdfast.generators.imports import Imports
from holdfast.generators.python import Pool
from holdfast.guards.code import PythonGuard
from holdfast.guards.command import CommandGuard
from holdfast.guards.compose import CompositeGuard
from holdfast.guards.content import FileGuard, OutputsGuard, SyntaxGuard
from holdfast.guards.pattern import RegexGuard
from holdfast.guards.schema import JsonSchemaGuard
from holdfast.model.artifact import Verdict
from holdfast.model.digest import canonical
from holdfast.model.plan import Guard, Step, StepId
from holdfast.ports import Candidate, GuardKind
from tests.generators.builders import ENGINE, Project, wait

CHECK = """def check(text: str):
    return True if '"n": 1' in text else "bad n"
"""
GUARDS = {
    "command": Guard("command", ["/bin/sh", "check.sh"]),
    "python": Guard("python", "mod:check"),
    "json-schema": Guard("json-schema", "schema.json"),
    "outputs": Guard("outputs", ["n", "yes"]),
    "regex": Guard("regex", {"pattern": '"n": 1'}),
    "syntax": Guard("syntax", "python"),
    "file": Guard("file", {"max_bytes": 20}),
}
GUARDS |= {kind: Guard(kind, items=tuple(GUARDS.values())) for kind in ("all", "any", "majority")}
GOOD, BAD = (
    Candidate("bytes", b'{"n": 1, "yes": 1}'),
    Candidate("bytes", b'{"n": 2, "no": [[[1]]}}'),
)
READS_FILES = {"command": "files", "python": "code", "json-schema": "files", "all": "items"}


@asynccontextmanager
async def kinds() -> AsyncIterator[dict[str, GuardKind]]:
    pool = Pool()
    found: dict[str, GuardKind] = {
        "command": CommandGuard(ENGINE),
        "python": PythonGuard(pool.judge, Imports().of_module, ENGINE),
        "json-schema": JsonSchemaGuard(),
        "outputs": OutputsGuard(),
        "regex": RegexGuard(),
        "syntax": SyntaxGuard(),
        "file": FileGuard(),
    }
    found |= dict.fromkeys(("all", "any", "majority"), CompositeGuard(found))
    try:
        yield found
    finally:
        await pool.close()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.write(
        "check.sh", 'grep -q \'"n": 1\' "$HOLDFAST_ARTIFACT" || { echo bad n; exit 1; }\n'
    )
    project.write("mod.py", CHECK)
    project.write("schema.json", json.dumps({"properties": {"n": {"const": 1}}}))
    return project


async def verdicts(project: Project, kind: str, candidate: Candidate) -> list[Verdict]:
    job = project.job(Step(StepId("step")))
    async with kinds() as found:
        return [await found[kind].judge(GUARDS[kind], candidate, job) for _ in range(2)]


@pytest.mark.parametrize("kind", GUARDS)
def test_a_good_candidate_is_accepted_every_time(project: Project, kind: str) -> None:
    first, second = wait(verdicts(project, kind, GOOD))
    assert first == second
    assert (first.call, first.guard, first.feedback) == ("accept", kind, "")


@pytest.mark.parametrize("kind", GUARDS)
def test_a_bad_candidate_is_rejected_every_time_and_told_why(project: Project, kind: str) -> None:
    first, second = wait(verdicts(project, kind, BAD))
    assert first == second
    assert (first.call, first.guard) == ("reject", kind)
    assert first.feedback


@pytest.mark.req("R4", "E2")
@pytest.mark.parametrize("kind", GUARDS)
def test_the_identity_is_stable_and_names_what_is_read(project: Project, kind: str) -> None:
    async def identities() -> list[bytes]:
        root = str(project.root)
        async with kinds() as found:
            before = canonical(found[kind].identity(GUARDS[kind], root))
            again = canonical(found[kind].identity(GUARDS[kind], root))
            for path in ("check.sh", "mod.py", "schema.json"):
                place = project.root / path
                project.write(path, place.read_text() + "\n")
            return [before, again, canonical(found[kind].identity(GUARDS[kind], root))]

    before, again, edited = wait(identities())
    assert before == again
    reads = kind in READS_FILES or bool(GUARDS[kind].items)
    assert (edited != before) == reads
    if kind in READS_FILES:
        assert READS_FILES[kind] in json.loads(before)
