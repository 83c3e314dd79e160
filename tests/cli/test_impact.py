"""What a change would touch, and the other commands people fall back on."""

import pytest

from tests.cli.project import Project
from tests.cli.screens import Screen


def _plan(project: Project) -> None:
    project.plan(
        {
            "a": {"shell": project.sh("cat one.txt"), "inputs": "one.txt"},
            "b": {"run": ["sh", "b.sh"], "needs": "a"},
            "c": {"shell": project.sh(), "needs": "b"},
            "after": {"shell": project.sh(), "needs": {"step": "a", "type": "sequence"}},
            "d": {"shell": project.sh()},
        }
    )
    project.write("one.txt", "1")
    project.write("b.sh", "echo b")
    project.write("other.txt", "")


@pytest.mark.req("R111")
def test_impact_names_what_would_run_again_and_a_run_then_does_just_that(project: Project) -> None:
    _plan(project)
    project.run()
    project.ran()
    assert project.ok("impact", "b.sh", "--json").json["steps"] == ["b", "c"]
    found = project.ok("impact", "one.txt", "--json").json
    assert (found["direct"], found["steps"]) == (["a"], ["a", "b", "c"])
    project.write("one.txt", "2")
    again = project.run()
    assert [step for step, state in again.states.items() if state == "done"] == found["steps"]


def test_impact_of_what_nothing_reads_is_an_error(project: Project) -> None:
    _plan(project)
    assert "no step reads 'other.txt'" in project.refused(2, "impact", "other.txt")
    assert "neither a step nor a file" in project.refused(2, "impact", "nothing")
    assert not project.store.exists()


@pytest.mark.req("R111")
def test_a_forced_step_an_amendment_and_a_rebuilt_index_agree(project: Project) -> None:
    _plan(project)
    project.run()
    project.ran()
    assert project.run("--force-node", "d").states["d"] == "done"
    assert project.ran() == ["d"]
    project.write("mine.txt", "mine")
    project.ok("amend", "d", "mine.txt", "--because", "better")
    assert project.ok("rebuild", "--json").json["changed"] is False
    assert project.run().codes["d"] == "amended"
    assert "never_ran" in project.ok("explain", "never_ran").out


def test_screens(project: Project, screen: Screen) -> None:
    _plan(project)
    screen("impact", "one.txt", "d", name="impact")


@pytest.mark.req("R111", "R182")
def test_impact_names_what_a_longer_list_and_another_answer_may_run(project: Project) -> None:
    project.write("hits.json", '["a", "b"]')
    project.plan(
        {
            "search": {"shell": "cat hits.json", "inputs": "hits.json"},
            "read": {"for_each": "${{ steps.search.output }}", "shell": "echo x"},
            "list": {"shell": "ls $HOLDFAST_INPUTS", "needs": "read"},
            "late": {"shell": "true", "when": {"steps.search.output.2": {"exists": True}}},
        }
    )
    for items in ([], ["read[a]", "read[b]"]):
        told = project.ok("impact", "hits.json").out
        assert "~ search" in told
        for name in (*items, "read", "list", "late"):
            assert f"? {name} " in told
        total = 4 + len(items)
        assert f"1 of {total} steps, perhaps {total - 1} more" in told
        data = project.ok("impact", "hits.json", "--json").json
        assert data["unsure"] == [step for step in data["steps"] if step != "search"]
        assert project.run().code == 0
