"""Things said in the middle of a run that a person must not miss."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.cli.again import again
from holdfast.cli.say import talk


class Reminders:
    """Says a sentence at once, and all of them again at the end."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._lines: dict[str, None] = {}

    def __call__(self, text: str) -> None:
        """Say it now."""
        text = again(text)
        self._say(text)
        self._lines[text] = None

    def again(self) -> None:
        """Say all of it once more."""
        for line in self._lines:
            talk(line)
