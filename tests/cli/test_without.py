"""Steps that went on without others keep standing on that, whatever a person does with the run next."""

from typing import Any

import pytest

from tests.cli.project import Project, Run

pytestmark = pytest.mark.req("R182")


def whole(project: Project) -> None:
    """Every command that reads the store still can."""
    for words in (("verify",), ("history", "--all"), ("plans", "list")):
        assert project.ok(*words).code == 0


def forked(project: Project, step: str, code: int = 0) -> Run:
    answer = project.call("fork", "@", "--from", step, "--as", "other", "--yes", "--json")
    assert answer.code == code, answer.err
    return Run(answer.code, answer.json, answer.err)


def test_a_fork_takes_what_went_on_without_a_step_left_out(project: Project) -> None:
    project.plan(
        {
            "check": {"shell": "echo no"},
            "publish": {"shell": "echo p", "when": {"steps.check.output": {"equals": "yes"}}},
            "tell": {"shell": "echo t", "needs": ["publish"]},
            "log": {
                "shell": project.sh(),
                "needs": ["check", {"step": "publish", "optional": True}],
            },
            "other": {"shell": project.sh()},
        }
    )
    project.run("--yes")
    project.ran()
    found = forked(project, "other")
    assert found.codes["log"] == "forked"
    assert (found.codes["publish"], found.codes["tell"]) == ("condition_unmet", "condition_above")
    assert project.ran() == ["other"]
    whole(project)


def items(project: Project, **more: Any) -> None:
    project.plan(
        {
            "each": {
                "for_each": [1, 2, 3],
                "with": {"n": "${{ item }}"},
                "shell": project.sh("[ $(cat $HOLDFAST_WITH/n) != 2 ]"),
                "optional": True,
            },
            "other": {"shell": project.sh()},
            **more,
        }
    )
    project.run("--yes")
    project.ran()


def test_a_fork_takes_what_went_on_without_a_step_that_failed(project: Project) -> None:
    items(project)
    found = forked(project, "other", code=1)
    assert (found.states["each[2]"], found.codes["each"]) == ("failed", "forked")
    assert project.ran() == ["other"]
    whole(project)


def test_a_fork_at_a_step_that_failed_above_makes_it_again(project: Project) -> None:
    maybe = project.sh(f"[ -e {project.gates}/well ]")
    project.plan(
        {
            "a": {"shell": maybe},
            "strict": {"needs": ["a"], "shell": project.sh()},
            "log": {"needs": [{"step": "a", "optional": True}], "shell": project.sh()},
        }
    )
    assert project.run("--yes").states == {"a": "failed", "strict": "skipped", "log": "done"}
    project.ran()
    project.open("well")
    found = forked(project, "strict")
    assert found.states["strict"] == "done"
    assert project.ran()[0] == "a"
    whole(project)


def test_a_fork_tries_a_critical_step_again_before_it_asks_a_person(project: Project) -> None:
    project.plan(
        {
            "a": {"shell": project.sh("exit 1"), "priority": "critical"},
            "log": {"needs": [{"step": "a", "optional": True}], "shell": project.sh()},
            "other": {"shell": project.sh()},
            "more": {"needs": ["a"], "shell": project.sh()},
        }
    )
    assert project.run("--yes").data["status"] == "escalated"
    project.call("skip", "more", "--because", "later", "--yes")
    assert project.status().states["log"] == "done"
    project.ran()
    found = forked(project, "other", code=8)
    assert (found.states["other"], found.states["log"]) == ("done", "pending")
    assert sorted(project.ran()) == ["a", "other"]
    whole(project)


def test_a_condition_is_judged_again_when_what_it_compares_was_sent_back(project: Project) -> None:
    flag = project.gates / "flag"
    project.plan(
        {
            "a": {"shell": f"if [ -e {flag} ]; then echo x; else echo n; fi"},
            "b": {"shell": project.sh(), "when": {"steps.a.output": {"equals": "x"}}},
            "below": {"shell": project.sh(), "needs": ["b"]},
            "c": {
                "shell": f"if [ -e {flag} ]; then echo c; else touch {flag}; exit 1; fi",
                "needs": ["a"],
                "escalate": ["a"],
            },
        }
    )
    found = project.run("--yes")
    assert found.code == 0
    assert found.states == dict.fromkeys(("a", "b", "below", "c"), "done")
    assert project.ran() == ["b", "below"]
    whole(project)


def test_a_condition_is_judged_again_when_a_gap_is_closed(project: Project) -> None:
    project.plan(
        {
            "a": {"shell": f"[ -e {project.gates}/well ] && echo x"},
            "b": {"shell": project.sh(), "when": {"steps.a.output": {"equals": "x"}}},
            "below": {"shell": project.sh(), "needs": ["b"]},
        }
    )
    project.run("--yes")
    project.call("skip", "a", "--because", "later", "--yes")
    assert project.status().codes["b"] == "condition_unmet"
    project.open("well")
    found = project.retry("a")
    assert found.code == 0
    assert found.states == dict.fromkeys(("a", "b", "below"), "done")
    whole(project)


def test_a_step_that_is_sent_back_takes_along_who_goes_on_without_another(
    project: Project,
) -> None:
    def once(name: str) -> str:
        flag = project.gates / name
        return f"[ -e {flag} ] || {{ touch {flag}; exit 1; }}"

    project.plan(
        {
            "a": {"shell": "echo a"},
            "e": {"shell": "exit 1"},
            "c": {
                "shell": f"{project.gate('x')}; {once('c')}",
                "needs": ["a"],
                "escalate": ["a"],
            },
            "x": {"shell": once("x"), "needs": ["a"]},
            "d": {"shell": project.sh(), "needs": ["x", {"step": "e", "optional": True}]},
        }
    )
    found = project.run("--yes", "-j", "3")
    assert found.states == {"a": "done", "e": "failed", "c": "done", "x": "done", "d": "done"}
    whole(project)


def test_a_step_that_waited_for_two_is_left_out_by_the_one_that_stays(project: Project) -> None:
    project.plan(
        {
            "a": {"shell": "echo no"},
            "f": {"shell": f"[ -e {project.gates}/well ]"},
            "late": {"shell": "echo l", "needs": ["f"]},
            "b": {"shell": "echo b", "when": {"steps.a.output": {"equals": "yes"}}},
            "d": {"shell": project.sh(), "needs": ["f", "b"]},
        }
    )
    assert project.run("--yes").states["d"] == "skipped"
    project.open("well")
    found = project.retry("f")
    assert (found.code, found.codes["d"], found.because("d")) == (0, "condition_above", ["b"])
    whole(project)
