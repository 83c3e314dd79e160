"""Checkpoints in a directory: files, an index, a pointer to the latest, and how long each kind is kept.

A checkpoint names a position in a run's journal and shows how the graph stood there. The journal is the
truth: a checkpoint can be deleted at any time, and nothing is lost with it.

```text
CP-enrich-20250114103000-a3f2.json   one checkpoint; `sha256` covers all of it but itself
index.json                           all that are kept, oldest first, and which is the latest
latest                               the id of the latest, for those who read no index
```

Each file is written whole or not at all: first the checkpoint, then the index, then the pointer, then
what is no longer kept is removed. Whatever is damaged is passed over for the one before it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, cast

from holdfast.errors import UsageError, outside_fault
from holdfast.model.digest import Json, digest_bytes

VERSION = "1.0"
RETENTION = {  # how many are kept of a kind, of one phase; -1 is all
    "phase_transition": -1,
    "batch_complete": 3,
    "agent_complete": 1,
    "conflict_start": 1,
    "conflict_resolved": -1,
    "user_interrupt": 1,
    "session_end": 1,
    "manual": -1,
}
TRIGGERS = tuple(RETENTION)
INDEX = "index.json"
LATEST = "latest"
_ID = re.compile(r"CP-(?:[A-Za-z0-9_]+-)?[0-9]{8,14}-[0-9a-f]{4,64}\Z")
_HASH = 8
_LARGEST = 64 * 2**20


class Broken(NamedTuple):
    """A checkpoint that cannot be used, and why."""

    checkpoint_id: str
    why: str


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One checkpoint as it was read; `where` is the file."""

    data: Mapping[str, Json]
    where: str

    @property
    def id(self) -> str:
        return str(self.data["checkpoint_id"])

    @property
    def graph_state(self) -> Mapping[str, Json]:
        """How the graph stood."""
        return cast("Mapping[str, Json]", self.data["graph_state"])

    @property
    def own(self) -> Mapping[str, Json]:
        """What this program wrote beside the format: the run, the place in its journal, files."""
        found = self.data.get("holdfast")
        return found if isinstance(found, Mapping) else {}

    def statuses(self) -> dict[str, str]:
        """The status of each node."""
        nodes = cast("Mapping[str, Mapping[str, Json]]", self.graph_state["node_states"])
        return {name: str(node.get("status")) for name, node in nodes.items()}


def checkpoint_id(phase: str, created_at: str, named: Mapping[str, Json]) -> str:
    """`CP-{phase}-{time}-{hash}`; the hash is of what it names, a run and a place in its journal."""
    stamp = re.sub(r"[^0-9]", "", created_at)[:14]
    word = re.sub(r"[^A-Za-z0-9_]", "_", phase)
    spelled = json.dumps(named, sort_keys=True).encode()
    return f"CP-{word}-{stamp}-{digest_bytes(spelled)[:_HASH]}"


def sealed(data: Mapping[str, Json]) -> dict[str, Json]:
    """A checkpoint with the digest of all that it says."""
    bare = {key: value for key, value in data.items() if key != "sha256"}
    return {**bare, "sha256": _digest(bare)}


def _digest(bare: Mapping[str, Json]) -> str:
    return digest_bytes(json.dumps(bare, sort_keys=True, ensure_ascii=False).encode())


def parse(content: bytes, where: str) -> Checkpoint:
    """Read a checkpoint; UsageError says what is wrong with it."""
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"'{where}' is damaged: it is not JSON") from error
    if isinstance(data, dict) and {"tasks", "completed_ids"} <= data.keys():
        raise UsageError(
            f"'{where}' is the checkpoint of an agent's session: a flat list of tasks, no graph",
            hint=f"holdfast import {where} -o plan.yaml makes a plan of it",
        )
    if not isinstance(data, dict) or not isinstance(data.get("checkpoint_id"), str):
        raise UsageError(
            f"'{where}' is no checkpoint: it has no 'checkpoint_id'",
            hint="holdfast checkpoint --list",
        )
    said = data.get("sha256")
    if said is not None and said != sealed(data)["sha256"]:
        raise UsageError(f"'{where}' is damaged: it does not say what was written")
    state = data.get("graph_state", data.get("execution_graph"))
    nodes = state.get("node_states") if isinstance(state, dict) else None
    if not isinstance(nodes, dict) or not all(isinstance(node, dict) for node in nodes.values()):
        raise UsageError(f"'{where}' has no 'graph_state' with 'node_states'")
    return Checkpoint({**data, "graph_state": state}, where)


class Folder:
    """The checkpoints of one line."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)

    def entries(self) -> list[Mapping[str, Json]]:
        """What the index says, oldest first; made anew from the files if it is damaged or missing."""
        try:
            data = json.loads((self.path / INDEX).read_bytes())
            listed = data["checkpoints"]
            if all(isinstance(item, dict) and "checkpoint_id" in item for item in listed):
                return [item for item in listed if self._file(str(item["checkpoint_id"])).is_file()]
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return [_entry(found.data) for found in self._readable()]

    def _readable(self) -> Iterator[Checkpoint]:
        found = []
        for file in self.path.glob("CP-*.json") if self.path.is_dir() else ():
            try:
                found.append(self.read(file.stem))
            except UsageError:
                continue
        yield from sorted(found, key=lambda one: (str(one.data.get("created_at")), one.id))

    def _file(self, name: str) -> Path:
        if not _ID.match(name):
            raise UsageError(
                f"'{name}' is not the id of a checkpoint", hint="holdfast checkpoint --list"
            )
        return self.path / f"{name}.json"

    def read(self, name: str) -> Checkpoint:
        """One checkpoint; UsageError if it is not there or damaged."""
        file = self._file(name)
        try:
            with file.open("rb") as stream:
                content = stream.read(_LARGEST)
        except OSError as error:
            raise UsageError(
                f"there is no checkpoint '{name}' in '{self.path}'",
                hint="holdfast checkpoint --list",
            ) from error
        return parse(content, str(file))

    def latest(self) -> tuple[Checkpoint | None, list[Broken]]:
        """The newest that can be used, and the newer ones that cannot."""
        broken: list[Broken] = []
        for entry in reversed(self.entries()):
            name = str(entry["checkpoint_id"])
            try:
                return self.read(name), broken
            except UsageError as error:
                broken.append(Broken(name, error.message))
        return None, broken

    def write(self, data: Mapping[str, Json]) -> Checkpoint:
        """Add a checkpoint and remove what is no longer kept."""
        whole = sealed(data)
        name = str(whole["checkpoint_id"])
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            listed = [one for one in self.entries() if one["checkpoint_id"] != name]
            _put(self._file(name), whole)
            kept, gone = retained([*listed, _entry(whole)])
            self._put_index(kept, name)
            for entry in gone:
                self._file(str(entry["checkpoint_id"])).unlink(missing_ok=True)
        except OSError as error:
            fault = outside_fault(error)
            raise fault or UsageError(f"cannot write to '{self.path}': {error.strerror}") from error
        return Checkpoint(whole, str(self._file(name)))

    def _put_index(self, kept: Sequence[Mapping[str, Json]], latest: str) -> None:
        listed: list[Json] = [*kept]
        index: dict[str, Json] = {
            "checkpoints": listed,
            "latest": latest,
            "total_checkpoints": len(kept),
        }
        _put(self.path / INDEX, index)
        _put_text(self.path / LATEST, latest + "\n")


def _entry(data: Mapping[str, Json]) -> dict[str, Json]:
    recovery = data.get("recovery_info")
    return {
        "checkpoint_id": data["checkpoint_id"],
        "created_at": data.get("created_at"),
        "trigger": data.get("trigger", "manual"),
        "phase": data.get("phase"),
        "can_resume": bool(recovery.get("can_resume")) if isinstance(recovery, Mapping) else False,
    }


def retained(
    entries: Sequence[Mapping[str, Json]],
) -> tuple[list[Mapping[str, Json]], list[Mapping[str, Json]]]:
    """What is kept and what is not, by kind and phase, the newest first to stay."""
    seen: dict[tuple[Json, Json], int] = {}
    kept: list[Mapping[str, Json]] = []
    gone: list[Mapping[str, Json]] = []
    for entry in reversed(entries):
        kind = (entry.get("trigger"), entry.get("phase"))
        most = RETENTION.get(str(kind[0]), -1)
        seen[kind] = seen.get(kind, 0) + 1
        (kept if most < 0 or seen[kind] <= most else gone).append(entry)
    return kept[::-1], gone[::-1]


def _put(path: Path, data: Mapping[str, Json]) -> None:
    _put_text(path, json.dumps(data, ensure_ascii=False, indent=2) + "\n")


def _put_text(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with draft.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    draft.replace(path)


# --- the branch ---------------------------------------------------------------------------------


def branch_of(root: str) -> str | None:
    """The git branch that is checked out in a directory or above it; None if there is none."""
    folder = _git_folder(root)
    try:
        head = (folder / "HEAD").read_text().strip() if folder else ""
    except (OSError, UnicodeDecodeError):
        return None
    name = head.removeprefix("ref: refs/heads/")
    return name if name and name != head else None


def has_branch(root: str, name: str) -> bool:
    """Whether a git branch is there."""
    folder = _git_folder(root)
    if folder is None:
        return False
    common = folder
    try:
        linked = (folder / "commondir").read_text().strip()
        common = (folder / linked).resolve()
    except OSError:
        pass
    if (common / "refs" / "heads" / name).is_file():
        return True
    try:
        packed = (common / "packed-refs").read_text()
    except (OSError, UnicodeDecodeError):
        packed = ""
    return branch_of(root) == name or any(
        line.endswith(f" refs/heads/{name}") for line in packed.splitlines()
    )


def _git_folder(root: str) -> Path | None:
    for folder in (Path(root), *Path(root).resolve().parents):
        place = folder / ".git"
        if place.is_dir():
            return place
        if place.is_file():
            try:
                pointed = place.read_text().strip().removeprefix("gitdir: ")
            except (OSError, UnicodeDecodeError):
                return None
            return (folder / pointed).resolve()
    return None
