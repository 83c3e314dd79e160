"""What is promised of kept plans: resumed at any wave, only what changed made again, names that hold."""

from typing import Any

import pytest

from bench.own import plans
from holdfast.testing.server import Say
from tests.cli.models import served
from tests.cli.project import Project, kill

WAVES = 4


def _waves(project: Project, held: int) -> None:
    """Two steps in each wave; `b` of one wave waits at a gate, as if it took long."""
    steps: dict[str, Any] = {}
    for wave in range(WAVES):
        needs = {"needs": [f"a{wave - 1}", f"b{wave - 1}"]} if wave else {}
        body = f"{project.gate('go')}; " if wave == held else ""
        steps[f"a{wave}"] = {"shell": project.sh(), **needs}
        steps[f"b{wave}"] = {"shell": project.sh(f"{body}echo b"), **needs}
    project.plan(steps)


@pytest.mark.req("R148", "R88")
@pytest.mark.parametrize("wave", range(WAVES))
def test_a_run_is_resumed_at_any_wave(project: Project, wave: int) -> None:
    """What an earlier wave made stays, of the wave that was cut off only what is missing is made."""
    _waves(project, wave)
    engine = project.begun_by("run", step=f"b{wave}")
    kill(engine)
    project.ran()
    project.open("go")
    resumed = project.resume("--plan-id", "demo")
    assert resumed.data["status"] == "completed"
    again = project.ran()
    late = [f"{name}{number}" for number in range(wave + 1, WAVES) for name in "ab"]
    made = [
        step for step in again if step != f"a{wave}"
    ]  # that one may just have begun, or be noted late
    assert sorted(made) == sorted([f"b{wave}", *late])
    assert project.run().data["totals"]["reused"] == 2 * WAVES


@pytest.mark.req("R149", "R150")
def test_one_change_of_the_typical_plan_saves_more_than_half(project: Project) -> None:
    """The plan that the bench measures: what it saves is foreseen, and then told."""
    with served(project, lambda asked: Say(f"part {asked.number}")):
        project.write("plan.yaml", plans.typical())
        whole = project.run("--yes").data["totals"]
        assert whole["done"] == plans.STEPS
        project.write("plan.yaml", plans.typical("Write it anew."))
        seen = project.ok("plan", "--json").json["totals"]
        assert seen["saved_usd"] > whole["cost_usd"] / 2
        assert seen["saved_ms"] > 0
        assert "Reuses 44 of 50 (88 %), saves ~$" in project.ok("plan").out
        again = project.run("--yes").data["totals"]
    assert (again["done"], again["reused"]) == (6, 44)
    assert again["cost_usd"] < whole["cost_usd"] / 2
    assert again["saved_usd"] > whole["cost_usd"] / 2


@pytest.mark.req("R151")
def test_an_artifact_is_made_again_as_a_whole_and_no_other_with_it(project: Project) -> None:
    project.write("one.txt", "a\nb\n")
    project.write("two.txt", "a\nb\n")
    steps = {
        name: {"shell": project.sh(f"cat {name}.txt"), "inputs": f"{name}.txt"}
        for name in ("one", "two")
    }
    project.plan(steps)
    project.run()
    project.ran()
    project.write("one.txt", "a\nB\n")  # one line of two
    assert project.run().states == {"one": "done", "two": "reused"}
    assert project.ran() == ["one"]
    assert project.shown("one") == b"a\nB\n"


@pytest.mark.req("C2")
def test_digests_are_whole_where_programs_read_and_short_where_people_do(project: Project) -> None:
    project.plan({"a": {"shell": "echo a"}, "b": {"shell": "echo b", "needs": "a"}})
    ran = project.run()
    plan = project.ok("plans", "show", "--json").json["versions"][0]["plan"]
    whole = [plan, ran.data["plan"]["ref"], *ran.refs.values(), *ran.digests.values()]
    assert all(len(str(digest)) == 64 and int(str(digest), 16) for digest in whole)
    assert f"plan {plan[:12]} " in project.ok("plan").out
    made = str(ran.digests["a"])
    assert project.shown(made) == project.shown(made[:12]) == b"a\n"
    assert f"plan {plan[:12]}" in project.ok("plans", "diff", "demo", plan[:8], "@").out
    assert project.ok("status", ran.id[:6], "--json").json["run"] == ran.id
    assert "there is no" in project.refused(2, "show", "zzzzzzzz")


@pytest.mark.req("C3")
def test_everything_shown_comes_from_journal_and_contents(project: Project) -> None:
    """What is made from them can be thrown away: it is made again, and says the same."""
    project.plan({"a": {"shell": "echo a > a.txt", "produces": "a.txt"}})
    project.run()
    shown = [
        project.ok(*words, "--json").json
        for words in (("plans", "list"), ("plans", "show"), ("history",), ("plan",))
    ]
    project.ok("rebuild")
    project.ok("verify")
    assert shown == [
        project.ok(*words, "--json").json
        for words in (("plans", "list"), ("plans", "show"), ("history",), ("plan",))
    ]
    assert {path.name for path in project.root.iterdir()} == {".holdfast", "a.txt", "plan.yaml"}


@pytest.mark.req("C14")
def test_another_structure_is_another_plan_and_no_reason_to_run_again(project: Project) -> None:
    steps = {"a": {"shell": project.sh("echo a")}, "b": {"shell": project.sh(), "needs": "a"}}
    project.plan(steps)
    first = project.run()
    project.ran()
    project.plan({**steps, "c": {"shell": project.sh(), "needs": "a"}})
    second = project.run()
    assert second.data["plan"]["ref"] != first.data["plan"]["ref"]
    assert {s: second.refs[s] for s in first.refs} == first.refs
    assert project.ran() == ["c"]
    project.plan({**steps, "c": {"shell": project.sh("echo other"), "needs": "a"}})
    third = project.run()
    assert third.data["plan"]["ref"] == second.data["plan"]["ref"], "a command is no structure"
    assert third.refs["c"] != second.refs["c"]


@pytest.mark.req("C33", "R97")
def test_all_or_one_is_forced_and_what_is_below_follows_by_content(project: Project) -> None:
    project.plan(
        {
            "a": {"shell": project.sh("cat a.in"), "inputs": "a.in"},
            "b": {"shell": project.sh('cat "$HOLDFAST_INPUTS/a"'), "needs": "a"},
            "c": {"shell": project.sh()},
        }
    )
    project.write("a.in", "1\n")
    project.run()
    project.ran()
    assert project.run("--force").states == dict.fromkeys("abc", "done")
    assert project.ran() == ["a", "b", "c"]
    one = project.run("--force-node", "a")
    assert one.states == {"a": "done", "b": "reused", "c": "reused"}, "a made the same again"
    assert one.codes["a"] == "forced"
    assert project.ran() == ["a"]
    random = {"shell": project.sh("od -An -N8 -tx1 /dev/urandom")}
    project.plan({"a": random, "b": {"shell": project.sh(), "needs": "a"}})
    project.run()
    project.ran()
    assert project.run("--force-node", "a").codes == {"a": "forced", "b": "upstream_changed"}
    assert project.ran() == ["a", "b"]


@pytest.mark.req("C37", "R107")
def test_a_preview_has_three_answers_and_names_no_ref_that_nobody_can_know(
    project: Project,
) -> None:
    steps = {
        "a": {"shell": project.sh("cat a.in"), "inputs": "a.in"},
        "b": {"shell": project.sh(), "needs": "a"},
        "c": {"shell": project.sh()},
    }
    project.write("a.in", "1\n")
    project.plan(steps)
    project.run()
    project.write("a.in", "2\n")
    for words, expected in (
        ((), {"a": "run", "b": "run", "c": "reuse"}),
        (("--cutoff",), {"a": "run", "b": "maybe", "c": "reuse"}),
    ):
        seen = project.ok("plan", "--json", *words).json
        assert {s: one["decision"] for s, one in seen["steps"].items()} == expected
        assert len(seen["details"]["a"]["config_ref"]) == 64
        assert seen["details"]["b"]["config_ref"] is None
        assert len(seen["details"]["c"]["config_ref"]) == 64
    text = project.ok("plan", "-vv", "--cutoff").out
    below = text[text.index("? b") : text.index("Skip (1): c")]
    assert "only if a changes" in below
    assert "config ref" not in below


@pytest.mark.req("R153", "R96", "R110")
def test_a_machine_runs_what_changed_and_learns_what_it_was(project: Project) -> None:
    """`run --incremental` where nobody is there: no question, one object, exit codes, parents of versions."""
    project.plan({"a": {"shell": "echo 1"}, "b": {"shell": "echo b", "needs": "a"}})
    assert project.call("plan", "--detailed-exitcode").code == 10
    first = project.run("--incremental")
    assert first.data["totals"]["done"] == 2
    assert project.call("plan", "--detailed-exitcode").code == 0
    project.plan({"a": {"shell": "echo 2"}, "b": {"shell": "echo b", "needs": "a"}})
    assert project.call("plan", "--detailed-exitcode").code == 10
    second = project.run("-i")
    assert second.codes == {"a": "command_changed", "b": "upstream_changed"}
    versions = project.ok("plans", "show", "--json").json["versions"]
    assert [one["parent"] for one in versions] == [None, versions[0]["plan"]]
