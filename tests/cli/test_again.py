"""What a person is told to type works where it is told: the plan, the store and the line are named."""

import shlex

import click
import pytest

from holdfast.cli import again
from holdfast.cli.main import COMMANDS, cli
from tests.cli.project import Answer, Project

GAP = "    "


def offered(text: str) -> list[list[str]]:
    """The commands after `next:`, as words; notes in brackets are left out."""
    line = next(line for line in text.splitlines() if line.startswith("next: "))
    pieces = line.removeprefix("next: ").split(GAP)
    return [shlex.split(piece)[1:] for piece in pieces if piece.startswith("holdfast ")]


def follow(project: Project, text: str) -> dict[str, Answer]:
    """Do all of it."""
    answers = {}
    for words in offered(text):
        answers[" ".join(words)] = answer = project.call(*words)
        assert answer.code in {0, 1}, (words, answer)
        assert "error[" not in answer.err, (words, answer)
    return answers


def test_the_table_of_commands_is_as_they_are() -> None:
    context = click.Context(cli)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        if name == "ledger":  # without a command below it, it shows
            assert isinstance(command, click.Group)
            command = command.commands["show"]
        params = {param.name: param for param in command.params}
        plan = params.get("plan", params.get("plan_file"))
        if plan is None:
            assert name in again.NOWHERE
            continue
        assert isinstance(plan, click.Argument) == (name in again.ARGUMENT)
        flag = "--file" if name in again.LONG else "-f"
        assert name in again.ARGUMENT or flag in plan.opts
        assert {"store", "plan_id", "param", "folder"} <= set(params)


@pytest.mark.req("R55")
def test_a_plan_elsewhere_is_named_in_what_follows(project: Project) -> None:
    project.plan({"bad": {"run": "exit 3"}}, file="my sub/plan.yaml")
    ended = project.call("run", "my sub/plan.yaml")
    assert "holdfast logs --file 'my sub/plan.yaml' bad" in ended.out
    told = follow(project, ended.out)
    assert [words.split()[0] for words in told] == ["logs", "retry", "why"]
    follow(project, project.ok("status", "-f", "my sub/plan.yaml").out)
    follow(project, project.ok("why", "bad", "-f", "my sub/plan.yaml").out)
    follow(project, project.ok("plan", "my sub/plan.yaml").out)
    follow(
        project,
        project.ok("history", "-f", "my sub/plan.yaml")
        .out.replace(" RUN", " @")
        .replace(" STEP", " bad"),
    )


@pytest.mark.req("R55")
def test_a_store_a_line_and_a_folder_elsewhere_are_named(project: Project) -> None:
    project.plan(
        {"bad": {"run": "exit ${params.code}"}},
        file="sub/plan.yaml",
        params={"code": {"type": "int"}},
    )
    where = ("--store", "else where", "--plan-id", "other", "--param", "code=3")
    ended = project.call("-C", "sub", "run", *where)
    assert ended.code == 1
    told = follow(project, ended.out)
    assert next(iter(told)) == "-C sub logs --store else where --plan-id other bad"
    planned = project.ok("-C", "sub", "plan", *where)
    assert "next: holdfast -C sub run --store 'else where' --plan-id other --param code=3" in (
        planned.out
    )


@pytest.mark.req("R55")
def test_what_is_taken_anyway_is_not_said(project: Project) -> None:
    project.plan({"a": {"run": "echo a"}})
    ended = project.ok("run", "plan.yaml", "--store", ".holdfast")
    assert ended.out.splitlines()[-1] == "next: holdfast show a    holdfast plan"


@pytest.mark.req("R55")
def test_errors_name_the_place_in_their_commands(project: Project) -> None:
    project.plan({"a": {"run": "echo a"}}, file="sub/plan.yaml")
    project.ok("run", "sub/plan.yaml")
    error = project.call("resume", "-f", "sub/plan.yaml", "--json").json["error"]
    assert error["hint"] == "holdfast run sub/plan.yaml"
    assert error["next"] == ["holdfast run sub/plan.yaml"]
    project.write("sub/bad plan.yaml", "name: demo\nstep: {}\n")
    error = project.call("run", "sub/bad plan.yaml", "--json").json["error"]
    assert error["next"][0] == "holdfast check 'sub/bad plan.yaml'"


@pytest.mark.req("R55")
def test_a_run_in_the_background_is_found_again(project: Project) -> None:
    project.plan({"a": {"run": "echo a"}}, file="sub/plan.yaml")
    begun = project.ok("run", "sub/plan.yaml", "--detach")
    attach, status, _ = offered(begun.out)
    assert project.ok(*attach).out
    assert "completed" in project.ok(*status).out
