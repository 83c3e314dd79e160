"""Acting on a run: stop, resume, retry, skip, accept. What would happen is shown first, with its cost.

A preview has a digest of everything that decides it; only a POST that names the digest of the preview as it
is now does anything. What is done then is the command that the preview shows, in a process of its own, as
`holdfast run --detach` does it.
"""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from holdfast import wire
from holdfast.cli.again import again, quoted
from holdfast.cli.ahead import Ahead, gather
from holdfast.cli.detach import Launched, launch, standing_here
from holdfast.cli.gates import is_paid, needs_consent
from holdfast.cli.grown import forced_steps
from holdfast.cli.outlook import table
from holdfast.cli.place import WITHOUT_FILE, Place, known_step, on_line
from holdfast.cli.progress import MOST_NAMES
from holdfast.cli.resume import resume_lines
from holdfast.cli.say import named, short
from holdfast.cli.show import load_state
from holdfast.cli.view import View
from holdfast.core.state import COMPLETE, State
from holdfast.engine.journals import runs_of
from holdfast.engine.opened import is_left_rejected
from holdfast.engine.replans import first_file
from holdfast.errors import HoldfastError, UsageError
from holdfast.formats.planfile import Loaded
from holdfast.model.digest import Digest, Json, digest_json
from holdfast.model.event import Options
from holdfast.model.plan import RunId, StepId
from holdfast.ports import Store
from holdfast.web.acting import Body, act, refused, said
from holdfast.web.look import Look
from holdfast.web.screens import desk_of, rendered, run_path

_PAUSE = 0.05
CHANGED = "something changed since this was shown"
STALE = 412  # the status of an answer that shows a preview again instead of doing it
_BEGINS = 30.0  # seconds in which a command must have begun or said why not


@dataclass(frozen=True, slots=True)
class Preview:
    """What would happen: in words, as a command, and as a digest of all that decides it."""

    do: str
    run: RunId
    step: StepId
    title: str
    lines: tuple[str, ...]
    command: str
    digest: Digest
    asks_why: bool = False
    begins: bool = True  # an engine, in a process of its own


@dataclass(frozen=True, slots=True)
class At:
    """Where somebody acts: a run of a store that was opened for it, and perhaps a step of the run."""

    where: Place
    store: Store
    state: State
    step: StepId


@contextmanager
def _at(look: Look, run: str, step: str) -> Iterator[At]:
    store = look.where.open(readonly=True)
    try:
        found = next((row for row in store.runs(imported=True) if row.run == run), None)
        if found is None:
            raise UsageError(f"there is no run '{run}'")
        if found.imported:
            raise UsageError("it is the history of another store, and cannot be continued here")
        state = load_state(store, found.run)
        where = on_line(look.where, state.line, first_file(store, state.run))
        yield At(where, store, state, known_step(state.plan, step) if step else StepId(""))
    finally:
        store.close()


def preview(at: At, do: str) -> Preview:
    """What an act would do; UsageError if it can do nothing here."""
    make = _ACTS.get(do)
    if make is None:
        raise UsageError(f"a page cannot '{do}'")
    if do in _OF_A_STEP and not at.step:
        raise UsageError(f"'{do}' is about a step, and none is named")
    return make(at)


def _made(
    at: At,
    title: str,
    lines: list[str],
    command: str,
    decides: Json,
    *,
    asks_why: bool = False,
    begins: bool = True,
) -> Preview:
    do = command.split(maxsplit=1)[0]
    digest = digest_json(
        {"do": command, "run": at.state.run, "seq": at.state.seq, "decides": decides}
    )
    return Preview(
        do, at.state.run, at.step, title, tuple(lines), command, digest, asks_why, begins
    )


def _stop(at: At) -> Preview:
    state, run = at.state, short(at.state.run)
    if state.status != "running" or not wire.is_driven(at.store, state):
        raise UsageError(f"{run} is not running", hint=f"holdfast status {run}")
    running = ", ".join(list(state.running)[:MOST_NAMES]) or "nothing just now"
    lines = [f"what runs is let end: {running}", "nothing done is lost; resume goes on from there"]
    found = _made(
        at, f"Stop {run} after its running steps", lines, f"stop {run}", None, begins=False
    )
    return replace(
        found, digest=digest_json({"do": "stop", "run": state.run})
    )  # it goes on meanwhile


def _resume(at: At) -> Preview:
    state, run = at.state, short(at.state.run)
    _check_rests(at)
    stay = {s for s in state.steps if is_left_rejected(at.store, state, s)}
    ahead = _ahead(at, state.options)
    lines = [*resume_lines(state, stay), "", *_table(ahead), *_outside(at, set(state.steps))]
    return _made(at, f"Resume {run}", lines, f"resume {run} --yes", _decides(ahead))


def _retry(at: At) -> Preview:
    state, step_id = at.state, at.step
    last = runs_of(at.store, state.project, state.line)[-1].run
    if last != state.run:
        raise UsageError(
            f"{short(state.run)} is not the last run of its line", hint=f"retry it in {short(last)}"
        )
    phase = state.steps[step_id].phase
    if not state.ended and phase not in COMPLETE:
        _check_rests(at)
        below = state.graph.below([step_id])
        again_too = sorted(below - {step_id}, key=state.graph.rank.__getitem__)
        lines = [f"'{step_id}' is tried again, and what was skipped below it: {_few(again_too)}"]
        ahead = _ahead(at, replace(state.options, select=tuple(sorted(below))))
        lines += ["", *_table(ahead), *_outside(at, below)]
        title = f"Try {step_id} again"
    else:
        loaded = at.where.load_again(at.store, state)
        options = Options(force_steps=forced_steps(at.where, loaded, [step_id]))
        ahead = gather(at.where, loaded, options)
        lines = [f"{short(state.run)} is {state.status}: a new run makes '{step_id}' again"]
        lines += [] if loaded.file or loaded.foreign else [WITHOUT_FILE]
        lines += ["", *_table(ahead)]
        title = f"Make {step_id} again in a new run"
    return _made(at, title, lines, f"retry {named(step_id)} --yes", _decides(ahead))


def _skip(at: At) -> Preview:
    state, step_id = at.state, at.step
    phase = state.steps[step_id].phase
    if state.ended or phase in COMPLETE:
        raise UsageError(f"'{step_id}' is {phase}: there is nothing to go on without")
    below = sorted(state.graph.below([step_id]) - {step_id}, key=state.graph.rank.__getitem__)
    lines = [
        f"the run goes on without '{step_id}': an empty artifact stands in its place, and that is a gap",
        f"what needs it runs: {_few(below)}",
        "the next run tries the step as ever",
        *_outside(at, set(below)),
    ]
    command = f"skip {named(step_id)} {short(state.run)} --yes"
    return _made(at, f"Go on without {step_id}", lines, command, None, asks_why=True)


def _accept(at: At) -> Preview:
    state, step_id = at.state, at.step
    here = state.steps[step_id]
    if here.phase not in COMPLETE or here.digest is None:
        raise UsageError(f"'{step_id}' has no accepted artifact in {short(state.run)}")
    lines = [
        f"what '{step_id}' had in {short(state.run)} ({here.digest[:12]}) stands as if it were made now",
        "nothing runs, and no guard looks at it; the next run writes its files",
        "cost: $0",
    ]
    command = f"accept {named(step_id)} --from {short(state.run)}"
    title = f"Let the result of {step_id} stand"
    return _made(at, title, lines, command, here.digest, asks_why=True, begins=False)


_ACTS: Mapping[str, Callable[[At], Preview]] = {
    "stop": _stop,
    "resume": _resume,
    "retry": _retry,
    "skip": _skip,
    "accept": _accept,
}
_OF_A_STEP = frozenset({"retry", "skip", "accept"})


def _check_rests(at: At) -> None:
    state = at.state
    if state.ended:
        raise UsageError(f"{short(state.run)} is {state.status}", hint="holdfast run")
    if wire.is_driven(at.store, state):
        raise UsageError(f"{short(state.run)} goes on already")


def _ahead(at: At, options: Options) -> Ahead:
    """What is still to be done in a run, with what it may cost."""
    plan = replace(at.state.plan, name=at.state.line)
    return gather(at.where, Loaded(plan, at.where.file or "", at.where.root), options)


def _table(ahead: Ahead) -> list[str]:
    return table(ahead, View())


def _decides(ahead: Ahead) -> Json:
    """What a preview rests on, as far as it can change without the run's journal."""
    shown: dict[str, Json] = {s: [o.decision, o.reason.code] for s, o in ahead.outlooks.items()}
    return {"steps": shown, "cost": [ahead.money.p50, ahead.money.p90]}


def _outside(at: At, steps: set[StepId]) -> list[str]:
    """Which of these steps touch the outside or cost money: saying yes here is saying yes to that."""
    left = [
        s for s in at.state.graph.order if s in steps and at.state.steps[s].phase not in COMPLETE
    ]
    plan = at.state.plan.steps
    touched = [s for s in left if needs_consent(plan[s])]
    paid = [s for s in left if is_paid(at.where.root, plan[s])]
    lines = [f"these steps touch the outside world: {_few(touched)}"] if touched else []
    return [*lines, f"these steps cost money: {_few(paid)}" if paid else "cost: $0"]


def _few(steps: list[StepId]) -> str:
    rest = len(steps) - MOST_NAMES
    return (", ".join(steps[:MOST_NAMES]) or "none") + (f" and {rest} more" if rest > 0 else "")


# --- doing it ---------------------------------------------------------------------------------------------


def _shown(look: Look, run: str, do: str, step: str) -> Response:
    with look.speaking():
        try:
            with _at(look, run, step) as at, look.speaking(at.state.line, at.state.file):
                return _drawn(look, preview(at, do))
        except HoldfastError as error:
            return refused(error)


def _drawn(look: Look, found: Preview, note: str = "", because: str = "") -> Response:
    """A preview as a page shows it; with a note, one that somebody did not ask for."""
    why = " --because '…'" if found.asks_why else ""
    context = {
        "found": found,
        "command": again(f"holdfast {found.command}{why}"),
        "read_only": look.read_only,
        "note": note,
        "because": because,
    }
    return HTMLResponse(rendered("preview.html", context), STALE if note else 200)


async def show(request: Request) -> Response:
    """A preview; it may look at many files, so it is made beside the other screens."""
    query = request.query_params
    run, do, step = request.path_params["run"], query.get("do", ""), query.get("step", "")
    return await run_in_threadpool(partial(_shown, desk_of(request).look, run, do, step))


def do(look: Look, body: Body) -> Response:
    """Do what a preview showed, if it would show the same now."""
    because = body.text("because").strip()
    with (
        _at(look, body.path["run"], body.text("step")) as at,
        look.speaking(at.state.line, at.state.file),
    ):
        try:
            found = preview(at, body.text("do"))
        except UsageError as error:
            raise UsageError(f"{CHANGED}: {error.message}", hint=error.hint) from error
        if body.text("digest") != found.digest:
            return _drawn(look, found, f"{CHANGED}; this is how it is now", because)
        if found.asks_why and not because:
            raise UsageError("say why; it is kept with the decision")
        text = f"holdfast {found.command}" + (f" --because {quoted(because)}" if because else "")
        words = standing_here(shlex.split(again(text))[1:])
        runs = {row.run for row in at.store.runs()}
        begun = launch(at.where, words)
        if not found.begins:
            code = begun.process.wait()
            return said(begun.lines(), status=200 if code == 0 else 409)
        run = _begun(at, begun, runs)
        if run is None:
            return said(begun.lines() or ["it ended without a word"], status=409)
        threading.Thread(target=begun.process.wait, daemon=True).start()
    answer = said([f"{short(run)} goes on"])
    answer.headers["HX-Location"] = run_path(run)
    return answer


def _begun(at: At, begun: Launched, known: set[RunId]) -> RunId | None:
    """The run that a command goes on with or began; None if it ended without."""
    journal, end = f"run:{at.state.run}", time.monotonic() + _BEGINS
    while True:
        ended = begun.process.poll() is not None or time.monotonic() > end
        if at.store.last(journal) > at.state.seq:
            return at.state.run
        fresh = [row.run for row in at.store.runs(at.state.line) if row.run not in known]
        if fresh:
            return fresh[-1]
        if ended:
            return None
        time.sleep(_PAUSE)


ROUTES = [Route("/runs/{run}/act", show), act("/runs/{run}/do", do)]
