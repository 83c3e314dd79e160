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
