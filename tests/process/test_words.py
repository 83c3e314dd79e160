"""The words of a shell line, as far as they can be told without running it."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.process.room import shell_words

PLAIN = "ab-./=#$ \t\r\n();<>|&~*?ü\x0b\x0c\xa0%{}[]!0,:"


@pytest.mark.req("R160")
@given(line=st.text(alphabet=PLAIN, max_size=20))
def test_a_line_without_quotes_has_the_words_that_a_lexer_finds(line: str) -> None:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    found = list(lexer)
    pairs = zip(["", *found], found, strict=False)
    assert shell_words(line) == tuple(word for before, word in pairs if ">" not in before)


@pytest.mark.req("R160")
def test_what_is_written_is_not_read() -> None:
    assert shell_words("sort 'a b' in.txt >> out.txt && wc<in.txt") == (
        "sort",
        "a b",
        "in.txt",
        ">>",
        "&&",
        "wc",
        "<",
        "in.txt",
    )
