"""What is delivered is what was checked, where it says, and nothing of the person's is written."""

import os
from pathlib import Path

import pytest

from tests.cli.project import Project
from tests.cli.tickets import (
    at,
    block,
    edit,
    finish,
    git,
    log_of,
    repository,
    script,
    work,
    worked,
)

FILES = {"a.txt": "one\n", "b.txt": "one\n"}
CHANGE = edit(block("a.txt", "one\n", "two\n"))
DONE = [CHANGE, finish()]
CHECK = ("--validate", "true")
TREE = "tickets/t/task_tree.yaml"


@pytest.mark.req("D22", "D37")
@pytest.mark.parametrize(
    "command",
    [
        "mkdir -p tickets/t; ln -s {victim} tickets/t/task_tree.yaml",
        "mkdir -p tickets/t; ln -s {victim} tickets/t/task_tree.yaml.new",
        "mkdir -p tickets; ln -s {folder} tickets/t",
        "ln -s {folder} tickets",
        "mkdir -p tickets/t; echo 'id: other' > tickets/t/task_tree.yaml",
    ],
)
def test_nobody_but_a_delivery_writes_the_task_tree_and_no_link_leads_it_away(
    project: Project, command: str
) -> None:
    repository(project, FILES)
    folder = project.folder / "person"
    folder.mkdir()
    victim = folder / "precious.txt"
    victim.write_text("precious\n")
    turns = [("run", {"command": command.format(victim=victim, folder=folder)}), CHANGE, finish()]
    found = worked(project, "Change", "--id", "t", *CHECK, "--script", script(project, turns))
    assert found["exit"] == 0, found["err"]
    assert victim.read_text() == "precious\n"
    assert os.listdir(folder) == ["precious.txt"]
    assert "belongs to the task tree" in project.ok("logs", "cycle-1", "--plan-id", "ticket-t").out
    assert "id: t\n" in at(project, "holdfast/t", TREE)


@pytest.mark.req("C31", "E19")
def test_what_is_checked_is_what_a_commit_holds(project: Project) -> None:
    repository(project, FILES | {".gitattributes": "* text=auto\n", ".gitignore": "*.cfg\n"})
    make = "printf 'x\\r\\ny\\r\\n' > crlf.txt; echo on > ours.cfg"
    turns = [("run", {"command": make}), CHANGE, finish()]
    check = "! grep -q $'\\r' crlf.txt && ! test -e ours.cfg"
    words = ["--validate", f'bash -c "{check}"', "--script", script(project, turns)]
    found = worked(project, "Change", "--id", "t", *words)
    assert found["exit"] == 0, (found["err"], log_of(found))
    assert at(project, "holdfast/t", "crlf.txt") == "x\ny\n"


@pytest.mark.req("C31", "E19")
def test_a_file_that_is_not_stored_as_it_lies_there_is_stored_as_git_would(
    project: Project,
) -> None:
    rules = (
        "*.lat text working-tree-encoding=ISO-8859-1\n*.wide text working-tree-encoding=UTF-16LE\n"
    )
    project.write(".gitattributes", f"{rules}*.dos text eol=crlf\n*.id ident\n")
    there = {"a.lat": "h\366he\n", "b.lat": "h\366he\n", "a.wide": "h\0i\0", "a.dos": "a\r\n"}
    for path, text in there.items():
        (project.root / path).write_bytes(text.encode("latin-1"))
    repository(project, {"a.id": "$Id$\n"})
    make = "for f in a.lat a.dos a.id; do sed -i s/^/x/ $f; done; printf 'x\\0' >> a.wide"
    make += "; printf 'n\\366\\n' > new.lat"
    check = "printf 'h\\366he\\n' | cmp - b.lat && printf 'xh\\366he\\n' | cmp - a.lat"
    words = ["--script", script(project, [("run", {"command": make}), finish()])]
    words += ["--validate", f"{check} && printf 'h\\0i\\0x\\0' | cmp - a.wide"]
    found = worked(project, "Change", "--id", "t", *words)
    assert found["exit"] == 0, (found["err"], log_of(found))
    stored = {"a.lat": "xhöhe\n", "b.lat": "höhe\n", "new.lat": "nö\n", "a.wide": "hix"}
    stored |= {"a.dos": "xa\n", "a.id": "x$Id$\n"}
    assert {path: at(project, "holdfast/t", path) for path in stored} == stored


def test_what_no_commit_could_hold_is_not_there_for_checks(project: Project) -> None:
    repository(project, FILES)
    nested = "git init -q inner && cd inner && echo x > f && git add f"
    nested += " && git -c user.name=a -c user.email=a@b commit -qm x"
    turns = [("run", {"command": nested}), CHANGE, finish()]
    words = ["--validate", "! test -e inner/f", "--script", script(project, turns)]
    found = worked(project, "Change", "--id", "t", *words)
    assert found["exit"] == 0, (found["err"], log_of(found))
    assert [one["files"] for one in found["commits"]] == [["a.txt"]]


@pytest.mark.req("C31")
@pytest.mark.parametrize(
    "said", ["Ran 0 tests in 0.0s", "?   m [no test files]", "running 0 tests", "# tests 0"]
)
def test_a_test_program_that_ran_nothing_is_no_check(project: Project, said: str) -> None:
    repository(project, FILES)
    played = script(project, [DONE, [finish()], [finish()]])
    found = worked(
        project, "Change", "--id", "t", "--validate", f"echo '{said}'", "--script", played
    )
    assert (found["exit"], found["head"]) == (1, None)
    assert "ran no test" in log_of(found)["error"]


def test_a_directory_called_test_does_not_stand_for_the_tests(project: Project) -> None:
    repository(project, {"a.txt": "one\n", "Makefile": "test:\n\tfalse\n", "test/x": ""})
    played = script(project, [DONE, [finish()], [finish()]])
    found = worked(project, "Change", "--id", "t", "--script", played)
    assert "make -B test" in found["err"]
    assert (found["exit"], found["head"]) == (1, None)


def test_the_branch_is_where_it_says_or_it_is_said(project: Project) -> None:
    repository(project, FILES)
    played = script(project, DONE)
    words = ["Change", "--id", "t", *CHECK, "--script", played]
    head = worked(project, *words)["head"]
    git(project, "branch", "-D", "holdfast/t")
    again = worked(project, *words)
    assert (again["exit"], git(project, "rev-parse", "holdfast/t").strip()) == (0, head)
    git(project, "branch", "-f", "holdfast/t", "main")
    answer = work(project, *words)
    assert answer.code == 6
    assert "the work left it at" in answer.err
    assert git(project, "rev-parse", "holdfast/t") == git(project, "rev-parse", "main")


@pytest.mark.parametrize(("name", "said"), [("holdfast/t", "already"), ("holdfast", "in the way")])
def test_a_branch_in_the_way_is_told_before_anybody_works(
    project: Project, name: str, said: str
) -> None:
    repository(project, FILES)
    git(project, "checkout", "-q", "-b", "other")
    project.write("c.txt", "c\n")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "more")
    git(project, "checkout", "-q", "main")
    git(project, "branch", name, "other")
    words = ["Change", "--id", "t", *CHECK, "--script", script(project, DONE)]
    assert said in project.refused(2, "work", *words)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"id: t\nnodes:\n  - id: n-1\n    deps: foo\n", "'deps' of node 'n-1'"),
        (b"id: t\nnodes:\n  - title: x\n", "has no id"),
        (b"id: t\nnodes: 7\n", "no task tree"),
        (b"id: t\ntitle: caf\xe9\n", "no UTF-8"),
        (b"a: &a\n  children: []\nid: t\nnodes:\n  - &n {id: n, children: [*n]}\n", "task_tree"),
    ],
)
def test_a_task_tree_that_nobody_can_go_on_with_is_said_before_the_work(
    project: Project, text: bytes, said: str
) -> None:
    project.write(TREE, "")
    (project.root / TREE).write_bytes(text)
    repository(project, FILES)
    played = script(project, [DONE, DONE, DONE])
    answer = work(project, "Change", "--id", "t", *CHECK, "--script", played)
    assert answer.code == 1
    assert said in answer.out + answer.err
    assert "Traceback" not in answer.out + answer.err
    assert "tool_used" not in project.ok("trace", "--plan-id", "ticket-t", "--json").out


@pytest.mark.parametrize("text", ["id: t\nnodes:\n  - id: n-1\n    deps:\n    children:\n", ""])
def test_what_is_left_empty_in_a_task_tree_is_filled(project: Project, text: str) -> None:
    repository(project, FILES | {TREE: text, "x": ""})
    turns = [CHANGE, ("tree", {"nodes": [{"id": "n-1", "deps": ["n-0"], "notes": "x"}]}), finish()]
    found = worked(project, "Change", "--id", "t", *CHECK, "--script", script(project, turns))
    assert found["exit"] == 0, found["err"]
    assert "- n-0" in at(project, "holdfast/t", TREE)


def test_where_git_ignores_the_task_tree_the_work_is_delivered_without_it(project: Project) -> None:
    repository(project, FILES | {".gitignore": "tickets\n"})
    found = worked(project, "Change", "--id", "t", *CHECK, "--script", script(project, DONE))
    assert found["exit"] == 0, found["err"]
    assert at(project, "holdfast/t", "a.txt") == "two\n"


def test_lines_of_a_task_tree_end_as_people_ended_them(project: Project) -> None:
    repository(project, FILES)
    place = project.write(TREE, "")
    place.write_bytes(b"id: t\r\ntitle: ours\r\nnodes: []\r\n")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "a tree")
    turns = [CHANGE, ("tree", {"nodes": [{"id": "n-1"}]}), finish()]
    found = worked(project, "Change", "--id", "t", *CHECK, "--script", script(project, turns))
    copy = project.folder / "copy"
    git(project, "clone", "-q", "--branch", "holdfast/t", str(project.root), str(copy))
    lines = Path(copy / TREE).read_bytes().splitlines(keepends=True)
    assert found["exit"] == 0
    assert lines
    assert all(line.endswith(b"\r\n") for line in lines)


def test_an_empty_check_is_none(project: Project) -> None:
    repository(project, FILES)
    words = ["Change it", *CHECK, "--validate", " ", "--script", script(project, DONE)]
    assert "is empty" in project.refused(2, "work", *words)


def test_a_ready_ticket_that_is_checked_otherwise_is_checked_before_anybody_works(
    project: Project,
) -> None:
    repository(project, FILES)
    turns = [("run", {"command": "echo more >> a.txt"}), finish(message="more")]
    words = ("--id", "t", "--script", script(project, turns))
    first = worked(project, "Add a line", *words, "--validate", "test -s a.txt")
    again = worked(project, "Add a line", *words, "--validate", "grep -q more a.txt")
    assert (again["exit"], again["ready"], again["head"]) == (0, True, first["head"]), again["err"]
    assert f"what stands at {first['head'][:12]} is checked" in again["err"]
    assert (again["commits"], again["base"]) == (first["commits"], first["base"])
    assert [row["cmd"] for row in log_of(again)["commands"]] == ["grep -q more a.txt"]
    third = worked(project, "t", *words[2:], "--validate", "test $(wc -l < a.txt) = 3")
    assert (third["exit"], third["ready"]) == (0, True), "who works mends what the check refuses"
    assert [one["message"] for one in third["commits"]] == ["more", "more"]
    assert "t  ready  " in project.ok("tickets", "list").out
