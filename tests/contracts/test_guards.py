"""Every guard kind keeps the port's contract: deterministic, and with an identity."""

import json
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.engine.aside import Aside
from holdfast.generators.imports import Imports
from holdfast.generators.python import Pool
from holdfast.guards.cites import CitesGuard
from holdfast.guards.code import PythonGuard
from holdfast.guards.command import CommandGuard
from holdfast.guards.compose import CompositeGuard
from holdfast.guards.content import FileGuard, OutputsGuard, SyntaxGuard
from holdfast.guards.judge import JudgeGuard
from holdfast.guards.pattern import RegexGuard
from holdfast.guards.schema import JsonSchemaGuard
from holdfast.model.artifact import Verdict
from holdfast.model.digest import canonical
from holdfast.model.plan import Guard, Plan, Step, StepId
from holdfast.ports import Candidate, GuardKind
from holdfast.store.memory import MemoryStore
from holdfast.testing.server import Asked, ModelServer, Reply, Say
from holdfast.wire import project_files
from holdfast.wire.market import desk_for
from tests.generators.builders import ENGINE, Project, given, wait

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
    "cites": Guard("cites", {"in": "source", "field": "yes"}),
    "judge": Guard("judge", {"rubric": "Is n one?", "model": "fake:m", "min": 0.5}),
}
GUARDS |= {kind: Guard(kind, items=tuple(GUARDS.values())) for kind in ("all", "any", "majority")}
GOOD, BAD = (
    Candidate("bytes", b'{"n": 1, "yes": "1"}'),
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
        "cites": CitesGuard(project_files),
        "judge": JudgeGuard(),
    }
    found |= dict.fromkeys(("all", "any", "majority"), CompositeGuard(found))
    try:
        yield found
    finally:
        await pool.close()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    project = Project(tmp_path)
    project.write(
        "check.sh", 'grep -q \'"n": 1\' "$HOLDFAST_ARTIFACT" || { echo bad n; exit 1; }\n'
    )
    project.write("mod.py", CHECK)
    project.write("schema.json", json.dumps({"properties": {"n": {"const": 1}}}))
    return project


def says(asked: Asked) -> Reply:
    """A judge that finds fault with all that has no n of one."""
    if '"n": 1' in asked.last:
        return Say(json.dumps({"score": 1, "verdict": "", "quote": ""}))
    return Say(json.dumps({"score": 0, "verdict": "bad n", "quote": '"n": 2'}))


def configure(url: str) -> None:
    place = Path(os.environ["HOME"], ".config", "holdfast", "config.toml")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f'[providers.fake]\nkind = "openai"\nbase_url = "{url}"\n')


@asynccontextmanager
async def asking(project: Project, step: Step) -> AsyncIterator[Aside]:
    """What asks a real model server, by the configuration of a person."""
    with ModelServer(says) as server:
        configure(server.url)
        plan, root = Plan("demo", {step.id: step}), str(project.root)
        desk = desk_for(root, root, MemoryStore(), plan, None, lambda _: None)
        try:
            yield Aside(desk, step)
        finally:
            await desk.models.close()


async def verdicts(project: Project, kind: str, candidate: Candidate) -> list[Verdict]:
    guard, step = GUARDS[kind], Step(StepId("step"))
    job = project.job(step, given={"source": given("0 1 2")})
    async with kinds() as found, AsyncExitStack() as stack:
        if guard.asks_model:
            job = replace(job, calls=await stack.enter_async_context(asking(project, step)))
        return [await found[kind].judge(guard, candidate, job) for _ in range(2)]


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
