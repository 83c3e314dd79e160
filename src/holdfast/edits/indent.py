"""The one way in which lines of an edit are indented other than in the file, if there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import gcd

Shift = Callable[
    [str], str | None
]  # a line of the edit as it would be in the file; None: it cannot be


def indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def shift_between(
    pairs: Iterable[tuple[str, str]], added: Sequence[str], lines: Sequence[str]
) -> Shift | None:
    """How lines of an edit (first of each pair) become those of the file; None if not all in one way.

    Either one indentation comes before all lines, or goes from all, or one unit stands for another. Where
    more than one of them would do and they differ for what is added, units that are not the file's do.
    """
    found_pairs = [(a, b) for a, b in pairs if a.strip()]
    indents = {(indent_of(a), indent_of(b)) for a, b in found_pairs}
    if not indents:
        return None
    makers = (_same, _deeper, _shallower, _in_units)
    found = [shift for maker in makers if (shift := maker(indents)) is not None]
    by_result = {tuple(shift(line) for line in added): shift for shift in found[::-1]}
    whole = [shift for result, shift in by_result.items() if None not in result][::-1]
    if len(whole) > 1 and _step(lines) != _step([*added, *(a for a, _ in found_pairs)]):
        return whole[-1]  # the edit counts in other units than the file
    return whole[0] if whole else None


def _step(lines: Iterable[str]) -> int:
    """The unit of which all indentations are made."""
    return gcd(*(len(indent_of(line)) for line in lines if line.strip()))


def _same(indents: set[tuple[str, str]]) -> Shift | None:
    return (lambda line: line) if all(a == b for a, b in indents) else None


def _deeper(indents: set[tuple[str, str]]) -> Shift | None:
    a, b = min(indents)
    if not b.endswith(a):
        return None
    more = b[: len(b) - len(a)]
    if any(more + one != other for one, other in indents):
        return None
    return lambda line: more + line if line.strip() else line


def _shallower(indents: set[tuple[str, str]]) -> Shift | None:
    a, b = min(indents)
    if not a.endswith(b):
        return None
    less = a[: len(a) - len(b)]
    if any(one != less + other for one, other in indents):
        return None

    def shift(line: str) -> str | None:
        if not line.strip():
            return line
        return line[len(less) :] if line.startswith(less) else None

    return shift


def _in_units(indents: set[tuple[str, str]]) -> Shift | None:
    """Spaces for tabs, tabs for spaces, or another number of spaces."""
    sizes = {(a, b) for a, b in indents if a or b}
    a, b = min(sizes, key=lambda pair: len(pair[0]), default=("", ""))
    if not a or not b:
        return None
    for unit, other in _units(a, b):
        if all(_converted(one, unit, other) == theirs for one, theirs in indents):

            def shift(line: str, unit: str = unit, other: str = other) -> str | None:
                if not line.strip():
                    return line
                indent = _converted(indent_of(line), unit, other)
                return None if indent is None else indent + line.lstrip(" \t")

            return shift
    return None


def _units(a: str, b: str) -> Iterable[tuple[str, str]]:
    """What may stand for what, if `a` became `b`: the smallest first."""
    for count in range(min(len(a), len(b)), 0, -1):
        if len(a) % count == 0 and len(b) % count == 0:
            unit, other = a[: len(a) // count], b[: len(b) // count]
            if unit * count == a and other * count == b:
                yield unit, other


def _converted(indent: str, unit: str, other: str) -> str | None:
    count, rest = divmod(len(indent), len(unit))
    return other * count if not rest and unit * count == indent else None
