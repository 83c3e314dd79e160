"""Every command that takes a step takes an item, by its key as it is or as it stands in ids."""

import json
from typing import Any

import pytest

from tests.cli.project import Project
from tests.cli.test_for_each import ITEMS, found_by, search

pytestmark = pytest.mark.req("R182")

ODD = "extract[de 2026/x]"
AS_ID = "extract[de%202026%2Fx]"


def plan(project: Project, **more: Any) -> None:
    steps = found_by(project, *ITEMS, guards=[{"regex": {"pattern": "[0-9]"}}], **more)
    project.plan(steps)


@pytest.mark.parametrize("name", [ODD, AS_ID])
def test_looking_at_an_item(project: Project, name: str) -> None:
    body = project.sh('echo told >&2; echo "[$(cat $HOLDFAST_WITH/n)]"')
    plan(project, shell=body)
    project.run()
    project.ran()
    assert project.shown(name) == b"[2]\n"
    assert "told" in project.ok("logs", name).out
    assert project.ok("guard", name).code == 0
    assert project.ok("why", name).out.startswith(f"{ODD} is reused")
    assert project.ok("show", name, "--json").json
    assert f"~ {ODD}  the step itself" in project.ok("impact", name).out
    assert f"✓ {ODD}  done  needs search" in project.ok("graph", "-s", name).out
    assert project.ok("explain", name).out.startswith(f"{ODD} is reused")
    assert project.ran() == []


def test_a_name_that_fits_two_items_is_refused(project: Project) -> None:
    """The id of one may be spelled like the key of the other."""
    project.plan(
        {
            "e": {
                "for_each": ["a/b", "a%2Fb"],
                "with": {"v": "${{ item }}"},
                "shell": project.sh("cat $HOLDFAST_WITH/v"),
            }
        }
    )
    project.run()
    project.ran()
    for words in (("show",), ("retry",), ("why",), ("run", "--force-node"), ("impact",)):
        told = project.refused(2, *words, "e[a%2Fb]")
        assert "'e[a%2Fb]' names two items" in told
        assert "say 'e[a/b]' or 'e[a%252Fb]'" in told
    assert project.ran() == []
    assert project.shown("e[a/b]") == b"a/b"
    assert project.shown("e[a%252Fb]") == b"a%2Fb"


def test_a_failed_item_is_skipped_by_its_key(project: Project) -> None:
    body = "[ $(cat $HOLDFAST_WITH/n) != 2 ] && echo '[1]'"
    plan(project, shell=project.sh(body))
    assert project.run().code == 1
    project.ok("skip", ODD, "--because", "it is down")
    found = project.status()
    assert found.codes[AS_ID] == "skipped_by_person"
    assert (found.states["extract"], found.states["sum"]) == ("done", "done")
    assert project.ok("verify").code == 0


def test_an_item_is_amended_and_accepted(project: Project) -> None:
    plan(project)
    project.run()
    project.ran()
    project.write("mine.txt", "[22]\n")
    project.ok("amend", ODD, "mine.txt", "--because", "better")
    found = project.run()
    assert found.codes[AS_ID] == "amended"
    assert json.loads(project.shown("sum").decode()[:-1]) == [[1], [22], [3]]
    assert project.ran() == ["sum"]
    assert project.ok("verify").code == 0


def test_runs_are_compared_by_items(project: Project) -> None:
    plan(project)
    project.run()
    search(project, {"id": "de 2026/x", "n": 5}, ITEMS[0], {"id": "it", "n": 1})
    project.run()
    told = project.ok("diff", "@-1", "@").out
    assert "+ extract[it]" in told
    assert "- extract[fr]" in told
    assert f"~ {ODD}: 1 value changed" in told
    told = project.ok("diff", "@-1", "@", "--outputs", "-s", ODD).out
    assert told.endswith(f"  ~ {ODD}: 1 value changed\n      ~ [0]: 2 → 5\n")


def test_a_failed_item_is_replayed(project: Project) -> None:
    body = f"[ $(cat $HOLDFAST_WITH/n) != 2 -o -e {project.gates}/well ] && echo '[1]'"
    plan(project, shell=project.sh(body))
    assert project.run().code == 1
    project.open("well")
    project.ran()
    project.ok("replay")
    assert set(project.status().states.values()) <= {"done", "reused"}
    assert AS_ID in project.ran()


@pytest.mark.parametrize("key", ["..", "%41", "a@1", "a]@b"])
def test_an_item_is_shown_by_a_key_that_could_be_an_id(project: Project, key: str) -> None:
    each = {"for_each": [key, "A"], "with": {"v": "${{ item }}"}, "shell": "cat $HOLDFAST_WITH/v"}
    project.plan({"each": each})
    project.run()
    assert project.shown(f"each[{key}]") == key.encode()
    assert project.shown(f"each[{key}]@1") == key.encode()
    assert project.ok("why", f"each[{key}]").out.startswith(f"each[{key}] is reused")
    assert project.ok("diff", f"each[{key}]@1", f"each[{key}]@1").code == 0


def test_items_that_a_step_finds_are_listed_by_name(project: Project) -> None:
    plan(project)
    project.run()
    assert project.ok("ls", "-s", "extract[fr]").out == "extract[fr]\n"
    assert f"{ODD}\nextract[fr]" in project.ok("ls", "-s", "extract").out
    assert project.ok("ls", "-s", ODD, "--long").out.startswith(f"{ODD}  shell")
    assert project.ok("ls", "-s", "extract", "--json").json["steps"][-1]["id"] == "extract"


def test_a_key_cannot_write_lines_of_its_own(project: Project) -> None:
    forged = "a\n  runs      nothing at all\n✓ send: done\tx"
    spelled = "a\\u{a}  runs      nothing at all\\u{a}✓ send: done\\u{9}x"
    each = {"for_each": [forged, "b"], "shell": "true", "effects": "external", "approve": "always"}
    project.plan({"each": each})
    told = [project.call("run", "--yes"), project.ok("approvals"), project.ok("status")]
    told += [project.ok("plan"), project.ok("graph"), project.ok("ls")]
    for said in told:
        assert f"each[{spelled}]" in said.out + said.err
        assert "✓ send: done" not in [line.strip()[:12] for line in said.out.split("\n")]
        assert "\n  runs      nothing" not in said.out + said.err
