"""What may have happened outside is open until it is confirmed, or a person said how it is."""

from dataclasses import replace

import pytest

from holdfast.core.effects import (
    UNRESOLVED,
    changes_lost,
    effect_name,
    has_hole,
    is_cut_off,
    is_given,
    is_in_hand,
    is_open,
    made_none,
    open_since,
    takes_again,
)
from holdfast.core.fold import fold
from holdfast.core.state import State
from holdfast.model.event import (
    AttemptFailed,
    EffectStarted,
    Event,
    Options,
    Reason,
    Reused,
    RunStarted,
    StepHeld,
    StepsReused,
)
from holdfast.model.line import StepAmended
from holdfast.model.plan import RunId
from tests.core.builders import (
    about,
    accepted,
    failed,
    follow,
    lost,
    plan,
    recorded,
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


# --- a line of runs -----------------------------------------------------------------------------------


class Line:
    """Runs that followed each other, each with what it did to the one step."""

    def __init__(self, *runs: tuple[Event, ...]) -> None:
        self._runs: dict[RunId, State] = {}
        for number, events in enumerate(runs):
            begun = RunStarted(
                *(RunId(f"r-{number}"), "line", "", ref("p"), ref("w"), Options(), "e"),
                previous=RunId(f"r-{number - 1}") if number else None,
            )
            state = fold(plan(ONCE), recorded([begun, *events]))
            self._runs[state.run] = state
        self._last = RunId(f"r-{len(runs) - 1}")

    def since(self, *words: StepAmended) -> dict[RunId, int] | None:
        return open_since(self._runs.get, words, S, self._last)


def gave(run: str, seq: int, text: str = "x") -> StepAmended:
    """A person gave content, when the line had come to this event of this run."""
    refs = (ref("c"), ref("i"), ref("o"))
    return StepAmended(
        S, *refs, ref(text), "bytes", True, "ann", None, None, RunId(run), after_seq=seq
    )


def test_an_effect_is_open_for_the_runs_of_its_line_that_came_after() -> None:
    assert Line((started("s"), failed("s"))).since() is None
    assert Line((*BEGUN, lost("s"))).since() == {"r-0": 3}
    assert Line((*BEGUN, lost("s")), (), (stood("unchanged"),)).since() == {
        "r-0": 3,
        "r-1": 0,
        "r-2": 0,
    }
    assert Line((*BEGUN, CONFIRMED, accepted("s")), ()).since() is None


def test_what_a_person_gave_settles_an_effect_once_it_stands() -> None:
    cut = (*BEGUN, lost("s"))
    stands = Line(cut, (stood("amended"),))
    assert stands.since() == {"r-0": 3, "r-1": 0}, "nobody said anything"
    assert stands.since(gave("r-0", 3)) is None
    assert stands.since(gave("r-0", 4)) is None
    assert stands.since(gave("r-0", 2)) is not None, "given before the effect began"
    assert stands.since(gave("r-0", 3, "other")) is not None, "not what stands"
    assert stands.since(gave("r-7", 9)) is not None, "about a run that is no part of it"
    assert Line(cut, ()).since(gave("r-0", 3)) is not None, "it does not stand yet"


def test_of_what_people_gave_the_latest_that_stood_counts() -> None:
    cut = (*BEGUN, lost("s"))
    first = StepsReused((Reused(S, ref("c"), ref("first"), code="amended"),))
    line = Line(cut, (first,), (stood("amended"),))
    assert line.since(gave("r-0", 3, "first")) is not None
    assert line.since(gave("r-1", 1)) is None


def test_an_attempt_has_a_name_that_other_runs_know() -> None:
    assert effect_name(after(*BEGUN), S) == "r-1.s.1"


def test_only_what_nobody_can_find_out_is_a_hole() -> None:
    assert has_hole(Reason("effect_doubted", ("x", f"m {UNRESOLVED}")))
    assert not has_hole(Reason("effect_doubted", ("x",)))
    assert not has_hole(Reason("command_changed", (f"m {UNRESOLVED}",)))


def test_who_lost_changes_is_told_what_makes_them_again() -> None:
    said = changes_lost("gone", sid("a"), sid("b c"), sid("a"))
    assert said.hint == "holdfast run --force-node a --force-node 'b c'"
