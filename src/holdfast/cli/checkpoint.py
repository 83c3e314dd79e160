"""checkpoint: a position of a run's journal, written down for people and other programs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import cast

import click

from holdfast import wire
from holdfast.cli.again import again, out_next
from holdfast.cli.follow import Follower
from holdfast.cli.measure import count, iso
from holdfast.cli.place import Place, file_option, find_run, json_option, place, place_options
from holdfast.cli.say import out, out_json, short, talk
from holdfast.cli.show import load_state
from holdfast.core.nodes import (
    SETTLED,
    STATUS,
    completed_batches,
    current_batch,
    result_of,
    status_of,
    times,
)
from holdfast.core.state import COMPLETE, State
from holdfast.errors import HoldfastError, PlanError, UsageError
from holdfast.formats.checkpoint import (
    TRIGGERS,
    VERSION,
    Checkpoint,
    Folder,
    branch_of,
    checkpoint_id,
    has_branch,
    parse,
)
from holdfast.formats.graphout import Facts, graph_id, phase_of
from holdfast.model.artifact import tree_entries
from holdfast.model.digest import Json, digest_bytes
from holdfast.model.event import (
    AttemptAccepted,
    ConflictFound,
    ConflictResolved,
    Event,
    Recorded,
    RunEnded,
    RunRested,
    StepFailed,
    StepsReleased,
    StepsReopened,
    StepsReset,
    StepsReused,
    StepsSkipped,
)
from holdfast.model.plan import Plan, RunId, StepId, plan_digest
from holdfast.ports import Store

CHECKPOINT_SCHEMA = "holdfast.checkpoint/1"
_FEW = 5


# --- what a checkpoint says -----------------------------------------------------------------------


def facts_of(where: Place, given: str) -> tuple[Plan, dict[StepId, Facts], str]:
    """The plan of a run, how each of its steps stands in the words of graphs, and when it began."""
    store = where.open(readonly=True)
    try:
        state = load_state(store, find_run(store, given, where.line()))
        return state.plan, _facts(store, state), iso(state.started_at)
    finally:
        store.close()


def _facts(store: Store, state: State) -> dict[StepId, Facts]:
    when = times(store.read(f"run:{state.run}"))
    found = {}
    for step_id in state.steps:
        at = when.get(step_id)
        found[step_id] = Facts(
            status_of(state, step_id),
            iso(at.started) if at and at.started else None,
            iso(at.ended) if at and at.ended else None,
            result_of(state, step_id),
        )
    return found


def checkpoint_data(where: Place, store: Store, state: State, trigger: str) -> dict[str, Json]:
    """How a run stands, as a checkpoint."""
    facts = _facts(store, state)
    phase, created = phase_of(state.plan), iso(wire.now_ms())
    what: dict[str, Json] = {"run": state.run, "seq": state.seq, "trigger": trigger}
    own: dict[str, Json] = {
        "schema": CHECKPOINT_SCHEMA,
        "run": state.run,
        "line": state.line,
        "seq": state.seq,
        "plan": state.plan_digest,
        "branch": branch_of(where.root),
        "files": _files(store, state),
    }
    done: list[Json] = [*completed_batches(state)]
    current = current_batch(state)
    resumable = not state.ended
    return {
        "checkpoint_id": checkpoint_id(phase, created, what),
        "version": VERSION,
        "created_at": created,
        "trigger": trigger,
        "phase": phase,
        "session_id": state.run,
        "graph_state": {
            "graph_id": graph_id(state.plan, iso(state.started_at)),
            "completed_batches": done,
            "current_batch": current,
            "node_states": {str(s): dict(told._asdict()) for s, told in facts.items()},
        },
        "recovery_info": {
            "can_resume": resumable,
            "resume_from": f"batch_{current}" if current else None,
            "prerequisites_met": True,
            "warnings": [] if resumable else [f"the run is {state.status}"],
        },
        "holdfast": own,
    }


def _files(store: Store, state: State) -> dict[str, Json]:
    """The files that complete steps put into the project, by content."""
    found: dict[str, Json] = {}
    for step_id, step in state.steps.items():
        paths = state.plan.steps[step_id].produces
        if step.phase not in COMPLETE or not paths or step.digest is None:
            continue
        if step.form == "tree":
            found |= {one.path: one.digest for one in tree_entries(store.get(step.digest))}
        else:
            found[paths[0]] = step.digest
    return found


# --- is it still true -------------------------------------------------------------------------------


def stale(where: Place, found: Checkpoint) -> tuple[bool, list[str]]:
    """Whether a run can be taken up from a checkpoint, and what changed since it was written."""
    own, told, usable = found.own, [], True
    branch = own.get("branch")
    if isinstance(branch, str) and not has_branch(where.root, branch):
        usable = False
        told.append(f"the branch '{branch}' is gone")
    if _plan_changed(where, str(own.get("plan"))):
        told.append("the plan changed; the run keeps its own")
    files = cast("Mapping[str, Json]", own.get("files") or {})
    edited = [path for path, digest in files.items() if _content(where.root, path) != digest]
    if edited:
        more = f" and {len(edited) - _FEW} more" if len(edited) > _FEW else ""
        told.append(f"files changed: {', '.join(edited[:_FEW])}{more}")
    return usable, told


def _plan_changed(where: Place, digest: str) -> bool:
    if where.file is None:
        return False
    try:
        return plan_digest(where.load().plan) != digest
    except (PlanError, UsageError):
        return True


def _content(root: str, path: str) -> str | None:
    try:
        return digest_bytes(Path(root, path).read_bytes())
    except OSError:
        return None


def folder_of(where: Place, given: str | None, line: str | None) -> Folder:
    """Where the checkpoints of a line are: as told, else inside the store."""
    if given is not None:
        return Folder(given)
    safe = (line or "all").replace("%", "%25").replace("/", "%2F")
    return Folder(os.path.join(where.location, "checkpoints", safe))


def chosen(where: Place, given: str, folder: str | None) -> Checkpoint:
    """A checkpoint by its file, its id, or `latest`; a damaged latest gives the one before it."""
    if os.path.isfile(given):
        with open(given, "rb") as file:
            return parse(file.read(), given)
    kept = folder_of(where, folder, where.line())
    if given != "latest":
        return kept.read(given)
    found, broken = kept.latest()
    for one in broken:
        talk(f"{one.checkpoint_id} is passed over: {one.why}")
    if found is None:
        raise UsageError("there is no usable checkpoint", hint="holdfast checkpoint")
    return found


def run_of(where: Place, store: Store, given: str, folder: str | None) -> RunId:
    """The run that a checkpoint names, after looking at what changed since."""
    found = chosen(where, given, folder)
    name = found.own.get("run")
    if not any(row.run == name for row in store.runs()):
        raise UsageError(
            f"the run of '{found.id}' is not in this store",
            hint="holdfast import RUN.zip, then accept",
        )
    usable, told = stale(where, found)
    for word in told:
        talk(f"{found.id}: {word}")
    if not usable:
        raise UsageError(f"'{found.id}' cannot be resumed: {told[0]}", hint="holdfast run")
    run = RunId(str(name))
    state = load_state(store, run)
    if state.seq > cast("int", found.own.get("seq", 0)):
        talk(
            f"{short(run)} went on since {found.id}: nothing of that is lost, it goes on from there"
        )
    return run


# --- the command ----------------------------------------------------------------------------------


@click.command(
    epilog="\b\nExample:\n  holdfast checkpoint\n  holdfast checkpoint --list\n"
    "  holdfast resume --checkpoint latest"
)
@click.argument("run_id", metavar="[RUN]", required=False)
@click.option("--checkpoints", metavar="DIR", help="Where they are (default: in the store).")
@click.option("--list", "listing", is_flag=True, help="List those that are kept.")
@click.option("--show", "shown", metavar="ID|FILE", help="Show one, and what changed since.")
@click.option(
    "--trigger",
    type=click.Choice(TRIGGERS),
    metavar="NAME",
    default="manual",
    help="Why it is written (manual); the names are those of the graph document.",
)
@file_option
@place_options
@json_option
def checkpoint(
    run_id: str | None,
    checkpoints: str | None,
    shown: str | None,
    trigger: str,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    listing: bool,
    as_json: bool,
) -> int:
    """Write down where a run stands, list what was written, or look at one.

    A checkpoint names a place in the run's journal. It can be deleted at any time: the journal has
    everything. 'holdfast run --checkpoints DIR' writes one whenever a wave is settled.
    """
    where = place(plan, store, plan_id)
    if listing:
        return _list(folder_of(where, checkpoints, where.line()), as_json=as_json)
    if shown is not None:
        return _show(where, chosen(where, shown, checkpoints), as_json=as_json)
    with_store = where.open(readonly=True)
    try:
        state = load_state(with_store, find_run(with_store, run_id, where.line()))
        data = checkpoint_data(where, with_store, state, trigger)
    finally:
        with_store.close()
    made = folder_of(where, checkpoints, state.line).write(data)
    if as_json:
        out_json({"schema": CHECKPOINT_SCHEMA, "file": made.where, "checkpoint": made.data})
        return 0
    out(f"{made.id}: {_words(made)}")
    out(f"wrote {made.where}")
    out_next(f"holdfast resume --checkpoint {made.id}" if not state.ended else "holdfast status")
    return 0


def _list(folder: Folder, *, as_json: bool) -> int:
    entries = folder.entries()
    latest, broken = folder.latest()
    if as_json:
        listed: list[Json] = [*entries]
        out_json(
            {
                "schema": "holdfast.checkpoints/1",
                "checkpoints": listed,
                "latest": latest.id if latest else None,
                "damaged": [{"checkpoint_id": one.checkpoint_id, "why": one.why} for one in broken],
            }
        )
        return 0
    if not entries:
        out(again("no checkpoints yet: holdfast checkpoint"))
    for entry in entries:
        mark = "  latest" if latest and entry["checkpoint_id"] == latest.id else ""
        out(f"{entry['checkpoint_id']}  {entry['trigger']}{mark}")
    for one in broken:
        out(f"{one.checkpoint_id}  damaged: {one.why}")
    return 0


def _show(where: Place, found: Checkpoint, *, as_json: bool) -> int:
    usable, told = stale(where, found) if found.own else (False, ["it was written elsewhere"])
    if as_json:
        fresh: dict[str, Json] = {"can_resume": usable, "warnings": [*told]}
        out_json({"schema": CHECKPOINT_SCHEMA, "checkpoint": found.data, "freshness": fresh})
        return 0
    out(f"{found.id}: {_words(found)}")
    for word in told:
        out(f"  {word}")
    if usable:
        out_next(f"holdfast resume --checkpoint {found.id}")
    return 0


def _words(found: Checkpoint) -> str:
    statuses = [*found.statuses().values()]
    parts = [
        f"{statuses.count(word)} {word}"
        for word in ("complete", "failed", "skipped", "running", "queued", "pending")
        if word in statuses
    ]
    batch = found.graph_state.get("current_batch")
    at = f", at batch {batch}" if batch else ""
    return f"{count(len(statuses), 'step')}: {', '.join(parts)}{at}"


# --- while a run goes on --------------------------------------------------------------------------


class Noting:
    """Passes everything on; writes a checkpoint when a wave is settled, agents disagree, or the run rests."""

    def __init__(self, inner: Follower, where: Place, store: Store, folder: str) -> None:
        self._inner = inner
        self._where = where
        self._store = store
        self._folder = Folder(folder)
        self._state: State | None = None
        self._settled: set[StepId] = set()
        self._left: list[int] = []

    def began(self, state: State) -> None:
        self._state = state
        self._settled = {s for s in state.steps if _is_settled(state, s)}
        self._left = [
            sum(step not in self._settled for step in wave) for wave in state.graph.waves()
        ]
        self._inner.began(state)

    def events(self, events: list[Recorded]) -> None:
        self._inner.events(events)
        state = self._state
        if state is None or not events:
            return
        trigger = ""
        for recorded in events:
            for step_id in _touched(recorded.event):
                if self._moved(state, step_id):
                    trigger = trigger or "batch_complete"
            if isinstance(recorded.event, ConflictFound):
                trigger = "conflict_start"
            elif isinstance(recorded.event, ConflictResolved):
                trigger = "conflict_resolved"
        last = events[-1].event
        if isinstance(last, RunRested):
            trigger = "user_interrupt" if last.status == "paused" else "session_end"
        elif isinstance(last, RunEnded):
            trigger = "session_end"
        if trigger:
            self._write(state, trigger)

    def _moved(self, state: State, step_id: StepId) -> bool:
        """Count a step whose standing may have changed; whether its wave is settled by that."""
        wave = state.graph.wave[step_id]
        if _is_settled(state, step_id) and step_id not in self._settled:
            self._settled.add(step_id)
            self._left[wave] -= 1
            return not self._left[wave]
        if not _is_settled(state, step_id) and step_id in self._settled:
            self._settled.remove(step_id)
            self._left[wave] += 1
        return False

    def _write(self, state: State, trigger: str) -> None:
        try:
            data = checkpoint_data(self._where, self._store, state, trigger)
            self._folder.write(data)
        except HoldfastError as error:  # a view: the run itself does not depend on it
            self._inner.say(f"no checkpoint was written: {error.message}")

    def output(self, step: StepId, stream: str, data: bytes) -> None:
        self._inner.output(step, stream, data)

    def say(self, text: str) -> None:
        self._inner.say(text)


def _is_settled(state: State, step_id: StepId) -> bool:
    return STATUS[state.steps[step_id].phase] in SETTLED


def _touched(event: Event) -> Iterable[StepId]:
    """The steps whose standing an event may change."""
    match event:
        case AttemptAccepted(step=step) | StepFailed(step=step):
            return (step,)
        case StepsReused(items=reused):
            return [item.step for item in reused]
        case StepsSkipped(items=skipped):
            return [item.step for item in skipped]
        case StepsReset(steps=steps) | StepsReleased(steps=steps) | StepsReopened(steps=steps):
            return steps
        case _:
            return ()
