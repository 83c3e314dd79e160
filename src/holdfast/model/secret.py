"""Secrets in text: found by their exact value, and as programs commonly write them down."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

SHORTEST = 4  # shorter values would blacken everything
MARK = b"[secret]"


def struck(content: bytes, secrets: Iterable[str]) -> bytes:
    """Content without the values of secrets, the longest first; most contents hold none."""
    forms = {form for value in secrets if len(value) >= SHORTEST for form in _forms(value)}
    for form in sorted(forms, key=len, reverse=True):
        if form in content:
            content = content.replace(form, MARK)
    return content


class Striker:
    """The same for content that comes in pieces: what may be the beginning of a secret is kept back."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = tuple(value for value in secrets if len(value) >= SHORTEST)
        self._all = {form for value in self._secrets for form in _forms(value)}
        self._kept = b""

    def add(self, data: bytes) -> bytes:
        """What may be shown now."""
        if not self._all:
            return data
        data = self._kept + data
        end = min((_open_end(data, form) for form in self._all), default=len(data))
        moved = True
        while moved:  # nothing may be cut in two that is a secret
            straddling = [at for form in self._all if (at := _across(data, form, end)) is not None]
            moved = bool(straddling)
            end = min([end, *straddling])
        self._kept = data[end:]
        return struck(data[:end], self._secrets)


def _open_end(data: bytes, form: bytes) -> int:
    """Where the end of content begins that may go on as a secret; its length if none does."""
    at = data.find(form[:1], max(0, len(data) - len(form) + 1))
    while at >= 0:
        if form.startswith(data[at:]):
            return at
        at = data.find(form[:1], at + 1)
    return len(data)


def _across(data: bytes, form: bytes, place: int) -> int | None:
    """Where a secret begins that stands on both sides of a place."""
    at = data.find(form, max(0, place - len(form) + 1), place + len(form) - 1)
    return at if 0 <= at < place else None


def _forms(value: str) -> Iterator[bytes]:
    """A value as it is, in URLs, JSON, hexadecimal and base64, wherever in a longer text it stood."""
    raw = value.encode("utf-8", "surrogateescape")
    yield raw
    yield quote(raw, safe="").encode()
    yield quote_plus(raw).encode()
    yield json.dumps(value)[1:-1].encode()
    yield raw.hex().encode()
    yield raw.hex().upper().encode()
    for shift in range(3):
        whole = base64.b64encode(b"\0" * shift + raw)
        first = -(-shift * 8 // 6)  # letters that the text before it decides too
        last = (shift + len(raw)) * 8 // 6  # and those that the text behind it does
        inner = whole[first:last]
        if len(inner) >= 2 * SHORTEST:
            yield inner
            yield inner.replace(b"+", b"-").replace(b"/", b"_")
