"""accept: a person lets an earlier result stand, and everybody can see who and why."""

import getpass
from typing import Any

import pytest

from tests.cli.project import Project

BECAUSE = "wording only"


def make(project: Project, text: str, **more: Any) -> None:
    project.plan(
        {
            "a": {"shell": project.sh(f"echo {text} > out.txt"), "produces": "out.txt", **more},
            "b": {"shell": project.sh("cat $HOLDFAST_INPUTS/a"), "needs": ["a"]},
        }
    )


def sound(project: Project) -> None:
    assert project.ok("rebuild", "--json").json["changed"] is False
    project.ok("verify")


@pytest.mark.req("R163")
def test_an_accepted_result_stands_under_the_present_key_and_names_who_and_why(
    project: Project,
) -> None:
    make(project, "one")
    first = project.run()
    make(project, "two", guards=[{"regex": {"pattern": "^two"}, "name": "must be two"}])
    second = project.run()
    make(project, "three", guards=[{"regex": {"pattern": "^three"}, "name": "must be three"}])
    project.ran()
    said = project.ok("accept", "a", "--from", first.id, "--because", BECAUSE, "--json").json
    assert said["schema"] == "holdfast.accept/1"
    assert (said["digest"], said["from"], said["by"]) == (
        first.digests["a"],
        first.id,
        getpass.getuser(),
    )
    assert (said["verified"], said["changed"]) == (False, True)
    why = project.why("a")
    assert (why["decision"], why["reason"]["code"]) == ("reuse", "accepted_by_person")
    assert why["notes"]["decided"] == f"by {getpass.getuser()}: {BECAUSE}"
    assert project.read("out.txt") == "two\n", "the next run writes it"
    run = project.run()
    assert run.states["a"] == "reused"
    assert run.codes == {"a": "accepted_by_person", "b": "upstream_changed"}
    assert run.digests["a"] == first.digests["a"] != second.digests["a"]
    assert run.refs["a"] == said["config_ref"] != first.refs["a"]
    assert project.read("out.txt") == "one\n"
    assert project.ran() == ["b"], "no guard and no command of 'a' ran"
    shown = project.ok("status").out
    assert f"a person accepted this version, by {getpass.getuser()}: {BECAUSE}" in shown
    assert BECAUSE in project.ok("why", "a", "--run", "@").out
    row = project.ok("show", "a", "--json").json
    assert (row["source"], row["verified"]) == ("accepted", False)
    assert (row["decided"]["by"], row["decided"]["from"]) == (getpass.getuser(), first.id)
    assert project.run().codes == {"a": "accepted_by_person", "b": "unchanged"}
    sound(project)


@pytest.mark.req("R163")
def test_an_acceptance_ends_with_the_key_it_was_given_for(project: Project) -> None:
    make(project, "one")
    first = project.run()
    make(project, "two")
    project.ok("accept", "a", "--from", "@", "--because", BECAUSE)
    assert project.run().digests == first.digests
    make(project, "three")
    run = project.run()
    assert run.codes["a"] == "command_changed"
    assert project.read("out.txt") == "three\n"


def test_accepting_what_stands_already_records_nothing(project: Project) -> None:
    make(project, "one")
    project.run()
    assert "stands already" in project.ok("accept", "a", "--from", "@", "--because", "x").out
    assert project.run().codes["a"] == "unchanged"


def test_what_cannot_be_accepted_is_refused_and_changes_nothing(project: Project) -> None:
    make(project, "one")
    project.run()
    make(project, "two")
    refused = project.refused
    said = refused(2, "accept", "b", "--from", "@", "--because", "x")
    assert "'b' reads 'a', which will run: its command changed" in said
    assert "accept 'a' first" in said
    assert "--because" in refused(2, "accept", "a", "--from", "@")
    assert "--because is empty" in refused(2, "accept", "a", "--from", "@", "--because", " ")
    assert "did you mean 'a'" in refused(2, "accept", "aa", "--from", "@", "--because", "x")
    assert "no run 'r-nope'" in refused(2, "accept", "a", "--from", "r-nope", "--because", "x")
    project.write("out.txt", "mine\n")
    said = refused(2, "accept", "a", "--from", "@", "--because", "x")
    assert "out.txt was changed by hand" in said
    assert "holdfast amend a" in said
    project.write("out.txt", "one\n")
    project.plan({"a": {"shell": project.sh("exit 3"), "produces": "out.txt"}})
    project.run()
    said = refused(2, "accept", "a", "--from", "@", "--because", "x")
    assert "no accepted artifact" in said
    assert "it is failed there" in said
    project.plan({"c": {"shell": project.sh()}})
    assert "has no step 'c'" in refused(2, "accept", "c", "--from", "@", "--because", "x")
    project.plan({"a": {"shell": "true", "produces": ["out.txt", "more.txt"]}})
    said = refused(2, "accept", "a", "--from", "@-1", "--because", "x")
    assert "had one file" in said
    assert not [e for e in line_events(project) if e == "step_accepted"]


def line_events(project: Project) -> list[str]:
    found = project.database().execute(
        "SELECT kind FROM event JOIN journal ON journal.id = place >> 40 WHERE name LIKE 'line:%'"
    )
    return [str(row[0]) for row in found]


@pytest.mark.req("R163")
def test_several_files_are_accepted_together(project: Project) -> None:
    body = "mkdir -p d; echo {0} > d/one; echo {0} > two; chmod +x two"
    project.plan({"a": {"shell": project.sh(body.format("old")), "produces": ["d", "two"]}})
    first = project.run()
    project.plan({"a": {"shell": project.sh(body.format("new")), "produces": ["d", "two"]}})
    project.run()
    project.plan({"a": {"shell": project.sh(body.format("newer")), "produces": ["d", "two"]}})
    project.ok("accept", "a", "--from", first.id, "--because", BECAUSE)
    run = project.run()
    assert run.codes == {"a": "accepted_by_person"}
    assert (project.read("d/one"), project.read("two")) == ("old\n", "old\n")
    sound(project)
