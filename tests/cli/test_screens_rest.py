"""The screens of commands that say little, and the help pages."""

import pytest

from holdfast.cli.main import COMMANDS
from tests.cli.project import Project
from tests.cli.screens import Screen


def _story(project: Project) -> None:
    project.write("in.txt", "1\n")
    project.plan(
        {
            "make": {"shell": "cat in.txt > out.txt", "inputs": "in.txt", "produces": "out.txt"},
            "check": {"shell": "echo looking >&2; test -e flag", "needs": "make"},
        }
    )


def test_looking_at_what_is_there(project: Project, screen: Screen) -> None:
    _story(project)
    screen("status", name="no-store")
    screen("ls", "--paths", name="ls-paths")
    project.call("run", "-q", "-j", "1")
    screen("show", "make", name="show-artifact")
    screen("show", "@", name="show-run")
    screen("logs", "check", name="logs")
    screen("verify")
    screen("rebuild")
    screen("stop", name="stop-at-rest")
    screen("explain", name="explain-all")


def test_acting_on_a_run(project: Project, screen: Screen) -> None:
    _story(project)
    project.call("run", "-q", "-j", "1")
    project.write("mine.txt", "mine\n")
    screen("amend", "make", "mine.txt", "--because", "better", name="amend")
    project.write("flag", "")
    screen("retry", "check", name="retry")
    screen("run", "-s", "state:failed", name="nothing-selected")
    screen("resume", name="nothing-to-resume")
    screen("export", "@", "run.zip", name="export")


def test_a_wrong_line_is_answered(project: Project, screen: Screen) -> None:
    _story(project)
    screen("rnu", name="unknown-command")
    screen("run", "--jbos", "2", name="unknown-option")
    screen("run", "-s", "mak", name="unknown-selector")
    screen("--help", name="help")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_help_page_fits_and_reads_as_before(screen: Screen, name: str) -> None:
    screen(name, "--help", name=f"help-{name}", modes=("80",))
