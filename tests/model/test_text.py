"""What is shown: nothing that a terminal obeys or hides, and never wider than there is room."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.model.text import cells, clean, cut, first_line, is_count, last_line, one_line, wrap

HOSTILE = {
    "clear screen": ("\x1b[2J", r"\u{1b}[2J"),
    "title": ("\x1b]0;owned\x07", r"\u{1b}]0;owned\u{7}"),
    "clipboard": ("\x1b]52;c;QUJD\x07", r"\u{1b}]52;c;QUJD\u{7}"),
    "link": ("\x1b]8;;http://evil\x07", r"\u{1b}]8;;http://evil\u{7}"),
    "eight bit": ("\x9b31m", r"\u{9b}31m"),
    "overwrite": ("safe\rrm -rf", r"safe\u{d}rm -rf"),
    "override": ("a\u202eb", r"a\u{202e}b"),
    "zero width": ("a\u200bb", r"a\u{200b}b"),
    "tag": ("a\U000e0041b", r"a\u{e0041}b"),
    "half of a pair": ("a\udc9bb", r"a\u{dc9b}b"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_a_terminal_would_obey_or_hide_is_spelled_out(name: str) -> None:
    given_text, shown = HOSTILE[name]
    assert clean(given_text) == shown
    assert one_line(given_text) == shown


def test_lines_stay_lines_where_lines_are_expected_and_nowhere_else() -> None:
    assert clean("a\n\tb\r\nc") == "a\n\tb\nc"
    assert one_line("a\n\tb") == r"a\u{a}\u{9}b"


@given(st.text())
def test_nothing_unsafe_is_left_and_cleaning_again_changes_nothing(text: str) -> None:
    shown = one_line(text)
    assert not set(shown) & {"\n", "\r", "\t", "\x1b", "\x7f", "\x9b"}
    assert one_line(shown) == shown


@given(st.text(st.characters(exclude_categories=("C", "Z"))), st.integers(1, 30))
def test_what_is_cut_fits(text: str, width: int) -> None:
    assert cells(cut(text, width)) <= width


@example("  a", 2)
@example("      漢a", 4)
@given(st.text(st.sampled_from("ab 漢é-")), st.integers(2, 30))
def test_what_is_wrapped_fits_and_nothing_is_left_out(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert all(cells(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_wide_letters_take_two_columns_and_marks_none() -> None:
    assert cells("漢字") == 4
    assert cells("e\u0301") == 1
    assert cut("漢字漢字", 5) == "漢字…"


def test_further_lines_are_indented() -> None:
    assert wrap("  one two three four five", 16) == ["  one two three", "      four five"]
    assert wrap("never broken", 0) == ["never broken"]


def test_the_first_and_the_last_line_with_something_on_it() -> None:
    assert first_line("\n  one\ntwo\n") == "one"
    assert last_line("one\ntwo \r\n\n") == "two"
    assert first_line("a\rb\nc") == "a\rb"  # shown whole, not only what would be left to see
    assert first_line("") == last_line("\n") == ""


def test_a_number_that_one_can_count_to_has_plain_digits_and_few() -> None:
    for text in ("0", "7", "007", "9" * 12):
        assert is_count(text)
    for text in ("", "-1", "1.0", "²", "٣", "①", " 1", "1\n", "9" * 13, "9" * 5000):
        assert not is_count(text)
