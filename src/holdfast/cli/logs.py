"""What the attempts of a step wrote: of those that ended, and of one that runs."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from holdfast import wire
from holdfast.cli.again import again
from holdfast.cli.onlook import PAUSE, Glass, Onlooker, leaving
from holdfast.cli.say import named, out, out_json, short, talk
from holdfast.core.state import State
from holdfast.errors import UsageError
from holdfast.model.digest import Digest, Json, digest_bytes
from holdfast.model.event import (
    AttemptAccepted,
    AttemptFailed,
    AttemptLost,
    AttemptRejected,
    AttemptStarted,
    Recorded,
)
from holdfast.model.plan import RunId, Step, StepId
from holdfast.ports import Store

Ended = AttemptAccepted | AttemptRejected | AttemptFailed | AttemptLost
_EMPTY = digest_bytes(b"")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What of the logs is asked for."""

    attempt: int | None
    grep: str | None
    since: str | None
    follow: bool
    as_json: bool


@dataclass(frozen=True, slots=True)
class Past:
    """One attempt: when it began, and how it ended if it did."""

    attempt: int
    began: int
    ended: Ended | None = None
    at: int = 0


def attempts_of(store: Store, run: RunId, step: StepId) -> list[Past]:
    """The attempts of a step in one run, in order."""
    found: dict[int, Past] = {}
    for recorded in store.read(f"run:{run}"):
        take(found, step, recorded)
    return list(found.values())


def take(found: dict[int, Past], step: StepId, recorded: Recorded) -> None:
    """One more event, if it is about an attempt of this step."""
    event = recorded.event
    if isinstance(event, AttemptStarted) and event.step == step:
        found[event.attempt] = Past(event.attempt, recorded.at)
    elif isinstance(event, Ended) and event.step == step:
        found[event.attempt] = replace(found[event.attempt], ended=event, at=recorded.at)


def words_of(store: Store, past: Past) -> tuple[str, str]:
    """The log of an attempt that ended, and what it was refused with."""
    ended = past.ended
    if ended is None:
        return "", ""
    feedback = None if isinstance(ended, AttemptAccepted) else ended.feedback
    return _blob(store, ended.log), _blob(store, feedback)


def silence(step: Step, past: Past) -> str:
    """What is said of an empty log: nothing was written, or what was printed is kept elsewhere."""
    ended = past.ended
    prints = step.uses == "shell" and not step.produces
    if not prints or not isinstance(ended, AttemptAccepted) or ended.digest == _EMPTY:
        return f"attempt {past.attempt} of '{step.id}' wrote nothing"
    shown = again(f"holdfast show {ended.digest[:12]}")
    return (
        f"what attempt {past.attempt} of '{step.id}' printed is its artifact; to show it: {shown}"
    )


def _blob(store: Store, digest: Digest | None) -> str:
    return "" if digest is None else store.get(digest).decode("utf-8", "replace")


def span(text: str) -> int:
    """`90s`, `5m`, `2h` or `7d` in milliseconds."""
    found = re.fullmatch(r"(\d+)([smhd])", text)
    if found is None:
        raise UsageError(f"'{text}' is no span of time", hint="such as 90s, 5m, 2h or 7d")
    return int(found[1]) * _UNITS[found[2]] * 1000


def matcher(pattern: str | None) -> Callable[[str], bool]:
    """Whether a line is wanted."""
    if pattern is None:
        return lambda _: True
    try:
        wanted = re.compile(pattern)
    except re.error as error:
        raise UsageError(f"'{pattern}' is no pattern: {error}") from error
    return lambda line: wanted.search(line) is not None


class _Whole:
    """Whole lines out of pieces of output."""

    def __init__(self) -> None:
        self._open = b""

    def add(self, data: bytes) -> list[str]:
        *whole, self._open = (self._open + data).split(b"\n")
        return [line.decode("utf-8", "replace") for line in whole]

    def end(self) -> list[str]:
        rest, self._open = self._open, b""
        return [rest.decode("utf-8", "replace")] if rest else []


def _tail(
    store: Store, home: str, state: State, step: StepId, found: dict[int, Past], attempt: int
) -> Iterator[str]:
    """The lines of a running attempt as they come, until it has ended."""
    onlooker, glass, lines = Onlooker(store, state), Glass(home, state.run), _Whole()
    while True:
        goes_on = onlooker.goes_on
        yield from lines.add(glass.read(step, attempt))
        for recorded in onlooker.news():
            take(found, step, recorded)
        if found[attempt].ended is not None or not goes_on:
            break
        time.sleep(PAUSE)
    yield from lines.add(glass.rest(step, attempt))
    yield from lines.end()


def print_logs(store: Store, home: str, state: State, step: StepId, wanted: Wanted) -> int:
    """Print what was asked for; of a running attempt what there is so far, or all of it as it comes."""
    is_wanted = matcher(wanted.grep)
    found = {past.attempt: past for past in attempts_of(store, state.run, step)}
    chosen = _chosen(found, wanted, step, state.run)
    if wanted.as_json:
        out_json(_json(store, state.run, step, chosen[-1]))
        return 0
    for past in chosen:
        if len(chosen) > 1:
            out(f"--- attempt {past.attempt}")
        if past.ended is None:
            with leaving(lambda: None):
                _print_running(store, home, state, step, found, past.attempt, wanted, is_wanted)
            past = found[past.attempt]  # noqa: PLW2901 - it may have ended meanwhile
            _print_ended(store, state.plan.steps[step], past, is_wanted, log=False)
        else:
            _print_ended(store, state.plan.steps[step], past, is_wanted, log=True)
    return 0


def _chosen(found: dict[int, Past], wanted: Wanted, step: StepId, run: RunId) -> list[Past]:
    if wanted.attempt is not None:
        if wanted.attempt not in found:
            raise UsageError(
                f"'{step}' has no attempt {wanted.attempt} in {short(run)}",
                hint=f"it has {len(found)}" if found else "holdfast status",
            )
        return [found[wanted.attempt]]
    if not found:
        raise UsageError(
            f"'{step}' has no attempt in {short(run)}",
            hint="it may have been reused: holdfast status",
        )
    if wanted.since is None:
        return [list(found.values())[-1]]
    begin = wire.now_ms() - span(wanted.since)
    recent = [past for past in found.values() if past.ended is None or past.at >= begin]
    if not recent:
        raise UsageError(f"no attempt of '{step}' ended in the last {wanted.since}")
    return recent


def _print_running(
    store: Store,
    home: str,
    state: State,
    step: StepId,
    found: dict[int, Past],
    attempt: int,
    wanted: Wanted,
    is_wanted: Callable[[str], bool],
) -> None:
    if not wanted.follow:
        lines = _Whole()
        for line in (*lines.add(Glass(home, state.run).rest(step, attempt)), *lines.end()):
            if is_wanted(line):
                out(line, raw=True)
        follow = again(f"holdfast logs {named(step)} -f")
        talk(f"attempt {attempt} of '{step}' still runs; to follow it: {follow}")
        return
    told = False
    for line in _tail(store, home, state, step, found, attempt):
        told = True
        if is_wanted(line):
            out(line, raw=True)
            sys.stdout.flush()
    if not told and found[attempt].ended is not None:  # nothing could be seen while it ran
        log, _ = words_of(store, found[attempt])
        _print_lines(log, is_wanted)
    if found[attempt].ended is None:
        talk(again(f"the engine of {short(state.run)} is gone; to go on: holdfast resume"))


def _print_ended(
    store: Store, step: Step, past: Past, is_wanted: Callable[[str], bool], *, log: bool
) -> None:
    text, words = words_of(store, past)
    if log:
        _print_lines(text, is_wanted)
    if words:
        out("--- feedback")
        _print_lines(words, is_wanted)
    if log and not text and not words:
        out(silence(step, past))


def _print_lines(text: str, is_wanted: Callable[[str], bool]) -> None:
    for line in text.rstrip("\n").split("\n") if text else []:
        if is_wanted(line):
            out(line, raw=True)


def _json(store: Store, run: RunId, step: StepId, past: Past) -> dict[str, Json]:
    log, words = words_of(store, past)
    return {
        "schema": "holdfast.logs/1",
        "run": run,
        "step": step,
        "attempt": past.attempt,
        "running": past.ended is None,
        "log": log,
        "feedback": words,
    }
