"""A set of changes to project files: what a step that works in a copy leaves behind.

It is kept as a manifest of files like any other (`holdfast.tree/1`); what is more is sparse. A file that
was changed says which content it had where the step began (`base`, null if it was not there); a removed
one stands in a list of its own, and so does a path about which people settled a conflict (`settled`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import cast

from holdfast.errors import IntegrityError
from holdfast.model.artifact import TREE_SCHEMA, Entry
from holdfast.model.digest import Digest, Json, canonical
from holdfast.model.fixed import fixed


@fixed
class Change:
    """One changed file: what it shall be, and what it was. No `digest`: removed; no `base`: not there."""

    path: str
    digest: Digest | None
    executable: bool = False
    size: int = 0
    base: Digest | None = None
    base_executable: bool = False
    over: Digest | None = (
        None  # another's version that it was put in the place of, by a person's word
    )

    @property
    def entry(self) -> Entry | None:
        """The file as it shall be; None if it is removed."""
        if self.digest is None:
            return None
        return Entry(self.path, self.digest, self.executable, self.size)


@fixed
class Settled:
    """A path about which people settled a conflict of a step: what stands there since, whoever wrote it.

    `base` is what the step's key says of the path, and `over` are the versions that gave way. It is the
    step's own if it `won`.
    """

    path: str
    digest: Digest | None
    base: Digest | None
    base_executable: bool = False
    over: tuple[Digest | None, ...] = ()
    won: bool = False


def changeset_bytes(
    entries: Sequence[Entry], changes: Sequence[Change], settled: Sequence[Settled] = ()
) -> bytes:
    """The manifest of a set of changes; `entries` are files of the artifact that are not compared."""
    files: dict[str, dict[str, Json]] = {entry.path: _file(entry) for entry in entries}
    removed: list[Json] = []
    for change in sorted(changes, key=lambda change: change.path):
        was: dict[str, Json] = {"base": change.base}
        if change.base_executable:
            was["base_mode"] = "755"
        if change.over is not None:
            was["over"] = change.over
        if change.entry is not None:
            files[change.path] = {**_file(change.entry), **was}
        else:
            removed.append({"path": change.path, **was})
    listed: list[Json] = [files[path] for path in sorted(files)]
    whole: dict[str, Json] = {"schema": TREE_SCHEMA, "files": listed, "changes": True}
    if removed:
        whole["removed"] = removed
    if settled:
        whole["settled"] = [_settled(one) for one in sorted(settled, key=lambda one: one.path)]
    return canonical(whole)


def _file(entry: Entry) -> dict[str, Json]:
    mode = "755" if entry.executable else "644"
    return {"path": entry.path, "digest": entry.digest, "mode": mode, "size": entry.size}


def _settled(one: Settled) -> dict[str, Json]:
    was: dict[str, Json] = {"base_mode": "755"} if one.base_executable else {}
    was |= {"base": one.base, "over": [*one.over], "won": one.won}
    return {"path": one.path, "digest": one.digest, **was}


def settled_in(manifest: bytes) -> tuple[Settled, ...]:
    """The paths that people decided about, as a manifest tells; none in most."""
    try:
        data = cast("Mapping[str, Json]", json.loads(manifest))
        rows = cast("list[Mapping[str, Json]]", data.get("settled", []))
        return tuple(
            Settled(
                path=str(row["path"]),
                digest=_named(row["digest"]),
                base=_named(row["base"]),
                base_executable=row.get("base_mode") == "755",
                over=tuple(_named(one) for one in cast("list[Json]", row["over"])),
                won=row["won"] is True,
            )
            for row in rows
        )
    except (ValueError, KeyError, TypeError) as error:
        raise IntegrityError("a set of changes cannot be read") from error


def _named(value: Json) -> Digest | None:
    return None if value is None else Digest(str(value))


def changes_in(manifest: bytes) -> tuple[Change, ...]:
    """The changes that a manifest holds, by path; none if it is only of files."""
    try:
        data = cast("Mapping[str, Json]", json.loads(manifest))
        files = cast("list[Mapping[str, str]]", data["files"])
        removed = cast("list[Mapping[str, str]]", data.get("removed", []))
        found = [_change(item) for item in (*files, *removed) if "base" in item]
    except (ValueError, KeyError, TypeError) as error:
        raise IntegrityError("a set of changes cannot be read") from error
    return tuple(sorted(found, key=lambda change: change.path))


def _change(item: Mapping[str, str]) -> Change:
    base = item["base"]
    return Change(
        path=item["path"],
        digest=Digest(item["digest"]) if "digest" in item else None,
        executable=item.get("mode") == "755",
        size=int(item.get("size", 0)),
        base=Digest(base) if base else None,
        base_executable=item.get("base_mode") == "755",
        over=Digest(item["over"]) if "over" in item else None,
    )
