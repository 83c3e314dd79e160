"""step_read: what a step made, how its attempts went, what its guards and its log said; a slice at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from holdfast.cli.logs import Past, attempts_of, silence, words_of
from holdfast.cli.onlook import Glass
from holdfast.cli.place import Place, find_run, known_step
from holdfast.cli.say import plain, seconds, short
from holdfast.cli.show import artifact_json, find_artifact, load_state, manifest_lines
from holdfast.core.state import State
from holdfast.errors import UsageError
from holdfast.mcp.answer import Answer, Next, offset
from holdfast.mcp.asking import why
from holdfast.mcp.desk import Desk
from holdfast.mcp.given import Given
from holdfast.model.artifact import Artifact
from holdfast.model.digest import Json
from holdfast.model.event import AttemptAccepted, AttemptRejected
from holdfast.model.plan import StepId
from holdfast.ports import Store

PARTS = ("result", "attempts", "guards", "logs", "why")
ROOM = 5_000  # bytes of one slice
_CONTINUES = 0xC0  # the two bits that say whether a byte goes on with a letter


class Slice(NamedTuple):
    """A part of a content: its text, and where the next part begins."""

    text: str
    cursor: str | None
    is_binary: bool = False


def step_read(desk: Desk, given: Given) -> Answer:
    """One part of a step."""
    part, ref = given.text("part"), given.text("ref")
    name, _, number = ref.rpartition("@") if "]@" in ref else ref.partition("@")
    if part == "why":
        run = given.maybe("run_id")
        return why(desk, Given({"step": name, **({"run_id": run} if run else {})}))
    with desk.here() as where:
        store = where.open(readonly=True)
        try:
            if part == "result":
                return _result(store, where, given)
            state = load_state(store, find_run(store, given.maybe("run_id"), where.line()))
            step = known_step(state.plan, name)
            attempts = attempts_of(store, _maker(store, state, step).run, step)
            if number:
                attempts = [past for past in attempts if str(past.attempt) == number]
            if not attempts:
                raise UsageError(f"'{ref}' has no attempt in {short(state.run)}")
            if part == "logs":
                return _logs(store, where, state, step, attempts[-1], given)
            return _attempts(store, state, step, attempts, given)
        finally:
            store.close()


def _maker(store: Store, state: State, step: StepId) -> State:
    """The run that made what this one reuses; the same if it tried itself, or if that is not known."""
    here = state.steps[step]
    if here.attempts:
        return state
    for row in store.artifacts(project=state.project, line=state.line, step=step):
        if row.digest == here.digest and row.run and row.attempt:
            return load_state(store, row.run)
    return state


# --- result -----------------------------------------------------------------------------------


def _result(store: Store, where: Place, given: Given) -> Answer:
    ref = given.text("ref")
    artifact = _artifact(store, where, ref, given.maybe("run_id"))
    content: Iterable[bytes] = store.chunks(artifact.digest)
    if artifact.form == "tree":
        content = ["\n".join(manifest_lines(store.get(artifact.digest))).encode()]
    part = sliced(content, offset(given.maybe("cursor")))
    lines = part.text.split("\n")
    if part.is_binary:
        lines = [f"'{ref}' is not text; its digest is {artifact.digest[:12]}"]
    data: dict[str, Json] = {
        **artifact_json(artifact),
        "text": None if part.is_binary else part.text,
        "cursor": part.cursor,
    }
    following = [Next("step_read", {"ref": ref, "part": "attempts"})]
    return Answer(lines, data, _more(given, part.cursor) or following)


def _artifact(store: Store, where: Place, ref: str, run: str | None) -> Artifact:
    """The artifact that a step has, or had in a run."""
    if run is None:
        found = find_artifact(store, ref, where.line())
    else:
        state = load_state(store, find_run(store, run, where.line()))
        step = known_step(state.plan, ref)
        digest = state.steps[step].digest
        rows = store.artifacts(project=state.project, line=state.line, step=step)
        found = next((row for row in rows if row.digest == digest), None)
    if found is None:
        raise UsageError(f"there is no artifact of '{ref}'", hint="holdfast status")
    return found


def sliced(pieces: Iterable[bytes], start: int, room: int = ROOM) -> Slice:
    """The bytes from a place on, whole letters only; no more of a long content is read than is shown."""
    found = bytearray()
    seen, more = 0, False
    for piece in pieces:
        first = max(0, start - seen)
        found += piece[first:]
        seen += len(piece)
        if len(found) > room:
            more = True
            break
    if more:
        end = room
        while end > 1 and found[end] & _CONTINUES == 0x80:  # noqa: PLR2004 - within a letter
            end -= 1
        del found[end:]
    cursor = str(start + len(found)) if more else None
    return Slice(plain(found.decode("utf-8", "replace"), raw=True), cursor, b"\0" in found)


def _more(given: Given, cursor: str | None) -> list[Next]:
    return [Next("step_read", {**given.values, "cursor": cursor})] if cursor is not None else []


# --- attempts ---------------------------------------------------------------------------------


def _attempts(
    store: Store, state: State, step: StepId, attempts: list[Past], given: Given
) -> Answer:
    """How each attempt ended; with `guards` only what was refused, and all that was said of it."""
    only = given.text("part") == "guards"
    rows: list[Json] = []
    text: list[str] = []
    if only:
        names = ", ".join(guard.name for guard in state.plan.steps[step].guards) or "none"
        text.append(f"guards of {step}: {names}")
    for past in attempts:
        ended = past.ended
        if only and not isinstance(ended, AttemptRejected):
            continue
        words = words_of(store, past)[1]
        guard = ended.guard if isinstance(ended, AttemptRejected) else None
        rows.append(
            {
                "attempt": past.attempt,
                "ended": _ended(past),
                "guard": guard,
                "feedback": words or None,
                "duration_ms": _took(past),
            }
        )
        took = "" if (spent := _took(past)) is None else f", {seconds(spent)}"
        by = f" by '{guard}'" if guard else ""
        text.append(f"attempt {past.attempt} of {step}: {_ended(past)}{by}{took}")
        text += [f"    {line}" for line in words.rstrip("\n").split("\n") if words]
    if only and not rows:
        text.append("no attempt was refused by a guard")
    part = sliced(["\n".join(text).encode()], offset(given.maybe("cursor")))
    data: dict[str, Json] = {
        "run": state.run,
        "step": step,
        "state": state.steps[step].phase,
        "attempts": rows,
        "cursor": part.cursor,
    }
    following = [Next("step_read", {"ref": step, "part": "logs"}), Next("why", {"step": step})]
    return Answer(part.text.split("\n"), data, _more(given, part.cursor) or following)


def _took(past: Past) -> int | None:
    return None if past.ended is None else max(0, past.at - past.began)


def _ended(past: Past) -> str:
    match past.ended:
        case None:
            return "still running"
        case AttemptAccepted():
            return "accepted"
        case AttemptRejected():
            return "rejected"
        case other:
            return other.code


def _logs(
    store: Store, where: Place, state: State, step: StepId, past: Past, given: Given
) -> Answer:
    """What an attempt wrote; of a running one what there is so far."""
    log = words_of(store, past)[0].encode()
    if past.ended is None:
        log = b"".join(_running(where, state, step, past.attempt))
    part = sliced([log], offset(given.maybe("cursor")))
    lines = part.text.rstrip("\n").split("\n")
    if not log:
        lines = [silence(state.plan.steps[step], past)]
    data: dict[str, Json] = {
        "run": state.run,
        "step": step,
        "attempt": past.attempt,
        "running": past.ended is None,
        "text": part.text,
        "cursor": part.cursor,
    }
    instead = "result" if not log and isinstance(past.ended, AttemptAccepted) else "attempts"
    following = [Next("step_read", {"ref": step, "part": instead})]
    return Answer(lines, data, _more(given, part.cursor) or following)


def _running(where: Place, state: State, step: StepId, attempt: int) -> Iterator[bytes]:
    yield Glass(where.location, state.run).rest(step, attempt)
