"""A bit that flipped in a table hides what was done: whoever would do it again exits with 9 instead."""

import apsw
import pytest

from tests.cli.project import Project, finish, kill
from tests.cli.test_add import fragment

PAGE = 4096
WAYS = {
    "a result": ("artifact", b"send"),
    "its key": ("artifact_find", b"send"),
    "how it ended": ("artifact", b"accepted"),
    "who made it": ("artifact", b"generated"),
    "the line": ("line", b"demo"),
    "the maker": ("maker", b"r-"),
}
HELD = {
    "the name of its journal": ("sqlite_autoindex_journal_1", b"run:r-"),
    "its journal": ("journal", b"run:r-"),
    "its row": ("run", b"r-"),
    "its line": ("line", b"demo"),
    "the journal of its line": ("journal", b"line:demo"),
}
# Each is one bit too, of a value that no index has.
UNINDEXED = {
    "it is history": "UPDATE run SET imported = 1",
    "it is of a line that is not there": "UPDATE run SET line = 0",
    "it has no events": "UPDATE journal SET last = 0 WHERE name GLOB 'run:*'",
}


def flip(project: Project, tree: str, mark: bytes) -> None:
    """Change one bit at the end of these bytes in the root page of a table or an index."""
    path = project.store / "state.db"
    assert not path.with_name("state.db-wal").exists()
    with apsw.Connection(str(path)) as connection:
        query = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
        ((page,),) = connection.execute(query, (tree,))
    connection.close()
    start = (int(str(page)) - 1) * PAGE
    content = bytearray(path.read_bytes())
    content[content.index(mark, start, start + PAGE) + len(mark) - 1] ^= 1
    path.write_bytes(content)


def sending(project: Project) -> None:
    project.plan({"send": {"shell": project.sh(project.gate("sent")), "effects": "external"}})


def sent(project: Project) -> None:
    """An effect outside was confirmed."""
    sending(project)
    project.open("sent")
    assert project.run("--yes").code == 0
    assert project.ran() == ["send"]


def held(project: Project) -> None:
    """An effect outside was cut off, and a person is asked about it."""
    sending(project)
    kill(project.begun_by("run", "--yes", step="send"))
    project.open("sent")
    assert project.resume("--yes").code == 3
    assert project.ran() == ["send"]


def changed(project: Project, statement: str) -> None:
    connection = project.database()
    connection.execute("PRAGMA foreign_keys = 0")
    connection.execute(statement)
    connection.close()


def refused_everywhere(project: Project) -> None:
    """Nothing is done again, nothing is promised, and no back-up is made that would do it elsewhere."""
    for words in (("plan",), ("run", "--yes"), ("run", "--yes", "--join")):
        assert "is damaged" in project.refused(9, *words), words
    for words in (("export", "--all", "all.zip"), ("push", str(project.folder / "other"))):
        assert "is damaged" in project.refused(9, *words), words
    assert not project.has("all.zip")
    assert project.call("resume", "--yes").code != 0
    assert project.ran() == []
    project.refused(9, "verify", "--all")


@pytest.mark.req("D07", "I17")
@pytest.mark.parametrize("what", WAYS)
def test_what_was_sent_is_not_sent_again_after_a_bit_flipped(project: Project, what: str) -> None:
    sent(project)
    flip(project, *WAYS[what])
    refused_everywhere(project)


@pytest.mark.req("D07", "I17")
@pytest.mark.parametrize("what", HELD)
def test_what_may_have_been_sent_is_not_sent_again_after_a_bit_flipped(
    project: Project, what: str
) -> None:
    held(project)
    flip(project, *HELD[what])
    refused_everywhere(project)


@pytest.mark.req("D07", "I17")
@pytest.mark.parametrize("what", UNINDEXED)
def test_rows_that_no_index_holds_are_compared_with_the_journals(
    project: Project, what: str
) -> None:
    held(project)
    changed(project, UNINDEXED[what])
    refused_everywhere(project)


@pytest.mark.req("D07", "I17")
@pytest.mark.parametrize(
    ("fresh", "statement"),
    [({}, "UPDATE artifact SET reusable = 0"), ({"fresh_for": "9d"}, "UPDATE artifact SET at = 1")],
)
def test_a_result_is_not_unfit_or_old_by_its_row_alone(
    project: Project, fresh: dict[str, str], statement: str
) -> None:
    project.plan({"send": {"shell": project.sh(), "effects": "external", **fresh}})
    assert project.run("--yes").code == 0
    project.ran()
    changed(project, statement)
    for words in (("plan",), ("run", "--yes")):
        assert "a wrong row of step 'send'" in project.refused(9, *words), words
    assert project.ran() == []
    assert "made again" in project.ok("repair").out
    assert project.run("--yes").states == {"send": "reused"}


@pytest.mark.req("D07")
def test_the_index_of_results_is_made_again_and_what_was_sent_stands(project: Project) -> None:
    sent(project)
    flip(project, *WAYS["a result"])
    assert "hint: holdfast repair" in project.refused(9, "run", "--yes")
    project.ok("repair")
    project.ok("verify", "--all")
    assert project.run("--yes").states == {"send": "reused"}
    assert project.ran() == []


@pytest.mark.req("D07")
def test_a_run_that_is_hidden_can_only_be_left_behind(project: Project) -> None:
    held(project)
    flip(project, *HELD["its row"])
    assert "hint: holdfast repair" in project.refused(9, "run", "--yes")
    left = project.call("repair")
    assert (left.code, left.out) == (9, "next: holdfast repair --start-over\n")
    assert "it has no journal" in left.err
    assert "is damaged" in project.refused(9, "rebuild"), "else it would forget what the run made"
    project.ok("repair", "--start-over", "--yes")
    assert project.run("--yes").states == {"send": "done"}


@pytest.mark.req("D07", "I17")
def test_no_back_up_is_written_that_nobody_can_restore(project: Project) -> None:
    sent(project)
    run = project.ok("status", "--json").json["run"]
    flip(project, "journal", b"line:demo")
    for words in (("--all", "all.zip"), (run, "one.zip")):
        assert "is damaged" in project.refused(9, "export", *words)
        assert not project.has(words[-1])


@pytest.mark.req("D07", "I17")
def test_nothing_is_pulled_from_a_store_that_forgot(project: Project) -> None:
    sent(project)
    flip(project, *WAYS["a result"])
    other = project.root / "there"
    project.store.rename(other)
    assert "is damaged" in project.refused(9, "pull", str(other))


@pytest.mark.req("D07", "I17")
def test_steps_that_come_later_are_not_sent_again_either(project: Project) -> None:
    step = {"shell": project.sh(project.gate("sent")), "effects": "external"}
    project.plan({"send": step})
    kill(project.begun_by("run", "--yes", step="send"))
    project.open("sent")
    assert project.resume("--yes").code == 3
    changed(project, UNINDEXED["it is history"])
    project.plan({"waits": {"shell": project.sh(project.gate("go"))}})
    project.ran()
    engine = project.begun_by("run", step="waits")
    name = fragment(project, {"send": step})
    project.ok("add", name, "--yes")
    ended = finish(engine)
    assert ended.code == 9, ended
    assert "is damaged" in ended.err
    assert "send" not in project.ran()


def test_runs_that_were_cleared_away_are_no_damage(project: Project) -> None:
    sent(project)
    for text in ("one", "two"):
        project.plan({"send": {"shell": project.sh(f"echo {text}"), "effects": "external"}})
        assert project.run("--yes").code == 0
    project.ok("gc", "--keep", "0d", "--yes")
    assert len(project.ok("history", "--json").json["runs"]) < 3
    assert project.run("--yes").states == {"send": "reused"}
    project.ok("export", "--all", "all.zip")


def test_a_purged_receipt_is_no_damage(project: Project) -> None:
    sent(project)
    digest = project.ok("status", "--json").json["steps"]["send"]["digest"]
    project.ok("purge", digest, "--because", "a name", "--yes")
    assert project.run("--yes").code == 3
    assert project.ran() == []
