"""What attempts may take at once."""

from dataclasses import replace

from holdfast.core.room import capacity, demands_of, fits, taken_by
from holdfast.model.plan import Limits
from tests.core.builders import plan, sid, step

GPU, DISK, CODER = ("resource", "gpus"), ("resource", "disk"), ("agent", "coder")
LIMITS = Limits(resources={"disk": 4}, agents={"coder": 2})
PLAN = plan(
    replace(step("a"), resources={"gpus": 2, "disk": 1}, agent="coder"),
    replace(step("b"), resources={"disk": 3}, agent="other"),
    replace(step("c"), agent="coder"),
    step("d"),
    limits=LIMITS,
)


def test_only_what_is_scarce_is_kept_account_of() -> None:
    assert demands_of(PLAN) == {
        sid("a"): ((DISK, 1), (GPU, 2), (CODER, 1)),
        sid("b"): ((DISK, 3),),
        sid("c"): ((CODER, 1),),
    }
    assert demands_of(plan(replace(step("c"), agent="coder"))) == {}


def test_what_runs_together_is_added_up() -> None:
    running = [sid("a"), sid("b"), sid("d")]
    assert taken_by(demands_of(PLAN), running) == {DISK: 4, GPU: 2, CODER: 1}


def test_a_resource_is_there_as_often_as_the_limits_say_else_once() -> None:
    assert capacity(LIMITS, DISK) == 4
    assert capacity(LIMITS, ("resource", "printer")) == 1
    assert capacity(LIMITS, CODER) == 2


def test_a_person_may_say_less_of_his_machine_and_name_what_the_plan_does_not() -> None:
    assert capacity(LIMITS, DISK, {"disk": 2}) == 2
    assert capacity(LIMITS, DISK, {"disk": 9}) == 4
    assert capacity(LIMITS, ("resource", "printer"), {"printer": 3}) == 3


def test_processors_are_for_the_machine_to_know_unless_somebody_says() -> None:
    assert capacity(LIMITS, GPU) > 1 << 40
    assert capacity(LIMITS, GPU, {"gpus": 2}) == 2
    assert capacity(Limits(resources={"gpus": 3}), GPU) == 3


def test_an_attempt_fits_if_all_that_it_takes_does() -> None:
    demands = demands_of(PLAN)[sid("a")]
    assert fits(demands, {DISK: 3, CODER: 1}, LIMITS)
    assert not fits(demands, {DISK: 4, CODER: 1}, LIMITS)
    assert not fits(demands, {DISK: 3, CODER: 2}, LIMITS)
    assert not fits(demands, {}, LIMITS, {"gpus": 1})
    assert fits((), {DISK: 9}, LIMITS)
