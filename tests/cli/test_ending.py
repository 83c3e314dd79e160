"""The last lines of a run: what it came to in one line, and commands that can be copied."""

from holdfast.cli.ending import end_block, headline, next_commands
from holdfast.cli.progress import Teller
from holdfast.cli.resume import resume_lines
from holdfast.cli.say import named
from holdfast.core.state import State, empty_state
from holdfast.model.digest import Digest
from holdfast.model.event import AttemptLost, AttemptStarted, Reason, Recorded
from holdfast.model.plan import Plan, RunId, Step, StepId
from holdfast.store.memory import MemoryStore

A, B = StepId("a"), StepId("b")


def state(status: str) -> State:
    made = empty_state(Plan("demo", {A: Step(A), B: Step(B)}))
    made.run = RunId("r-12345678-and-more")
    made.status = status  # type: ignore[assignment]  # the words of the test
    made.since, made.ended_at, made.worked = 1000, 67_000, 66_000
    return made


def test_the_run_in_one_line() -> None:
    done = state("completed")
    done.steps[A].phase = done.steps[B].phase = "reused"
    done.counts |= {"pending": 0, "reused": 2}
    assert headline(done, 99_000, driven=True, saved_ms=3_700_000) == (
        "r-12345678 completed · 2 of 2 done · 2 reused, 0 ran · 1 min 6 s, saved ~1 h 1 min"
    )
    assert end_block(done, 99_000)[-1] == "next: holdfast show b    holdfast plan"


def test_what_ran_and_failed_is_counted() -> None:
    failed = state("failed")
    failed.steps[A].phase = "failed"
    failed.counts |= {"pending": 1, "failed": 1}
    assert "· 0 reused, 0 ran, 1 failed · 1 min" in headline(failed, 99_000, driven=True)


def test_an_interruption_is_said_where_the_attempt_ran() -> None:
    running = state("running")
    begun = AttemptStarted(A, 1, Digest("c"), Digest("i"), Digest("o"), Reason("never_ran"))
    ended = Recorded(2, 0, AttemptLost(A, 1, "previous_interrupted"))
    resumed = Teller(MemoryStore())
    resumed.began(running)
    assert resumed.lines(ended) == []
    running.running[A] = begun
    looking_on = Teller(MemoryStore())
    looking_on.began(running)
    assert looking_on.lines(ended) == ["  a: attempt 1 was interrupted"]


def test_a_name_is_quoted_where_a_shell_would_read_it_otherwise() -> None:
    assert named("a.b-c_1") == "a.b-c_1"
    assert named("each[it's; rm]") == "'each[it'\"'\"'s; rm]'"


def test_commands_fit_the_state() -> None:
    wanted = {
        "running": "holdfast attach    holdfast stop",
        "paused": "holdfast resume    holdfast status",
        "limit": "holdfast resume    holdfast status",
        "superseded": "holdfast status    holdfast plan",
    }
    assert {status: next_commands(state(status)) for status in wanted} == wanted
    assert next_commands(state("running"), driven=False) == "holdfast resume"
    held = state("waiting")
    held.steps[B].phase, held.steps[B].reason = "waiting", Reason("effect_unconfirmed")
    assert next_commands(held) == "holdfast why b --run @    holdfast retry b"


def test_what_an_interrupted_attempt_had_cost() -> None:
    paused = state("paused")
    paused.steps[A].attempts, paused.steps[A].started_at = 2, 7_000
    paused.steps[A].last = Reason("previous_interrupted")
    assert resume_lines(paused) == [
        "resuming r-12345678: 0 of 2 steps are kept",
        "▸ a: attempt 2 was interrupted after 1 min 0 s; it runs again",
        "· 1 still to do: b",
    ]
    killed = state("running")
    killed.steps[A].phase, killed.steps[A].attempts, killed.steps[A].started_at = "running", 1, 1000
    killed.running[A] = AttemptStarted.__new__(AttemptStarted)
    killed.steps[B].phase, killed.steps[B].started_at, killed.steps[B].duration_ms = (
        "done",
        900,
        5100,
    )
    assert resume_lines(killed)[1] == (
        "▸ a: attempt 1 was interrupted after at least 5.0 s; it runs again"
    )
