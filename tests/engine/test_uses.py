"""How much of what a tool says is kept."""

from holdfast.engine.uses import MOST_ANSWER, capped


def test_a_long_answer_is_cut_between_letters_and_says_so() -> None:
    found = capped(("é" * MOST_ANSWER).encode()).decode()
    assert found.startswith("é" * (MOST_ANSWER // 2) + "\n[cut: ")
    assert capped(b"short") == b"short"
