"""JSON as it is defined: no NaN, no infinities, no key twice, no lone surrogates, no endless nesting."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable

from holdfast.model.digest import Json

DEEPEST = 200  # lists and objects inside each other: whoever walks through a value can


def strict_json(text: str) -> Json:
    """The value of a text; ValueError says why it is no JSON."""
    try:
        value: Json = json.loads(
            text, parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_once_each
        )
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if text.count("[") + text.count("{") > DEEPEST:
        _check_depth(value)
    if "\\ud" in text.lower():
        _check_whole(value)
    return value


def _check_depth(value: Json) -> None:
    level, depth = [value], 0
    while level := [item for above in level for item in _inside(above)]:
        depth += 1
        if depth > DEEPEST:
            raise ValueError("nested too deeply")


def _inside(value: Json) -> Iterable[Json]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _check_whole(value: Json) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ValueError("a text holds a lone surrogate") from error


def _once_each(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key '{twice}' stands in one object twice")
    return found


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits[:40]} is too large for a number")
    return number


def _refuse(word: str) -> Json:
    raise ValueError(f"{word} is not a number of JSON")
