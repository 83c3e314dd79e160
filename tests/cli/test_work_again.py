"""Tickets that are cut short and done again: the same files, once, whatever their commands left."""

from pathlib import Path

import pytest

from tests.cli.project import Project, kill, until
from tests.cli.tickets import at, block, edit, finish, git, repository, script, work, worked

FILES = {"a.txt": "one\n", "b.txt": "one\n", ".gitignore": "*.log\n"}
CHECK = ("--validate", "true")
CHANGE = edit(block("a.txt", "one\n", "two\n"))


def cut_short(project: Project, *words: str) -> None:
    """Work until a command waits at the gate, and kill -9 the engine there; the gate is open then."""
    running = project.start("work", *words, "--quiet")
    until(lambda: project.has_at_gate("go") or running.poll() is not None, "a command waits")
    assert running.poll() is None, running.communicate()
    kill(running)
    until(lambda: not project.has_at_gate("go"), "nothing of it is left")
    project.open("go")


def folder_of(project: Project, name: str) -> Path:
    """The worktree of a ticket."""
    return next((project.home / ".local/state/holdfast").glob(f"repositories/*/worktrees/{name}"))


@pytest.mark.req("R145", "E19")
@pytest.mark.parametrize("link", ["zz.txt", "0.txt"])
def test_a_file_with_two_names_is_put_back_under_both_after_a_kill(
    project: Project, link: str
) -> None:
    repository(project, FILES)
    command = f"ln a.txt {link}; echo once >> {link}; {project.gate('go')}; echo more > more.txt"
    words = ["Link", "--id", "t", *CHECK]
    words += ["--script", script(project, [("run", {"command": command}), finish()])]
    cut_short(project, *words)
    found = worked(project, *words)
    assert found["exit"] == 0, found["err"]
    assert at(project, "holdfast/t", "a.txt") == at(project, "holdfast/t", link) == "one\nonce\n"


@pytest.mark.req("R145", "C35")
def test_what_is_written_through_another_name_is_taken_back(project: Project) -> None:
    repository(project, FILES)
    turns = [
        ("run", {"command": "mkdir src; ln a.txt src/a.txt; echo more >> src/a.txt"}),
        ("run", {"command": "mkdir -p src; cp a.txt src/copy.txt; ln src/copy.txt src/link.txt"}),
        ("run", {"command": "echo more >> src/link.txt"}),
        finish(),
    ]
    words = ["--scope", "src/**", *CHECK, "--script", script(project, turns)]
    found = worked(project, "Link", "--id", "t", *words)
    assert found["exit"] == 0, found["err"]
    assert at(project, "holdfast/t", "src/copy.txt") == "one\n", (
        "a kill between would part them, too"
    )
    assert at(project, "holdfast/t", "src/link.txt") == "one\nmore\n"
    said = project.ok("logs", "cycle-1", "--plan-id", "ticket-t").out
    assert "what it changed was taken back" in said


@pytest.mark.req("R145", "E19")
def test_what_git_ignores_is_gone_before_a_command_is_repeated(project: Project) -> None:
    repository(project, FILES)
    command = f"echo row >> db.log; {project.gate('go')}; wc -l < db.log > count.txt"
    words = ["Count", "--id", "t", *CHECK]
    words += ["--script", script(project, [("run", {"command": command}), finish()])]
    cut_short(project, *words)
    found = worked(project, *words)
    assert found["exit"] == 0, found["err"]
    assert at(project, "holdfast/t", "count.txt") == "1\n"


@pytest.mark.req("R145", "C31")
def test_a_check_that_was_cut_short_finds_nothing_of_itself(project: Project) -> None:
    repository(project, FILES)
    check = f"echo row >> db.log; {project.gate('go')}; test $(wc -l < db.log) = 1"
    words = ["Change", "--id", "t", "--validate", check, "--validate", "test -e db.log"]
    words += ["--script", script(project, [CHANGE, finish()])]
    cut_short(project, *words)
    found = worked(project, *words)
    assert found["exit"] == 0, found["err"]


def test_an_id_that_would_be_kept_where_another_is_is_refused(project: Project) -> None:
    repository(project, FILES)
    words = [*CHECK, "--script", script(project, [CHANGE, finish()])]
    found = worked(project, "Change", "--id", "ticket-7", *words)
    refused = project.refused(2, "work", "Another", "--id", "7", *words)
    assert "'7' would be kept where 'ticket-7' is" in refused
    assert git(project, "rev-parse", "holdfast/ticket-7").strip() == found["head"]
    assert "holdfast/7" not in git(project, "branch")


TREE = "tickets/t/task_tree.yaml"
ASK = [CHANGE, ("ask", {"question": "which?"})]
REST = [edit(block("b.txt", "one\n", "two\n")), finish()]


def asked(project: Project) -> tuple[str, ...]:
    """A ticket that waits for a person, and has the answer."""
    repository(project, FILES)
    words = ("t", "--script", script(project, ASK, REST))
    assert work(project, "Change", "--id", *words, *CHECK).code == 3
    project.ok("answer", "question-1", "-", "--plan-id", "ticket-t", stdin=b"both")
    return words


@pytest.mark.req("R131", "C29")
def test_what_is_written_into_the_task_tree_of_a_worktree_is_taken_over(project: Project) -> None:
    words = asked(project)
    place = folder_of(project, "t") / TREE
    place.write_text(f"# our words\n{place.read_text()}")
    assert "it is left as it is" in project.ok("tickets", "rebuild").err
    found = worked(project, *words)
    assert found["exit"] == 0, found["err"]
    assert at(project, "holdfast/t", TREE).startswith("# our words\n")
    assert at(project, "holdfast/t", "b.txt") == "two\n"
    assert found["cycles"] == 2, "the run went on"


@pytest.mark.req("R131", "C29")
def test_commits_of_people_that_touch_the_task_tree_are_gone_on_from_and_others_refused(
    project: Project,
) -> None:
    words = asked(project)
    copy = project.folder / "copy"
    git(project, "worktree", "add", "-q", str(copy), "holdfast/t")
    (copy / TREE).write_text(f"# our words\n{(copy / TREE).read_text()}")
    git(project, "commit", "-qam", "ours", cwd=copy)
    ours = git(project, "rev-parse", "holdfast/t").strip()
    (copy / "b.txt").write_text("mine\n")
    git(project, "commit", "-qam", "too much", cwd=copy)
    git(project, "worktree", "remove", str(copy))
    refused = project.refused(6, "work", *words)
    assert "the work left it at" in refused
    git(project, "branch", "-f", "holdfast/t", ours)
    found = worked(project, *words)
    assert found["exit"] == 0, found["err"]
    assert at(project, "holdfast/t", TREE).startswith("# our words\n")
    assert git(project, "merge-base", "holdfast/t", ours).strip() == ours


@pytest.mark.req("R145")
def test_bytes_are_bounded_whatever_lines_they_are_in(project: Project) -> None:
    repository(project, FILES)
    turns = [
        ("run", {"command": "head -c 3000 /dev/zero > binary"}),
        ("run", {"command": "head -c 3000 /dev/zero | tr '\\0' x > line.txt"}),
        CHANGE,
        finish(),
    ]
    words = ["--max-bytes", "2000", *CHECK, "--script", script(project, turns)]
    found = worked(project, "Change", "--id", "t", *words)
    assert [one["files"] for one in found["commits"]] == [["a.txt"]], found["err"]
    said = project.ok("logs", "cycle-1", "--plan-id", "ticket-t").out
    assert said.count("taken back: 30") == 2, said


def test_whoever_git_knows_commits(project: Project) -> None:
    repository(project, FILES)
    (project.home / ".gitconfig").unlink()
    words = ["Change", "--id", "t", *CHECK, "--script", script(project, [CHANGE, finish()])]
    assert "GIT_AUTHOR_NAME" in project.refused(2, "work", *words)
    git(project, "config", "user.name", "Bo")
    git(project, "config", "user.email", "bo@example.org")
    found = project.call("work", *words, "--quiet", env={"GIT_AUTHOR_NAME": "Cy"})
    assert found.code == 0, found.err
    told = git(project, "log", "-1", "--format=%an %ae", "holdfast/t")
    assert told == "Cy bo@example.org\n"


@pytest.mark.parametrize("is_link", [True, False])
def test_a_file_where_the_task_tree_shall_be_is_said_before_anything_begins(
    project: Project, is_link: bool
) -> None:
    place = project.root / "tickets"
    place.symlink_to("elsewhere") if is_link else place.write_text("x\n")
    repository(project, FILES)
    words = ["Change", "--id", "t", *CHECK, "--script", script(project, [CHANGE, finish()])]
    assert "'tickets' is no folder" in project.refused(2, "work", *words)


def test_a_known_id_is_meant_whatever_folder_has_its_name(project: Project) -> None:
    repository(project, FILES)
    words = ["--script", script(project, [CHANGE, finish()])]
    first = worked(project, "Change", "--id", "t", *CHECK, *words)
    (project.root / "t").mkdir()
    assert worked(project, "t", *words)["head"] == first["head"]


def test_what_a_check_says_that_is_no_text_is_told_in_short(project: Project) -> None:
    repository(project, FILES)
    played = script(project, [[CHANGE, finish()], [finish()], [finish()]])
    check = "head -c 9000 /dev/zero; echo why >&2; exit 1"
    answer = work(project, "Change", "--id", "t", "--validate", check, "--script", played)
    assert answer.code == 1
    assert "why" in answer.out
    assert len(answer.out) < 2000


def test_a_ticket_that_was_taken_back_whole_says_why_nothing_changed(project: Project) -> None:
    repository(project, FILES)
    turns = [("run", {"command": "echo two > a.txt"}), finish()]
    words = ["--scope", "src/**", *CHECK, "--script", script(project, turns)]
    answer = work(project, "Change", "--id", "t", *words)
    assert answer.code == 1
    assert "changed nothing" in answer.out
    assert "  what it changed was taken back: " in answer.out


def test_a_tree_that_was_dirtied_meanwhile_is_told_that_the_ticket_is_ready(
    project: Project,
) -> None:
    repository(project, FILES)
    check = f"echo begun >> {project.log}; {project.gate('go')}"
    words = ["work", "Change", "--id", "t", "--validate", check, "--in-place", "--quiet"]
    running = project.begun_by(
        *words, "--script", script(project, [CHANGE, finish()]), step="begun"
    )
    project.write("a.txt", "mine\n")
    project.open("go")
    _, err = running.communicate(timeout=60)
    assert running.returncode == 1
    assert "the ticket is ready on holdfast/t" in str(err)
    assert project.read("a.txt") == "mine\n"
