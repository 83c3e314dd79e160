"""What may have happened outside is open until it is confirmed, or a person said how it is."""

from dataclasses import replace

import pytest

from holdfast.core.effects import (
    is_cut_off,
    is_given,
    is_in_hand,
    is_open,
    made_none,
    takes_again,
)
from holdfast.core.state import State
from holdfast.model.event import (
    AttemptFailed,
    EffectStarted,
    Event,
    Reason,
    Reused,
    StepHeld,
    StepsReused,
)
from tests.core.builders import (
    about,
    accepted,
    failed,
    follow,
    lost,
    plan,
    ref,
    sid,
    started,
    state_of,
    step,
    waived,
)

S = sid("s")
ONCE = replace(step("s"), effects="external")
BEGUN = (started("s"), about("s", "effect_started"))
CONFIRMED = about("s", "effect_confirmed")
PARKED = about("s", "attempt_parked")
HELD = StepHeld(S, Reason("effect_unconfirmed"))


def after(*events: Event) -> State:
    return state_of(plan(ONCE), *events)


def stood(code: str) -> StepsReused:
    return StepsReused((Reused(S, ref("c"), ref("x"), code=code),))


def test_who_is_held_for_a_receipt_that_is_gone_left_nothing_open() -> None:
    gone = after(StepHeld(S, Reason("receipt_gone")))
    assert is_open(gone, S) is None
    assert made_none(gone, S)
    assert made_none(after(HELD), S)
    assert not made_none(after(StepHeld(S, Reason("stuck"))), S)


def test_earlier_runs_have_to_be_asked_where_this_one_did_nothing() -> None:
    assert is_open(after(), sid("unknown")) is None
    assert is_open(after(), S) is None
    assert is_open(after(stood("unchanged")), S) is None


def test_an_effect_is_open_from_its_beginning_until_it_is_confirmed() -> None:
    assert is_open(after(started("s")), S) is False
    assert is_open(after(*BEGUN), S) is True
    assert is_open(after(*BEGUN, CONFIRMED), S) is False
    assert is_open(after(*BEGUN, CONFIRMED, accepted("s")), S) is False


def test_an_attempt_that_was_lost_leaves_it_open_and_a_command_that_ended_does_not() -> None:
    assert is_open(after(*BEGUN, lost("s")), S) is True
    assert is_open(after(*BEGUN, failed("s")), S) is False
    assert is_open(after(*BEGUN, AttemptFailed(S, 1, "timeout")), S) is True
    again = (started("s", 2), EffectStarted(S, 2, ref("key")))
    assert is_open(after(*BEGUN, failed("s"), *again), S) is True


def test_what_waits_for_a_person_is_open() -> None:
    assert is_open(after(*BEGUN, lost("s"), HELD), S) is True
    assert is_open(after(started("s"), PARKED), S) is True
    assert is_open(after(StepHeld(S, Reason("awaiting_approval"))), S) is None


def test_a_step_that_people_went_without_tells_nothing_of_its_effect() -> None:
    assert is_open(after(waived("s")), S) is None
    assert is_open(after(*BEGUN, lost("s"), waived("s")), S) is True


def test_who_drives_the_run_has_it_in_hand_while_it_runs_or_is_parked() -> None:
    assert not is_in_hand(after(), S)
    assert not is_in_hand(after(), sid("unknown"))
    assert is_in_hand(after(started("s")), S)
    assert is_in_hand(after(*BEGUN, PARKED), S)
    assert not is_in_hand(after(*BEGUN, lost("s")), S)
    assert not is_in_hand(after(*BEGUN, CONFIRMED, accepted("s")), S)
    harmless = state_of(plan(step("s")), started("s"))
    assert not is_in_hand(harmless, S)


def test_only_what_may_be_done_once_and_is_made_is_cut_off_with_its_engine() -> None:
    assert is_cut_off(after(started("s")), S)
    assert not is_cut_off(after(), S)
    assert not is_cut_off(after(replace(started("s"), reguard=ref("kept"))), S)
    assert not is_cut_off(state_of(plan(step("s")), started("s")), S)
    harmless = replace(ONCE, idempotent=True)
    assert not is_cut_off(state_of(plan(harmless), started("s")), S)


@pytest.mark.parametrize(
    "code, again, given",
    [
        ("unchanged", True, False),
        ("unchanged_content", True, False),
        ("reguarded", True, False),
        ("amended", True, True),
        ("accepted_by_person", True, True),
        ("matrix", False, False),
    ],
)
def test_what_a_run_took_again_may_be_the_receipt_of_another_effect(
    code: str, again: bool, given: bool
) -> None:
    state = after(stood(code))
    assert takes_again(state, S) is again
    assert is_given(state, S) is given
    assert is_open(state, S) is (None if again else False)


def test_what_a_run_made_itself_is_no_receipt_of_another() -> None:
    made = after(*BEGUN, CONFIRMED, accepted("s"))
    assert not takes_again(made, S)
    assert not is_given(made, S)
    begun_before = follow(after(*BEGUN, CONFIRMED, failed("s")), stood("unchanged"))
    assert not takes_again(begun_before, S)
