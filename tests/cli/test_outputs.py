"""Output files of several kinds and owners: incomplete edits, shared paths, links, and what is told."""

import re
from typing import Any

import pytest

from tests.cli.project import Project, kill, until
from tests.cli.test_drift import sources


def pair(project: Project, **more: Any) -> None:
    """A step with two files, and one that reads both."""
    project.plan(
        {
            "a": {
                "shell": project.sh("echo x > x.txt; echo y > y.txt"),
                "produces": ["x.txt", "y.txt"],
                **more,
            },
            "b": {"shell": project.sh("cat x.txt y.txt"), "needs": ["a"]},
        }
    )


@pytest.mark.req("R57")
def test_a_deleted_file_is_put_back_beside_an_edited_one(project: Project) -> None:
    pair(project)
    project.run()
    (project.root / "x.txt").unlink()
    project.write("y.txt", "mine\n")
    said = project.refused(2, "amend", "a")
    assert "'a' makes x.txt too, and nothing lies there" in said
    ahead = project.ok("plan").out
    assert "your edit of y.txt is guarded and kept; writes x.txt from the store" in ahead
    run = project.run()
    assert run.codes == {"a": "amended", "b": "upstream_changed"}
    assert (project.read("x.txt"), project.read("y.txt")) == ("x\n", "mine\n")
    assert project.shown("b") == b"x\nmine\n"
    assert project.call("plan", "--detailed-exitcode").code == 0
    assert project.call("rebuild", "--json").json["changed"] is False


@pytest.mark.req("R57")
@pytest.mark.parametrize("declared", ["file", "directory"])
def test_neither_kind_of_output_is_adopted_in_the_place_of_the_other(
    project: Project, declared: str
) -> None:
    body = "echo 1 > out" if declared == "file" else "mkdir -p out; echo 1 > out/one"
    project.plan({"a": {"shell": project.sh(body), "produces": "out"}})
    project.run()
    if declared == "file":
        (project.root / "out").unlink()
        mine = project.write("out/inner", "mine\n")
    else:
        (project.root / "out/one").unlink()
        (project.root / "out").rmdir()
        mine = project.write("out", "mine\n")
    ahead = project.ok("plan").out
    said = project.refused(2, "amend", "a")
    run = project.run()
    assert (run.code, run.states) == (1, {"a": "failed"})
    kinds = ("a directory", "a file") if declared == "file" else ("a file", "a directory")
    for told in (ahead, said, run.because("a")[0]):
        assert f"'out' is {kinds[0]} and was {kinds[1]}" in told
    assert mine.read_text() == "mine\n", "untouched"
    assert sources(project) == ["generated"]


def layers(project: Project, last: str = "B") -> None:
    """Two steps in a row that write the same file, and one that reads it."""
    project.plan(
        {
            "a": {"shell": project.sh("echo A > f.txt"), "produces": "f.txt"},
            "b": {
                "shell": project.sh(f"echo {last} >> f.txt"),
                "produces": "f.txt",
                "needs": ["a"],
            },
            "c": {"shell": project.sh("cat f.txt"), "needs": ["b"]},
        }
    )


@pytest.mark.req("R57")
def test_steps_in_a_row_that_write_the_same_file_come_to_rest(project: Project) -> None:
    layers(project)
    assert project.run().code == 0
    assert project.ran() == ["a", "b", "c"]
    for _ in range(2):
        assert project.call("plan", "--detailed-exitcode").code == 0, "nothing to do"
        run = project.run()
        assert set(run.codes.values()) == {"unchanged"}
        assert project.read("f.txt") == "A\nB\n"
        assert not [e for e in project.events() if e["event"] == "outputs_placed"]
    layers(project, "C")
    run = project.run()
    assert run.code == 0
    assert project.ran() == ["b", "c"], "what is written for a is what b goes on from"
    assert project.read("f.txt") == "A\nC\n"
    assert "is kept" not in run.err, "nobody wrote it by hand"
    (project.root / "f.txt").unlink()
    project.run()
    assert project.read("f.txt") == "A\nC\n"
    assert project.ran() == []
    assert {*sources(project, "a"), *sources(project, "b")} == {"generated"}


@pytest.mark.req("R57")
def test_a_directory_of_which_a_later_step_makes_a_file(project: Project) -> None:
    project.plan(
        {
            "a": {"shell": project.sh("mkdir -p d; echo y > d/y"), "produces": "d"},
            "b": {"shell": project.sh("echo x > d/x"), "produces": ["d/x", "z"], "needs": ["a"]},
        }
    )
    project.write("z", "z\n")
    project.run()
    project.ran()
    project.write("z", "mine\n")
    assert project.run().codes == {"a": "unchanged", "b": "amended"}
    assert (project.read("d/x"), project.read("z")) == ("x\n", "mine\n")
    assert project.call("plan", "--detailed-exitcode").code == 0
    assert project.ran() == []


@pytest.mark.req("R57")
def test_a_file_is_not_amended_under_an_edit_by_hand(project: Project) -> None:
    project.plan({"a": {"shell": project.sh("echo made > a.txt"), "produces": "a.txt"}})
    project.run()
    project.write("a.txt", "by hand\n")
    better = project.folder / "better.txt"
    better.write_text("better\n")
    said = project.refused(2, "amend", "a", str(better))
    assert "a.txt was changed by hand, and one of both can stand" in said
    assert "holdfast amend a keeps yours" in said
    (project.root / "a.txt").unlink()
    project.ok("amend", "a", str(better))
    assert project.run().codes == {"a": "amended"}
    assert project.read("a.txt") == "better\n"


# --- put back ----------------------------------------------------------------------------------------


def names(said: str) -> set[str]:
    return set(re.findall(r"holdfast show ([0-9a-f]{12})", said))


@pytest.mark.req("R43", "R57")
def test_a_link_among_the_outputs_of_a_refused_attempt_is_removed(project: Project) -> None:
    """Nothing of what was there before stays replaced, and the step can be tried again."""
    target = project.folder / "target"
    target.write_text("outside\n")
    body = f"mkdir -p dd; ln -s {target} dd/link; echo its > dd/own; echo its > mine.txt; exit 1"
    project.plan({"a": {"shell": project.sh(body), "produces": ["dd", "mine.txt"]}})
    project.write("mine.txt", "mine\n")
    run = project.run()
    assert (run.code, run.codes) == (1, {"a": "command_failed"})
    assert project.read("mine.txt") == "mine\n"
    assert not any((project.root / "dd").iterdir())
    assert target.read_text() == "outside\n"
    (told,) = [line for line in run.err.splitlines() if "what it left" in line]
    assert told.startswith("a: put back mine.txt, removed dd/link, dd/own; what it left is kept")
    (listing,) = names(told)
    (link,) = [e for e in project.shown(listing).decode().splitlines() if e.endswith("dd/link")]
    assert project.shown(link.split()[1]).decode() == str(target)
    assert project.run().codes == {"a": "command_failed"}, "not: it cannot run"
    assert project.ran() == ["a", "a"]


@pytest.mark.req("R43", "R57")
def test_a_refused_attempt_that_changed_the_kind_of_its_outputs(project: Project) -> None:
    body = "rm -rf d e; echo its > d; mkdir e; echo its > e/one; ln other twin; exit 1"
    project.plan({"a": {"shell": project.sh(body), "produces": ["d", "e", "twin"]}})
    for path in ("d/one", "e", "other"):
        project.write(path, "mine\n")
    assert project.run().codes == {"a": "command_failed"}
    assert project.read("d/one") == project.read("e") == project.read("other") == "mine\n"
    assert not project.has("twin")


@pytest.mark.req("R43")
def test_what_was_not_there_before_is_removed_and_the_one_file_can_be_shown(
    project: Project,
) -> None:
    project.plan(
        {"a": {"shell": project.sh("echo bad > report.md; exit 1"), "produces": "report.md"}}
    )
    said = project.run().err
    assert "a: removed report.md; what it left is kept as" in said
    (digest,) = names(said)
    assert project.shown(digest) == b"bad\n"
    project.write("report.md", "mine\n")
    project.ran()
    again = project.run().err
    assert "a: put back report.md; what it left is kept as" in again


@pytest.mark.req("R43", "R57")
def test_an_edit_after_a_kill_is_announced_and_can_be_had_back(project: Project) -> None:
    body = project.sh(f"echo half > out.txt; {project.gate('go')}; echo made > out.txt")
    project.plan({"a": {"shell": body, "produces": "out.txt"}})
    engine = project.begun_by("run", step="a")
    until(lambda: project.has("out.txt"), "it wrote")
    kill(engine)
    until(lambda: not project.has_at_gate("go"), "its process is gone")
    project.write("out.txt", "mine\n")
    project.open("go")
    ahead = project.ok("plan").out
    assert "what lies at out.txt is stored, then first put back" in ahead
    run = project.run()
    assert run.code == 0
    assert "if it was you who wrote that since: let 'a' run, put yours in place again" in run.err
    (show,) = set(re.findall(r"\(holdfast show (\w+) > out.txt\), then holdfast amend a", run.err))
    project.write("out.txt", project.shown(show).decode())
    project.ok("amend", "a")
    assert project.run().codes == {"a": "amended"}
    assert project.read("out.txt") == "mine\n"
