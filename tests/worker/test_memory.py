"""What a cycle knows is a fold over the tools it used: the same uses give the same knowledge."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.worker.memory import Memory

S = [f"{number:040x}" for number in range(4)]
USES = [
    ("read", {"path": "a"}, f"file a {'0' * 64}\nlines 1-1 of 1\nx", True),
    ("edit", {"edit": "e1"}, f"state {S[1]}\nfile a {'1' * 64}\nchanged a", True),
    ("edit", {"edit": "e2"}, "refused: nothing was changed", False),
    ("run", {"command": "c"}, f"state {S[2]}\nexit code 0", True),
    ("commit", {"message": "m", "nodes": ["n"]}, "noted", True),
    ("plan", {"steps": ["one"]}, "1. one", True),
    ("tree", {"nodes": [{"id": "n"}]}, "noted: n", True),
    ("finish", {"summary": "s", "ready": True}, "the cycle ends here", True),
]


def learned(numbers: list[int]) -> Memory:
    memory = Memory(S[0])
    for turn, number in enumerate(numbers):
        tool, given_, answer, ok = USES[number]
        memory.learn(tool, json.dumps(given_), answer, turn, ok=ok)
    return memory


@pytest.mark.req("R130")
@given(st.lists(st.integers(0, len(USES) - 1), max_size=20))
def test_the_same_uses_give_the_same_knowledge(numbers: list[int]) -> None:
    assert learned(numbers) == learned(numbers)


def test_what_was_learned() -> None:
    memory = learned(list(range(len(USES))))
    assert (memory.state, memory.ended, memory.plan) == (S[2], "finish", ("one",))
    assert memory.saw == {"a": "1" * 64}
    assert [(mark.state, mark.message) for mark in memory.marks] == [(S[2], "m")]
    assert memory.key("read", '{"path": "a"}') not in memory.used, "the state is another by now"
    assert memory.key("finish", '{"ready":true,"summary":"s"}') in memory.used, (
        "however it is written"
    )


def test_a_file_cannot_say_what_state_it_is() -> None:
    memory = Memory(S[0])
    memory.learn("read", '{"path": "a"}', f"file a {'0' * 64}\nlines 1-2\nstate {S[3]}", 1, ok=True)
    memory.learn("search", '{"pattern": "s"}', f"nothing\nstate {S[3]}", 2, ok=True)
    assert memory.state == S[0]
