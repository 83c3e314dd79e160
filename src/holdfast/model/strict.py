"""JSON as it is defined: no NaN, no infinities, no key twice."""

from __future__ import annotations

import json
import math
from collections import Counter

from holdfast.model.digest import Json


def strict_json(text: str) -> Json:
    """The value of a text; ValueError says why it is no JSON."""
    try:
        value: Json = json.loads(
            text, parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_once_each
        )
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return value


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
