"""What the attempts of a run wrote: in the order in which they ended, in ranges, running ones at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import Response

from holdfast.cli.logs import Ended
from holdfast.cli.onlook import last_words
from holdfast.core.reasons import sentence
from holdfast.core.state import State
from holdfast.errors import IntegrityError, UsageError
from holdfast.model.digest import Digest
from holdfast.model.event import (
    AttemptAccepted,
    AttemptFailed,
    AttemptLost,
    AttemptParked,
    AttemptRejected,
    Reason,
    Recorded,
)
from holdfast.model.items import step_named
from holdfast.model.plan import StepId
from holdfast.web.look import Look
from holdfast.web.run import values_of
from holdfast.web.screens import address, number, page, run_path, screen

PATH = "/log"
PAGE = 50  # attempts on a page
MOST = 128 * 1024  # bytes of all of them
EACH = 8 * 1024  # bytes of one, its end
RANGE = 64 * 1024  # bytes of one attempt alone


@dataclass(frozen=True, slots=True)
class Ending:
    """An attempt that ended, and where its words are."""

    seq: int
    at: int
    step: StepId
    attempt: int
    how: str
    log: Digest | None
    feedback: Digest | None


@dataclass(slots=True)
class Endings:
    """All attempts of a run that ended, in order; only what is new is read."""

    seq: int = 0
    found: list[Ending] = field(default_factory=list)

    def take(self, recorded: Recorded) -> None:
        """One more event of the run."""
        self.seq, event = recorded.seq, recorded.event
        if isinstance(event, Ended | AttemptParked):
            self.found.append(_ending(recorded, event))


def _ending(recorded: Recorded, event: Ended | AttemptParked) -> Ending:
    feedback = None if isinstance(event, AttemptAccepted | AttemptParked) else event.feedback
    return Ending(
        recorded.seq, recorded.at, event.step, event.attempt, _how(event), event.log, feedback
    )


def _how(event: Ended | AttemptParked) -> str:
    match event:
        case AttemptAccepted():
            return "accepted"
        case AttemptParked():
            return "waits for a person"
        case AttemptRejected():
            return f"rejected by {event.guard}"
        case AttemptFailed() | AttemptLost():
            return sentence(Reason(event.code))


@dataclass(frozen=True, slots=True)
class Said:
    """What one attempt wrote, or the end of it."""

    step: StepId
    attempt: int
    how: str
    at: int  # 0 while it runs
    text: str
    feedback: str
    size: int
    skipped: int  # bytes before what is shown


@dataclass(frozen=True, slots=True)
class Logs:
    """One page of a run's output."""

    said: tuple[Said, ...]
    running: tuple[Said, ...]
    first: int
    known: int

    @property
    def last(self) -> int:
        """The number of the last attempt of the page."""
        return self.first + len(self.said)


def endings_in(look: Look, state: State) -> Sequence[Ending]:
    """The attempts of a run that ended."""
    found = look.made(state, "endings", Endings, until=0)
    for recorded in look.store.read(f"run:{state.run}", found.seq):
        found.take(recorded)
    return found.found


def logs_of(look: Look, state: State, of: StepId | None, end: int = 0) -> Logs:
    """A page of what was written, up to an attempt by its place; the last ones if none is named."""
    every = [one for one in endings_in(look, state) if of is None or one.step == of]
    stop = min(end, len(every)) if end else len(every)
    said: list[Said] = []
    room = MOST
    for one in reversed(every[max(0, stop - PAGE) : stop]):
        found = said_by(look, one, EACH)
        room -= len(found.text) + len(found.feedback)
        if said and room < 0:
            break
        said.append(found)
    said.reverse()
    live = running_now(look, state, of) if stop == len(every) else ()
    return Logs(tuple(said), live, stop - len(said), len(every))


def said_by(look: Look, one: Ending, most: int) -> Said:
    """The end of what an attempt wrote, and what was said of it."""
    content, feedback = _words(look, one.log), _words(look, one.feedback)
    text = content[-most:]
    return Said(
        one.step,
        one.attempt,
        one.how,
        one.at,
        text.decode("utf-8", "replace").rstrip("\n"),
        feedback[:most].decode("utf-8", "replace").rstrip("\n"),
        len(content),
        len(content) - len(text),
    )


def _words(look: Look, digest: Digest | None) -> bytes:
    try:
        return b"" if digest is None else look.store.get(digest)
    except IntegrityError:
        return b"(no longer kept)"


def running_now(look: Look, state: State, of: StepId | None = None) -> tuple[Said, ...]:
    """The end of what each running attempt wrote so far."""
    if not look.is_driven(state):
        return ()
    found = []
    for step, started in state.running.items():
        if of is None or step == of:
            content = last_words(look.where.location, state.run, step, started.attempt, EACH)
            text = content.decode("utf-8", "replace").rstrip("\n")
            found.append(Said(step, started.attempt, "running", 0, text, "", len(content), 0))
    return tuple(found[:PAGE])


def one_range(look: Look, state: State, of: StepId, attempt: int, begin: int) -> tuple[Said, int]:
    """A range of one attempt's output, and where it begins."""
    ended = [e for e in endings_in(look, state) if (e.step, e.attempt) == (of, attempt)]
    if not ended:
        raise UsageError(f"'{of}' has no ended attempt {attempt}", hint=f"holdfast logs '{of}'")
    one = ended[-1]
    content = _words(look, one.log)
    begin = min(max(0, begin), max(0, len(content) - 1))
    text = content[begin : begin + RANGE].decode("utf-8", "replace")
    feedback = _words(look, one.feedback)[:RANGE].decode("utf-8", "replace")
    return Said(of, attempt, one.how, one.at, text, feedback, len(content), begin), begin


def show(look: Look, request: Request) -> Response:
    """The output of a run, of one step in it, or of one attempt."""
    state = look.find(request.path_params["run"])
    with look.speaking(state.line, state.file):
        named = request.query_params.get("of", "")
        of = step_named(named, state.steps) if named else None
        if named and of is None:
            raise UsageError(f"the run has no step '{named}'", hint="holdfast ls")
        query, path = request.query_params, run_path(state.run, PATH)
        attempt = number(query.get("attempt"), 0)
        values = {"tab": "log", "of": of, "there": path, **values_of(look, request, state)}
        if of is not None and attempt:
            said, begin = one_range(look, state, of, attempt, number(query.get("from"), 0))
            around = {
                "earlier": _range(path, of, attempt, begin - RANGE) if begin else "",
                "later": _range(path, of, attempt, begin + RANGE)
                if begin + RANGE < said.size
                else "",
            }
            values |= {"said": said, "begin": begin, "end": begin + len(said.text), **around}
            return page(look, request, "attemptlog.html", values)
        logs = logs_of(look, state, of, number(query.get("end"), 0))
        values |= {"logs": logs, "is_last": logs.last == logs.known}
        return page(look, request, "log.html", values)


def _range(path: str, of: StepId, attempt: int, begin: int) -> str:
    return address(path, of=of, attempt=attempt, **{"from": max(0, begin)})


ROUTES = [screen(f"/runs/{{run}}{PATH}", show)]
