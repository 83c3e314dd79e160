"""Short words for plans and events."""

from collections.abc import Iterable
from itertools import pairwise

from holdfast.core.fold import apply, fold
from holdfast.core.state import Phase, State
from holdfast.model.artifact import Artifact, Source
from holdfast.model.digest import Digest, digest_bytes
from holdfast.model.event import (
    AnswersKept,
    AttemptAccepted,
    AttemptFailed,
    AttemptLost,
    AttemptParked,
    AttemptRejected,
    AttemptStarted,
    CallAnswered,
    CallFailed,
    CallStarted,
    EffectConfirmed,
    EffectStarted,
    Event,
    GapClosed,
    Options,
    OutputsPlaced,
    Reason,
    Recorded,
    Reused,
    RunStarted,
    Skipped,
    StepFailed,
    StepHeld,
    StepsReleased,
    StepsReopened,
    StepsReset,
    StepsReused,
    StepsSkipped,
    StepsTaken,
    StepWaived,
    Taken,
    ToolStarted,
    ToolUsed,
    Used,
)
from holdfast.model.plan import Limits, Need, Plan, RunId, Step, StepId

NEVER = Reason("never_ran")


def sid(name: str) -> StepId:
    return StepId(name)


def ref(text: str) -> Digest:
    return digest_bytes(text.encode())


def step(name: str, *needs: str) -> Step:
    """A step; a need written `~x` is one of order only."""
    edges = tuple(
        Need(sid(need.lstrip("~")), "sequence" if need.startswith("~") else "data")
        for need in needs
    )
    return Step(sid(name), needs=edges)


def plan(*steps: Step, limits: Limits | None = None) -> Plan:
    return Plan("line", {one.id: one for one in steps}, limits=limits or Limits())


def graph(text: str) -> Plan:
    """`z>m>a z>b`: chains of needs, prerequisite first."""
    needs: dict[str, list[str]] = {}
    for chain in text.split():
        names = chain.split(">")
        for name in names:
            needs.setdefault(name, [])
        for above, below in pairwise(names):
            needs[below].append(above)
    return plan(*(step(name, *above) for name, above in needs.items()))


def begun(options: Options | None = None) -> RunStarted:
    return RunStarted(RunId("r-1"), "line", "", ref("plan"), ref("w"), options or Options(), "e")


def started(name: str, attempt: int = 1) -> AttemptStarted:
    refs = (ref(f"c{name}"), ref(f"i{name}"), ref(f"o{name}"))
    return AttemptStarted(sid(name), attempt, *refs, NEVER)


def accepted(name: str, attempt: int = 1) -> AttemptAccepted:
    return AttemptAccepted(sid(name), attempt, ref(f"content of {name}"))


def rejected(name: str, attempt: int = 1, *, fatal: bool = False) -> AttemptRejected:
    return AttemptRejected(sid(name), attempt, "g", ref("bad"), feedback=ref("no"), fatal=fatal)


def failed(name: str, attempt: int = 1) -> AttemptFailed:
    return AttemptFailed(sid(name), attempt, "command_failed")


def lost(name: str, attempt: int = 1, code: str = "lost") -> AttemptLost:
    return AttemptLost(sid(name), attempt, code)


def reused(*names: str) -> StepsReused:
    return StepsReused(tuple(Reused(sid(n), ref(f"c{n}"), ref(f"content of {n}")) for n in names))


def taken(*names: str) -> StepsTaken:
    refs = {name: (ref(f"c{name}"), ref(f"i{name}"), ref(f"o{name}")) for name in names}
    return StepsTaken(
        tuple(
            Taken(sid(n), *refs[n], ref(f"content of {n}"), "bytes", "generated", True, True, 1)
            for n in names
        )
    )


def waived(name: str, request: int = 1) -> StepWaived:
    return StepWaived(sid(name), ref(f"gap {name}"), ref(""), "bytes", "me", ref("why"), request)


def skipped(*names: str) -> StepsSkipped:
    return StepsSkipped(tuple(Skipped(sid(name), "dependency_failed", sid("x")) for name in names))


def about(name: str, kind: str) -> Event:
    """One event of each kind about a step."""
    every: dict[str, Event] = {
        "steps_reused": reused(name),
        "attempt_started": started(name),
        "attempt_accepted": accepted(name),
        "attempt_rejected": rejected(name),
        "attempt_failed": failed(name),
        "attempt_lost": lost(name),
        "step_failed": StepFailed(sid(name), Reason("command_failed")),
        "step_held": StepHeld(sid(name), Reason("effect_unconfirmed")),
        "steps_skipped": skipped(name),
        "steps_reset": StepsReset((sid(name),), "retried"),
        "attempt_parked": AttemptParked(sid(name), 1, ref("x"), ("g",), ("a-1",)),
        "effect_started": EffectStarted(sid(name), 1, ref("key")),
        "effect_confirmed": EffectConfirmed(sid(name), 1, ref("key")),
        "steps_released": StepsReleased((sid(name),), "approved"),
        "steps_reopened": StepsReopened(sid(name), sid(name), (sid(name),)),
        "outputs_placed": OutputsPlaced(sid(name), ref("x"), "bytes", ("x",)),
        "steps_taken": taken(name),
        "step_waived": waived(name),
        "gap_closed": GapClosed(sid(name), (sid(name),)),
        "call_started": CallStarted(sid(name), 1, 1, "p:m", ref("request"), 100, 50),
        "call_answered": CallAnswered(sid(name), 1, 1, ref("answer"), 10, 5, cost=20),
        "call_failed": CallFailed(sid(name), 1, 1, "cut_off", 100, 50),
        "tool_started": ToolStarted(sid(name), 1, ref("use"), "add", ref("{}")),
        "tool_used": ToolUsed(sid(name), 1, ref("use"), "add", ref("{}"), ref("3")),
        "answers_kept": AnswersKept(
            sid(name), ((ref("request"), ref("answer")),), (Used(ref("use"), ref("3")),)
        ),
    }
    return every[kind]


TO_REACH: dict[Phase, tuple[str, ...]] = {
    "pending": (),
    "running": ("attempt_started",),
    "waiting": ("step_held",),
    "done": ("attempt_started", "attempt_accepted"),
    "reused": ("steps_reused",),
    "failed": ("step_failed",),
    "skipped": ("steps_skipped",),
}


def recorded(events: Iterable[Event]) -> list[Recorded]:
    return [Recorded(seq, 10 * seq, event) for seq, event in enumerate(events, 1)]


def state_of(of: Plan, *events: Event, options: Options | None = None) -> State:
    """A run that began, and then this."""
    return fold(of, recorded([begun(options), *events]))


def follow(state: State, *events: Event) -> State:
    """Further events, one after the other."""
    for event in events:
        apply(state, Recorded(state.seq + 1, 10 * state.seq, event))
    return state


def artifact(name: str = "s", source: Source = "generated", at: int = 0) -> Artifact:
    return Artifact(
        project="",
        line="line",
        step=sid(name),
        config_ref=ref("config"),
        input_ref=ref("input"),
        own_ref=ref("own"),
        digest=ref("content"),
        status="accepted",
        source=source,
        run=RunId("r-0"),
        attempt=1,
        at=at,
    )
