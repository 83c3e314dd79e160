"""Screens of why and explain, and how errors look."""

from tests.cli.here import run_here
from tests.cli.project import Project, kill
from tests.cli.screens import Screen
from tests.cli.test_why import NL, chain


def test_a_change_of_an_input_and_what_follows_from_it(project: Project, screen: Screen) -> None:
    steps = chain(project)
    screen("why", "extract", name="never-ran")
    run_here(project)
    screen("why", "extract", "--not", name="reused")
    project.write("sources/nl.md", NL.replace("24", "34") + "a long line " * 12 + "\n")
    screen("why", "extract", name="input-changed")
    screen("why", "publish", name="chain")
    project.write("sources/nl.md", NL)
    project.write("check.sh", "test $(wc -w < $HOLDFAST_ARTIFACT) -lt 200\n")
    screen("why", "brief", name="guard-changed")
    project.write("sources/nl.md", "new\n")
    steps["size"]["with"] = {"unit": "words"}
    steps["brief"]["prompt"] = "Write.\nKeep it under 200 words and lead with the number.\n"
    project.plan(steps)
    screen("why", "publish", name="several-causes")


def test_a_failed_step_and_an_unknown_one(project: Project, screen: Screen) -> None:
    steps = chain(project)
    project.write("check.sh", "echo too long: 340 words; echo cut it; exit 1\n")
    steps["brief"]["retries"] = 2
    project.plan(steps)
    run_here(project)
    screen("why", "brief", "--run", "@", name="failed")
    screen("why", "publish", "--run", "@", name="skipped")
    screen("why", "brif", name="unknown-step")


def test_what_is_waited_for(project: Project, screen: Screen) -> None:
    steps = chain(project)
    steps["extract"]["shell"] = project.sh(project.gate("go"))
    project.plan(steps)
    engine = project.begun_by("run", step="extract")
    screen("why", "brief", "--wait", name="wait")
    kill(engine)


def test_codes_are_explained(screen: Screen) -> None:
    screen("explain", "guard_rejected", name="explain-reason")
    screen("explain", "P030", name="explain-problem")
    screen("explain", "7", name="explain-exit")
    screen("explain", "exit-codes", name="explain-group")
    screen("explain", "guard_rejectd", name="explain-unknown")
