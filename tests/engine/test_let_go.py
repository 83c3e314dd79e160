"""What a run let go of is asked of the store again."""

from collections.abc import Mapping

from holdfast.core.changes import Probe
from holdfast.engine.probe import Prober
from holdfast.engine.survey import Survey
from holdfast.model.artifact import Artifact
from holdfast.model.digest import Json
from holdfast.model.event import Options
from holdfast.model.plan import Plan, RunId, Step, StepId
from holdfast.ports import Batch, Store
from holdfast.store.memory import MemoryStore
from holdfast.wire.workshop import ignore_rules

STEP = Step(StepId("one"), run=("true",))
PLAN = Plan(name="words", steps={STEP.id: STEP})


class Commands:
    """Steps are what their plan says, and nothing more."""

    def identity(self, step: Step, root: str) -> Mapping[str, Json]:
        del step, root
        return {}


def prober(store: Store) -> Prober:
    survey = Survey(".", store, Commands(), PLAN, ignore_rules)
    return Prober(store, survey, PLAN, "", "words")


def probed(by: Prober) -> Probe:
    return by.probe(STEP, {}, Options(), previous=None).probe


def test_a_row_that_was_let_go_is_found_again() -> None:
    store = MemoryStore()
    refs, digest = probed(prober(store)).refs, store.put(b"tide")
    row = Artifact("", "words", STEP.id, *refs, digest, "accepted", "generated", RunId("r-1"), 1)
    store.commit(Batch([], [row], []))
    run = prober(store)
    first = probed(run).found
    assert first is not None
    run.let_go(first)
    assert probed(run).found == first
