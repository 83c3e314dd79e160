"""The index is compared with one that the checker builds by itself, whatever `rebuild` would do."""

import random
from dataclasses import replace
from typing import Any

import pytest

from holdfast.engine import audit as auditing
from holdfast.engine.audit import audit
from holdfast.engine.indexed import unindexed
from holdfast.model.artifact import Artifact
from holdfast.store.memory import MemoryStore
from tests.histories.golden_store import HISTORIES, fill

OTHERS: dict[str, object] = {
    "step": "another",
    "config_ref": "0" * 64,
    "input_ref": "1" * 64,
    "own_ref": "2" * 64,
    "digest": "3" * 64,
    "status": "interrupted",
    "source": "elsewhere",
    "attempt": 99,
    "form": "program",
    "verified": None,
    "reusable": None,
    "at": 1,
}


@pytest.mark.req("I3")
@pytest.mark.parametrize("name", HISTORIES)
def test_every_part_of_a_row_is_compared(name: str) -> None:
    store, dice = MemoryStore(), random.Random(name)
    fill(store, HISTORIES[name])
    runs, rows = store.runs(imported=True), [replace(row, number=0) for row in store.artifacts()]
    assert list(unindexed(store, runs)) == []
    if not rows:
        return
    place = dice.randrange(len(rows))
    for part, other in OTHERS.items():
        value = not getattr(rows[place], part) if other is None else other
        changed = [*rows]
        changed[place] = _other(rows[place], **{part: value})
        _put(store, changed)
        assert list(unindexed(store, runs)), part
    for changed in (rows[:place] + rows[place + 1 :], [*rows, rows[place]]):
        _put(store, changed)
        assert list(unindexed(store, runs))


def _other(row: Artifact, **parts: Any) -> Artifact:
    return replace(row, **parts)


def _put(store: MemoryStore, rows: list[Artifact]) -> None:
    store.replace_artifacts(lambda: rows)


@pytest.mark.req("I3")
def test_a_mistake_of_whatever_builds_the_index_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    fill(store, HISTORIES["basic-main"])
    rows = [replace(row, number=0) for row in store.artifacts()]
    wrong = [replace(rows[0], verified=not rows[0].verified), *rows[1:]]
    _put(store, wrong)
    monkeypatch.setattr(auditing, "rebuilt_index", lambda _: wrong)
    assert any("does not follow from the journals" in told for told in audit(store).problems)
    assert audit(store).bits == 1
