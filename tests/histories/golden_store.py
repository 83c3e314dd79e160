"""Recorded histories, and stores that hold them."""

import base64
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from holdfast.engine.rebuilt import rebuilt_index
from holdfast.model.digest import digest_bytes
from holdfast.model.plan import RunId
from holdfast.ports import Append, Batch, RunRow, Store
from holdfast.store.codec import decode

GOLDEN = Path(__file__).parent / "golden"
Stored = Mapping[str, Any]


def _histories() -> Iterator[tuple[str, Stored]]:
    for file in sorted(GOLDEN.glob("*.json")):
        for name, stored in json.loads(file.read_text()).items():
            yield f"{file.stem}-{name}", stored


HISTORIES = dict(_histories())


def _engines(history: Stored, run: str) -> int:
    """How many engines had a run, one after the other: its fence is at least that."""
    kinds = [row[2] for row in history["journals"][f"run:{run}"]]
    return 1 + kinds.count("run_resumed")


def fill(store: Store, history: Stored) -> None:
    """Put a history into an empty store, with the index that its journals give."""
    for digest, content in history["contents"].items():
        raw = base64.b64decode(content)
        assert digest_bytes(raw) == digest
        store.put(raw)
    rows = [
        RunRow(RunId(run), project, line, number, _engines(history, run), imported=bool(imported))
        for run, project, line, number, imported in history["runs"]
    ]
    fences = {f"run:{row.run}": row.fence for row in rows}
    appends = [
        Append(
            journal,
            0,
            [(at, decode(kind, body)) for _, at, kind, body, _ in rows],
            fences.get(journal),
        )
        for journal, rows in history["journals"].items()
        if rows
    ]
    store.add_runs(rows, Batch(appends))
    store.replace_artifacts(lambda: rebuilt_index(store))
