"""A person's version stands only if it can: its guards see it, and its key is the present one."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.cli.project import COMMAND, Project

GUARDED = {"shell": "echo abc > o.txt", "produces": "o.txt"}
GREP = [{"command": ["grep", "-q", "a", "o.txt"]}]


@pytest.mark.req("R48")
@pytest.mark.parametrize("workspace", ["shared", "scratch"])
def test_guards_see_the_amended_version_at_its_path(project: Project, workspace: str) -> None:
    project.plan({"a": {**GUARDED, "workspace": workspace, "guards": GREP}})
    project.run()
    refused = project.call("amend", "a", "-", stdin=b"zzz\n")
    assert refused.code == 1
    assert "guard 'command' refuses" in refused.err
    assert project.read("o.txt") == "abc\n"
    project.ok("amend", "a", "-", stdin=b"a better one\n")
    assert project.run().codes == {"a": "amended"}
    assert project.read("o.txt") == "a better one\n"


@pytest.mark.req("R57")
def test_an_edited_output_of_a_scratch_step_is_adopted(project: Project) -> None:
    project.plan({"a": {**GUARDED, "workspace": "scratch", "guards": GREP}})
    project.run()
    project.write("o.txt", "a by hand\n")
    assert project.run().codes == {"a": "amended"}
    assert project.read("o.txt") == "a by hand\n"


def test_one_file_cannot_stand_for_several(project: Project) -> None:
    project.plan({"two": {"shell": "echo 1 > x; echo 2 > y", "produces": ["x", "y"]}})
    project.run()
    assert "several files" in project.call("amend", "two", "-", stdin=b"new").err
    project.write("x", "mine\n")
    project.ok("amend", "two")
    assert project.run().codes == {"two": "amended"}
    assert (project.read("x"), project.read("y")) == ("mine\n", "2\n")


def test_an_amended_program_stays_executable(project: Project) -> None:
    project.plan({"tool": {"shell": "echo '#!/bin/sh' > t; chmod +x t", "produces": "t"}})
    project.run()
    project.ok("amend", "tool", "-", stdin=b"#!/bin/sh\necho mine\n")
    project.run()
    assert os.access(project.root / "t", os.X_OK)


def test_a_version_of_a_step_that_will_run_again_is_refused(project: Project) -> None:
    project.write("in.txt", "1\n")
    project.plan({"one": {"shell": "cat in.txt", "inputs": ["in.txt"]}})
    project.run()
    project.write("in.txt", "2\n")
    refused = project.call("amend", "one", "-", stdin=b"mine\n")
    assert refused.code == 2
    assert "an input changed: in.txt" in refused.err


def test_an_input_that_is_not_there_is_named_before_and_after(project: Project) -> None:
    project.plan({"a": {"shell": "true", "inputs": ["nope*"]}})
    assert "no file matches the input 'nope*'" in project.ok("plan").out
    done = project.call("run")
    assert done.code == 1
    assert "no file matches the input 'nope*'" in done.out


def test_a_pipe_is_no_input_and_nothing_waits_for_it(project: Project) -> None:
    os.mkfifo(project.root / "in.pipe")
    project.write("in.txt", "1\n")
    project.plan({"a": {"shell": "cat in.txt", "inputs": ["in.*"]}})
    assert project.run().states == {"a": "done"}


@pytest.mark.parametrize("closed", ["2>&-", "2>&1 >/dev/null | true", ">&-"])
def test_nobody_listening_is_no_reason_to_stop(project: Project, closed: str) -> None:
    project.plan({"a": {"shell": project.sh("echo a")}, "b": {"shell": "echo b", "needs": ["a"]}})
    line = f'"$@" {closed}'
    words = ["sh", "-c", line, "sh", *COMMAND, "run"]
    subprocess.run(words, cwd=project.root, env=project.environment(), check=False)
    assert project.status().data["status"] == "completed"


def test_content_that_is_gone_is_made_again_before_anything_needs_it(
    project: Project,
) -> None:
    big = {"shell": "seq 1 20000"}
    project.plan({"a": big, "b": {"shell": "wc -l < $HOLDFAST_INPUTS/a", "needs": ["a"]}})
    project.run()
    for blob in (project.store / "blobs").rglob("*"):
        if blob.is_file() and len(blob.name) == 64:
            blob.unlink()
    project.plan({"a": big, "b": {"shell": "tail -1 $HOLDFAST_INPUTS/a", "needs": ["a"]}})
    again = project.run()
    assert (again.code, again.codes["a"]) == (0, "output_missing")
    assert project.shown("b") == b"20000\n"
