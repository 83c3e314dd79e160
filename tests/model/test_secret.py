"""Secrets are struck out of text however they were written down."""

import base64
import json
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.secret import MARK, Striking, holds, struck

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
    forms += [json.dumps(secret)[1:-1].replace("/", "\\/").encode()]
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


@pytest.mark.req("D39")
@given(SECRETS, st.text(max_size=20), st.lists(st.integers(1, 12), max_size=8))
def test_a_secret_that_comes_in_pieces_is_struck_out(
    secret: str, around: str, cuts: list[int]
) -> None:
    content = f"{around}{secret}{around}".encode()
    striking, shown, at = Striking([secret]), b"", 0
    for size in cuts:
        shown += striking.add(content[at : at + size])
        at += size
    shown += striking.add(content[at:]) + striking.rest()
    assert secret.encode() not in shown
    assert MARK in shown


FOLDED: dict[str, Callable[[bytes], bytes]] = {
    "lines of base64": lambda raw: b"\n".join(_parts(base64.b64encode(raw), 8)),
    "groups of hexadecimal": lambda raw: b":".join(_parts(raw.hex().encode(), 2)),
    "mixed hexadecimal": lambda raw: raw.hex().encode().title(),
}


def _parts(text: bytes, size: int) -> list[bytes]:
    return [text[at : at + size] for at in range(0, len(text), size)]


@pytest.mark.req("D39")
@pytest.mark.parametrize("form", FOLDED)
@given(st.lists(st.integers(1, 12), max_size=40), st.text("xyz .", max_size=9))
def test_a_secret_in_groups_that_come_in_pieces_is_struck_out(
    form: str, cuts: list[int], around: str
) -> None:
    secret = "sk-live/0123456789abcdefghijklmnopq"
    content = around.encode() + FOLDED[form](secret.encode()) + b" " + around.encode()
    striking, shown, at = Striking([secret]), b"", 0
    for size in cuts:
        shown += striking.add(content[at : at + size])
        at += size
    shown += striking.add(content[at:]) + striking.rest()
    assert MARK in shown
    assert len(shown) < len(around) * 2 + len(MARK) + 12


@given(st.lists(st.binary(max_size=20)))
def test_pieces_without_secrets_come_through_whole(pieces: list[bytes]) -> None:
    striking = Striking(["no such secret", "\xff\xff\xff\xff never"])
    shown = b"".join(striking.add(piece) for piece in pieces) + striking.rest()
    assert shown == b"".join(pieces)


@pytest.mark.req("D39")
def test_a_long_secret_is_found_in_base64_that_is_broken_into_lines() -> None:
    lines = "\n".join("abcdefgh" * 8 for _ in range(4))
    pem = f"-----BEGIN PRIVATE KEY-----\n{lines}1\n-----END PRIVATE KEY-----"
    coded = base64.encodebytes(f"the key is {pem}".encode())
    assert len(struck(coded, [pem])) < 60
    assert holds([coded[:70], coded[70:]], [pem])
    assert struck(f"  {lines.splitlines()[0]}1".encode(), [pem]) != coded


@pytest.mark.req("D39")
def test_what_is_left_of_a_secret_where_a_text_was_cut_is_struck_out() -> None:
    secret = "sk-0123456789abcdef"
    assert struck(b"3456789abcdef was refused", [secret]) == MARK + b" was refused"
    assert struck("you sent sk-01234567…".encode(), [secret]) == "you sent [secret]…".encode()


def test_a_content_is_held_to_have_a_secret_only_if_that_is_sure() -> None:
    assert not holds([b"one 1234 two"], ["1234"])
    assert holds([b"one 12345", b"678 two"], ["12345678"])


@pytest.mark.req("D39")
def test_a_secret_is_found_in_lines_of_base64_and_in_groups_of_hexadecimal() -> None:
    secret = "sk-live-0123456789abcdefghijklmnopq"
    around = f"a note of some length before it {secret} and after it".encode()
    coded = base64.encodebytes(around)
    assert b"\n" in coded[:-1]
    pairs = " ".join(f"{byte:02x}" for byte in around).encode()
    lines = b"\n".join(around.hex().upper().encode()[at : at + 60] for at in range(0, 200, 60))
    for told in (coded, pairs, lines, pairs.replace(b" ", b":")):
        assert holds([told], [secret])
        assert MARK in struck(told, [secret])


def test_a_secret_in_which_a_shorter_one_ends_is_not_cut() -> None:
    striking = Striking(["token-", "token-12345678"])
    shown = b"".join(striking.add(piece) for piece in (b"token-", b"12345", b"678", b"\n"))
    assert shown + striking.rest() == MARK + b"\n"
