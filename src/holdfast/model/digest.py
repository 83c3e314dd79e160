"""Canonical JSON and the digests made from it.

One value has one encoding: keys sorted by code point, no blanks, UTF-8, nothing escaped that need not
be. Whole numbers are written as integers; any other number as `{"$decimal": "<shortest repr>"}`, so
that no float formatting can ever change a digest. Refused: NaN, infinities, lone surrogates, keys that
are not text, the reserved key `$decimal`, and every type that JSON does not have.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import NewType, cast

from holdfast.errors import HoldfastError

Digest = NewType("Digest", str)

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]

_DECIMAL = "$decimal"
_encode = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False
).encode


class EncodingError(HoldfastError):
    """A value has no canonical encoding."""

    exit_code = 2
    code = "encoding"


def digest_bytes(content: bytes) -> Digest:
    """SHA-256 of the bytes, 64 hex digits."""
    return Digest(hashlib.sha256(content).hexdigest())


def digest_json(value: Json) -> Digest:
    """SHA-256 of the canonical encoding."""
    return digest_bytes(canonical(value))


def canonical(value: Json) -> bytes:
    """The one encoding of a value; equal values give equal bytes in every process."""
    try:
        return _encode(_plain(value)).encode()
    except UnicodeEncodeError as error:
        raise EncodingError("text holds a lone surrogate and has no encoding") from error


def _plain(value: Json) -> Json:
    """Check a value and turn numbers that are not whole into text. Exact types first: this is hot."""
    kind = value.__class__
    if kind is str or kind is int or kind is bool or value is None:
        return value
    if kind is dict or isinstance(value, Mapping):
        return _mapping(cast("Mapping[str, Json]", value))
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value)
    raise EncodingError(f"a digest cannot cover a value of type '{type(value).__name__}'")


def _mapping(value: Mapping[str, Json]) -> dict[str, Json]:
    plain: dict[str, Json] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise EncodingError(f"a key must be text, not '{type(key).__name__}'")
        if key == _DECIMAL:
            raise EncodingError(f"the key '{_DECIMAL}' is reserved")
        plain[key] = item if item.__class__ is str else _plain(item)
    return plain


def _number(value: float) -> Json:
    if value != value or value in {float("inf"), float("-inf")}:  # noqa: PLR0124 - NaN only
        raise EncodingError("a number must be finite")
    return int(value) if value.is_integer() else {_DECIMAL: repr(value)}
