"""Canonical JSON and the digests made from it.

One value has one encoding: keys sorted by code point, no blanks, UTF-8, nothing escaped that need not
be. Whole numbers are written as integers; any other number as `{"$decimal": "<shortest repr>"}`, so
that no float formatting can ever change a digest. Refused: NaN, infinities, lone surrogates, keys that
are not text, the reserved key `$decimal`, and every type that JSON does not have.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from json.encoder import encode_basestring as _text
from math import isfinite
from typing import NewType

from holdfast.errors import HoldfastError

Digest = NewType("Digest", str)

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]

_DECIMAL = "$decimal"


class EncodingError(HoldfastError):
    """A value has no canonical encoding."""

    exit_code = 2
    code = "encoding"


def digest_bytes(content: bytes) -> Digest:
    """SHA-256 of the bytes, 64 hex digits."""
    return Digest(hashlib.sha256(content).hexdigest())


def digest_parts(*parts: bytes) -> Digest:
    """What `digest_bytes` gives for all of them together, which may be large and never are."""
    total = hashlib.sha256()
    for part in parts:
        total.update(part)
    return Digest(total.hexdigest())


def digest_json(value: Json) -> Digest:
    """SHA-256 of the canonical encoding."""
    return digest_bytes(canonical(value))


def same(one: Json, other: Json) -> bool:
    """Whether two values are one to a reader of JSON: to Python, true is 1."""
    if one is other or one != other:
        return one is other
    pairs: list[tuple[Json, Json]] = [(one, other)]
    for left, right in pairs:  # grows while it is walked; both have the same shape
        if isinstance(left, bool) != isinstance(right, bool):
            return False
        if isinstance(left, Mapping) and isinstance(right, Mapping):
            pairs += [(left[key], right[key]) for key in left]
        elif isinstance(left, list | tuple) and isinstance(right, list | tuple):
            pairs += zip(left, right, strict=True)
    return True


def digest_texts(*texts: str) -> Digest:
    """What `digest_json` gives for a list of texts, in a third of the time: ids are made of them."""
    return digest_bytes(encoded(f"[{','.join(map(_text, texts))}]"))


def canonical(value: Json) -> bytes:
    """The one encoding of a value; equal values give equal bytes in every process."""
    return encoded(spelled(value))


def encoded(spelling: str) -> bytes:
    """The bytes of a spelling, or of several put together."""
    try:
        return spelling.encode()
    except UnicodeEncodeError as error:
        raise EncodingError("text holds a lone surrogate and has no encoding") from error


def spelled(value: Json) -> str:
    """The canonical encoding as text, to be a part of a larger one. Exact types first: this is hot."""
    if type(value) is str:
        return _text(value)
    if type(value) is dict:
        return _object(value)
    if type(value) is list or type(value) is tuple:
        return f"[{','.join(map(spelled, value))}]" if value else "[]"
    if type(value) is int:
        return repr(value)
    if value is None:
        return "null"
    if type(value) is bool:
        return "true" if value else "false"
    return _derived(value)


def _derived(value: Json) -> str:
    """Numbers that may not be whole, and values of classes made from those that JSON has."""
    if isinstance(value, Mapping):
        return _object(value)
    if isinstance(value, list | tuple):
        return spelled([*value])
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, str):
        return _text(str(value))
    if isinstance(value, int):
        return repr(int(value))
    raise EncodingError(f"a digest cannot cover a value of type '{type(value).__name__}'")


def _object(value: Mapping[str, Json]) -> str:
    if not value:
        return "{}"
    if _DECIMAL in value:
        raise EncodingError(f"the key '{_DECIMAL}' is reserved")
    try:
        return f"{{{','.join([f'{_text(key)}:{spelled(value[key])}' for key in sorted(value)])}}}"
    except TypeError:
        _check_keys(value)
        raise


def _check_keys(value: Mapping[str, Json]) -> None:
    for key in value:
        if not isinstance(key, str):
            raise EncodingError(f"a key must be text, not '{type(key).__name__}'")


def _number(value: float) -> str:
    if not isfinite(value):
        raise EncodingError("a number must be finite")
    return repr(int(value)) if value.is_integer() else f'{{"{_DECIMAL}":"{value!r}"}}'
