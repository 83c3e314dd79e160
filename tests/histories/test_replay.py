"""What earlier versions left is read for ever: the same events, the same chain, the same states."""

import base64
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from holdfast.core.views import run_json
from holdfast.engine.asked import asked_in
from holdfast.engine.audit import audit
from holdfast.engine.journals import read_state
from holdfast.engine.outlays import saved_in
from holdfast.engine.rebuilt import rebuilt_index
from holdfast.engine.replans import led_to
from holdfast.model.digest import Json, digest_bytes
from holdfast.model.event import RunResumed
from holdfast.model.plan import RunId
from holdfast.ports import Append, Batch, RunRow, Store
from holdfast.store.codec import KINDS, decode, encode, first_hash, next_hash
from holdfast.store.memory import MemoryStore
from holdfast.store.sqlite import SqliteStore

GOLDEN = Path(__file__).parent / "golden"
Stored = Mapping[str, Any]


def _histories() -> Iterator[tuple[str, Stored]]:
    for file in sorted(GOLDEN.glob("*.json")):
        for name, stored in json.loads(file.read_text()).items():
            yield f"{file.stem}-{name}", stored


HISTORIES = dict(_histories())


def test_every_kind_of_event_has_a_history() -> None:
    kinds = {row[2] for h in HISTORIES.values() for rows in h["journals"].values() for row in rows}
    assert kinds == {*KINDS}


@pytest.mark.req("R186")
@pytest.mark.parametrize("name", HISTORIES)
def test_every_event_is_read_and_written_as_it_was_and_the_chain_holds(name: str) -> None:
    for journal, rows in HISTORIES[name]["journals"].items():
        chain = first_hash(journal)
        for seq, at, kind, body, recorded in rows:
            assert encode(decode(kind, body)) == (kind, body)
            chain = next_hash(chain, seq, at, kind, body)
            assert chain.hex() == recorded


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made: Store = MemoryStore()
    if request.param == "sqlite":
        made = SqliteStore.open(str(tmp_path / "store"), create=True)
    yield made
    made.close()


def _engines(history: Stored, run: str) -> int:
    """How many engines had a run, one after the other: its fence is at least that."""
    kinds = [row[2] for row in history["journals"][f"run:{run}"]]
    return 1 + kinds.count("run_resumed")


def _fill(store: Store, history: Stored) -> None:
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


def _as_then(now: Any, then: Any) -> Any:
    """What is said now, without the keys that nobody knew then: later versions may say more."""
    if not isinstance(then, dict):
        return now
    return {key: _as_then(value, then[key]) for key, value in now.items() if key in then}


def _is_resumed(store: Store, run: str) -> bool:
    return any(isinstance(item.event, RunResumed) for item in store.read(f"run:{run}"))


@pytest.mark.parametrize("name", HISTORIES)
def test_every_run_folds_to_the_state_it_had(store: Store, name: str) -> None:
    history = HISTORIES[name]
    _fill(store, history)
    for run, then in history["states"].items():
        state = read_state(store, RunId(run))
        assert state is not None
        asked = asked_in(store, state)
        saved = saved_in(store, state).cost
        file, replaces = then["plan"]["file"], led_to(store, state)
        now = run_json(state, file=file, now=0, asked=asked, saved=saved, replaces=replaces)
        if then["status"] == "superseded" or _is_resumed(store, run):
            # Then it was the time from the last start to the end, now it is that of work in all starts.
            cast("dict[str, Json]", now["totals"])["duration_ms"] = then["totals"]["duration_ms"]
        assert _as_then(now, then) == then, run
    assert audit(store).problems == ()
