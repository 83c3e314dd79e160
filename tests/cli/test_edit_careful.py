"""edit: what is cut off, unclear or mistaken for something else is refused; what is not named stays."""

import json

import pytest

from tests.cli.project import Project
from tests.cli.test_edit import digest, edit, files, told


@pytest.fixture
def ws(project: Project) -> Project:
    project.loaded = ("holdfast.cli.edit",)
    project.write("f.txt", "one\ntwo\nthree\n")
    return project


def refused(ws: Project, text: str, why: str, *words: str) -> str:
    """The one refusal of an edit, as message and guidance; nothing was written."""
    before = files(ws)
    answer = edit(ws, text, "--json", *words)
    assert answer.code == 1, answer.out
    assert files(ws) == before
    [refusal] = told(answer)["refusals"]
    assert refusal["why"] == why
    return f"{refusal['message']}; {refusal['guidance']}"


HEAD = "--- a/f.txt\n+++ b/f.txt\n"


@pytest.mark.req("R139")
@pytest.mark.parametrize(
    "text",
    [
        "*** Begin Patch\n*** Update File: f.txt\n@@\n-two\n+TWO\n*** Add File: n.txt\n+li",
        HEAD + "@@ -1,3 +1,3 @@\n one\n-two\n",
        HEAD + "@@ -1 +1 @@\n-one\n",
        HEAD + "@@ -1 +1 @@\n-one\n+ONE\n@@ -3,1 +3,2 @@\n three\n",
    ],
)
def test_an_edit_that_is_cut_off_is_refused(ws: Project, text: str) -> None:
    assert "cut off" in refused(ws, text, "malformed")


@pytest.mark.req("R139")
@pytest.mark.parametrize(
    "text",
    [
        "*** Update File: f.txt\n@@\n-two\n+TWO\n",
        HEAD + "@@ -1,9 +1,1 @@\n one\n-two\n+TWO\n",
        f"```diff\n{HEAD}@@ -1,9 +1,9 @@\n one\n-two\n+TWO\n```\n",
    ],
)
def test_counts_may_be_wrong_where_nothing_is_missing(ws: Project, text: str) -> None:
    assert edit(ws, text).code == 0
    assert ws.read("f.txt") == "one\nTWO\nthree\n"
