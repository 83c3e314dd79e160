"""What people ask of a run that has not ended: written to the line's journal, answered in its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress

from holdfast.core.growth import lost_need, with_steps
from holdfast.core.state import State
from holdfast.core.views import Addition, AdditionState
from holdfast.engine.grow import Request, unanswered
from holdfast.engine.journals import read_state, runs_of
from holdfast.engine.lines import line_journal
from holdfast.engine.unkept import Hidden, check_free, check_words
from holdfast.errors import ConflictError, IntegrityError, UsageError
from holdfast.model.digest import Digest
from holdfast.model.event import PlanExtended, Recorded, RequestRefused, StepWaived
from holdfast.model.line import AdditionRequested
from holdfast.model.plan import Plan, RunId, Step, StepId, fragment_bytes, fragment_steps
from holdfast.ports import Append, Batch, Store

Answer = PlanExtended | StepWaived | RequestRefused


def plan_to_be(store: Store, state: State) -> Plan:
    """The plan of a run with everything that people asked to add and that it did not take up yet."""
    plan = state.plan
    for _, asked in unanswered(store, state):
        if isinstance(asked, AdditionRequested):
            steps = fragment_steps(store.get(asked.fragment))
            if not steps.keys() & plan.steps.keys():
                plan = with_steps(plan, steps)
    return plan


def additions(store: Store, state: State) -> dict[int, Addition]:
    """What people asked to add to a run, by the number of the request, with what became of it."""
    found: dict[int, Addition] = {}
    if state.status == "completed" and not state.heard:  # nobody was promised anything
        return found
    for recorded in store.read(line_journal(state.project, state.line)):
        event = recorded.event
        if isinstance(event, AdditionRequested) and event.run == state.run:
            found[recorded.seq] = _addition(store, state, recorded.seq, event)
    return found


def _addition(store: Store, state: State, seq: int, asked: AdditionRequested) -> Addition:
    steps: Mapping[StepId, Step] = {}
    with suppress(IntegrityError):  # removed since
        steps = fragment_steps(store.get(asked.fragment))
    fate: AdditionState = "added"
    if seq > state.heard:
        fate = "dropped" if state.ended else "open"
    elif seq in state.refused:
        fate = "refused"
    return Addition(
        request=seq,
        steps=tuple(sorted(steps)),
        secrets=secrets_of(steps),
        by=asked.by,
        because=_words(store, asked.because),
        state=fate,
        said=_words(store, state.refused.get(seq)),
    )


def _words(store: Store, digest: Digest | None) -> str:
    if digest is None:
        return ""
    with suppress(IntegrityError):  # removed since
        return store.get(digest).decode("utf-8", "replace")
    return ""


def secrets_of(steps: Mapping[StepId, Step]) -> tuple[str, ...]:
    """The secrets that these steps ask for."""
    return tuple(sorted({name for step in steps.values() for name in step.secrets}))


def waiting_additions(store: Store, project: str, line: str) -> tuple[RunId, list[Addition]]:
    """What the line's last run was asked to add and has not taken up; nearly always nothing."""
    rows = runs_of(store, project, line)
    run = rows[-1].run if rows else RunId("")
    journal = store.read(line_journal(project, line)) if rows else ()
    state = read_state(store, run) if any(_asks(recorded, run) for recorded in journal) else None
    if state is None or state.ended:
        return run, []
    return run, [found for found in additions(store, state).values() if found.state == "open"]


def _asks(recorded: Recorded, run: RunId) -> bool:
    return isinstance(recorded.event, AdditionRequested) and recorded.event.run == run


def check_secrets(store: Store, state: State, allowed: Collection[str]) -> None:
    """UsageError if a run would refuse for good what it is asked to add: nobody allowed a secret of it."""
    for _, asked in unanswered(store, state):
        if not isinstance(asked, AdditionRequested):
            continue
        for step_id, step in fragment_steps(store.get(asked.fragment)).items():
            for name in step.secrets:
                if name not in allowed:
                    raise UsageError(
                        f"'{step_id}', which is to be added, asks for the secret '{name}',"
                        " which nobody allowed",
                        hint=f"--secret {name}",
                    )


def check_needs(state: State, steps: Mapping[StepId, Step]) -> None:
    """UsageError if one of these steps could never start in this run as it stands."""
    lost = lost_need(state, steps)
    if lost is not None:
        phase = state.steps[lost[1]].phase
        what = "failed" if phase == "failed" else "was skipped"
        raise UsageError(
            f"'{lost[0]}' needs '{lost[1]}', which {what} in this run",
            hint=f"holdfast retry {lost[1]}",
        )


def ask_to_add(
    store: Store,
    state: State,
    steps: Mapping[StepId, Step],
    by: str,
    because: str,
    clock: Callable[[], int],
    hidden: Hidden = tuple,
) -> int:
    """Ask a run to add steps; gives the number of the request. UsageError if they hold a secret."""
    content = fragment_bytes(steps)
    check_free("what is to be added", content, hidden)
    check_words(because, hidden)
    fragment = store.put(content)
    reason = store.put(because.encode()) if because else None
    return ask(store, state, AdditionRequested(state.run, fragment, by, reason), clock)


def ask(store: Store, state: State, request: Request, clock: Callable[[], int]) -> int:
    """Write a request to the line's journal; gives its number there."""
    journal = line_journal(state.project, state.line)
    while True:
        last = store.last(journal)
        try:
            store.commit(Batch([Append(journal, last, [(clock(), request)])]))
        except ConflictError:
            if store.last(journal) == last:
                raise
            continue
        return last + 1


def answer(store: Store, run: RunId, request: int, after: int) -> Answer | None:
    """What a run answered to a request; None while it did not. Its events up to `after` say nothing of it."""
    for recorded in store.read(f"run:{run}", after):
        event = recorded.event
        if not isinstance(event, PlanExtended | StepWaived | RequestRefused):
            continue
        if event.request == request:
            return event
    return None
