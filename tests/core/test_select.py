"""The selector language."""

import re
from dataclasses import replace

import pytest

from holdfast.core.select import select
from holdfast.core.waves import graph_of
from holdfast.errors import UsageError
from holdfast.model.plan import GATHER, Need, Plan, Step, StepId


def _plan(needs: dict[str, list[str]]) -> Plan:
    return Plan(
        "demo",
        {
            StepId(name): Step(
                StepId(name),
                run=("x",),
                needs=tuple(Need(StepId(n)) for n in above),
                agent="coder" if name in {"b", "d"} else "",
            )
            for name, above in needs.items()
        },
    )


#  a -> b -> c -> d      e
GRAPH = graph_of(_plan({"a": [], "b": ["a"], "c": ["b"], "d": ["c"], "e": []}))
STATES = {StepId("a"): "done", StepId("b"): "failed", StepId("c"): "skipped", StepId("z"): "failed"}


@pytest.mark.req("R89")
@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        (["b"], "b"),
        (["+b"], "ab"),
        (["b+"], "bcd"),
        (["+b+"], "abcd"),
        (["1+d"], "cd"),
        (["a+2"], "abc"),
        (["a", "e"], "ae"),
        (["a e"], "ae"),
        (["b+,+c"], "bc"),
        (["[ce]"], "ce"),
        (["*"], "abcde"),
        (["state:failed"], "b"),
        (["state:failed+"], "bcd"),
        (["changed"], "e"),
        (["+changed,a"], ""),
        (["0+d"], "d"),
        (["2+d"], "bcd"),
        (["a+1"], "ab"),
        (["+c,b+ e"], "bce"),
        (["agent:coder"], "bd"),
        (["agent:coder,+c"], "b"),
        (["?"], "abcde"),
    ],
)
def test_a_selector_means_these_steps(words: list[str], chosen: str) -> None:
    found = select(GRAPH, words, states=lambda: STATES, changed=lambda: [StepId("e")])
    assert "".join(sorted(found)) == chosen


@pytest.mark.parametrize("word", ["x", "+x", "agent:nobody", "state:lost", "x*", "+", "a++b", ","])
def test_a_word_that_means_nothing_is_refused(word: str) -> None:
    with pytest.raises(UsageError):
        select(GRAPH, [word], states=dict, changed=list)


def test_a_step_of_items_means_its_items_too_and_a_key_means_one() -> None:
    items = {"all[x]": [], "all[y]": [], "other[x]": [], "all": ["all[x]", "all[y]"]}
    steps = dict(_plan(items).steps)
    steps[StepId("all")] = replace(steps[StepId("all")], uses=GATHER)
    graph = graph_of(Plan("demo", steps))

    def chosen(word: str) -> set[str]:
        return {str(one) for one in select(graph, [word], states=dict, changed=list)}

    assert chosen("all") == {"all", "all[x]", "all[y]"}
    assert chosen("all[x]") == {"all[x]"}
    assert chosen("all[*]") == {"all[x]", "all[y]"}
    assert chosen("*[x]") == {"all[x]", "other[x]"}
    assert chosen("all[x]+") == {"all[x]", "all"}


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("bb", "did you mean 'b'?"),
        ("zzz", "holdfast ls"),
        ("agent:codr", "did you mean 'coder'?"),
        ("agent:zzz", "its agents: coder"),
        ("state:fail", "pending, running, waiting, done, reused, failed, skipped"),
    ],
)
def test_who_names_something_else_is_told_what_there_is(word: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        select(GRAPH, [word], states=dict, changed=list)
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("word", "said"), [("zzz", "the plan has no step 'zzz'"), ("zz*", "no step fits 'zz*'")]
)
def test_a_word_is_a_step_and_one_with_wildcards_is_many(word: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        select(GRAPH, [word], states=dict, changed=list)


def test_what_changed_and_left_the_plan_is_not_chosen() -> None:
    found = select(GRAPH, ["changed"], states=dict, changed=lambda: [StepId("e"), StepId("gone")])
    assert found == {"e"}
