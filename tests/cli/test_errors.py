"""Errors: one clear message, one object for programs, one exit code, never a traceback unasked."""

import hashlib
import json
import os
import subprocess
import sys
import threading
from typing import Any

import apsw
import pytest

from holdfast.cli.catalogue import error_kinds
from holdfast.cli.report import wants_json
from holdfast.errors import HoldfastError, Where, outside_fault
from tests.cli.project import COMMAND, Project

KEYS = {"code", "message", "where", "hint", "next", "retryable"}
PLACE = {"file", "line", "col", "step", "attempt"}


def error_of(project: Project, code: int, *words: str) -> dict[str, Any]:
    """The error of a command as a program reads it: one object and nothing else on stdout."""
    answer = project.call(*words)
    assert answer.code == code, (answer.out, answer.err)
    assert "Traceback" not in answer.err
    data = answer.json
    assert set(data) == {"error"}
    error: dict[str, Any] = data["error"]
    assert set(error) >= KEYS
    assert set(error["where"]) == PLACE
    assert isinstance(error["retryable"], bool)
    assert answer.err.startswith("error[")
    return error


def test_every_error_is_one_object_for_programs(project: Project) -> None:
    project.plan({"build": {"shell": "true"}})
    unknown = error_of(project, 2, "why", "biuld", "--json")
    assert set(unknown) == KEYS
    assert (unknown["code"], unknown["hint"]) == ("usage", "did you mean 'build'?")
    assert unknown["where"] == dict.fromkeys(PLACE)
    none_yet = error_of(project, 2, "--output", "json", "status")
    assert none_yet["message"]
    command = error_of(project, 2, "--output=json", "rum")
    assert (command["message"], command["next"]) == ("there is no command 'rum'", ["holdfast run"])
    option = error_of(project, 2, "why", "build", "--jsn", "--json")
    assert option["message"] == "'holdfast why' has no option '--jsn'"
    assert option["hint"] == "did you mean '--json'?"
    assert error_of(project, 2, "why", "--json")["message"] == "missing argument 'STEP'"
    project.write("plan.yaml", "steps:\n  a: {run: [make], rum: 1}\n  b: {needs: [x]}\n")
    plan = error_of(project, 2, "run", "--json")
    assert (plan["code"], plan["where"]["file"], plan["where"]["line"]) == ("plan", "plan.yaml", 2)
    assert len(plan["problems"]) > 1
    assert all(set(problem["where"]) == PLACE for problem in plan["problems"])
    assert "holdfast check" in plan["next"]


@pytest.mark.req("R55")
def test_what_to_do_about_a_store_is_said(project: Project) -> None:
    project.plan({"a": {"run": "echo a"}})
    none_yet = error_of(project, 2, "status", "--json")
    assert (none_yet["hint"], none_yet["next"]) == ("holdfast run", ["holdfast run"])
    project.ok("run")
    with project.database() as connection:
        connection.execute(
            "UPDATE blob SET content = CAST(X'00' AS BLOB) WHERE digest = ?",
            (hashlib.sha256(b"a\n").digest(),),
        )
    said = project.refused(9, "show", "a")
    assert said.splitlines()[1:] == ["  step 'a'", "hint: holdfast verify"]
    with project.database() as connection:
        connection.execute("DROP TRIGGER event_is_kept")
        connection.execute("UPDATE event SET body = '{}' WHERE kind = 'attempt_accepted'")
    broken = error_of(project, 9, "status", "--json")
    assert (broken["hint"], broken["next"]) == ("holdfast verify", ["holdfast verify"])


def test_what_cannot_be_stored_can_be_tried_again(project: Project) -> None:
    project.plan({"build": {"shell": "true"}})
    error = error_of(project, 74, "run", "--json", "--store", "/sys/holdfast")
    assert (error["code"], error["retryable"]) == ("store", True)


def test_a_store_that_cannot_be_made_is_made_elsewhere(project: Project) -> None:
    project.plan({"build": {"shell": "true"}})
    refused = error_of(project, 74, "run", "--json", "--store", "/sys/holdfast")
    assert "Errno" not in refused["message"]
    assert refused["hint"].endswith("--store DIR or HOLDFAST_STORE")


def test_a_file_that_cannot_be_written_is_written_elsewhere(project: Project) -> None:
    project.plan({"build": {"shell": "true"}})
    project.ok("run")
    for words in (["export", "--all"], ["plan", "-o"], ["attest", "build", "-o"]):
        said = project.call(*words, "/sys/holdfast")
        assert said.code in {2, 74}
        assert said.err.endswith("hint: name a place where you can write\n")


def test_a_file_is_no_store(project: Project) -> None:
    project.plan({"build": {"shell": "true"}})
    place = project.root / "plan.yaml"
    file = error_of(project, 2, "run", "--json", "--store", "plan.yaml")
    assert file["message"] == f"'{place}' is no directory, and a store is one"
    named = project.call("run", env={"HOLDFAST_STORE": str(place)})
    assert (named.code, "--store or HOLDFAST_STORE" in named.err) == (2, True)
    assert place.read_bytes().startswith(b"{")


def test_where_a_store_cannot_lie_every_command_says_so(project: Project) -> None:
    """A run would say so too late: `plan` had shown what it would do."""
    project.plan({"build": {"shell": "true"}})
    project.write("note", "x")
    said = "is no directory, and a store is one"
    for words in (
        ["plan"],
        ["run"],
        ["worker", "--queue", "q"],
        ["status"],
        ["verify"],
        ["repair"],
        ["why", "build"],
    ):
        for place in ("note", "note/store"):
            assert said in error_of(project, 2, *words, "--json", "--store", place)["message"]
    for target in ("nowhere", ".holdfast"):
        project.store.symlink_to(target)
        assert said in error_of(project, 2, "plan", "--json")["message"]
        assert "fix  store directory" in project.call("doctor").out
        project.store.unlink()
    assert project.read("note") == "x"


def test_a_database_of_another_program_is_left_to_it(project: Project) -> None:
    project.plan({"build": {"shell": "true"}})
    project.store.mkdir()
    with apsw.Connection(str(project.store / "state.db")) as theirs:
        theirs.execute("CREATE TABLE theirs(one)")
    for word in ("status", "plan", "run", "verify"):
        assert "hint: name another place: --store DIR" in project.refused(74, word)


def test_what_is_not_there_is_said_with_what_to_do(project: Project) -> None:
    project.plan({"build": {"shell": "true"}})

    def hint(*words: str) -> str:
        return str(error_of(project, 2, *words, "--json")["hint"])

    assert hint("repair", "--start-over") == "holdfast run"
    assert hint("verify", "--attestation", "none.json") == "holdfast attest STEP -o FILE"
    project.ok("run")
    assert hint("status", "@-9") == "holdfast history"
    assert hint("stop") == "holdfast status"


def test_what_may_be_meant_by_a_file_that_is_not_there_is_said(project: Project) -> None:
    def said(*words: str) -> tuple[str, list[str]]:
        error = error_of(project, 2, *words, "--json")
        return error["hint"], error["next"]

    assert said("run", "any.yaml") == ("holdfast init", ["holdfast init"])
    project.plan({"build": {"shell": "echo 1"}})
    assert said("run", "any.yaml")[0] == "the plan file here is 'plan.yaml'"
    assert said("run", "plam.yaml")[0] == "did you mean 'plan.yaml'?"
    assert said("check", "plan")[0] == "did you mean 'plan.yaml'?"
    assert said("run", "quickly")[0] == "a goal has more than one word"
    project.write("plans/second.yml", "")
    assert said("run", "plans/secnd.yml")[0] == "did you mean 'plans/second.yml'?"
    assert said("run", "plans")[0] == "it is a directory; to work there, use -C plans"
    project.ok("run")
    assert said("amend", "build", "notes")[0].startswith("name a file that is there, '-' for stdin")
    project.write("notes.md", "")
    assert said("amend", "build", "nots.md")[0] == "did you mean 'notes.md'?"


def test_who_names_a_step_that_is_like_none_is_told_where_all_of_them_are(project: Project) -> None:
    project.plan({"build": {"shell": "true"}})
    project.ok("run")
    for words in (("why", "zz"), ("fork", "@", "--from", "zz")):
        assert error_of(project, 2, *words, "--json")["next"] == ["holdfast ls"]
    assert error_of(project, 2, "fork", "@", "--from", "buil", "--json")["hint"] == (
        "did you mean 'build'?"
    )


@pytest.mark.parametrize("name", ["", " "])
def test_an_empty_line_is_not_taken_for_the_plans_own(project: Project, name: str) -> None:
    project.plan({"build": {"shell": "true"}})
    error = error_of(project, 2, "run", "--json", "--plan-id", name)
    assert error["message"] == "'--plan-id' names no line: it is empty"
    assert error["hint"]
    assert not project.store.exists()


@pytest.mark.parametrize("size", [60, 5000, 60_000])
def test_a_database_that_was_cut_off_is_for_repair(project: Project, size: int) -> None:
    project.plan({"build": {"shell": "true"}})
    project.ok("run")
    os.truncate(project.store / "state.db", size)
    assert "hint: holdfast repair\n" in project.refused(9, "verify")


def test_words_for_people_name_the_code_and_what_to_do(project: Project) -> None:
    assert project.refused(2, "rum") == (
        "error[usage]: there is no command 'rum'\nhint: did you mean 'holdfast run'?\n"
    )
    assert project.refused(2, "status", "--wat").startswith(
        "error[usage]: 'holdfast status' has no option '--wat'\nhint: "
    )
    assert "Commands" not in project.refused(2, "why")


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (["run", "--json"], True),
        (["--output", "json", "run"], True),
        (["run", "--output=jsonl"], True),
        (["--output", "plain", "run"], False),
        (["run", "--", "--json"], False),
        ([], False),
    ],
)
def test_a_program_is_recognised_by_its_options(arguments: list[str], expected: bool) -> None:
    assert wants_json(arguments) is expected


def test_every_error_says_whose_fault_it_is() -> None:
    codes = [kind.code for kind in error_kinds()]
    assert len(codes) == len(set(codes))
    assert all(kind.__doc__ for kind in error_kinds())
    place = Where("plan.yaml", 3, 7, step="build", attempt=2)
    assert place.text() == "plan.yaml:3:7, step 'build', attempt 2"
    error = HoldfastError("it broke", where=place)
    assert (error.where, Where().text()) == (place, "")


@pytest.mark.req("D03")
def test_a_thread_that_the_system_refuses_is_nobodys_mistake() -> None:
    usual = threading.stack_size(1 << 46)  # more than any machine has
    try:
        with pytest.raises(RuntimeError) as refused:
            threading.Thread(target=print).start()
    finally:
        threading.stack_size(usual)
    fault = outside_fault(refused.value)
    assert fault is not None
    assert (fault.exit_code, fault.retryable) == (74, True)
    assert "resume" in (fault.hint or "")
    assert outside_fault(RuntimeError("of another kind")) is None


# --- bugs -----------------------------------------------------------------------------------------------

BROKEN = """
import sys, types, click
from holdfast.cli import main

@click.command()
@click.option("--json", is_flag=True)
def broken(json):
    token = "hunter2-and-more"
    raise {error}

sys.modules["broken_command"] = types.SimpleNamespace(broken=broken)
main.COMMANDS["broken"] = "broken_command:broken"
main.main()
"""


def break_it(project: Project, error: str, *words: str) -> "subprocess.CompletedProcess[str]":
    """The real entry, with one more command that has a bug."""
    extra = {"API_TOKEN": "hunter2-and-more", "TMPDIR": str(project.folder)}
    return subprocess.run(
        [sys.executable, "-c", BROKEN.replace("{error}", error), *words],
        env=project.environment(extra),
        cwd=project.root,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_bug_ends_in_one_line_and_a_report_without_secrets(project: Project) -> None:
    done = break_it(project, "ValueError('bad ' + token)", "broken", "--json")
    assert done.returncode == 70
    assert "Traceback" not in done.stderr
    error = json.loads(done.stdout)["error"]
    assert error["code"] == "bug"
    assert error["message"] == "ValueError: bad [API_TOKEN] [this is a bug]"
    (report,) = project.folder.glob("holdfast-report-*.txt")
    assert str(report) in error["hint"]
    assert str(report) in done.stderr
    story = report.read_text()
    assert "Traceback" in story
    assert "command: broken" in story
    assert "hunter2" not in story + done.stdout + done.stderr
    assert oct(report.stat().st_mode & 0o777) == "0o600"


def test_what_is_impossible_is_reported_too_and_debug_shows_it(project: Project) -> None:
    impossible = "__import__('holdfast.errors').errors.BugError('it cannot be')"
    done = break_it(project, impossible, "broken")
    assert done.returncode == 70
    assert "error[bug]: it cannot be [this is a bug]" in done.stderr
    assert len(list(project.folder.glob("holdfast-report-*.txt"))) == 1
    shown = break_it(project, impossible, "--debug", "broken")
    assert "Traceback" in shown.stderr


# --- nobody listens -------------------------------------------------------------------------------------


def test_a_reader_that_leaves_and_a_closed_stderr_are_no_error(project: Project) -> None:
    read, write = os.pipe()
    os.close(read)
    for words in (["explain"], ["explain", "nothing-like-this", "--json"]):
        done = subprocess.run(
            [*COMMAND, *words],
            stdout=write,
            stderr=subprocess.PIPE,
            env=project.environment(),
            cwd=project.root,
            timeout=120,
            check=False,
        )
        assert b"Traceback" not in done.stderr
        assert b"BrokenPipe" not in done.stderr
        assert done.returncode == 141
    os.close(write)
    line = f'exec "{sys.executable}" -m holdfast rum 2>&-'
    quiet = subprocess.run(
        ["/bin/sh", "-c", line],
        env=project.environment(),
        cwd=project.root,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (2, b"", b"")


@pytest.mark.req("D03")
@pytest.mark.parametrize("command", [("amend", "a"), ("edit", "apply")])
def test_a_file_that_the_disk_does_not_give_is_no_mistake_of_words(
    project: Project, command: tuple[str, ...]
) -> None:
    project.plan({"a": {"shell": "echo 1"}})
    project.ok("run")
    answer = project.call(*command, "/proc/self/mem")  # its first bytes are never there
    assert answer.code == 74, answer
    assert "cannot read '/proc/self/mem': input/output error" in answer.err.lower()
    error = error_of(project, 74, *command, "/proc/self/mem", "--json")
    assert (error["code"], error["hint"], error["next"]) == ("store", None, [])
