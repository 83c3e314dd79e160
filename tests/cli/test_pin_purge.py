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


@pytest.mark.req("I17")
def test_gc_does_not_forget_an_effect_whose_receipt_was_purged(project: Project) -> None:
    def send(text: str) -> None:
        project.plan({"send": {"shell": project.sh(f"echo {text}"), "effects": "external"}})

    send("one")
    project.run("--yes")
    project.ok("purge", digest("one\n"), "--because", "a name", "--yes")
    send("two")
    assert project.run("--yes").states == {"send": "done"}
    swept = project.ok("gc", "--keep", "0s", "--yes").out
    assert "with an effect whose receipt was purged" in swept
    send("one")
    assert project.run("--yes").states == {"send": "waiting"}
    assert project.ran() == ["send"] * 2
    project.ok("verify", "--all")


@pytest.mark.req("I17")
def test_gc_does_not_forget_a_purged_receipt_that_was_only_guarded_again(project: Project) -> None:
    def send(text: str, pattern: str) -> None:
        guards = [{"regex": {"pattern": pattern}}]
        step = {"shell": project.sh(f"echo {text}"), "effects": "external", "guards": guards}
        project.plan({"send": step})

    send("one", "o")
    project.run("--yes")
    send("one", "on")
    assert project.run("--yes").states == {"send": "reused"}
    send("two", "t")
    project.run("--yes")
    project.run("--yes")
    project.ok("purge", digest("one\n"), "--because", "a name", "--yes")
    project.ok("gc", "--keep", "0s", "--yes")
    send("one", "on")
    assert project.run("--yes").states == {"send": "waiting"}
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


def waits_with_result(project: Project, **more: object) -> None:
    """A result that a person is asked about, and another question with a step below it."""
    made = {"shell": project.sh("echo made"), "guards": ["human"], **more}
    gate = {"shell": project.sh("echo yes"), "approve": "always"}
    after = {"shell": project.sh("cat $HOLDFAST_INPUTS/gate"), "needs": ["gate"]}
    project.plan({"make": made, "gate": gate, "after": after})
    assert project.run("--yes").code == 3
    assert project.ran() == ["make"]


def goes_on_without(project: Project, more: dict[str, object]) -> None:
    """The rest goes on; the step fails, or is held if it was done, and a person has it made again."""
    run = project.resume("--yes")
    held = "effects" in more
    assert run.states == {
        "make": "waiting" if held else "failed",
        "gate": "done",
        "after": "done",
    }
    assert run.codes["make"] == ("receipt_gone" if held else "output_missing")
    assert held or "make: an output is missing: content" in run.err
    assert project.ran() == ["after", "gate"]
    project.call("retry", "make", "--yes")
    assert project.ran() == ["make"]
    if project.status().states["make"] == "waiting":
        project.ok("approve", "make", "--yes")
        project.resume("--yes")
    assert project.status().states["make"] == "done"
    project.ok("verify", "--all")


@pytest.mark.parametrize("more", [{}, {"effects": "external"}, {"produces": "a.txt"}])
def test_what_was_purged_is_not_approved(project: Project, more: dict[str, object]) -> None:
    if "produces" in more:
        more = {**more, "shell": project.sh("echo made > a.txt")}
    waits_with_result(project, **more)
    project.ok("purge", digest("made\n"), "--because", "a name", "--yes")
    refused = project.refused(2, "approve", "make", "--yes")
    assert "what 'make' made is gone, so there is nothing to approve" in refused
    assert project.refused(2, "approve", "--all", "--yes") == refused, "nothing else is decided"
    assert "was purged on" in refused
    assert ("amend make" if "effects" in more else "retry make") in refused
    assert "reject" in refused
    project.ok("approve", "gate", "--yes")
    goes_on_without(project, more)


@pytest.mark.parametrize("more", [{}, {"effects": "external"}])
def test_a_result_that_is_purged_after_its_yes_fails_alone(
    project: Project, more: dict[str, object]
) -> None:
    waits_with_result(project, **more)
    project.ok("approve", "make", "--yes")
    project.ok("approve", "gate", "--yes")
    project.ok("purge", digest("made\n"), "--because", "a name", "--yes")
    goes_on_without(project, more)


def test_a_result_that_got_lost_while_it_waited_holds_nobody_else_up(project: Project) -> None:
    large = "x" * 20_000
    waits_with_result(project, shell=project.sh(f"printf {large}"))
    name = digest(large)
    (project.store / "blobs" / name[:2] / name).unlink()
    project.ok("approve", "gate", "--yes")
    resumed = project.resume("--yes")
    assert resumed.states == {"make": "waiting", "gate": "done", "after": "done"}
    assert "is missing; holdfast repair, then resume" in resumed.err


@pytest.mark.parametrize("answer", ["amend", "approve", "reject", "run"])
def test_what_was_done_and_purged_waits_for_a_person(project: Project, answer: str) -> None:
    waits_with_result(project, effects="external")
    project.ok("purge", digest("made\n"), "--because", "a name", "--yes")
    project.ok("approve", "gate", "--yes")
    assert project.resume("--yes").codes["make"] == "receipt_gone"
    assert project.resume("--yes").codes["make"] == "receipt_gone", "and again"
    project.ran()
    if answer == "amend":
        project.ok("amend", "make", "-", stdin=b"made, they say\n")
        assert project.resume("--yes").states["make"] == "reused"
    elif answer == "approve":
        project.ok("approve", "make", "--yes")
        project.resume("--yes")
        assert project.ran() == ["make"], "that was the question"
    elif answer == "reject":
        project.ok("reject", "make", "--because", "no")
        assert project.resume("--yes").states["make"] == "failed"
        assert project.run("--yes").codes["make"] == "effect_unconfirmed"
    else:
        assert project.run("--yes").codes["make"] == "effect_unconfirmed"
    assert "make" not in project.ran()
    project.ok("verify", "--all")


def test_a_rejection_needs_no_content(project: Project) -> None:
    waits_with_result(project)
    project.ok("purge", digest("made\n"), "--because", "a name", "--yes")
    project.ok("reject", "make", "--because", "no")
    assert project.resume("--yes").states["make"] == "failed"
    assert project.ran() == []
    project.ok("verify", "--all")
