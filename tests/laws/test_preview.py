"""What a preview says is what the run then does, for random plans and random edits of them."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from holdfast.core.preview import Outlook
from holdfast.core.state import State
from holdfast.engine.foresee import Foreseen, foresee
from holdfast.engine.survey import Survey
from holdfast.model.event import AttemptStarted, Options
from holdfast.model.plan import StepId
from holdfast.store.memory import MemoryStore
from tests.laws.harness import LINE, Bed, Stage, perform
from tests.laws.plans import chain, plan, step
from tests.laws.scenarios import scenarios
from tests.laws.script import scripted

slow = list(HealthCheck)


def ahead(bed: Bed, stage: Stage) -> Foreseen:
    """The preview of a stage whose amendments are made."""
    world = bed.world(scripted(stage.salts))
    survey = Survey(bed.root, bed.store, world.executor, stage.plan, world.ignores)
    return foresee(stage.plan, LINE, bed.root, bed.store, survey, stage.options, bed.clock)


def perform_as_foreseen(bed: Bed, stages: tuple[Stage, ...]) -> None:
    for stage in stages:
        for step_id, content in stage.amended:
            bed.amend(stage.plan, step_id, content)
        amended = replace(stage, amended=())
        foreseen = ahead(bed, amended)
        assert ahead(bed, amended).digest == foreseen.digest, "two looks are one"
        state = perform(bed, amended).state
        kept_word(bed, foreseen, state)


def kept_word(bed: Bed, foreseen: Foreseen, state: State) -> None:
    first: dict[StepId, AttemptStarted] = {}
    for recorded in bed.store.read(f"run:{state.run}"):
        if isinstance(recorded.event, AttemptStarted):
            first.setdefault(recorded.event.step, recorded.event)
    for step_id, outlook in foreseen.outlooks.items():
        if state.steps[step_id].phase != "skipped":  # nobody can foresee a failure
            kept(step_id, outlook, state, first.get(step_id))


def kept(step_id: StepId, outlook: Outlook, state: State, begun: AttemptStarted | None) -> None:
    told = (step_id, outlook.decision, outlook.reason)
    found = state.steps[step_id]
    match outlook.decision:
        case "reuse":
            assert (found.phase, begun) == ("reused", None), told
            assert outlook.artifact is not None
            assert found.digest == outlook.artifact.digest
            assert found.reason is not None
            assert found.reason.code == outlook.reason.code, told
        case "run":
            assert begun is not None, told
            assert (begun.reguard is not None) == (outlook.means == "adopt"), told
            assert outlook.probe is not None
            if outlook.probe.refs.config_ref:
                assert begun.config_ref == outlook.probe.refs.config_ref, told
                assert begun.reason.code == outlook.reason.code, told
        case "maybe":
            assert outlook.reason.code in {"upstream_changed", "guard_changed"}
        case "wait":
            raise AssertionError(told)


@pytest.mark.req("R55", "R107")
@settings(max_examples=25, deadline=None, suppress_health_check=slow)
@given(stages=scenarios(8))
def test_a_run_does_what_its_preview_says(root: str, stages: tuple[Stage, ...]) -> None:
    perform_as_foreseen(Bed(MemoryStore(), root), stages)


@pytest.mark.req("R107")
def test_a_step_that_is_again_what_it_was_is_not_promised_to_run(root: str) -> None:
    bed = Bed(MemoryStore(), root)
    once, other = plan(*chain("z", "m")), plan(step("z"), step("m", "z", text=2))
    perform_as_foreseen(bed, (Stage(once), Stage(other)))
    again = Stage(once, Options(force_steps=(StepId("z"),)))
    outlooks = ahead(bed, again).outlooks
    assert [outlook.decision for outlook in outlooks.values()] == ["run", "maybe"]
    state = perform(bed, again).state
    assert [state.steps[name].phase for name in state.graph.order] == ["done", "reused"]


@pytest.mark.soak
@pytest.mark.req("R107")
@settings(max_examples=2000, deadline=None, suppress_health_check=slow)
@given(stages=scenarios(12, 6))
def test_many_runs_do_what_their_previews_say(root: str, stages: tuple[Stage, ...]) -> None:
    perform_as_foreseen(Bed(MemoryStore(), root), stages)
