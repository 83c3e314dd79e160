"""Saved plans in a directory, for programs that read them there; each file is whole or not there.

```text
plans/<line>.json            the plan, and how its last run stands
plans/<line>.trace.jsonl     what happened in that run, only ever appended to
hashes/<line>.json           the hash of what each step made
checkpoints/agent-<line>.json  the same run as a flat list of tasks
```

These are views. The journal is the truth: all of them can be deleted, and written again from it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from glob import escape
from pathlib import Path
from typing import NamedTuple

from holdfast.errors import UsageError, outside_fault
from holdfast.formats.sunwell import MIGRATIONS, VERSION
from holdfast.formats.sunwellout import goal_hash
from holdfast.model.digest import Json

RECENT = 10


class Views(NamedTuple):
    """The four files of a line."""

    plan: Mapping[str, Json]
    trace: Iterable[Mapping[str, Json]]
    hashes: Mapping[str, Json]
    tasks: Mapping[str, Json]


class PlanFolder:
    """The saved plans of a store, by line; `path` is the store."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)

    def files(self, line: str) -> dict[str, Path]:
        """Where each of the files of a line is."""
        name = line.replace("%", "%25").replace("/", "%2F")
        return {
            "plan": self.path / "plans" / f"{name}.json",
            "trace": self.path / "plans" / f"{name}.trace.jsonl",
            "hashes": self.path / "hashes" / f"{name}.json",
            "tasks": self.path / "checkpoints" / f"agent-{name}.json",
        }

    def save(self, line: str, views: Views) -> dict[str, Path]:
        """Write the files of a line, the plan last: who sees it finds the others."""
        files = self.files(line)
        lines = "".join(f"{_compact(event)}\n" for event in views.trace)
        try:
            for file in files.values():
                file.parent.mkdir(parents=True, exist_ok=True)
            _put(files["trace"], lines)
            _put(files["hashes"], _readable(views.hashes))
            _put(files["tasks"], _readable(views.tasks))
            _put(files["plan"], _readable(views.plan))
        except OSError as error:
            fault = outside_fault(error)
            raise fault or UsageError(f"cannot write to '{self.path}': {error.strerror}") from error
        return files

    def load(self, line: str) -> Mapping[str, Json] | None:
        """The saved plan of a line; None if there is none, UsageError if it cannot be used."""
        return _read(self.files(line)["plan"])

    def find_by_goal(self, goal: str) -> Mapping[str, Json] | None:
        """The saved plan for exactly this goal, the newest if there are several."""
        wanted = goal_hash(goal)
        found = (plan for plan in self.recent(None) if plan.get("goal_hash") == wanted)
        return next(found, None)

    def recent(self, limit: int | None = RECENT) -> list[Mapping[str, Json]]:
        """The saved plans, the one that changed last first; what cannot be used is passed over."""
        folder = self.path / "plans"
        found = []
        for file in folder.glob("*.json") if folder.is_dir() else ():
            try:
                plan = _read(file)
            except UsageError:
                continue
            if plan is not None:
                found.append((str(plan.get("updated_at") or ""), file.name, plan))
        found.sort(key=lambda one: one[:2], reverse=True)
        return [plan for _, _, plan in found][:limit]


def _read(file: Path) -> Mapping[str, Json] | None:
    try:
        data = json.loads(file.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"'{file}' is damaged", hint="holdfast export --views") from error
    version = data.get("version") if isinstance(data, dict) else None
    if version not in MIGRATIONS:
        said = f"has version '{version}'" if version is not None else "has no version"
        raise UsageError(f"'{file}' {said}", hint=f'this version of holdfast reads "{VERSION}"')
    found: Mapping[str, Json] = data
    return found


def _compact(value: Mapping[str, Json]) -> str:
    return json.dumps(value, ensure_ascii=False)


def _readable(value: Mapping[str, Json]) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def _put(path: Path, text: str) -> None:
    _sweep(path)
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with draft.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    draft.replace(path)


def _sweep(path: Path) -> None:
    """Remove drafts of a file that died with their process."""
    for draft in path.parent.glob(f".{escape(path.name)}.*.tmp"):
        process = draft.name.removesuffix(".tmp").rpartition(".")[2]
        if process.isdecimal() and not _lives(int(process)):
            draft.unlink(missing_ok=True)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True
