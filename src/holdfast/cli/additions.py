"""What people asked to add to a run, in words: what was added, what waits, what was refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast import wire
from holdfast.cli.again import again
from holdfast.cli.say import SIGNS, short
from holdfast.core.state import State
from holdfast.core.views import Addition, asked_for
from holdfast.engine.requests import waiting_additions
from holdfast.model.plan import Plan, RunId, StepId
from holdfast.model.text import first_line
from holdfast.ports import Store

MOST_STEPS = 5
NONE: Mapping[int, Addition] = {}


def added_words(state: State, step_id: StepId, additions: Mapping[int, Addition] = NONE) -> str:
    """Where a step of a run comes from, if the run did not begin with it."""
    origin = state.added.get(step_id)
    if origin is None:
        return ""
    if origin.step:
        return f"added by {origin.step}"
    asked = asked_for(state, step_id, additions)
    return f"added by a person ({_asker(asked)})" if asked else "added by a person"


def _asker(asked: Addition) -> str:
    """Who asked, and why if that was said."""
    because = first_line(asked.because)
    return f"{asked.by}: {because}" if because else asked.by


def _named(asked: Addition) -> str:
    """The steps, and who asked for them."""
    more = len(asked.steps) - MOST_STEPS
    names = ", ".join(asked.steps[:MOST_STEPS]) + (f" and {more} more" if more > 0 else "")
    return f"{names or 'a step'} ({_asker(asked)})"


def resume_command(secrets: Iterable[str]) -> str:
    """The command that lets a run at rest take up what it was asked to add."""
    return " ".join(["holdfast resume", *(f"--secret {name}" for name in dict.fromkeys(secrets))])


def addition_notes(additions: Mapping[int, Addition], *, driven: bool) -> list[tuple[str, str]]:
    """What was asked for and is not there, each with the state whose sign fits."""
    secrets = [s for asked in additions.values() if asked.state == "open" for s in asked.secrets]
    notes = []
    for asked in additions.values():
        if asked.state == "open":
            how = "" if driven else f"; taken up by: {again(resume_command(secrets))}"
            notes.append(("waiting", f"to be added: {_named(asked)}{how}"))
        elif asked.state == "refused":
            notes.append(("failed", f"not added: {_named(asked)}: {again(first_line(asked.said))}"))
        elif asked.state == "dropped":
            notes.append(("skipped", f"never added: {_named(asked)}: the run ended before"))
    return notes


def addition_lines(additions: Mapping[int, Addition], *, driven: bool) -> list[str]:
    """The same as lines of a screen."""
    return [f"{SIGNS[state]} {note}" for state, note in addition_notes(additions, driven=driven)]


def taken_up(additions: Mapping[int, Addition]) -> list[str]:
    """What a run that is resumed takes up."""
    waiting = (asked for asked in additions.values() if asked.state == "open")
    return [f"{SIGNS['pending']} added now: {_named(asked)}" for asked in waiting]


def left_out(run: RunId, waiting: Iterable[Addition]) -> list[str]:
    """What a new run leaves out that the last one was asked to add, and how to get it."""
    found = list(waiting)
    if not found:
        return []
    names = ", ".join(_named(asked) for asked in found)
    command = resume_command(name for asked in found for name in asked.secrets)
    how = again(f"to have it, '{command}' before a new run, or 'holdfast add' it again")
    return [f"! left out: {names}, asked for in {short(run)} and never taken up; {how}"]


def waiting_in(store: Store, plan: Plan) -> tuple[RunId, list[Addition]]:
    """What the line's last run waits to take up, if nobody drives it."""
    run, waiting = waiting_additions(store, plan.project, plan.name)
    if waiting and wire.drives(store, plan.project, plan.name, run):
        return run, []
    return run, waiting
