"""Patterns by an engine whose time grows with the text and never faster.

It grows with the size of the pattern too, which a few letters can make large: `a[ab]{900}c` takes ten
microseconds for each letter of an unlucky text.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from holdfast.errors import GuardBroken
from holdfast.ports import Flaw

try:
    import re2
except ImportError:
    re2 = None

_MOST = 60
_QUICK = 20_000_000  # parts of the pattern times letters: a quarter of a second at the worst
_NOT_IN_RE2 = ("(?=", "(?!", "(?<", "\\")


class HeavyError(Exception):
    """This would take long here: see `apart`."""


def search(pattern: str, text: str, *, quick: bool = False) -> int | None:
    """Where a pattern first matches; None if nowhere. GuardBroken if it cannot be searched.

    If it shall be `quick`, HeavyError says that it could take longer.
    """
    compiled = _compiled(pattern)
    if isinstance(compiled, Flaw):
        raise GuardBroken(compiled.message, hint=compiled.hint or None)
    if quick and weight(pattern, text) > 1:
        raise HeavyError
    found = compiled.search(text)
    return None if found is None else cast("int", found.start())


def weight(pattern: str, text: str) -> float:
    """Which share of what is quick a search may take at the worst."""
    compiled = _compiled(pattern)
    return 0 if isinstance(compiled, Flaw) else compiled.programsize * len(text) / _QUICK


def pattern_flaw(pattern: str, path: tuple[str | int, ...] = ()) -> Flaw | None:
    """Why a pattern that stands at `path` can never be searched; None if it can."""
    compiled = _compiled(pattern)
    return replace(compiled, path=path) if isinstance(compiled, Flaw) else None


def _compiled(pattern: str) -> re2._Regexp | Flaw:
    if re2 is None:
        message = "a pattern needs google-re2, which is not installed"
        return Flaw(message, hint="pip install 'holdfast[regex]'", lacks="google-re2")
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options=options)
    except re2.error as error:
        reason, _, piece = _words(error).partition(": ")
        where = f" in '{_short(piece)}'" if piece and piece != pattern else ""
        hint = ""
        if piece.startswith(_NOT_IN_RE2):
            hint = "re2 cannot look ahead or behind, nor refer back to a group"
        return Flaw(f"'{_short(pattern)}' is no pattern of re2: {reason}{where}", hint=hint)


def _words(error: Exception) -> str:
    """What the engine says; it says it in bytes."""
    said = error.args[0] if error.args else ""
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)


def _short(text: str) -> str:
    return text if len(text) <= _MOST else text[: _MOST - 1] + "…"
