"""Only some of the steps: what runs, what is reused, what is left out."""

import pytest

from tests.cli.project import Project


def _chain(project: Project) -> None:
    project.plan(
        {
            "a": {"shell": project.sh(), "inputs": "a.txt"},
            "b": {"shell": project.sh(), "needs": "a"},
            "c": {"shell": project.sh(), "needs": "b"},
            "d": {"shell": project.sh()},
        }
    )
    project.write("a.txt", "1")


@pytest.mark.req("R89")
def test_only_the_selected_steps_run_and_the_run_completes(project: Project) -> None:
    _chain(project)
    first = project.run("-s", "+b")
    assert (first.code, first.data["status"]) == (0, "completed")
    assert project.ran() == ["a", "b"]
    assert first.codes["d"] == "not_selected"
    assert first.states["c"] == "skipped"
    assert project.run("-s", "changed").code == 0
    assert project.ran() == ["c", "d"]


def test_a_selected_step_whose_need_would_have_to_run_is_blocked(project: Project) -> None:
    _chain(project)
    project.run()
    project.ran()
    project.write("a.txt", "2")
    cut = project.run("-s", "b")
    assert (cut.code, cut.data["status"]) == (1, "blocked")
    assert cut.codes == {
        "a": "not_selected",
        "b": "dependency_skipped",
        "c": "not_selected",
        "d": "unchanged",
    }
    assert project.ran() == []


def test_what_is_not_selected_stands_although_everything_is_forced(project: Project) -> None:
    _chain(project)
    project.run()
    project.ran()
    project.run("--force", "-s", "b")
    assert project.ran() == ["b"]


def test_the_failed_steps_alone_can_be_run_again(project: Project) -> None:
    _chain(project)
    project.plan(
        {
            "good": {"shell": project.sh(), "inputs": "a.txt"},
            "bad": {"shell": project.sh("test -e flag")},
            "after": {"shell": project.sh(), "needs": "bad"},
        }
    )
    assert project.run().code == 1
    project.ran()
    project.write("flag", "")
    project.write("a.txt", "changed")
    again = project.run("-s", "state:failed+")
    assert project.ran() == ["after", "bad"]
    assert (again.code, again.codes["good"]) == (0, "not_selected")


def test_an_edited_output_of_a_step_left_out_is_left_alone(project: Project) -> None:
    project.plan(
        {
            "a": {"shell": project.sh("echo a > a.txt"), "produces": "a.txt"},
            "b": {"shell": project.sh("cat a.txt"), "needs": "a"},
            "c": {"shell": project.sh()},
        }
    )
    project.run()
    project.write("a.txt", "mine")
    cut = project.run("-s", "c")
    assert cut.code == 0
    assert cut.codes["a"] == "not_selected"
    assert project.read("a.txt") == "mine"


def test_a_selection_of_nothing_is_refused(project: Project) -> None:
    _chain(project)
    assert "no step is selected" in project.refused(2, "run", "-s", "a", "-x", "a")
    assert "no step 'zz'" in project.refused(2, "run", "-s", "zz")
    assert not project.store.exists()


def test_nothing_failed_and_nothing_changed_is_an_answer(project: Project) -> None:
    _chain(project)
    project.run()
    project.ran()
    assert "nothing to do" in project.ok("run", "-s", "changed").out
    assert project.ok("run", "-s", "state:failed", "--json").json["selected"] == []
    assert project.call("plan", "-s", "changed", "--detailed-exitcode").code == 0
    assert project.ran() == []


@pytest.mark.req("R89")
def test_a_name_that_is_nearly_right_is_asked_about(project: Project) -> None:
    project.plan({"sort": {"shell": "echo s"}, "report": {"shell": "echo r", "needs": ["sort"]}})
    hint = "hint: did you mean 'sort'?\n"
    assert project.refused(2, "plan", "-s", "srt").endswith(hint)
    assert project.refused(2, "run", "-s", "+srt").endswith(hint)
    assert project.refused(2, "plan", "-x", "nothing-like-it").endswith("hint: holdfast ls\n")
    project.ok("run")
    assert project.refused(2, "show", "repot").endswith("hint: did you mean 'report'?\n")
    assert project.refused(2, "show", "repot@1").endswith("hint: did you mean 'report'?\n")
    assert project.refused(2, "show", "nothing-like-it").endswith("hint: holdfast status\n")


@pytest.mark.req("R182")
def test_a_selected_step_goes_on_without_an_optional_one_that_is_not(project: Project) -> None:
    project.plan(
        {
            "a": {"shell": project.sh()},
            "c": {"shell": project.sh(), "needs": ["a"]},
            "d": {"shell": project.sh(), "needs": [{"step": "a", "optional": True}]},
        }
    )
    told = project.ok("plan", "-s", "d", "--json").json["steps"]
    assert {step: told[step]["decision"] for step in told} == {"a": "wait", "c": "wait", "d": "run"}
    found = project.run("-s", "d", "--yes")
    assert (found.code, found.states["d"]) == (0, "done")
    assert found.codes["a"] == "not_selected"
    assert project.ran() == ["d"]
    assert project.run("-s", "c", "--yes").code == 1
    words = project.ok("why", "c", "--run", "@").out
    assert "because a was left out" in words
    assert "failed" not in words
    assert project.run("--yes").codes["d"] == "upstream_changed"
    assert project.ok("verify").code == 0
