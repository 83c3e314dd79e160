"""A crash of the engine leaves no picture of its memory: secrets are in there."""

import os
import resource
import signal
import subprocess

import pytest

from tests.cli.project import COMMAND, DEADLINE, Project, until

WORD = "Kanarie-in-core-7f3a"
# A shell starts what it puts in the background with this signal ignored.
DEADLY = ("env", "--default-signal=QUIT")


@pytest.mark.req("D39", "I13")
def test_an_engine_that_crashes_leaves_no_core_file(project: Project) -> None:
    """With what a person may have allowed: core files of any size, in the directory of the project."""
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    if hard == 0:
        pytest.skip("core files cannot be allowed here")
    project.plan({"a": {"shell": project.sh(project.gate("a")), "secrets": ["WORD"]}})
    told = project.folder / "told.txt"
    with told.open("wb") as file:
        engine = subprocess.Popen(
            [*DEADLY, "prlimit", "--core=unlimited", *COMMAND, "run", "--secret", "WORD"],
            cwd=project.root,
            env=project.environment({"WORD": WORD}),
            stdout=file,
            stderr=file,
        )
    project.watch(engine.pid)
    until(lambda: "a" in project.begun() or engine.poll() is not None, "'a' begins")
    assert engine.poll() is None, told.read_text()
    os.kill(engine.pid, signal.SIGQUIT)
    assert engine.wait(DEADLINE) == -signal.SIGQUIT, told.read_text()
    left = [place for place in project.root.rglob("*") if place.is_file()]
    assert [place for place in left if WORD.encode() in place.read_bytes()] == []
    assert [place.name for place in left if place.name.startswith("core")] == []
    project.open("a")
    assert project.call("resume", "--secret", "WORD", env={"WORD": WORD}).code == 0
