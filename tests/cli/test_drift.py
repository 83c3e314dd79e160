"""Output files that are not what the store says: edited, deleted, older, no longer executable."""

import os
import re
from typing import Any

import pytest

from tests.cli.project import Project, Run


def make(project: Project, text: str = "made", **more: Any) -> None:
    project.plan(
        {
            "a": {"shell": project.sh(f"echo {text} > out.txt"), "produces": "out.txt", **more},
            "b": {"shell": project.sh("cat $HOLDFAST_INPUTS/a"), "needs": ["a"]},
        }
    )


def sources(project: Project, step: str = "a") -> list[str]:
    """Where the accepted versions of a step came from, oldest first."""
    rows = project.database().execute(
        "SELECT source FROM artifact WHERE step = ? AND status = 'accepted' ORDER BY number",
        (step,),
    )
    return [str(row[0]) for row in rows]


@pytest.mark.req("R48", "R57", "R170", "E8")
def test_an_edited_output_is_adopted_and_what_reads_it_runs_again(project: Project) -> None:
    make(project)
    first = project.run()
    project.ran()
    project.write("out.txt", "my own\n")
    assert project.why("a")["reason"]["code"] == "output_modified"
    run = project.run()
    assert run.states == {"a": "reused", "b": "done"}
    assert run.codes == {"a": "amended", "b": "upstream_changed"}
    assert project.ran() == ["b"]
    assert project.read("out.txt") == "my own\n"
    assert project.shown("b") == b"my own\n"
    assert run.refs["a"] == first.refs["a"]
    assert sources(project) == ["generated", "human"]
    later = project.run()
    assert later.codes == {"a": "amended", "b": "unchanged"}
    assert later.digests == run.digests
    assert project.call("rebuild", "--json").json["changed"] is False


@pytest.mark.req("R57")
def test_regenerate_makes_it_again_and_keeps_what_the_person_wrote(project: Project) -> None:
    make(project)
    first = project.run()
    project.write("out.txt", "hours of work\n")
    project.ran()
    run = project.run("--on-drift", "regenerate")
    assert run.codes["a"] == "output_modified"
    assert project.ran() == ["a"], "the same bytes came out, so b stands"
    assert run.digests == first.digests
    assert project.read("out.txt") == "made\n"
    started = next(event for event in project.events() if event["event"] == "attempt_started")
    assert f"kept as {started['before'][:12]}" in run.err, "the message says where"
    (line,) = project.shown(started["before"][:12]).decode().splitlines()
    mode, digest, _, path = line.split()
    assert (mode, path) == ("644", "out.txt")
    assert project.shown(digest) == b"hours of work\n"


@pytest.mark.req("R57")
def test_fail_leaves_the_file_and_stops_at_the_step(project: Project) -> None:
    make(project)
    project.run()
    project.write("out.txt", "mine\n")
    project.ran()
    run = project.run("--on-drift", "fail")
    assert (run.code, run.states) == (1, {"a": "failed", "b": "skipped"})
    assert run.codes["a"] == "output_modified"
    assert run.because("a") == ["out.txt"]
    assert project.read("out.txt") == "mine\n"
    assert project.ran() == []
    assert project.run().codes["a"] == "amended"


@pytest.mark.req("R57")
def test_an_edit_in_the_way_of_a_step_that_must_run_is_kept_and_named(project: Project) -> None:
    make(project, "one")
    project.run()
    project.write("out.txt", "mine\n")
    make(project, "two")
    project.ran()
    stopped = project.run("--on-drift", "fail")
    assert (stopped.code, stopped.codes["a"]) == (1, "output_modified")
    assert project.read("out.txt") == "mine\n"
    assert project.ran() == []
    run = project.run()
    assert project.ran() == ["a", "b"]
    assert project.read("out.txt") == "two\n"
    kept = re.search(r"out\.txt is kept as ([0-9a-f]+)", run.err)
    assert kept, run.err
    assert project.shown(project.shown(kept.group(1)).split()[1].decode()) == b"mine\n"
    make(project, "three")
    assert "kept as" not in project.run().err, "what Holdfast wrote itself is nobody's edit"


@pytest.mark.req("R57")
def test_a_version_that_the_guards_refuse_stops_there_and_names_the_choices(
    project: Project,
) -> None:
    make(project, guards=[{"regex": {"pattern": "^[a-z]+\n$"}, "name": "one word"}])
    project.run()
    project.write("out.txt", "two words\n")
    project.ran()
    run = project.run()
    assert (run.code, run.states) == (1, {"a": "failed", "b": "skipped"})
    assert run.codes["a"] == "output_modified"
    assert project.read("out.txt") == "two words\n", "untouched"
    assert project.ran() == []
    said = run.err + project.ok("status").out + project.ok("logs", "a").out
    for choice in ("adopt", "regenerate", "fail"):
        assert choice in said, f"'{choice}' is not named"
    again = project.run("--on-drift", "regenerate")
    assert again.code == 0
    assert project.read("out.txt") == "made\n"


@pytest.mark.req("R11", "R57")
def test_a_deleted_output_comes_back_from_the_store(project: Project) -> None:
    body = "mkdir -p d/sub; echo 1 > d/one; echo 2 > d/sub/two; echo x > tool; chmod +x tool"
    project.plan({"a": {"shell": project.sh(body), "produces": ["d", "tool"]}})
    project.run()
    project.ran()
    (project.root / "tool").unlink()
    (project.root / "d/sub/two").unlink()
    run = project.run()
    assert run.states == {"a": "reused"}
    assert project.ran() == []
    assert project.read("d/sub/two") == "2\n"
    assert project.read("tool") == "x\n"
    assert os.access(project.root / "tool", os.X_OK)
    (placed,) = [event for event in project.events() if event["event"] == "outputs_placed"]
    assert placed["paths"] == ["d/sub/two", "tool"]


@pytest.mark.req("R57")
def test_the_executable_bit_of_an_output_is_restored(project: Project) -> None:
    body = "echo x > tool; chmod +x tool"
    project.plan({"a": {"shell": project.sh(body), "produces": "tool"}})
    project.run()
    (project.root / "tool").chmod(0o644)
    project.ran()
    assert project.run().states == {"a": "reused"}
    assert project.ran() == []
    assert os.access(project.root / "tool", os.X_OK)
    assert sources(project) == ["generated"]


@pytest.mark.req("R57")
def test_going_back_to_an_earlier_plan_is_nobodys_edit(project: Project) -> None:
    make(project, "A")
    first = project.run()
    make(project, "B")
    project.run()
    make(project, "A")
    project.ran()
    back = project.run()
    assert project.ran() == []
    assert back.codes == {"a": "unchanged", "b": "unchanged"}
    assert back.digests == first.digests
    assert project.read("out.txt") == "A\n"
    assert set(sources(project)) == {"generated"}

    make(project, "B")
    project.run()
    project.write("out.txt", "A\n")
    project.ran()
    old = project.run()
    assert old.codes["a"] == "unchanged", "an older output put back by hand is not a new version"
    assert project.read("out.txt") == "B\n"
    assert project.ran() == []
    assert set(sources(project)) == {"generated"}


@pytest.mark.req("R57")
def test_several_files_are_adopted_together(project: Project) -> None:
    body = "mkdir -p d; echo 1 > d/one; echo 2 > d/two; echo 3 > three"
    project.plan(
        {
            "a": {"shell": project.sh(body), "produces": ["d", "three"]},
            "b": {"shell": project.sh("cd $HOLDFAST_INPUTS/a; cat d/* three"), "needs": ["a"]},
        }
    )
    assert project.run().code == 0
    project.write("d/two", "mine\n")
    project.write("d/new", "also mine\n")
    (project.root / "three").unlink()
    project.write("three", "3\n")
    project.ran()
    run = project.run()
    assert run.codes == {"a": "amended", "b": "upstream_changed"}
    assert project.ran() == ["b"]
    assert project.shown("b") == b"also mine\n1\nmine\n3\n"
    assert project.run().data["totals"]["reused"] == 2
    project.ok("show", "a")


def test_an_amendment_is_written_to_the_output_path(project: Project) -> None:
    make(project, guards=[{"regex": {"pattern": "^[a-z]+\n$"}, "name": "one word"}])
    project.run()
    refused = project.call("amend", "a", "-", stdin=b"two words\n")
    assert refused.code == 1
    assert "one word" in refused.err
    project.ok("amend", "a", "-", stdin=b"better\n")
    run: Run = project.run()
    assert run.codes == {"a": "amended", "b": "upstream_changed"}
    assert project.read("out.txt") == "better\n"
    assert project.shown("b") == b"better\n"
    project.write("out.txt", "best\n")
    amended = project.ok("amend", "a", "--json").json
    assert amended["step"] == "a"
    assert project.run().digests["a"] == amended["digest"]
    assert "no accepted artifact" in _never(project)


def _never(project: Project) -> str:
    project.plan({"new": {"run": ["true"]}}, file="other.yaml", name="other")
    return project.refused(2, "amend", "new", "-", "-f", "other.yaml")
