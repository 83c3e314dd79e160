"""The screens of the preview."""

from typing import Any

import pytest

from tests.cli.project import Project
from tests.cli.screens import Screen


def kelp(project: Project, **changes: dict[str, Any]) -> None:
    """Notes are cleaned, counted and reported on."""
    clean = "tr a-z A-Z < notes/{0}.txt"
    steps: dict[str, dict[str, Any]] = {
        "clean-tides": {"shell": clean.format("tides"), "inputs": ["notes/tides.txt"]},
        "clean-storms": {"shell": clean.format("storms"), "inputs": ["notes/storms.txt"]},
        "count": {"shell": "wc -w $HOLDFAST_INPUTS/*", "needs": ["clean-tides", "clean-storms"]},
        "report": {
            "shell": "cat $HOLDFAST_INPUTS/count > report.md",
            "needs": ["count"],
            "produces": "report.md",
        },
        "publish": {"shell": "echo sent", "needs": ["report"], "effects": "external"},
    }
    for name, change in changes.items():
        steps[name.replace("_", "-")] |= change
    project.plan(steps, name="kelp")
    for name in ("tides", "storms"):
        if not project.has(f"notes/{name}.txt"):
            project.write(f"notes/{name}.txt", f"{name} pull\n")


@pytest.mark.req("R55", "R107")
def test_the_first_time_there_is_no_store_yet(project: Project, screen: Screen) -> None:
    kelp(project)
    screen("plan", name="first")
    assert not project.store.exists()


@pytest.mark.req("R55", "R107")
def test_from_nothing_to_do_to_one_input_and_forced(project: Project, screen: Screen) -> None:
    kelp(project, count={"reuse": "content"})
    project.run("--yes")
    screen("plan", name="nothing")
    project.write("notes/tides.txt", "tides pull twice a day\n")
    screen("plan", name="input")
    screen("plan", "-v", name="verbose")
    screen("plan", "-vv", name="digests")
    screen("plan", "--force-node", "clean-storms", name="forced")


@pytest.mark.req("R52", "R53", "R57")
def test_drift_and_a_step_that_left(project: Project, screen: Screen) -> None:
    kelp(project)
    project.run("--yes")
    project.write("report.md", "my own words\n")
    screen("plan", name="edited")
    screen("plan", "--on-drift", "fail", name="edited-fail")
    project.plan({"count": {"shell": "echo 3"}}, name="kelp")
    screen("plan", name="removed")
    screen("run", "--diff-plan", name="diff-plan")


def test_many_steps_share_rows(project: Project, screen: Screen) -> None:
    steps: dict[str, Any] = {"fetch": {"shell": "echo 1", "inputs": ["in.txt"]}}
    for number in range(38):
        steps[f"page-{number:02}"] = {"shell": "echo 1", "needs": ["fetch"]}
    steps["book"] = {"shell": "echo 1", "needs": ["page-00", "page-37"]}
    project.plan(steps)
    project.write("in.txt", "1")
    screen("plan", name="forty")
    project.run("-q")
    project.write("in.txt", "2")
    screen("plan", name="forty-again")


@pytest.mark.req("R104", "R105")
def test_wave_by_wave(project: Project, screen: Screen) -> None:
    words = "Every letter of the notes is made a large one, so that none is overlooked."
    kelp(project, clean_tides={"description": words}, report={"description": "Words, counted."})
    screen("plan", "--waves", name="waves")
    project.run("--yes")
    kelp(project, count={"contract": "counts words"}, publish={"needs": ["report", "count"]})
    screen("plan", "--waves", name="waves-again")


@pytest.mark.req("R104", "R105", "R106")
def test_models_and_their_tiers(project: Project, screen: Screen) -> None:
    project.write(
        "holdfast.toml",
        '[tiers]\nsmall = "ollama:small-one"\nmedium = "ollama:one-of-medium-size"\n'
        'large = "openai:one-that-is-large"\n',
    )
    steps: dict[str, Any] = {
        f"extract-{place}": {"prompt": f"List what {place} sold.", "model": "small"}
        for place in ("de", "nl")
    }
    steps["size"] = {"prompt": "Add it up.", "model": "medium", "needs": list(steps)}
    steps["brief"] = {"prompt": "Write.", "model": {"id": "large", "max_tokens": 800}}
    steps["brief"]["needs"] = ["size"]
    project.plan(steps, name="market")
    screen("plan", name="models")
    screen("plan", "--waves", name="models-waves")


def test_a_saved_preview_that_is_stale(project: Project, screen: Screen) -> None:
    kelp(project)
    project.ok("plan", "-o", "review.plan.json")
    kelp(project, count={"prompt": "count well"})
    screen("run", "review.plan.json", name="stale")
