"""What is said at lines of files: annotations of GitHub, and the report that GitLab reads.

GitHub reads every line that a command prints and obeys those that begin with two colons, or hold two number
signs and a bracket. Whatever comes from a plan, a model or a guard is therefore spelled so that it is data of
our command and no command of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from holdfast.formats.spots import Spot
from holdfast.model.digest import Json, digest_json
from holdfast.model.text import clean, one_line

Kind = Literal["error", "warning", "notice"]
MOST = 10  # of each kind: a page shows no more
LONGEST = 4000  # characters of one
_SEVERITY = {"error": "major", "warning": "minor", "notice": "info"}


class Note(NamedTuple):
    """Words about a line of a file."""

    kind: Kind
    title: str
    text: str
    spot: Spot

    def json(self) -> dict[str, Json]:
        """The same for programs."""
        place: dict[str, Json] = {"file": self.spot.file or None, "line": self.spot.line}
        return {"kind": self.kind, "title": self.title, "text": self.text, **place}


class Noted(NamedTuple):
    """Everything of a report that is said at lines, each kind worst first."""

    errors: tuple[Note, ...] = ()
    warnings: tuple[Note, ...] = ()
    notices: tuple[Note, ...] = ()

    @property
    def kept(self) -> tuple[Note, ...]:
        """As many of each kind as are shown."""
        return (*self.errors[:MOST], *self.warnings[:MOST], *self.notices[:MOST])

    @property
    def left_out(self) -> int:
        """How many more there are."""
        return sum(map(len, self)) - len(self.kept)

    def placed(self, place: Callable[[Spot], Spot]) -> Noted:
        """The same with every place named in another way."""
        return Noted(*(tuple(n._replace(spot=place(n.spot)) for n in kind) for kind in self))


def command_line(note: Note) -> str:
    """A note as the one line that GitHub reads it from."""
    at = {"file": note.spot.file, "line": str(note.spot.line)} if note.spot.file else {}
    keys = ",".join(f"{key}={_key(value)}" for key, value in {**at, "title": note.title}.items())
    return f"::{note.kind} {keys}::{_data(_short(note.text))}"


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _joined(text: str) -> str:
    """The lines of a text in one, where a page shows no others."""
    return "; ".join(filter(None, (" ".join(line.split()) for line in text.splitlines())))


def _data(text: str) -> str:
    spelled = clean(text).replace("%", "%25").replace("\n", "%0A")
    return spelled.replace("##[", "## [")


def _key(text: str) -> str:
    return _data(one_line(text)).replace(":", "%3A").replace(",", "%2C")


def quality_json(noted: Noted) -> list[Json]:
    """The notes as GitLab reads them beside a merge request (a code quality report)."""
    return [
        {
            "description": one_line(f"{note.title}: {_joined(_short(note.text))}"),
            "check_name": "holdfast",
            "fingerprint": digest_json([note.kind, note.title, note.text, note.spot.file]),
            "severity": _SEVERITY[note.kind],
            "location": {"path": note.spot.file, "lines": {"begin": note.spot.line}},
        }
        for note in (*noted.errors, *noted.warnings)
        if note.spot.file
    ]
