"""The documents' own examples, each run a process of its own: what runs, what stands, and why."""

import pytest

from tests.cli.project import Project

ALL = ["g_impl", "g_review", "g_test"]


def three_steps(project: Project, prompt: str = "write the code") -> None:
    """g_test → g_impl → g_review; what each makes depends on what it is given."""
    tell = 'cat "$HOLDFAST_PROMPT" "$HOLDFAST_INPUTS"/*'
    project.plan(
        {
            "g_test": {"shell": project.sh("echo the test")},
            "g_impl": {"shell": project.sh(tell), "needs": ["g_test"], "prompt": prompt},
            "g_review": {"shell": project.sh('cat "$HOLDFAST_INPUTS"/*'), "needs": ["g_impl"]},
        }
    )


@pytest.mark.req("R40", "R42", "R43", "R44", "R45", "R47", "R48", "R50", "E1", "E5")
def test_four_runs_execute_what_the_table_says_and_nothing_else(project: Project) -> None:
    three_steps(project)
    first = project.run()
    assert (first.code, first.data["status"]) == (0, "completed")
    assert project.ran() == ALL
    assert first.states == dict.fromkeys(ALL, "done")
    assert first.codes == dict.fromkeys(ALL, "never_ran")

    second = project.run()
    assert project.ran() == []
    assert second.states == dict.fromkeys(ALL, "reused")
    assert second.codes == dict.fromkeys(ALL, "unchanged")
    assert second.refs == first.refs
    assert second.digests == first.digests

    three_steps(project, prompt="write better code")
    third = project.run()
    assert project.ran() == ["g_impl", "g_review"]
    assert third.states == {"g_test": "reused", "g_impl": "done", "g_review": "done"}
    assert third.codes == {
        "g_test": "unchanged",
        "g_impl": "prompt_changed",
        "g_review": "upstream_changed",
    }
    assert third.because("g_review") == ["g_impl"]
    assert third.refs["g_test"] == first.refs["g_test"]
    assert third.refs["g_impl"] != first.refs["g_impl"]
    assert third.refs["g_review"] != first.refs["g_review"]

    project.ok("amend", "g_test", "-", "--because", "the test was wrong", stdin=b"my own test\n")
    fourth = project.run()
    assert project.ran() == ["g_impl", "g_review"]
    assert fourth.states == {"g_test": "reused", "g_impl": "done", "g_review": "done"}
    assert fourth.codes == {
        "g_test": "amended",
        "g_impl": "upstream_changed",
        "g_review": "upstream_changed",
    }
    assert fourth.refs["g_test"] == first.refs["g_test"], "its configuration did not change"
    assert fourth.refs["g_impl"] not in {first.refs["g_impl"], third.refs["g_impl"]}
    assert fourth.refs["g_review"] not in {first.refs["g_review"], third.refs["g_review"]}
    assert fourth.digests["g_test"] != first.digests["g_test"], "the latest accepted content wins"
    assert "my own test" in project.shown("g_review").decode()

    assert project.run().states == dict.fromkeys(ALL, "reused")
    assert project.ran() == []


def own(needs: list[str]) -> str:
    return " ".join(["/dev/null", *(f'"$HOLDFAST_INPUTS"/{need}' for need in needs)])


def diamond(project: Project, names: list[str], texts: dict[str, str]) -> None:
    """config → add → coder, config → bdd → coder, under whatever names."""
    config, add, bdd, coder = names
    needs: dict[str, list[str]] = {config: [], add: [config], bdd: [config], coder: [add, bdd]}
    project.plan(
        {
            name: {
                "shell": project.sh(f"echo {texts.get(name, name)}; cat {own(needs[name])}"),
                "needs": needs[name],
            }
            for name in names
        }
    )


@pytest.mark.req("R45", "R46", "E4")
@pytest.mark.parametrize(
    "names",
    [["g_config", "g_add", "g_bdd", "g_coder"], ["z", "m", "k", "a"]],
    ids=["as documented", "against the alphabet"],
)
def test_a_change_reaches_its_own_cone_and_no_further(project: Project, names: list[str]) -> None:
    config, add, bdd, coder = names
    diamond(project, names, {})
    first = project.run()
    assert project.ran() == sorted(names)

    diamond(project, names, {config: "changed"})
    case_1 = project.run()
    assert project.ran() == sorted(names)
    assert case_1.codes == {
        config: "command_changed",
        add: "upstream_changed",
        bdd: "upstream_changed",
        coder: "upstream_changed",
    }
    assert case_1.because(coder) == sorted([add, bdd])
    assert not set(case_1.refs.values()) & set(first.refs.values())

    diamond(project, names, {config: "changed", add: "changed too"})
    case_2 = project.run()
    assert project.ran() == sorted([add, coder])
    assert case_2.states == {config: "reused", add: "done", bdd: "reused", coder: "done"}
    assert case_2.because(coder) == [add]


@pytest.mark.req("R9")
def test_a_prompt_edit_leaves_the_structure_digest_and_a_need_changes_it(project: Project) -> None:
    three_steps(project)
    first = project.run()
    three_steps(project, prompt="other")
    prompt = project.run()
    assert prompt.data["plan"]["ref"] == first.data["plan"]["ref"]
    assert prompt.refs["g_impl"] != first.refs["g_impl"]
    project.plan({"g_test": {"run": ["true"]}, "g_impl": {"run": ["true"]}})
    assert project.run().data["plan"]["ref"] != first.data["plan"]["ref"]


@pytest.mark.req("R43", "R44", "R170")
def test_forcing_runs_what_is_named_or_everything(project: Project) -> None:
    three_steps(project)
    first = project.run()
    project.ran()

    every = project.run("--force")
    assert project.ran() == ALL
    assert every.codes == dict.fromkeys(ALL, "forced")
    assert every.refs == first.refs

    one = project.run("--force-node", "g_test")
    assert project.ran() == ["g_test"], "the same content came out, so nothing below changed"
    assert one.codes == {"g_test": "forced", "g_impl": "unchanged", "g_review": "unchanged"}
    assert "g_tst" in project.refused(2, "run", "--force-node", "g_tst")
    assert "contradict" in project.refused(2, "run", "--force", "--incremental")


def sorter(project: Project, reuse: str = "merkle", comment: str = "") -> None:
    """b is the same whatever a's comment says; c reads b."""
    project.plan(
        {
            "a": {"shell": project.sh(f"echo 1 {comment}")},
            "b": {"shell": project.sh("wc -l < $HOLDFAST_INPUTS/a"), "needs": ["a"]},
            "c": {
                "shell": project.sh("cat $HOLDFAST_INPUTS/b"),
                "needs": ["b"],
                "reuse": reuse,
            },
        }
    )


@pytest.mark.req("R58", "E9", "R170")
def test_cutoff_stops_where_the_content_is_the_same_and_says_so(project: Project) -> None:
    sorter(project)
    first = project.run()
    sorter(project, comment="# other")
    project.ran()
    cut = project.run("--cutoff")
    assert project.ran() == ["a"], "a's output is the same bytes although its line changed"
    assert cut.states == {"a": "done", "b": "reused", "c": "reused"}
    assert cut.codes["b"] == "unchanged_content"
    assert cut.refs["b"] != first.refs["b"]

    third = project.run()
    assert project.ran() == [], "what was cut off is kept under the new ref"
    assert third.refs == cut.refs
    assert third.codes == dict.fromkeys("abc", "unchanged")
    assert project.call("verify").code == 0


@pytest.mark.req("R58")
def test_a_step_may_ask_for_reuse_by_content_itself(project: Project) -> None:
    sorter(project, reuse="content")
    project.run()
    sorter(project, reuse="content", comment="# other")
    project.ran()
    second = project.run()
    assert project.ran() == ["a", "b"], "b follows the default rule, c does not"
    assert second.codes["b"] == "upstream_changed"
    assert second.codes["c"] == "unchanged_content"
    assert project.call("rebuild", "--json").json["changed"] is False
