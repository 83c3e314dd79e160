"""Secrets are struck out of text however they were written down."""

import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.secret import MARK, Striker, struck

SECRETS = st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF), min_size=6, max_size=40)
AROUND = st.binary(max_size=8)


@pytest.mark.req("D39")
@given(SECRETS, AROUND, AROUND)
def test_a_secret_is_struck_out_in_every_common_form(
    secret: str, before: bytes, after: bytes
) -> None:
    raw = secret.encode()
    forms = [raw, quote(raw, safe="").encode(), quote_plus(raw).encode(), raw.hex().encode()]
    forms += [raw.hex().upper().encode(), json.dumps(secret)[1:-1].encode()]
    for form in forms:
        left = struck(b"<" + form + b">", [secret])
        assert form not in left
        assert MARK in left
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        text = encode(before + raw + after)
        assert struck(text, [secret]) != text


@given(st.binary(max_size=200))
def test_text_without_secrets_stays_as_it_is(text: bytes) -> None:
    assert struck(text, ["", "abc"]) == text


def test_the_longer_of_two_secrets_goes_first() -> None:
    assert struck(b"token-12345678", ["12345678", "token-12345678"]) == MARK


def in_pieces(text: bytes, sizes: list[int], secrets: list[str]) -> bytes:
    striker, shown = Striker(secrets), b""
    for size in (*sizes, len(text)):
        piece, text = text[:size], text[size:]
        shown += striker.add(piece)
    return shown + striker.add(b"\n")


@pytest.mark.req("D39")
@given(st.lists(st.sampled_from(["sk-", "sk-12", "45678", " ", "s"])), st.lists(st.integers(1, 5)))
def test_a_secret_that_comes_in_pieces_is_struck_out(words: list[str], sizes: list[int]) -> None:
    secret = "sk-12345678"
    text = "".join([*words, "|", secret, "|", *words]).encode()
    shown = in_pieces(text, sizes, [secret, "another-one"])
    assert secret.encode() not in shown
    assert shown == struck(text + b"\n", [secret, "another-one"])


@given(st.binary(max_size=60), st.lists(st.integers(1, 9)))
def test_what_holds_no_secret_comes_through_in_pieces(text: bytes, sizes: list[int]) -> None:
    assert in_pieces(text, sizes, ["no-such-secret"]) == text + b"\n"


def test_a_secret_in_which_a_shorter_one_ends_is_not_cut() -> None:
    assert in_pieces(b"token-12345678", [6, 5, 1], ["token-", "token-12345678"]) == MARK + b"\n"
