"""Artifacts and verdicts: what an attempt made, and what the guards said of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal, cast

from holdfast.errors import IntegrityError
from holdfast.model.digest import Digest, Json, canonical
from holdfast.model.fixed import fixed
from holdfast.model.plan import RunId, StepId

Status = Literal["accepted", "rejected", "superseded", "interrupted", "withdrawn"]
Source = Literal["generated", "human", "imported", "accepted"]
Call = Literal["accept", "reject", "fatal", "ask"]
Form = Literal["bytes", "program", "tree"]

TREE_SCHEMA = "holdfast.tree/1"


@fixed
class Verdict:
    """A guard's answer; `items` are the answers of the guards inside a composite one.

    `ask` leaves it to a person: nothing else speaks against the candidate. `score` is how good a judge
    found it, from 0 to 1.
    """

    call: Call
    guard: str = ""
    feedback: str = ""
    items: tuple[Verdict, ...] = ()
    score: float | None = None

    @property
    def passed(self) -> bool:
        """Whether the candidate may be accepted."""
        return self.call == "accept"

    @property
    def scores(self) -> tuple[float, ...]:
        """What judges gave, those inside composite guards too."""
        own = () if self.score is None else (self.score,)
        return own + tuple(score for item in self.items for score in item.scores)

    @property
    def asks(self) -> tuple[str, ...]:
        """The guards that leave it to a person, each by its path: `all/human`."""
        if self.call != "ask":
            return ()
        inner = tuple(f"{self.guard}/{name}" for item in self.items for name in item.asks)
        return inner or (self.guard,)


@fixed
class Artifact:
    """A row of the artifact index: immutable content under the refs that decided it.

    `number` is the place in the order of acceptance over the whole store; the highest wins.
    `reusable` is false when the key could not be trusted: an input changed under way, or a part of it
    could not be computed. `form` says how the content is put on disk: as plain bytes, as one executable
    file, or as the manifest of several files.
    """

    project: str
    line: str
    step: StepId
    config_ref: Digest
    input_ref: Digest
    own_ref: Digest
    digest: Digest
    status: Status
    source: Source
    run: RunId
    attempt: int
    form: Form = "bytes"
    verified: bool = False
    reusable: bool = True
    at: int = 0
    number: int = 0

    @property
    def is_refused_edit(self) -> bool:
        """Whether a person wrote it and guards refused it: stored, but still that person's to decide."""
        return self.source == "human" and self.status == "rejected"


@fixed
class Entry:
    """One file of an artifact: path, content, and whether it may be executed."""

    path: str
    digest: Digest
    executable: bool = False
    size: int = 0


def tree_bytes(entries: tuple[Entry, ...]) -> bytes:
    """The manifest of an artifact of several files; its digest is the artifact's."""
    files: list[Json] = [
        {
            "path": item.path,
            "digest": item.digest,
            "mode": "755" if item.executable else "644",
            "size": item.size,
        }
        for item in sorted(entries, key=lambda item: item.path)
    ]
    return canonical({"schema": TREE_SCHEMA, "files": files})


def tree_entries(content: bytes) -> tuple[Entry, ...]:
    """Read a manifest back."""
    try:
        data = cast("Mapping[str, Json]", json.loads(content, object_hook=_entry_or_whole))
        if data["schema"] != TREE_SCHEMA:
            raise IntegrityError(f"'{data['schema']}' is not a manifest of files")
        files = cast("list[Entry | dict[str, str]]", data["files"])
        return tuple([file if isinstance(file, Entry) else _entry(file) for file in files])
    except (ValueError, KeyError, TypeError) as error:
        raise IntegrityError("a manifest of files cannot be read") from error


def _entry_or_whole(found: dict[str, str]) -> Entry | dict[str, str]:
    """A plain file as soon as it is read: there may be a million, and mappings take twice as much."""
    return _entry(found) if len(found) == _KEYS and "size" in found else found


def _entry(found: Mapping[str, str]) -> Entry:
    mode = found["mode"]
    return Entry(found["path"], Digest(found["digest"]), mode == "755", int(found["size"]))


_KEYS = 4  # of a file that is not a change
