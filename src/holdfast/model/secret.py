"""Secrets in text: found by their exact value, and as programs commonly write them down.

A value is looked for as it is, in URLs, JSON, HTML, as Python shows it, in hexadecimal, and in base64
wherever in a longer text it stood; both also broken into lines or groups. Of a value of several lines each
long line counts too. Where a text was cut, what is left of a value at its edge counts.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, quote_plus

SHORTEST = 4  # shorter values would blacken everything
SURE = 8  # bytes that hardly stand anywhere by chance
MARK = b"[secret]"
_LINE = 16  # characters of a line that is worth hiding by itself
_LETTERS = 7  # of base64 that are looked for
_FOLDED = 12  # letters of base64 that are looked for in pieces, too
_APART = rb"[\s:]*"  # between the bytes of a value in hexadecimal
_BREAK = rb"(?:\r?\n|\\r|\\n|[ \t])*"
_BETWEEN = (b" \t\r\n\\", b" \t\r\n\v\f:")  # of base64, as far as it matters; of hexadecimal
_ESCAPE = re.compile(r"%[0-9A-F]{2}")


class _Forms(NamedTuple):
    """How some values may stand in a text: the longest first; in pieces; cut off.

    `letters` are those of what stands in pieces, without what is between them: base64, and hexadecimal.
    """

    plain: tuple[bytes, ...]
    folded: tuple[re.Pattern[bytes], ...]
    edges: tuple[bytes, ...]
    letters: tuple[tuple[bytes, ...], tuple[bytes, ...]] = ((), ())


def struck(content: bytes, secrets: Iterable[str]) -> bytes:
    """Content without the values of secrets; most contents hold none."""
    forms = _forms_of(tuple(secrets))
    for form in forms.plain:
        if form in content:
            content = content.replace(form, MARK)
    for pattern in forms.folded:
        content = pattern.sub(MARK, content)
    for value in forms.edges:
        content = _cut_off(content, value)
    return content


def struck_text(text: str, secrets: Iterable[str]) -> str:
    """The same for text."""
    content = text.encode("utf-8", "surrogatepass")
    left = struck(content, secrets)
    return text if left == content else left.decode("utf-8", "replace")


def holds(pieces: Iterable[bytes], secrets: Iterable[str]) -> bool:
    """Whether a content, given in pieces, holds a secret that can hardly stand in it by chance."""
    forms = _forms_of(tuple(value for value in secrets if len(value) >= SURE))
    if not forms.plain:
        return False
    reach = 4 * len(forms.plain[0])  # of what may be broken into lines
    before = b""
    for piece in pieces:
        whole = before + piece
        if any(form in whole for form in forms.plain):
            return True
        if any(pattern.search(whole) for pattern in forms.folded):
            return True
        before = whole[-reach:]
    return False


class Striking:
    """Strikes secrets out of what comes in pieces; what may be the beginning of one waits for the next."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = tuple(secrets)
        self._all = _forms_of(self._secrets)
        self._forms = self._all.plain
        self._waiting = b""

    def add(self, data: bytes) -> bytes:
        """What can be shown now."""
        if not self._forms:
            return data
        whole = self._waiting + data
        end = len(whole) - max(_begun(whole, form) for form in self._forms)
        end = min(end, _begun_in_pieces(whole, self._all.letters))
        moved = True
        while moved:  # nothing may be cut in two that is a secret
            across = [at for form in self._forms if (at := _across(whole, form, end)) is not None]
            across += [at for found in self._all.folded if (at := _over(whole, found, end)) >= 0]
            moved = bool(across)
            end = min([end, *across])
        self._waiting, shown = whole[end:], whole[:end]
        for form in self._forms:
            if form in shown:
                shown = shown.replace(form, MARK)
        for pattern in self._all.folded:
            shown = pattern.sub(MARK, shown)
        return shown

    def rest(self) -> bytes:
        """What is left when nothing more comes."""
        rest, self._waiting = self._waiting, b""
        return struck(rest, self._secrets)


def _begun(content: bytes, form: bytes) -> int:
    """How many bytes at the end of a content may be the beginning of a form."""
    at = content.find(form[:1], max(0, len(content) - len(form) + 1))
    while at >= 0:
        if form.startswith(content[at:]):
            return len(content) - at
        at = content.find(form[:1], at + 1)
    return 0


def _begun_in_pieces(content: bytes, letters: tuple[tuple[bytes, ...], tuple[bytes, ...]]) -> int:
    """Where at the end of a content a form in pieces may begin; its length if none does."""
    end = len(content)
    for forms, apart in zip(letters, _BETWEEN, strict=True):
        reach = 4 * max(map(len, forms), default=0)
        first = max(0, len(content) - reach)
        kept = [at for at in range(first, len(content)) if content[at] not in apart]
        bare = bytes(content[at] for at in kept)
        if apart is _BETWEEN[1]:
            bare = bare.lower()
        size = max((_begun(bare, form) for form in forms), default=0)
        if size:
            end = min(end, kept[-size])
    return end


def _over(content: bytes, pattern: re.Pattern[bytes], place: int) -> int:
    """Where what matches begins that stands on both sides of a place; -1 if nothing does."""
    found = (match.start() for match in pattern.finditer(content) if match.end() > place)
    return next((at for at in found if at < place), -1)


def _across(content: bytes, form: bytes, place: int) -> int | None:
    """Where a form begins that stands on both sides of a place."""
    at = content.find(form, max(0, place - len(form) + 1), place + len(form) - 1)
    return at if 0 <= at < place else None


def _cut_off(content: bytes, value: bytes) -> bytes:
    """Content without the end of a value at its beginning, and without a beginning at its end."""
    for size in range(min(len(value), len(content)), SURE - 1, -1):
        if content.startswith(value[-size:]):
            content = MARK + content[size:]
            break
    body = content.removesuffix("…".encode())
    for size in range(min(len(value), len(body)), SURE - 1, -1):
        if body.endswith(value[:size]):
            return body[:-size] + MARK + content[len(body) :]
    return content


@lru_cache(maxsize=16)
def _forms_of(secrets: tuple[str, ...]) -> _Forms:
    values = {value for value in secrets if len(value) >= SHORTEST}
    values |= {
        line.strip()
        for value in values
        for line in value.splitlines()
        if len(line.strip()) >= _LINE and not line.startswith("-----")
    }
    plain = {form for value in values for form in _forms(value)}
    folded = {form for value in values for form in _in_base64(value) if len(form) >= _FOLDED}
    spelled = {_raw(value) for value in values if len(_raw(value)) >= SURE}
    return _Forms(
        tuple(sorted(plain, key=lambda form: (-len(form), form))),
        (
            *(
                re.compile(_BREAK.join(re.escape(bytes((letter,))) for letter in form))
                for form in sorted(folded, key=len, reverse=True)
            ),
            *(
                re.compile(_APART.join(b"%02x" % byte for byte in raw), re.IGNORECASE)
                for raw in sorted(spelled, key=len, reverse=True)
            ),
        ),
        tuple(sorted(_raw(value) for value in values if len(_raw(value)) > SURE)),
        (tuple(sorted(folded)), tuple(sorted(raw.hex().encode() for raw in spelled))),
    )


def _raw(value: str) -> bytes:
    return value.encode("utf-8", "surrogateescape")


def _forms(value: str) -> Iterator[bytes]:
    raw = _raw(value)
    yield from (raw, raw.hex().encode(), raw.hex().upper().encode())
    for quoted in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        yield quoted.encode()
        yield _ESCAPE.sub(lambda found: found[0].lower(), quoted).encode()
    for escaped in (json.dumps(value), json.dumps(value, ensure_ascii=False), repr(value)):
        yield escaped[1:-1].encode("utf-8", "surrogateescape")
        yield escaped[1:-1].replace("/", "\\/").encode("utf-8", "surrogateescape")
    for letter, name in ((b"&", b"&amp;"), (b"<", b"&lt;"), (b">", b"&gt;"), (b'"', b"&quot;")):
        raw = raw.replace(letter, name)
    yield raw
    yield from _in_base64(value)


def _in_base64(value: str) -> Iterator[bytes]:
    """The letters that a value alone decides, for each place where it may begin in a longer text."""
    raw = _raw(value)
    for shift in range(3):
        whole = base64.b64encode(b"\0" * shift + raw)
        first = -(-shift * 8 // 6)  # letters that the text before it decides too
        last = (shift + len(raw)) * 8 // 6  # and those that the text behind it does
        inner = whole[first:last]
        if len(inner) >= _LETTERS:
            yield inner
            yield inner.replace(b"+", b"-").replace(b"/", b"_")
