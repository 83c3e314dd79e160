"""Questions, closed streams, full disks, and stores that are no directories."""

import os
import subprocess

import pytest

from tests.cli.project import COMMAND, Project


def _outside(project: Project) -> None:
    project.plan(
        {
            "ext": {"shell": project.sh("echo sent"), "effects": "external"},
            "later": {"shell": project.sh("test -e ok"), "needs": "ext"},
        }
    )


@pytest.mark.req("R110")
def test_an_effect_that_is_done_needs_no_second_yes(project: Project) -> None:
    _outside(project)
    assert project.run("--yes").code == 1
    project.write("ok", "")
    assert project.resume().code == 0, "what touches the outside is done"
    assert project.run().code == 0, "and reused"
    project.ran()
    assert "touch the outside world: ext" in project.refused(2, "run", "--force")
    assert "touch the outside world: ext" in project.refused(2, "retry", "ext")
    assert project.ran() == []


def test_a_dry_run_only_shows(project: Project) -> None:
    _outside(project)
    assert "first time" in project.ok("run", "--dry-run").out
    assert project.ran() == []
    assert not project.store.exists()


@pytest.mark.parametrize("url", ["mysql://u:secret@db/x", "sqlite://x"])
def test_a_store_of_an_unknown_kind_is_refused_without_its_secret(
    project: Project, url: str
) -> None:
    project.plan({"a": {"shell": "true"}})
    for words, env in ((("--store", url), None), ((), {"HOLDFAST_STORE": url})):
        said = project.refused(2, "run", *words, env=env)
        assert "there are no stores at" in said or "never given on the command line" in said
        assert "secret" not in said
    assert os.listdir(project.root) == ["plan.yaml"]


@pytest.mark.parametrize("words", [("resume",), ("retry", "later"), ("amend", "later", "-")])
def test_a_closed_stdin_is_no_bug(project: Project, words: tuple[str, ...]) -> None:
    _outside(project)
    project.run("--yes")
    done = subprocess.run(
        ["/bin/sh", "-c", '"$@" <&-', "sh", *COMMAND, *words],
        cwd=project.root,
        env=project.environment(),
        capture_output=True,
        check=False,
    )
    assert done.returncode in {1, 2}, done.stderr
    assert b"this is a bug" not in done.stderr


WORDS_OF_RESULTS = [
    ("plan",),
    ("plan", "--json"),
    ("--version",),
    ("status",),
    ("run",),
    ("run", "--json"),
]


@pytest.mark.parametrize("unbuffered", ["", "1"])  # it fails with each line, or at the end
@pytest.mark.parametrize("words", WORDS_OF_RESULTS)
def test_a_result_that_cannot_be_written_is_said_with_the_right_code(
    project: Project, words: tuple[str, ...], unbuffered: str
) -> None:
    project.plan({"a": {"shell": "true"}})
    project.run()
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, *words],
            cwd=project.root,
            env=project.environment({"PYTHONUNBUFFERED": unbuffered}),
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 74, done.stderr
    assert b"the result cannot be written: No space left" in done.stderr
    assert b"Traceback" not in done.stderr
    assert b"resume" not in done.stderr, "nothing was left to do"


def test_json_may_be_asked_for_before_the_name_of_the_command(project: Project) -> None:
    project.plan({"a": {"shell": "true"}})
    assert project.ok("--json", "plan").json["schema"] == "holdfast.preview/1"


def test_json_holds_nothing_that_a_terminal_would_obey(project: Project) -> None:
    hostile = "a\x9b31m\u202e\u200b\U000e0041b"
    project.write("hostile.txt", hostile)
    project.plan({"a": {"shell": "cat hostile.txt >&2"}})
    project.run()
    answer = project.ok("logs", "a", "--json")
    assert not {*"\x9b\u202e\u200b\U000e0041"}.intersection(answer.out)
    assert answer.json["log"] == hostile


def test_a_directory_that_is_gone_is_an_error_of_usage(project: Project) -> None:
    gone = project.folder / "gone"
    gone.mkdir()
    done = subprocess.run(
        ["/bin/sh", "-c", f'cd {gone} && rmdir {gone} && "$@"', "sh", *COMMAND, "status"],
        env=project.environment(),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, b"not there any more" in done.stderr) == (2, True), done.stderr
