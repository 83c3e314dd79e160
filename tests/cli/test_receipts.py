"""A receipt that was purged: its effect is known to be done, and is repeated only if a person asks."""

import pytest

from tests.cli.project import Project, Run
from tests.cli.test_pin_purge import digest

EXTERNAL = {"effects": "external"}


def pays(project: Project, word: str = "one", **more: object) -> dict[str, object]:
    """A step that pays what its input says; what it prints is the receipt."""
    project.write("in.txt", word)
    pay = {"shell": project.sh("cat in.txt"), "inputs": ["in.txt"], **EXTERNAL, **more}
    project.plan({"pay": pay})
    return pay


def purge(project: Project, text: str) -> None:
    project.ok("purge", digest(text), "--because", "a name", "--yes")


def is_held(project: Project, step: str = "pay") -> Run:
    """A run that waits for a person, foreseen as such, in which nothing was done."""
    seen = project.ok("plan", "--json").json["steps"][step]
    assert seen["decision"] == "wait", seen
    project.ran()
    run = project.run("--yes")
    assert (run.code, run.states[step]) == (3, "waiting"), run.err
    assert project.ran() == [], "nobody asked for it"
    return run


@pytest.mark.req("I17", "R170")
def test_it_is_said_that_the_effect_was_done(project: Project) -> None:
    pays(project)
    project.run("--yes")
    purge(project, "one")
    held = is_held(project)
    assert held.codes["pay"] == "receipt_gone"
    screens = [
        project.call(*words)
        for words in (
            ("plan",),
            ("run", "--yes"),
            ("status",),
            ("approvals",),
            ("approvals", "--details"),
            ("why", "pay"),
            ("why", "pay", "--wait"),
        )
    ]
    for screen in screens:
        said = f"{screen.out}{screen.err}"
        assert "never" not in said, said
        assert "confirmed" not in said, said
    assert "was done" in screens[0].out
    assert "was done" in screens[-1].out
    assert "holdfast amend pay FILE" in screens[-1].out
    assert "was purged or lost" in screens[-1].out
    assert "what it gave is gone" in project.ok("explain", "receipt_gone").out
    project.ok("logs", "pay")
