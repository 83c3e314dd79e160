"""pin and purge: kept whatever its age, removed for good with a tombstone."""

import hashlib
import os
import signal
import subprocess

import pytest

from holdfast.model.plan import StepId
from tests.cli.here import run_here
from tests.cli.project import COMMAND, Project, finish


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def three_steps(project: Project) -> None:
    """One artifact of bytes, one that reads it, one of two files with the same bytes in one."""
    project.plan(
        {
            "a": {"shell": project.sh("echo secret")},
            "b": {"shell": project.sh("wc -c < $HOLDFAST_INPUTS/a"), "needs": ["a"]},
            "c": {
                "shell": project.sh("cp $HOLDFAST_INPUTS/a one.txt; echo 2 > two.txt"),
                "needs": ["a"],
                "produces": ["one.txt", "two.txt"],
            },
        }
    )
    assert run_here(project).status == "completed"
    project.ran()


def test_pins_are_listed_and_let_go(project: Project) -> None:
    three_steps(project)
    project.ok("pin", "@", "--because", "what we shipped")
    project.ok("pin", "c")
    pins = project.ok("pin", digest("secret\n")[:8], "--json").json["pins"]
    assert [(pin["kind"], pin["because"]) for pin in pins] == [
        ("run", "what we shipped"),
        ("step", ""),
        ("content", ""),
    ]
    left = project.ok("pin", "c", "--remove", "--json").json["pins"]
    assert [pin["kind"] for pin in left] == ["run", "content"]
    assert "is not pinned" in project.refused(2, "pin", "c", "--remove")
    assert "no run, step or content 'x'" in project.refused(2, "pin", "x")
    assert "pin --list" in project.refused(2, "pin")
    assert project.ok("verify").code == 0


@pytest.mark.req("I17")
def test_a_purged_receipt_repeats_no_effect(project: Project) -> None:
    sends = {"shell": project.sh("echo sent"), "effects": "external"}
    after = {"shell": project.sh("cat $HOLDFAST_INPUTS/send"), "needs": ["send"]}
    project.plan({"send": sends, "after": after, "other": {"shell": project.sh()}})
    project.run("--yes")
    project.ran()
    project.ok("purge", digest("sent\n"), "--because", "a name", "--yes")
    seen = project.ok("plan", "--json").json["steps"]["send"]
    assert (seen["decision"], seen["reason"]["code"]) == ("wait", "receipt_gone")
    held = project.run("--yes")
    assert (held.code, held.states["send"], held.states["other"]) == (3, "waiting", "reused")
    assert "would repeat its effect" in held.err
    assert project.run("--yes").states["send"] == "waiting", "a new run holds it too"
    assert project.ran() == []
    project.ok("amend", "send", "-", stdin=b"sent, they say\n")
    assert project.run("--yes").states == {"send": "reused", "after": "done", "other": "reused"}
    assert project.ran() == ["after"]
    project.ok("verify", "--all")


@pytest.mark.req("I17")
def test_whoever_asks_for_it_repeats_the_effect_of_a_purged_receipt(project: Project) -> None:
    project.plan({"send": {"shell": project.sh("echo sent"), "effects": "external"}})
    project.run("--yes")
    project.ok("purge", digest("sent\n"), "--because", "a name", "--yes")
    assert project.run("--yes").code == 3
    assert project.run("--yes", "--force-node", "send").states == {"send": "done"}
    assert project.ran() == ["send"] * 2
    project.ok("verify", "--all")


def test_what_is_purged_is_gone_and_the_store_is_whole(project: Project) -> None:
    three_steps(project)
    secret = digest("secret\n")
    assert "--yes" in project.refused(2, "purge", secret, "--because", "a password")
    assert project.shown("a") == b"secret\n"
    answer = project.ok("purge", secret[:8], "--because", "a password", "--yes", "--json").json
    assert answer["digests"] == [secret]
    assert {item["step"] for item in answer["artifacts"]} == {"a", "c"}
    said = project.refused(1, "show", "a")
    assert "was purged on" in said
    assert "a password" in said
    with project.database() as database:
        left = database.execute("SELECT 1 FROM blob WHERE content = ?", (b"secret\n",)).fetchall()
    assert left == []
    assert project.ok("verify").code == 0
    assert project.ok("rebuild", "--json").json["changed"] is False
    assert project.why("a")["reason"]["code"] == "output_missing"


def test_what_was_purged_is_made_again(project: Project) -> None:
    three_steps(project)
    secret = digest("secret\n")
    project.ok("purge", secret, "--because", "a password", "--yes")
    assert "was purged" in project.refused(2, "purge", secret, "--because", "x", "--yes")
    state = run_here(project)
    assert state.status == "completed"
    assert project.ran() == ["a", "c"]
    assert project.shown("a") == b"secret\n"
    assert {step.phase for step in run_here(project).steps.values()} == {"reused"}
    assert project.ok("rebuild", "--json").json["changed"] is False
    assert project.ok("verify").code == 0


def test_the_files_of_an_artifact_are_purged_together(project: Project) -> None:
    three_steps(project)
    tree = project.ok("show", "c", "--json").json["digest"]
    answer = project.ok("purge", tree, "--because", "both", "--yes", "--json").json
    assert set(answer["digests"]) == {digest("secret\n"), digest("2\n")}
    assert project.ok("verify").code == 0


def test_what_lay_there_before_is_purged_with_its_list(project: Project) -> None:
    project.write("out.txt", "my password\n")
    project.plan({"a": {"shell": project.sh("echo made > out.txt"), "produces": "out.txt"}})
    run_here(project)
    (before,) = [event["before"] for event in project.events() if event.get("before")]
    screen = project.refused(2, "purge", before, "--because", "x")
    assert "--yes" in screen
    answer = project.ok("purge", before, "--because", "x", "--yes", "--json").json
    assert answer["digests"] == [digest("my password\n")]
    assert "was purged" in project.refused(
        2, "purge", digest("my password\n"), "--because", "x", "--yes"
    )
    assert "not here any more" in project.refused(2, "purge", before, "--because", "x", "--yes")
    project.ok("verify")


def test_what_cannot_be_purged_is_said(project: Project) -> None:
    three_steps(project)
    plan = project.events()[0]["plan"]
    assert "a plan or a key" in project.refused(2, "purge", plan, "--because", "x", "--yes")
    assert "too short" in project.refused(2, "purge", "abc", "--because", "x", "--yes")
    missing = project.refused(2, "purge", "0" * 20, "--because", "x", "--yes")
    assert "there is no content" in missing
    assert "needs a reason" in project.refused(2, "purge", plan, "--because", " ", "--yes")


@pytest.mark.req("R110")
def test_nothing_is_purged_under_an_engine(project: Project) -> None:
    three_steps(project)
    project.plan({"a": {"shell": project.sh(project.gate("go"))}})
    engine = project.begun_by("run", step="a")
    said = project.refused(7, "purge", digest("secret\n"), "--because", "x", "--yes")
    assert f"process {engine.pid}" in said
    project.open("go")
    assert finish(engine).code == 0


_KILLER = """
import os, signal, sys
from holdfast.store import contents, sqlite

die = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[1] == "after":
    contents.Contents.drop_files = die
else:
    sqlite.SqliteStore._apply = die
sys.argv = ["holdfast", "purge", sys.argv[2], "--because", "secret", "--yes"]
from holdfast.cli.main import main

main()
"""


@pytest.mark.parametrize("point", ["after", "before"])
def test_a_killed_purge_is_finished_or_did_not_happen(project: Project, point: str) -> None:
    project.plan({"a": {"shell": project.sh("head -c 40000 /dev/zero")}})
    large = str(run_here(project).steps[StepId("a")].digest)
    file = project.store / "blobs" / large[:2] / large
    old = file.stat().st_mtime - 7200
    os.utime(file, (old, old))
    killed = subprocess.run(
        [COMMAND[0], "-c", _KILLER, point, large],
        cwd=project.root,
        env=project.environment(),
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert file.exists()
    if point == "after":
        assert "was purged and is still there" in project.refused(9, "verify")
    project.ok("pin", "@")  # any command that writes
    assert file.exists() is (point == "before")
    project.ok("verify")
    project.ok("gc", "--yes")
    assert not list(project.store.glob("blobs/purging/*"))
