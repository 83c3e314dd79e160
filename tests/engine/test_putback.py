"""Outputs are put back as they were, or the engine ends: it never goes on with half of that."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from holdfast.engine.outputs import Outputs
from holdfast.engine.putback import put_back
from holdfast.errors import StoreError
from holdfast.model.artifact import Entry
from holdfast.model.plan import Step, StepId
from holdfast.store.memory import MemoryStore
from holdfast.testing import ScriptedExecutor
from tests.laws.harness import Bed
from tests.scarce import no_more_descriptors


class Short(Outputs):
    """Looks once at outputs while nothing can be opened."""

    is_short = False

    def read_paths(self, paths: Sequence[str]) -> tuple[Entry, ...]:
        if not self.is_short:
            return super().read_paths(paths)
        self.is_short = False
        with no_more_descriptors():
            return super().read_paths(paths)


@pytest.mark.req("D03")
def test_a_file_that_cannot_be_opened_for_now_is_not_left_as_it_is(tmp_path: Path) -> None:
    made, store = tmp_path / "made.txt", MemoryStore()
    step = Step(StepId("a"), "command", run=("true",), produces=("made.txt",))
    outputs = Short(str(tmp_path), str(tmp_path / "edits"), store, {step.id: step})
    made.write_text("before")
    kept = outputs.keep(step)
    for _, content in kept.blobs:
        store.put(content)
    world = Bed(store, str(tmp_path)).world(ScriptedExecutor(lambda _: b""))
    made.write_text("half")
    outputs.is_short = True
    with pytest.raises(StoreError, match="open files"):
        put_back(world, outputs, step, kept.entries, "k")
    assert made.read_text() == "half", "the next engine finds it as it was"
    assert put_back(world, outputs, step, kept.entries, "k") is not None
    assert made.read_text() == "before"
