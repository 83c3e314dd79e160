"""Where an artifact comes from: a statement that follows from the journal, and that no change survives."""

from __future__ import annotations

import getpass
import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.attest import checked, text_of
from holdfast.cli.place import Place
from holdfast.testing.server import Say
from tests.cli.models import served, step
from tests.cli.project import Project


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def here(project: Project) -> Place:
    return Place(str(project.root / "plan.yaml"), str(project.root), str(project.store), None)


def attested(project: Project, ref: str) -> Any:
    return project.ok("attest", ref).json


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A report that a model wrote from a file, at the second try, after somebody said yes."""
    project = Project(tmp_path_factory.mktemp("made"))
    project.write("notes.txt", "tide\n")
    project.write("prompts/report.md", "Write it.\n")
    project.write("short.sh", 'test $(wc -c < "$HOLDFAST_ARTIFACT") -lt 20 || exit 1\n')
    guard = {"name": "short", "command": ["sh", "short.sh"]}
    asked = {"needs": ["read"], "approve": "always", "retries": 1, "produces": "report.md"}
    project.plan(
        {
            "read": {"inputs": "notes.txt", "shell": "cat notes.txt"},
            "report": step("prompts/report.md", guards=[guard], **asked),
        }
    )
    with served(project, [Say("far too long " * 9), Say("short")]):
        assert project.run("--yes").code == 3
        project.ok("approve", "report", "--yes", "--scope", "run")
        assert project.resume("--yes").code == 0
    yield project
    project.end()


@pytest.fixture
def report(project: Project, made: Project) -> Project:
    """The same in a project of the test's own: a store does not mind where it lies."""
    for own, other in ((project.root, made.root), (project.home, made.home)):
        shutil.copytree(other, own, dirs_exist_ok=True)
    return project


@pytest.mark.req("R185")
def test_a_statement_says_what_was_made_of_what_by_whom_and_who_agreed(report: Project) -> None:
    found = attested(report, "report")
    assert found["_type"] == "https://in-toto.io/Statement/v1"
    assert found["predicateType"] == "https://slsa.dev/provenance/v1"
    assert found["subject"] == [{"name": "report.md", "digest": {"sha256": sha(b"short")}}]
    assert (report.root / "report.md").read_bytes() == b"short"
    predicate = found["predicate"]
    build, details = predicate["buildDefinition"], predicate["runDetails"]
    run = report.status()
    assert build["externalParameters"]["model"] == "fake:m"
    assert build["externalParameters"]["structure"] == run.data["plan"]["ref"]
    assert build["internalParameters"]["config_ref"] == run.refs["report"]
    materials = {one["name"]: one["digest"]["sha256"] for one in build["resolvedDependencies"]}
    assert materials["step:read"] == sha(b"tide\n") == run.digests["read"]
    assert materials["guard:short.sh"] == sha((report.root / "short.sh").read_bytes())
    assert materials["plan"] == build["externalParameters"]["plan"]
    assert "prompt" in materials
    assert details["metadata"]["invocationId"] == f"{run.id}/report@2"
    began = [one for one in report.events() if one["event"] == "attempt_started"]
    assert details["metadata"]["startedOn"] == began[-1]["ts"]
    assert [(one["outcome"], one["guard"]) for one in predicate["holdfast_attempts"]] == [
        ("rejected", "short"),
        ("accepted", None),
    ]
    (guard,) = predicate["holdfast_guards"]
    assert (guard["name"], guard["verdict"]) == ("short", "accept")
    (call,) = predicate["holdfast_calls"]
    assert call["model"] == "fake:m"
    assert report.shown(call["answer"])
    (approval,) = predicate["holdfast_approvals"]
    assert (approval["by"], approval["gate"], approval["scope"]) == (
        getpass.getuser(),
        "step",
        "run",
    )
    assert "Write it" not in json.dumps(found), "content is named, not told"
    reading = attested(report, "read")["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert {"name": "file:notes.txt", "digest": {"sha256": sha(b"tide\n")}} in reading


@pytest.mark.req("R185")
def test_the_same_artifact_always_has_the_same_statement(report: Project) -> None:
    report.ok("attest", "report", "-o", "first.json")
    first = report.read("first.json")
    assert text_of(attested(report, "report")) == first
    digest = json.loads(first)["subject"][0]["digest"]["sha256"]
    assert text_of(attested(report, digest[:12])) == first
    report.ok("rebuild")
    report.run("--yes")
    assert report.status().states == {"read": "reused", "report": "reused"}
    assert text_of(attested(report, "report")) == first
    assert report.ok("verify", "--attestation", "first.json").out == (
        "first.json: no problems (compared with the store)\n"
    )


def leaves(value: Any, path: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in pairs:
        if isinstance(inner, dict | list) and inner:
            yield from leaves(inner, (*path, key))
        else:
            yield (*path, key)


def changed(value: Any) -> Any:
    """Something else of the same kind."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            other = "0" if value[-1:] != "0" else "1"
            return value[:-1] + other
        case None:
            return "something"
        case _:
            return ["something"]


@pytest.mark.req("R185")
def test_no_leaf_of_a_statement_can_be_changed_added_or_left_out(report: Project) -> None:
    text = json.dumps(attested(report, "report"))
    assert checked(here(report), json.loads(text)).problems == []
    paths = [*leaves(json.loads(text))]
    assert len(paths) > 60
    for number, path in enumerate(paths):
        for what in ("change", "drop", "add") if number % 5 == 0 else ("change",):
            told = json.loads(text)
            inner = told
            for key in path[:-1]:
                inner = inner[key]
            if what == "change":
                inner[path[-1]] = changed(inner[path[-1]])
            elif what == "drop":
                del inner[path[-1]]
            elif isinstance(inner, dict):
                inner["more"] = 1
            else:
                inner.append(1)
            assert checked(here(report), told).problems, (path, what)


@pytest.mark.req("R185")
def test_without_a_store_the_files_are_compared(report: Project, tmp_path: Path) -> None:
    report.ok("attest", "report", "-o", "report.json")
    other = tmp_path / "elsewhere"
    other.mkdir()
    shutil.copy(report.root / "report.json", other)
    shutil.copy(report.root / "report.md", other)

    def verified() -> tuple[int, Any]:
        answer = report.call("verify", "--attestation", "report.json", "--json", cwd=other)
        return answer.code, answer.json

    code, told = verified()
    assert (code, told["store"], told["files"]) == (0, False, {"report.md": "same"})
    (other / "report.md").write_text("shorn")
    code, told = verified()
    assert (code, told["problems"]) == (9, ["'report.md' is not what it says"])
    (other / "report.md").unlink()
    assert verified()[1]["problems"] == ["'report.md' is not there"]
    assert not (other / ".holdfast").exists()
    (other.parent / "secret").write_text("x")
    given = json.loads((other / "report.json").read_text())
    given["subject"][0] = {"name": "../secret", "digest": {"sha256": sha(b"x")}}
    (other / "report.json").write_text(json.dumps(given))
    assert verified()[1]["files"] == {"../secret": "missing"}, "nothing outside is looked at"


def test_a_store_that_does_not_know_the_run_says_so(report: Project, tmp_path: Path) -> None:
    report.ok("attest", "report", "-o", "report.json")
    (tmp_path / "own").mkdir()
    own = Project(tmp_path / "own")
    own.plan({"report": {"shell": "printf short > report.md", "produces": "report.md"}})
    own.run()
    shutil.copy(report.root / "report.json", own.root)
    assert "knows nothing of r-" in own.refused(9, "verify", "--attestation", "report.json")
    assert own.ok("verify", "--attestation", "report.json", "--files").out == (
        "report.json: no problems (compared with 1 file; no store was asked)\n"
    )
    own.end()


def test_a_store_that_was_tampered_with_no_longer_fits(report: Project) -> None:
    report.ok("attest", "report", "-o", "report.json")
    with report.database() as connection:
        rows = list(
            connection.execute("SELECT rowid, body FROM event WHERE body LIKE '%\"score\"%'")
        )
        del rows
        connection.execute(
            "UPDATE blob SET content = CAST(X'00' || substr(content, 2) AS BLOB) WHERE digest = ?",
            (bytes.fromhex(sha(b"short")),),
        )
    told = report.refused(9, "verify", "--attestation", "report.json")
    assert sha(b"short") in told


def test_what_a_person_wrote_is_said_to_be_theirs(project: Project) -> None:
    project.plan({"a": {"shell": "echo made > a.txt", "produces": "a.txt"}})
    project.run()
    project.write("mine.txt", "mine\n")
    project.ok("amend", "a", "mine.txt", "--because", "better so")
    project.run()
    project.ok("attest", "a", "-o", "a.json")
    found = json.loads(project.read("a.json"))
    decision = found["predicate"]["holdfast_decision"]
    assert (decision["what"], decision["by"]) == ("amended", getpass.getuser())
    assert project.shown(decision["because"]) == b"better so"
    assert decision["replaces"] == sha(b"made\n")
    assert found["subject"] == [{"name": "a.txt", "digest": {"sha256": sha(b"mine\n")}}]
    project.ok("verify", "--attestation", "a.json")
    found["predicate"]["holdfast_decision"]["by"] = "somebody else"
    assert checked(here(project), found).problems


def test_every_file_of_an_artifact_is_a_subject_and_results_without_files_too(
    project: Project,
) -> None:
    project.plan(
        {
            "many": {"shell": "mkdir -p out; echo 1 > out/a; echo 2 > out/b", "produces": "out"},
            "said": {"shell": "echo words", "needs": ["many"]},
        }
    )
    run = project.run()
    assert attested(project, "many")["subject"] == [
        {"name": "out/a", "digest": {"sha256": sha(b"1\n")}},
        {"name": "out/b", "digest": {"sha256": sha(b"2\n")}},
    ]
    assert attested(project, "said")["subject"] == [
        {"name": "step:said", "digest": {"sha256": run.digests["said"]}}
    ]
    for name in ("many", "said"):
        project.ok("attest", name, "-o", f"{name}.json")
        project.ok("verify", "--attestation", f"{name}.json")


def test_forks_items_and_reuse_by_content_stand_on_the_attempt_that_made_them(
    project: Project,
) -> None:
    project.write("list.txt", "x\n")
    project.plan(
        {
            "each": {"for_each": ["one", "two"], "shell": "echo item"},
            "top": {"inputs": "list.txt", "shell": "echo same"},
            "low": {"shell": "cat $HOLDFAST_INPUTS/top", "needs": ["top"], "reuse": "content"},
        }
    )
    run = project.run()
    project.write("list.txt", "y\n")
    project.run()
    assert project.status().states["low"] == "reused"
    project.ok("fork", "@", "--from", "low", "--as", "other")
    for name in ("each[one]", "each", "low", "top"):
        project.ok("attest", name, "-o", "found.json")
        project.ok("verify", "--attestation", "found.json")
    found = attested(project, "low")
    assert found["predicate"]["runDetails"]["metadata"]["invocationId"] == f"{run.id}/low@1"
    taken = project.call("attest", "top", "--plan-id", "other", "--json")
    assert taken.code == 0, taken.err


def test_what_cannot_be_told_is_refused(project: Project) -> None:
    project.plan({"build": {"shell": "echo x"}, "bad": {"shell": "exit 1"}})
    project.run()
    assert "did you mean 'build'?" in project.refused(2, "attest", "buidl")
    project.refused(2, "attest", "bad")
    project.refused(2, "verify", "--attestation", "none.json")
    project.refused(2, "verify", "--files")
    project.refused(2, "verify", "--all", "--attestation", "none.json")
    project.write("x.json", "[" * 100_000)
    assert "is no statement" in project.refused(2, "verify", "--attestation", "x.json")
    project.write("x.json", "{}")
    assert "no in-toto statement" in project.refused(9, "verify", "--attestation", "x.json")
