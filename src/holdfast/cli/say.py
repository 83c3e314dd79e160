"""Words for people: plain lines, one per change, nothing that a terminal would obey."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Mapping

from holdfast.core.reasons import sentence
from holdfast.core.state import State
from holdfast.model.digest import Json
from holdfast.model.event import (
    AttemptAccepted,
    AttemptFailed,
    AttemptLost,
    AttemptRejected,
    AttemptStarted,
    OutputsPlaced,
    Reason,
    Recorded,
    StepFailed,
    StepHeld,
    StepsReset,
    StepsReused,
    StepsSkipped,
)
from holdfast.model.plan import StepId

SIGNS = {
    "pending": "·",
    "running": "▸",
    "waiting": "⏸",
    "done": "✓",
    "reused": "=",
    "failed": "✗",
    "skipped": "–",
}
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)


def clean(text: str) -> str:
    """Text from outside with everything shown that a terminal would obey or hide."""
    return _UNSAFE.sub(lambda found: f"\\u{{{ord(found.group()):x}}}", text)


def out(text: str = "") -> None:
    """A line of the result."""
    if sys.stdout is not None:
        sys.stdout.write(clean(text) + "\n")


def talk(text: str) -> None:
    """A line beside the result. Nobody listening is no reason to stop."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(clean(text) + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):  # from now on into the void, or the exit would fail over it
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def out_json(value: Mapping[str, Json]) -> None:
    """One object on stdout."""
    if sys.stdout is None:
        return
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def short(run: str) -> str:
    """A run as people name it; `--json` has the whole id."""
    return run[:10]


def seconds(milliseconds: int) -> str:
    """A duration as people write it."""
    if milliseconds < 60_000:  # noqa: PLR2004 - a minute
        return f"{milliseconds / 1000:.1f} s"
    minutes, rest = divmod(milliseconds // 1000, 60)
    return f"{minutes} min {rest} s"


class Progress:
    """Tells what happened, line by line, as it is stored."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._unsure: dict[StepId, bool] = {}

    def __call__(self, events: list[Recorded]) -> None:
        """Tell a batch of events."""
        if self._quiet:
            return
        for recorded in events:
            for line in self._lines(recorded):
                talk(line)

    def _why_not(self, step: StepId) -> str:
        if self._unsure.get(step):
            return f"a part of its key cannot be computed (holdfast why {step})"
        return "something it reads changed under way"

    def _lines(self, recorded: Recorded) -> list[str]:
        event = recorded.event
        match event:
            case AttemptStarted():
                self._unsure[event.step] = not event.reusable
                again = f" (attempt {event.attempt})" if event.attempt > 1 else ""
                return [f"▸ {event.step}: {sentence(event.reason)}{again}"]
            case AttemptAccepted():
                note = "" if event.verified else ", unverified"
                late = "" if event.reusable else f", not reusable: {self._why_not(event.step)}"
                return [f"✓ {event.step}: {seconds(event.duration_ms)}{note}{late}"]
            case AttemptRejected():
                return [f"  {event.step}: guard '{event.guard}' rejected attempt {event.attempt}"]
            case AttemptFailed() | AttemptLost():
                return [f"  {event.step}: attempt {event.attempt} ended: {event.code}"]
            case StepFailed():
                return [f"✗ {event.step}: {sentence(event.reason)}", *_choices(event.reason)]
            case StepHeld():
                return [f"⏸ {event.step}: {sentence(event.reason)}"]
            case StepsReused():
                return [_reused(event)]
            case StepsSkipped():
                return [
                    f"– {item.step}: skipped, needs '{item.because}'" for item in event.items[:20]
                ]
            case StepsReset():
                return [f"· trying again: {', '.join(event.steps[:10])}"]
            case OutputsPlaced():
                return (
                    [f"  {event.step}: wrote {', '.join(event.paths[:5])} from the store"]
                    if event.paths
                    else []
                )
            case _:
                return []


def _choices(reason: Reason) -> list[str]:
    """What a person can do about an output that was changed by hand and does not stand."""
    if reason.code != "output_modified":
        return []
    return [
        "  to keep it: make it pass the guards; with nothing else changed, holdfast run adopts it",
        "  to have it made again: holdfast run --on-drift regenerate (what is there is stored first)",
        "  to leave it as it is: holdfast run --on-drift fail (the step fails, the rest goes on)",
    ]


def _reused(event: StepsReused) -> str:
    names = [item.step for item in event.items]
    shown = ", ".join(names[:6])
    return f"= reused {len(names)}: {shown}" + (" …" if len(names) > 6 else "")  # noqa: PLR2004


def end_block(
    state: State, now: int, *, driven: bool = True, words: Mapping[StepId, str] | None = None
) -> str:
    """What a run came to, and what to do next.

    `driven` is false if no engine drives it any more; `words` is what was said of failed steps.
    """
    counts = state.counts
    complete = counts["done"] + counts["reused"]
    end = state.ended_at or now
    took = seconds(max(0, end - state.since))
    what = (
        f"{complete} of {len(state.steps)} done · {counts['reused']} reused, {counts['done']} ran"
    )
    abandoned = state.status == "running" and not driven
    word = "running, but its engine is gone" if abandoned else state.status
    lines = [f"{state.run} {word} · {what} · {took}"]
    for step_id in state.graph.order:
        step = state.steps[step_id]
        if step.phase in {"failed", "waiting"} and step.reason is not None:
            lines.append(f"{SIGNS[step.phase]} {step_id}: {sentence(step.reason)}")
            lines += [f"    {line}" for line in (words or {}).get(step_id, "").splitlines()[-4:]]
            lines += _choices(step.reason)
    if counts["skipped"]:
        lines.append(f"– {counts['skipped']} skipped because of that")
    lines.append(f"next: {'holdfast resume' if abandoned else _next(state)}")
    return "\n".join(lines)


def _next(state: State) -> str:
    if state.status == "failed":
        first = next(s for s in state.graph.order if state.steps[s].phase == "failed")
        return f"holdfast logs {first}    holdfast resume"
    if state.status in {"paused", "limit", "blocked"}:
        return "holdfast resume    holdfast status"
    if state.status == "waiting":
        first = next(s for s in state.graph.order if state.steps[s].phase == "waiting")
        return f"holdfast why {first} --run @    holdfast retry {first}"
    return "holdfast status    holdfast plan"
