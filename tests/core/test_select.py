"""The selector language."""

import pytest

from holdfast.core.select import select
from holdfast.core.waves import graph_of
from holdfast.errors import UsageError
from holdfast.model.plan import Need, Plan, Step, StepId


def _plan(needs: dict[str, list[str]]) -> Plan:
    return Plan(
        "demo",
        {
            StepId(name): Step(
                StepId(name), run=("x",), needs=tuple(Need(StepId(n)) for n in above)
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
    ],
)
def test_a_selector_means_these_steps(words: list[str], chosen: str) -> None:
    found = select(GRAPH, words, states=lambda: STATES, changed=lambda: [StepId("e")])
    assert "".join(sorted(found)) == chosen


@pytest.mark.parametrize("word", ["x", "+x", "state:lost", "x*", "+", "a++b", ","])
def test_a_word_that_means_nothing_is_refused(word: str) -> None:
    with pytest.raises(UsageError):
        select(GRAPH, [word], states=dict, changed=list)
