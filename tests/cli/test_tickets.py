"""What a ticket leaves behind: its log while it goes on, its views made again, its worktree."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import Project, kill, until
from tests.cli.tickets import (
    at,
    block,
    edit,
    files_at,
    finish,
    git,
    log_of,
    repository,
    script,
    ticket,
    worked,
)

FILES = {"a.txt": "one\n", "b.txt": "one\n"}
CHANGE = edit(block("a.txt", "one\n", "two\n"))
FIELDS = [
    "run_id", "task_id", "start_ts", "end_ts", "eoi", "commands", "commits", "validation", "affected_nodes",
    "reflections", "status", "plan_steps", "current_step", "error",
]  # fmt: skip
CHECK = ("--validate", "true")


def logs(project: Project) -> list[Path]:
    return sorted(
        (project.home / ".local/state/holdfast").glob("repositories/*/tickets/*/runs/*.json")
    )


def whole(place: Path) -> Any:
    """A log as it is now: at every moment a whole one."""
    return json.loads(place.read_text())


@pytest.mark.req("R133", "R134", "R135", "E19")
def test_the_log_is_there_from_the_first_moment_and_whole_at_every_one(project: Project) -> None:
    repository(project, FILES)
    turns = [
        ("plan", {"steps": ["wait", "change"]}),
        ("run", {"command": f"echo begun >> {project.log}; {project.gate('go')}"}),
        CHANGE,
        finish(),
    ]
    words = [
        "work",
        "Change it",
        "--id",
        "t-1",
        "--eoi",
        "a.txt",
        *CHECK,
        "--script",
        script(project, turns),
    ]
    running = project.start(*words, "--quiet")
    until(lambda: project.begun() or running.poll() is not None, "the command runs")
    [place] = logs(project)
    assert re.fullmatch(r"\d{6}-\d{8}-t-1-r-[0-9a-f-]{36}\.json", place.name)
    before = whole(place)
    assert list(before) == FIELDS
    assert (before["status"], before["end_ts"], before["commits"]) == ("in_progress", None, [])
    assert before["eoi"] == {"label": "a.txt", "path": "a.txt"}
    assert before["plan_steps"] == 2
    project.open("go")
    assert running.wait(60) == 0, running.communicate()
    after = whole(place)
    assert (after["status"], after["commands"][0]["exit_code"]) == ("completed", 0)
    assert after["commits"]
    assert after["end_ts"] >= after["start_ts"]
    assert not list(place.parent.glob("*.new"))


@pytest.mark.req("C3", "C17", "R131", "R133")
@pytest.mark.parametrize("words", [["tickets", "rebuild"], ["rebuild"]])
def test_views_are_made_again_from_the_journal_alone(project: Project, words: list[str]) -> None:
    repository(project, FILES)
    turns = [CHANGE, ("tree", {"nodes": [{"id": "n-5", "title": "five"}]}), finish(nodes=["n-5"])]
    found = worked(project, "Change it", "--id", "t-1", *CHECK, "--script", script(project, turns))
    [place] = logs(project)
    log, tree = place.read_text(), at(project, "holdfast/t-1", "tickets/t-1/task_tree.yaml")
    worktree = next((project.home / ".local/state/holdfast").glob("repositories/*/worktrees/t-1"))
    shutil.rmtree(place.parent)
    (worktree / "tickets/t-1/task_tree.yaml").unlink()
    project.ok(*words)
    assert place.read_text() == log
    assert (worktree / "tickets/t-1/task_tree.yaml").read_text() == tree
    assert log_of(found)["affected_nodes"][0]["id"] == "n-5"


def test_tickets_are_listed_shown_and_dropped(project: Project) -> None:
    repository(project, FILES)
    assert "holdfast work" in project.refused(2, "tickets", "list")
    worked(
        project, "Change it", "--id", "t-1", *CHECK, "--script", script(project, [CHANGE, finish()])
    )
    other = script(project, [CHANGE, finish()], name="other")
    worked(project, "Fail", "--id", "t-2", "--validate", "false", "--script", other)
    listed = project.ok("tickets", "list", "--json").json["tickets"]
    assert [(one["ticket"], one["ready"], one["status"]) for one in listed] == [
        ("t-1", True, "completed"),
        ("t-2", False, "failed"),
    ]
    assert "failed" in project.ok("tickets", "list").out
    head = git(project, "rev-parse", "holdfast/t-1")
    assert project.ok("tickets", "show", "t-1", "--json").json["head"] == head.strip()
    assert "no ticket 'x'" in project.refused(2, "tickets", "show", "x")
    assert "nobody is there" in project.refused(2, "tickets", "drop", "t-1")
    project.ok("tickets", "drop", "t-1", "--yes")
    assert git(project, "rev-parse", "holdfast/t-1") == head
    again = worked(project, "t-1", "--script", script(project, [CHANGE, finish()]))
    assert (again["exit"], again["head"]) == (0, head.strip()), "what was done stands"


@pytest.mark.req("R145")
def test_a_ticket_is_not_taken_away_from_whoever_works_on_it_while_they_live(
    project: Project,
) -> None:
    repository(project, FILES)
    check = f"echo begun >> {project.log}; {project.gate('go')}"
    played = script(project, [CHANGE, finish()])
    words = ["work", "Change it", "--id", "t-1", "--validate", check, "--script", played, "--quiet"]
    running = project.begun_by(*words, step="begun")
    for refused in (
        ["tickets", "rollback", "t-1"],
        ["tickets", "drop", "t-1", "--yes"],
        ["tickets", "rebuild"],
        ["rebuild"],
        words,
    ):
        said = project.refused(7, *refused)
        assert f"'ticket-t-1' is held by process {running.pid} on " in said
        assert " since 0 min " in said
        assert "hint: wait for it, or: holdfast stop --plan-id ticket-t-1\n" in said
    worktree = next((project.home / ".local/state/holdfast").glob("repositories/*/worktrees/t-1"))
    assert (worktree / "a.txt").read_text() == "two\n", "what is being checked stayed there"
    kill(running)
    project.ok("tickets", "rollback", "t-1")
    assert (worktree / "a.txt").read_text() == "one\n"
    project.ok("tickets", "rebuild")
    said = project.ok("tickets", "drop", "t-1", "--yes").out
    assert said == "the worktree of 't-1' is gone\n", "it has no branch yet"


@pytest.mark.parametrize("is_clone", [True, False])
def test_a_repository_that_is_made_again_at_its_place_has_no_tickets_yet(
    project: Project, is_clone: bool
) -> None:
    repository(project, FILES)
    git(project, "clone", "-q", "--bare", ".", "../kept.git")
    played = script(project, [CHANGE, finish()])
    words = ("Change it", "--id", "t-1", "--script", played)
    assert worked(project, *words, "--validate", "false")["exit"] == 1
    shutil.rmtree(project.root)
    if is_clone:
        git(project, "clone", "-q", "kept.git", project.root.name, cwd=project.folder)
    else:
        project.root.mkdir()
        repository(project, FILES | {"c.txt": "another\n"})
    found = worked(project, *words, *CHECK)
    assert found["exit"] == 0, found["err"]
    assert ("another repository was at" in found["err"]) is not is_clone
    assert at(project, "holdfast/t-1", "a.txt") == "two\n"
    pins = git(project, "for-each-ref", "refs/holdfast/keep/")
    project.ok("tickets", "drop", "t-1", "--yes")
    assert pins, "what its branch stands on is kept in this one"


@pytest.mark.req("R145")
def test_a_worktree_goes_back_to_its_last_good_commit_with_all_that_commands_left(
    project: Project,
) -> None:
    repository(project, FILES | {".gitignore": "*.log\n"})
    good = [CHANGE, finish(ready=False)]
    bad = [("run", {"command": "echo x > new.txt; rm b.txt; echo l > side.log"}), finish()]
    played = script(project, good, [bad, [finish()], [finish()]])
    check = "test -e b.txt"
    found = worked(project, "Change it", "--id", "t-1", "--validate", check, "--script", played)
    assert (found["exit"], found["ready"]) == (1, False)
    worktree = next((project.home / ".local/state/holdfast").glob("repositories/*/worktrees/t-1"))
    assert (worktree / "new.txt").exists()
    assert not (worktree / "side.log").exists(), "what git ignores is not there for checks"
    done = project.ok("tickets", "rollback", "t-1", "--json").json
    assert sorted(path.name for path in worktree.iterdir()) == [
        ".git", ".gitignore", "a.txt", "b.txt", "tickets",
    ]  # fmt: skip
    assert (worktree / "a.txt").read_text() == "two\n"
    assert done["to"] == git(project, "rev-parse", "holdfast/t-1").strip()


@pytest.mark.req("R145", "C35")
def test_what_a_command_writes_outside_of_the_scope_or_too_much_of_it_is_taken_back(
    project: Project,
) -> None:
    repository(project, {"src/a.txt": "one\n", "b.txt": "one\n"})
    turns = [
        ("run", {"command": "echo two > src/a.txt; echo two > b.txt"}),
        ("run", {"command": "seq 100 > src/many.txt"}),
        ("edit", {"edit": block("b.txt", "one\n", "two\n")}),
        ("run", {"command": "echo three > src/a.txt"}),
        finish(),
    ]
    words = ["--scope", "src/**", "--max-lines", "50", *CHECK, "--script", script(project, turns)]
    found = worked(project, "Change it", "--id", "t-1", *words)
    assert found["exit"] == 0, found["err"]
    assert [one["files"] for one in found["commits"]] == [["src/a.txt"]]
    assert at(project, "holdfast/t-1", "src/a.txt") == "three\n"
    said = project.ok("logs", "cycle-1", "--plan-id", "ticket-t-1").out
    assert "outside the write scope" in said
    assert "lines of the ticket differ, and 50 may" in said


@pytest.mark.req("C27", "E19")
def test_commands_read_the_history_and_cannot_write_it(project: Project) -> None:
    repository(project, FILES)
    turns = [
        CHANGE,
        ("run", {"command": "git log --format=%s; git diff --stat; git status --short"}),
        (
            "run",
            {
                "command": "git add -A; git commit -qm own; git stash; git reset --hard; git checkout -qb x"
            },
        ),
        finish(message="ours"),
    ]
    found = worked(project, "Change it", "--id", "t-1", *CHECK, "--script", script(project, turns))
    assert found["exit"] == 0, found["err"]
    said = project.ok("logs", "cycle-1", "--plan-id", "ticket-t-1").out
    assert "begin a.txt | 2 +-" in said
    assert [one["message"] for one in found["commits"]] == ["ours"]
    assert at(project, "holdfast/t-1", "a.txt") == "two\n", "its own work is not lost by its git"
    assert git(project, "for-each-ref", "refs/heads").count("\n") == 2


def test_a_ticket_whose_words_changed_goes_on_from_what_was_delivered(project: Project) -> None:
    repository(project, FILES)
    first = script(project, [CHANGE, finish()], name="first")
    found = worked(project, ticket(project, "# Change a\n"), "--id", "t", *CHECK, "--script", first)
    second = script(project, [edit(block("b.txt", "one\n", "two\n")), finish()], name="second")
    again = worked(
        project, ticket(project, "# Change a and b\n"), "--id", "t", *CHECK, "--script", second
    )
    assert again["exit"] == 0, again["err"]
    assert f"goes on from {found['head'][:12]}" in again["err"]
    assert git(project, "merge-base", "holdfast/t", found["head"]).strip() == found["head"]
    assert at(project, "holdfast/t", "a.txt") == at(project, "holdfast/t", "b.txt") == "two\n"


def test_other_commands_know_a_ticket_when_they_see_one(project: Project) -> None:
    repository(project, FILES)
    played = script(project, [[CHANGE, finish()]] * 3)
    worked(project, "Change it", "--id", "t-1", "--validate", "false", "--script", played)
    for words in (["resume"], ["retry", "cycle-1"]):
        err = project.refused(2, *words, "--plan-id", "ticket-t-1")
        assert "holdfast work t-1" in err
    assert files_at(project, "main").count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["no-such.md", "--script", "SCRIPT"], "there is no file"),
        (["Some words"], "nobody said who works"),
        (["mean", "--script", "SCRIPT"], "is no file, and no ticket"),
        (["Some words", "--model", "gpt"], "is no model"),
        (["Some words", "--script", "nowhere.yaml"], "cannot read the script"),
        (["Some words", "--script", "SCRIPT", "--base", "nothing"], "names no commit"),
        (["Some words", "--script", "SCRIPT", "--id", "../x"], "no id of a ticket"),
        (["Some words", "--script", "SCRIPT", "--push", "nowhere"], "there is no remote"),
        (["Some words", "--script", "BAD"], "does not say 'schema: holdfast.script/1'"),
    ],
)
def test_what_is_wrong_is_said_before_anything_begins(
    project: Project, words: list[str], said: str
) -> None:
    repository(project, FILES)
    bad = ticket(project, "cycles: []\n", "bad.yaml")
    places = {"SCRIPT": script(project, [finish()]), "BAD": bad}
    given = [places.get(word, word) for word in words]
    assert said in project.refused(2, "work", *given, *CHECK)
    assert git(project, "for-each-ref", "refs/heads").count("\n") == 1


def test_where_there_is_no_repository_nothing_is_begun(project: Project) -> None:
    assert "no work tree of git" in project.refused(2, "work", "Some words", "--model", "a:b")
