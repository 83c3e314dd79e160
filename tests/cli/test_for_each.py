"""A step runs once for each item of a list; what it makes is gathered, and only new items run."""

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.formats.planfile import load_plan
from holdfast.formats.planout import plan_yaml
from holdfast.model.walls import WALLS
from tests.cli.project import Project, until

pytestmark = pytest.mark.req("R182")

ITEMS: list[Any] = [{"id": "nl", "n": 1}, {"id": "de 2026/x", "n": 2}, {"id": "fr", "n": 3}]


def each(project: Project, items: Any, **more: Any) -> dict[str, Any]:
    return {
        "for_each": items,
        "key": "${{ item.id }}",
        "with": {"n": "${{ item.n }}"},
        "shell": project.sh('echo "[$(cat $HOLDFAST_WITH/n)]"'),
        **more,
    }


def total(project: Project) -> dict[str, Any]:
    return {
        "needs": ["extract"],
        "with": {"found": "${{ steps.extract.output }}", "last": "${{ steps.extract.output.2.0 }}"},
        "shell": project.sh("cat $HOLDFAST_WITH/found $HOLDFAST_WITH/last"),
    }


def test_each_item_is_a_step_and_what_they_make_is_gathered(project: Project) -> None:
    read = "cd $HOLDFAST_INPUTS/extract; cat index.json; cat nl"
    steps = {"extract": each(project, ITEMS), "sum": total(project)}
    project.plan({**steps, "files": {"needs": ["extract"], "shell": project.sh(read)}})
    found = project.run()
    assert found.code == 0
    assert found.states == dict.fromkeys(
        ["extract[nl]", "extract[de%202026%2Fx]", "extract[fr]", "extract", "sum", "files"], "done"
    )
    assert project.shown("sum").decode() == "[[1], [2], [3]]3"
    index, end = json.JSONDecoder().raw_decode(project.shown("files").decode())
    assert [item["key"] for item in index] == ["nl", "de 2026/x", "fr"]
    assert [item["step"] for item in index] == [
        "extract[nl]",
        "extract[de%202026%2Fx]",
        "extract[fr]",
    ]
    assert index[0]["digest"] == found.digests["extract[nl]"]
    assert project.shown("files").decode()[end:].strip() == "[1]"
    assert project.ok("verify").code == 0
    project.ran()
    again = project.run()
    assert set(again.states.values()) == {"reused"}
    assert project.ran() == []


def test_only_what_is_new_or_changed_runs(project: Project) -> None:
    project.plan({"extract": each(project, ITEMS), "sum": total(project)})
    assert project.run().code == 0
    project.ran()
    changed = [ITEMS[0], {"id": "fr", "n": 4}, {"id": "it", "n": 5}, ITEMS[1]]
    project.plan({"extract": each(project, changed), "sum": total(project)})
    found = project.run()
    assert project.ran() == ["extract[fr]", "extract[it]", "sum"]
    assert found.codes["extract[fr]"] == "parameters_changed"
    assert found.codes["extract"] == "dependencies_changed"
    assert project.shown("sum").decode() == "[[1], [4], [5], [2]]5"


def test_another_order_of_the_same_items_is_gathered_anew(project: Project) -> None:
    project.plan({"extract": each(project, ITEMS), "sum": total(project)})
    project.run()
    project.ran()
    project.plan({"extract": each(project, ITEMS[::-1]), "sum": total(project)})
    project.run()
    assert project.ran() == ["sum"]
    assert project.shown("sum").decode() == "[[3], [2], [1]]1"


def test_items_of_a_param_and_of_files(project: Project) -> None:
    for name in ("a", "b", "[c]*"):
        project.write(f"docs/{name}.md", f"{name} text")
    read = {"shell": project.sh('cat "$(cat $HOLDFAST_WITH/doc)"'), "with": {"doc": "${{ item }}"}}
    params = {
        "sources": {"type": "files", "default": "docs/*.md"},
        "who": {"type": "list", "default": ["x"]},
    }
    project.plan(
        {
            "read": {"for_each": "${{ params.sources }}", **read},
            "ask": {"for_each": "${{ params.who }}", "shell": project.sh()},
            "same": {"for_each": {"files": "docs/a*"}, **read},
        },
        params=params,
    )
    found = project.run()
    assert found.code == 0
    assert "read[docs%2F%5Bc%5D%2A.md]" in found.states
    assert project.shown("read[docs/[c]*.md]").decode() == "[c]* text"
    project.ran()
    project.write("docs/b.md", "other")
    project.write("docs/d.md", "new")
    assert project.run().codes["read[docs%2Fb.md]"] == "input_changed"
    assert project.ran() == ["read[docs%2Fb.md]", "read[docs%2Fd.md]"]
    found = project.run("--param", 'who=["y", "z"]')
    assert [s for s in found.states if s.startswith("ask[")] == ["ask[y]", "ask[z]"]
    assert "the param 'who' is a list" in project.call("run", "--param", "who=y").err


def test_an_item_that_fails_fails_the_step_that_gathers(project: Project) -> None:
    body = f"[ $(cat $HOLDFAST_WITH/n) != 2 -o -e {project.gates}/well ] && echo fine"
    project.plan(
        {
            "extract": each(project, ITEMS, shell=project.sh(body)),
            "sum": {"needs": ["extract"], "shell": ":"},
        }
    )
    found = project.run()
    assert found.code == 1
    assert found.states["extract[de%202026%2Fx]"] == "failed"
    assert found.states["extract[nl]"] == "done"
    assert (found.states["extract"], found.states["sum"]) == ("skipped", "skipped")
    project.open("well")
    project.ok("retry", "extract[de 2026/x]")
    assert project.status().states["sum"] == "done"


def test_commands_take_items_by_their_keys(project: Project) -> None:
    project.plan({"extract": each(project, ITEMS), "sum": total(project)})
    project.run()
    project.ran()
    why = project.ok("why", "extract[de 2026/x]").out
    assert why.startswith("extract[de 2026/x] is reused")
    assert project.ok("why", "extract[de%202026%2Fx]").out.startswith(why.splitlines()[0])
    assert "extract[de 2026/x] " in project.ok("plan", "-v").out
    project.run("--force", "-s", "extract[de*]")
    assert project.ran() == ["extract[de%202026%2Fx]"]
    project.run("--force", "-s", "extract[*],extract[fr] extract[de 2026/x]")
    assert project.ran() == ["extract[de%202026%2Fx]", "extract[fr]"]
    project.run("--force", "-s", "extract")
    assert project.ran() == ["extract[de%202026%2Fx]", "extract[fr]", "extract[nl]"]
    project.ok("retry", "extract[nl]")
    assert project.ran() == ["extract[nl]"]
    assert "no step 'extract[it]'" in project.call("why", "extract[it]").err


def test_many_items_share_a_row(project: Project) -> None:
    items = [{"id": f"k{n}", "n": n} for n in range(40)]
    project.plan({"extract": each(project, items)})
    assert "+ extract[…] ×40  40 first time" in project.ok("plan").out
    project.run()
    items[3]["n"] = 100
    items += [{"id": f"k{n}", "n": n} for n in range(40, 75)]
    project.plan({"extract": each(project, items)})
    told = project.ok("plan").out
    assert "+ extract[…] ×75  35 first time, 1 again, 39 reused" in told


@pytest.mark.parametrize(
    ("items", "key", "words"),
    [
        (["a", "b", "a"], "${{ item }}", "items 0 and 2 of 'extract' have the same key 'a'"),
        ([{"id": {}}], "${{ item.id }}", "the key of item 0 of 'extract' is a mapping"),
        ([{"n": 1}], "${{ item.id }}", "item 0 of 'extract' has no 'id'"),
        (["x" * 200], "${{ item }}", "the key of item 0 of 'extract' is too long for an id"),
        (list(range(WALLS.items + 1)), "${{ item }}", "has 20,001 items, and 20,000 are the most"),
    ],
)
def test_items_that_cannot_be_told_apart_are_refused(
    project: Project, items: Any, key: str, words: str
) -> None:
    project.plan({"extract": {"for_each": items, "key": key, "shell": ":"}})
    refused = project.call("check")
    assert refused.code == 2
    assert words in refused.out + refused.err
    assert refused.out.count("error[") + refused.err.count("error[") == 1


def test_a_plan_with_items_is_written_as_it_was_read(tmp_path: Path) -> None:
    text = """\
name: demo
steps:
  search: {shell: echo}
  setup: {shell: echo}
  one:
    for_each: [{id: "$${{ x"}, {id: 2}]
    key: ${{ item.id }}
    with: {v: "${{ item }} $${{"}
    shell: echo
  two: {for_each: "${{ steps.search.output.hits }}", needs: [setup], shell: echo}
  three: {needs: [one, two], shell: echo}
"""
    file = tmp_path / "plan.yaml"
    file.write_text(text)
    plan = load_plan(str(file)).plan
    file.write_text(plan_yaml(plan))
    assert load_plan(str(file)).plan == plan


# --- items that a step finds -------------------------------------------------------------------------------


def search(project: Project, *items: Any) -> dict[str, Any]:
    project.write("hits.json", json.dumps({"hits": items}))
    return {"shell": project.sh("cat hits.json"), "inputs": ["hits.json"]}


def found_by(project: Project, *items: Any, **more: Any) -> dict[str, Any]:
    each_of = each(project, "${{ steps.search.output.hits }}", **more)
    return {"search": search(project, *items), "extract": each_of, "sum": total(project)}


def test_items_are_found_by_a_step_and_only_new_ones_run(project: Project) -> None:
    project.plan(found_by(project, *ITEMS))
    assert "extract[…]  as many as search finds" in project.ok("plan").out
    first = project.run()
    assert first.code == 0
    assert project.shown("sum").decode() == "[[1], [2], [3]]3"
    project.ran()
    assert "Nothing to do: all 6 steps stand." in project.ok("plan").out
    for _ in range(3):  # looked at step by step, then known without that
        again = project.run()
        assert set(again.states.values()) == {"reused"}
        assert again.refs == first.refs
    assert project.ran() == []
    search(project, ITEMS[1], {"id": "it", "n": 7}, ITEMS[0])
    told = project.ok("plan", "--json").json["steps"]
    assert told["extract"]["decision"] == "maybe"
    assert told["extract"]["reason"] == {
        "code": "items_open",
        "because": ["search"],
        "text": "as many as search finds",
    }
    grown = project.run()
    assert project.ran() == ["extract[it]", "search", "sum"]
    assert grown.states["extract[nl]"] == "reused"
    assert "extract[fr]" not in grown.states
    assert project.shown("sum").decode() == "[[2], [7], [1]]1"
    assert project.ok("verify").code == 0


def test_an_edited_step_changes_all_its_items(project: Project) -> None:
    project.plan(found_by(project, *ITEMS))
    project.run()
    project.ran()
    steps = found_by(project, *ITEMS, shell=project.sh("echo '[9]'"))
    project.plan(steps)
    told = project.ok("plan").out
    assert " ~ extract[de 2026/x]  its command changed: shell" in told
    project.run()
    assert project.ran() == ["extract[de%202026%2Fx]", "extract[fr]", "extract[nl]", "sum"]


def test_commands_take_items_that_a_step_finds(project: Project) -> None:
    project.plan(found_by(project, *ITEMS))
    project.run()
    project.ran()
    assert project.ok("why", "extract[de 2026/x]").out.startswith("extract[de 2026/x] is reused")
    project.run("--force", "-s", "extract[nl]")
    assert project.ran() == ["extract[nl]"]
    project.run("--force", "-s", "extract")
    assert project.ran() == ["extract[de%202026%2Fx]", "extract[fr]", "extract[nl]"]
    project.ok("retry", "extract[fr]")
    assert project.ran() == ["extract[fr]"]
    project.ok("fork", "@", "--from", "extract[nl]", "--as", "other")
    assert project.ran() == ["extract[nl]", "sum"]
    project.ok("fork", "@", "--from", "search", "--as", "third")
    everything = ["extract[de%202026%2Fx]", "extract[fr]", "extract[nl]", "search", "sum"]
    assert project.ran() == everything
    assert project.ok("verify").code == 0


def test_no_items_are_gathered_as_an_empty_list(project: Project) -> None:
    steps = found_by(project)
    steps["sum"]["with"] = {"found": "${{ steps.extract.output }}", "last": "!"}
    project.plan(steps)
    assert project.run().states == {"search": "done", "extract": "done", "sum": "done"}
    assert project.shown("sum").decode() == "[]!"
    search(project, ITEMS[0])
    assert project.run().states["extract[nl]"] == "done"
    search(project)
    assert project.run().states == {"search": "reused", "extract": "reused", "sum": "reused"}


def test_items_of_items(project: Project) -> None:
    steps = found_by(project, *ITEMS)
    more = {
        "for_each": "${{ steps.extract.output }}",
        "key": "k${{ item.0 }}",
        "shell": project.sh(),
    }
    project.plan({**steps, "more": more, "last": {"needs": ["more"], "shell": ":"}})
    found = project.run()
    assert {s for s in found.states if s.startswith("more[")} == {
        "more[k1]",
        "more[k2]",
        "more[k3]",
    }
    assert set(project.run().states.values()) == {"reused"}
    assert "all 11 steps stand" in project.ok("plan").out
    assert project.ok("verify").code == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"hits": 3}', "'for_each' of 'extract' is a number, not a list"),
        ("{}", "has no 'hits'"),
        ("no json", "is not JSON and has no 'hits'; it begins with 'no json'"),
        ('{"hits": [{"id": 1}, {"id": "1"}]}', "items 0 and 1 of 'extract' have the same key '1'"),
        ('{"hits": [{"id": 1}]}', "item '1' of 'extract' has no 'n'"),
        ('{"hits": [{"id": "\\ud800", "n": 1}]}', "holds a lone surrogate"),
        ('{"hits": [{"id": 1, "n": 1e999}]}', "is not JSON (1e999 is too large for a number)"),
        (f'{{"hits": {"[" * 900}{"]" * 900}}}', "is not JSON (nested too deeply)"),
    ],
)
def test_a_list_that_is_none_fails_the_step_with_words(
    project: Project, text: str, words: str
) -> None:
    steps = found_by(project)
    project.plan(steps)
    project.write("hits.json", text)
    found = project.run()
    assert found.code == 1
    assert found.states == {"search": "done", "extract": "failed", "sum": "skipped"}
    assert words in found.because("extract")[0]
    told = project.ok("plan", "--json").json["steps"]
    assert told["extract"]["reason"]["code"] == "command_failed"
    assert told["sum"]["reason"]["code"] == "dependency_failed"


def test_a_killed_engine_s_items_are_gone_on_with(project: Project) -> None:
    held = f"[ $(cat $HOLDFAST_WITH/n) != 3 ] || {{ {project.gate('go')}; }}; echo '[0]'"
    project.plan(found_by(project, *ITEMS, shell=project.sh(held)))
    engine = project.start("run", "-j", "3")
    until(lambda: "extract[fr]" in project.begun(), "the last item begins")
    engine.kill()
    engine.wait()
    project.open("go")
    found = project.resume()
    assert found.code == 0
    assert project.begun().count("search") == 1
    assert project.begun().count("extract[fr]") == 2
    assert project.ok("verify").code == 0


def test_a_second_engine_joins_and_finds_the_same_items(project: Project) -> None:
    project.plan(found_by(project, *ITEMS))
    assert project.run("--join").code == 0
    assert set(project.run("--join").states.values()) == {"reused"}
    assert project.ok("verify").code == 0


def test_what_is_kept_of_items_can_be_cleaned_up(project: Project) -> None:
    project.plan(found_by(project, *ITEMS))
    project.run()
    project.run()
    project.ok("gc", "--keep-runs", "1", "--yes")
    project.ran()
    assert set(project.run().states.values()) == {"reused"}
    assert project.shown("extract[nl]").decode() == "[1]\n"
    assert project.ok("verify").code == 0


def test_a_step_that_is_added_has_items_too(project: Project) -> None:
    more = {
        "each": {"for_each": "${{ steps.scan.output }}", "shell": project.sh()},
        "known": {"for_each": ["p", "q"], "shell": project.sh()},
        "end": {"needs": ["each", "known"], "shell": project.sh()},
    }
    project.write("more.json", json.dumps({"steps": more}))
    body = "cp more.json $HOLDFAST_ADD/; cat list"
    project.write("list", '["a", "b"]')
    project.plan({"scan": {"shell": project.sh(body), "inputs": ["more.json", "list"]}})
    first = project.run()
    assert first.code == 0
    items = {"each[a]", "each[b]", "known[p]", "known[q]"}
    assert first.states.keys() == {"scan", "each", "known", "end", *items}
    project.ran()
    assert "Nothing to do: all 8 steps stand." in project.ok("plan").out
    assert set(project.run().states.values()) == {"reused"}
    assert project.ran() == []
    project.write("list", '["b", "c"]')
    found = project.run()
    assert project.ran() == ["each[c]", "end", "scan"]
    assert "each[a]" not in found.states
    assert "Nothing to do: all 8 steps stand." in project.ok("plan").out
    assert project.ok("verify").code == 0


def test_a_person_adds_a_step_with_items(project: Project) -> None:
    body = project.sh(f"{project.gate('go')}; cat list")
    project.write("list", '["a"]')
    project.plan({"scan": {"shell": body, "inputs": ["list"]}})
    engine = project.start("run")
    until(lambda: project.begun() == ["scan"], "it scans")
    each_of = {"for_each": "${{ steps.scan.output }}", "shell": project.sh()}
    project.write("more.yaml", json.dumps({"steps": {"each": each_of}}))
    project.ok("add", "more.yaml")
    project.open("go")
    assert engine.wait() == 0
    assert project.status().states == dict.fromkeys(["scan", "each", "each[a]"], "done")
    assert project.ok("verify").code == 0


@pytest.mark.parametrize("where", ["need", "step"])
def test_without_a_list_there_is_nothing_to_go_on_with(project: Project, where: str) -> None:
    src: dict[str, Any] = {"shell": f"[ -e {project.gates}/well ] && echo '[1]'"}
    it: dict[str, Any] = {"for_each": "${{ steps.src.output }}", "shell": "echo hi"}
    if where == "need":
        it["needs"] = [{"step": "src", "optional": True}]
    else:
        src["optional"] = True
    project.plan({"src": src, "it": it, "below": {"needs": ["it"], "shell": project.sh()}})
    found = project.run("--yes")
    assert (found.code, found.states["it"], found.states["below"]) == (1, "skipped", "skipped")
    assert (found.codes["it"], found.because("it")) == ("dependency_failed", ["src"])
    assert project.resume("--yes").states["it"] == "skipped"
    project.open("well")
    assert project.retry("src").states["it[1]"] == "done"
    assert project.ok("verify").code == 0


def test_a_condition_leaves_out_a_list_and_all_that_stands_on_it(project: Project) -> None:
    project.plan(
        {
            "ask": {"shell": "echo no"},
            "src": {"shell": "echo '[1]'", "when": {"steps.ask.output": {"equals": "yes"}}},
            "it": {
                "for_each": "${{ steps.src.output }}",
                "needs": [{"step": "src", "optional": True}],
                "shell": "echo hi",
            },
            "below": {"needs": ["it"], "shell": project.sh()},
        }
    )
    found = project.run("--yes")
    assert (found.code, found.codes["it"]) == (0, "condition_above")
    assert found.codes["below"] == "condition_above"
    told = project.ok("plan", "--json").json["steps"]
    assert told["it"]["reason"]["code"] == "condition_above"


def test_a_list_that_a_person_skipped_has_no_items(project: Project) -> None:
    project.plan(
        {
            "src": {"shell": f"[ -e {project.gates}/well ] && echo '[1, 2]'"},
            "it": {"for_each": "${{ steps.src.output }}", "shell": "echo hi"},
            "below": {"with": {"all": "${{ steps.it.output }}"}, "shell": "cat $HOLDFAST_WITH/all"},
        }
    )
    project.run("--yes")
    assert project.call("skip", "src", "--because", "down", "--yes").code == 0
    assert project.shown("below") == b"[]"
    project.open("well")
    found = project.retry("src")
    assert (found.code, found.states["it[2]"]) == (0, "done")
    assert project.shown("below") == b'["hi\\n", "hi\\n"]'
    assert project.ok("verify").code == 0


def test_a_list_that_changed_when_it_was_sent_back_asks_for_another_run(project: Project) -> None:
    flag = project.gates / "flag"
    project.plan(
        {
            "src": {"shell": f"[ -e {flag} ] && echo '[1, 2, 3]' || echo '[1, 2]'"},
            "it": {"for_each": "${{ steps.src.output }}", "shell": "echo hi"},
            "c": {
                "shell": f"[ -e {flag} ] || {{ touch {flag}; exit 1; }}",
                "needs": ["it"],
                "escalate": ["src"],
            },
        }
    )
    answer = project.call("run", "--yes")
    assert answer.code == 1
    assert "it: its items were made from another list than src has now" in answer.out
    assert "next: holdfast run " in answer.out
    assert "holdfast retry" not in answer.out
    found = project.run("--yes")
    assert (found.code, found.states["it[3]"], found.states["c"]) == (0, "done", "done")


def test_a_list_that_is_no_json_is_not_told_to_be_what_it_is(project: Project) -> None:
    each = {"for_each": "${{ steps.s.output }}", "shell": "true"}
    project.plan({"s": {"shell": "echo one two"}, "each": each})
    assert project.run().code == 1
    told = project.ok("status").out + project.ok("why", "each", "--run", "@").out
    assert "is not JSON; it begins with 'one two'" in told
    assert "take the whole text" not in told
