"""Several accepted artifacts under one key: one more is made on request, none is lost, and one stands."""

from typing import Any

import pytest

from holdfast.testing.server import Asked, Say
from tests.cli.project import Project
from tests.cli.served import served, verdict

pytestmark = pytest.mark.req("R164")

JUDGED = {
    "prompt": "write",
    "model": "fake:m",
    "produces": "brief.md",
    "guards": [{"judge": {"rubric": "is it good?", "min": 0.5, "model": "fake:m"}}],
}


class Author:
    """Writes a new text each time it is asked, and judges each by what `scores` say."""

    def __init__(self, *scores: float) -> None:
        self._scores = scores
        self.written = 0

    def __call__(self, asked: Asked) -> Say:
        if "# RUBRIC" in asked.last:
            return Say(verdict(self._scores[self.written - 1]))
        self.written += 1
        return Say(f"text {self.written}\n")


def listed(project: Project, step: str = "brief") -> list[Any]:
    found: list[Any] = project.ok("show", step, "--samples", "--json").json["samples"]
    return found


def test_the_better_score_stands_and_the_other_is_kept(project: Project) -> None:
    project.plan(
        {
            "brief": JUDGED,
            "page": {"shell": "cat $HOLDFAST_INPUTS/brief", "needs": ["brief"]},
        }
    )
    with served(project, Author(0.9, 0.6, 0.95)):
        assert project.run("--yes").code == 0
        worse = project.run("--yes", "--resample", "brief")
        assert (worse.code, worse.states) == (0, {"brief": "done", "page": "skipped"}), worse.err
        assert "what stands has a better score" in worse.err
        assert (project.root / "brief.md").read_text() == "text 1\n"
        assert project.run("--yes").states == {"brief": "reused", "page": "reused"}
        assert project.run("--yes", "--resample", "brief").code == 0
        assert (project.root / "brief.md").read_text() == "text 3\n"
        later = project.run("--yes")
    assert later.states == {"brief": "reused", "page": "done"}
    found = listed(project)
    assert [(one["score"], one["stands"]) for one in found] == [
        (0.9, False),
        (0.6, False),
        (0.95, True),
    ]
    assert project.shown("page") == b"text 3\n"
    project.ok("verify")
    project.ok("rebuild")
    assert listed(project) == found, "the index follows from the journal"


def test_without_scores_the_newest_stands_until_a_person_chooses(project: Project) -> None:
    project.plan({"brief": {"prompt": "write", "model": "fake:m", "produces": "brief.md"}})
    with served(project, Author()) as server:
        first = project.run("--yes").id
        seen = project.call("plan", "--resample", "brief", "--json").json
        assert seen["steps"]["brief"]["reason"]["code"] == "resampled"
        again = project.run("--yes", "--resample", "brief")
        assert again.codes == {"brief": "resampled"}
        assert (project.root / "brief.md").read_text() == "text 2\n"
        project.ok("accept", "brief", "--from", first, "--because", "it reads better")
        assert project.run("--yes").states == {"brief": "reused"}
        assert len(server.requests) == 2
    assert (project.root / "brief.md").read_text() == "text 1\n"
    assert [one["stands"] for one in listed(project)] == [False, False, True]


def test_what_cannot_be_sampled_together_is_refused(project: Project) -> None:
    project.plan({"a": {"shell": "echo a"}, "b": {"shell": "echo b", "needs": ["a"]}})
    said = project.refused(2, "run", "--resample", "a", "--resample", "b")
    assert "'b' reads 'a'" in said
    assert "contradict" in project.refused(2, "run", "--resample", "a", "-s", "b")
