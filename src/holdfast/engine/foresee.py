"""A preview of a plan against a store: read only, nothing is created, run or written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from typing import cast

from holdfast.core.approvals import Book, Use
from holdfast.core.changes import Change, Probe, differences
from holdfast.core.effects import is_cut_off
from holdfast.core.growth import with_steps
from holdfast.core.history import Timing, durations, timing
from holdfast.core.likeness import Alike, equal
from holdfast.core.overwritten import without_overwritten
from holdfast.core.preview import Outlook, preview, preview_digest
from holdfast.core.produced import lacking
from holdfast.core.refs import Refs, Upstream, encode_own, w_ref
from holdfast.core.said import Said
from holdfast.core.sight import Disk, Own
from holdfast.core.values import Content, condition_unmet
from holdfast.core.versions import ChangeReport, compare
from holdfast.core.waves import Graph, graph_of
from holdfast.engine.additions import Additions
from holdfast.engine.briefs import Foreknown
from holdfast.engine.earlier import accepted_as
from holdfast.engine.foreseen import brought, opened, unfit, without_list
from holdfast.engine.gathering import collected
from holdfast.engine.given import readable
from holdfast.engine.journals import runs_of
from holdfast.engine.lines import line_journal
from holdfast.engine.outputs import Outputs
from holdfast.engine.probe import Probed, Prober
from holdfast.engine.questions import before
from holdfast.engine.survey import NoInputError, Survey
from holdfast.engine.taking import displaced_in, lying_at, still_due
from holdfast.errors import EditError, IntegrityError
from holdfast.model.artifact import Artifact, Entry, Form, tree_entries
from holdfast.model.changeset import changes_in, settled_in
from holdfast.model.digest import Digest, Json, digest_bytes
from holdfast.model.event import AttemptStarted, Options, Reason, RunEnded, RunRested, RunStarted
from holdfast.model.fixed import frozen
from holdfast.model.plan import (
    COPIES,
    Plan,
    RunId,
    Step,
    StepId,
    plan_digest,
    plan_from_json,
)
from holdfast.model.walls import WALLS, Walls
from holdfast.ports import Fragments, Store, given_artifact
from holdfast.process.room import is_beneath

MOST_RUNS = 20
MOST_EVENTS = 20_000
ENOUGH = 10  # attempts of a step that are looked at


@frozen
class Foreseen:
    """The outlook of every step, the run it was compared with, and the digest of all of it.

    `plan` has the steps that reused artifacts bring, too; `added` says which artifact brings which.
    """

    graph: Graph
    outlooks: Mapping[StepId, Outlook]
    previous: RunId | None
    plan: Plan
    digest: Digest = Digest("")
    added: Mapping[StepId, StepId] = field(default_factory=dict)
    pages: Foreknown | None = None  # what steps would be told


@frozen
class Earlier:
    """An earlier version of the plan: that of a run, and when that began."""

    plan: Plan
    run: RunId | None = None
    at: int = 0


def foresee(
    plan: Plan,
    line: str,
    root: str,
    store: Store,
    survey: Survey,
    options: Options,
    clock: Callable[[], int],
    fragments: Fragments | None = None,
    grown: Callable[[Plan], None] = lambda _: None,
    drives: Callable[[RunId], bool] = lambda _: False,
    alike: Alike = equal,
    unsaid: Sequence[Said] = (),
    walls: Walls = WALLS,
) -> Foreseen:
    """What a run of this plan would do now. The survey must know the versions of tools already.

    With `fragments`, the steps that reused artifacts bring are looked at too; `grown` is told of the plan
    that has them, to ask further tools. `drives` says whether a live engine has a run. `unsaid` is what
    somebody is about to say of the ledger.
    """
    given = plan
    rows = runs_of(store, plan.project, line)
    previous = rows[-1].run if rows else None
    additions = Additions(store, plan.project, line)
    added: dict[StepId, StepId] = {}
    unlisted: dict[StepId, str] = {}
    now = clock()
    while True:
        graph = graph_of(plan)
        pages = Foreknown(store, plan, graph, line, alike, unsaid)
        survey.heed(pages.page)
        sight = _Sight(plan, line, root, store, survey, options, previous, now)
        sight.base, sight.drives, sight.pages = given, drives, pages
        if fragments is not None:
            sight.heed(additions, partial(unfit, additions, plan, fragments))
        seen = preview(graph, options, sight, now=now)
        items = opened(store, plan, seen, unlisted, walls)
        if items:
            added.update({s: origin for s, (origin, _) in items.items() if s not in plan.steps})
            plan = with_steps(plan, {name: step for name, (_, step) in items.items()})
            survey.grow(plan)
            grown(plan)
            continue
        more = brought(additions, plan, seen) if fragments is not None else {}
        if not more or fragments is None:
            break
        added.update({name: origin for name, (origin, _) in more.items()})
        plan = with_steps(
            plan, *fragments.held(plan, {name: step for name, (_, step) in more.items()})
        )
        survey.grow(plan)
        grown(plan)
    seen = {**seen, **without_list(graph, seen, unlisted)}
    outlooks = without_overwritten(graph, seen)
    outlooks = {step_id: sight.named(outlook, step_id) for step_id, outlook in outlooks.items()}
    for step_id, paths in sight.put_back().items():
        outlooks[step_id] = replace(outlooks[step_id], put_back=paths)
    edits = {
        step_id: sight.edits(plan.steps[step_id])
        for step_id, outlook in outlooks.items()
        if outlook.edited
    }
    digest = preview_digest(given, options, outlooks, edits)
    return Foreseen(graph, outlooks, previous, plan, digest, added, pages)


class _Sight:
    """Looks at one line of a store and at the project directory."""

    def __init__(
        self,
        plan: Plan,
        line: str,
        root: str,
        store: Store,
        survey: Survey,
        options: Options,
        previous: RunId | None,
        now: int,
    ) -> None:
        self._plan = plan
        self._line = line
        self._store = store
        self._put: dict[str, Entry | None] = {}  # what a run would leave there by then
        self._survey = survey.expecting(self._put)
        self._options = options
        self._previous = previous
        self._prober = Prober(store, self._survey, plan, plan.project, line)
        self._outputs = Outputs(root, "", store, plan.steps)
        self._newest = store.newest_of_all(plan.project, line)
        self._now = now
        self._book: Book | None = None
        self._w_ref = Digest("")
        self.base = plan  # what a run would begin with
        self.pages: Foreknown | None = None
        self.drives: Callable[[RunId], bool] = lambda _: False
        self._tried: Mapping[StepId, Digest] | None = None
        self._cut_off: Mapping[StepId, AttemptStarted] | None = None
        self._seen: tuple[Step, tuple[Entry, ...]] | None = None
        self._as_begun: StepId | None = None  # whose probe, the last one, was taken back
        self._paths: dict[Digest, frozenset[str]] = {}  # of changes in results

    def heed(self, additions: Additions, unfit: Callable[[Artifact], str]) -> None:
        """Let nothing stand whose added steps do not fit."""
        self._prober.heed(additions, unfit)

    def follow(self, known: Mapping[StepId, Upstream]) -> None:
        """Work out what steps would be told from what is known so far."""
        if self.pages is not None:
            self.pages.known = known

    def look(self, step: Step, upstream: Mapping[StepId, Upstream]) -> Probe:
        """Probe a step whose data needs are all known."""
        probed = self._prober.probe(step, upstream, self._options, previous=self._previous)
        self._as_begun = step.id if probed.as_begun else None
        return probed.probe

    def own(self, step: Step) -> Own:
        """Look only at the own parts of a step."""
        newest = self._newest.get(step.id)
        made = self._once_accepted(step.id, None if step.share else self._line)
        begun = self._prober.begun_with(step, newest, made)
        lacks = None
        try:
            seen = self._survey.observe(step)
        except NoInputError as error:
            if begun is None:
                raise
            seen, lacks = self._survey.observe(step, lenient=True), error
        parts = seen.parts if begun is None else begun
        own = encode_own(step, parts)
        refs = Refs(Digest(""), Digest(""), digest_bytes(own))
        stood, changes = self._prober.compared(
            step, newest, self._previous, lambda base: self._prober.own_changes(step, base, parts)
        )
        probe = Probe(
            step.id,
            refs,
            newest=newest,
            stood=stood,
            changes=changes,
            unsure=seen.unsure,
            previous=self._prober.earlier.before(step.id, refs, self._previous),
            undone=self._prober.earlier.is_undone(step.id, refs.config_ref, newest),
            contested=self._prober.contested(newest),
        )
        if newest is not None and newest.own_ref == refs.own_ref:
            return Own(probe, made_before=True, lacks=lacks)
        if newest is None and not probe.undone and not step.share:
            return Own(probe, made_before=False)
        rows = self._once_accepted(step.id, None if step.share else self._line)
        made_before = any(row.own_ref == refs.own_ref for row in rows)
        return Own(probe, made_before=made_before, lacks=lacks)

    def _once_accepted(self, step: StepId, line: str | None) -> Iterator[Artifact]:
        """What was accepted for a step, also if a person withdrew it since."""
        for row in self._store.artifacts(project=self._plan.project, line=line, step=step):
            if row.status in {"accepted", "withdrawn"}:
                yield row

    def in_command(self, step: Step) -> Sequence[str]:
        """The files that the command of a step names and that decide it."""
        files = self._survey.observe(step, lenient=True).parts.get("files")
        return list(files) if isinstance(files, Mapping) else ()

    def disk(self, step: Step, artifact: Artifact | None) -> Disk:
        """Compare the step's files with an artifact; without one, whatever a person wrote is an edit."""
        if self._is_cut_off(step.id):  # a run first puts back what its dead attempt left there
            return Disk()
        wanted: tuple[Entry, ...] = ()
        lost = ""
        if artifact is not None:
            try:
                wanted = self._outputs.wanted(step, artifact.digest, artifact.form)
            except IntegrityError as error:
                lost = error.message
        found = self._outputs.drift_of(step, self._there(step), wanted, lambda: self._all(step))
        if lost or found.state == "edited":
            return Disk(found.paths if found.state == "edited" else (), lost=lost)
        return Disk(written=found.paths)

    def due(self, artifact: Artifact) -> Disk:
        """What a run does again of changes made in a copy, once the steps before it did theirs."""
        try:
            manifest = self._store.get(artifact.digest)
            changes, decided = changes_in(manifest), settled_in(manifest)
        except IntegrityError:  # it is made again
            return Disk()
        there = lying_at(self._outputs, [change.path for change in changes])
        for change in changes:
            if change.path in self._put:
                there.pop(change.path, None)
                entry = self._put[change.path]
                there |= {change.path: entry} if entry is not None else {}
        newest = self._newest.get(artifact.step)
        is_newest = newest is None or newest.digest == artifact.digest
        if not is_newest and artifact.step != self._as_begun:
            displaced = displaced_in(changes, decided, there)
            if displaced:
                return Disk(displaced=displaced)
        due = still_due(changes, decided, there)
        self._put.update((change.path, change.entry) for change in due)
        written = tuple(change.path for change in due if change.digest is not None)
        return Disk((), written, tuple(change.path for change in due if change.digest is None))

    def anew(self, artifact: Artifact, above: Sequence[StepId]) -> tuple[StepId, ...]:
        """Those whose newest results hold one of its paths; nobody knows of one without a result."""
        paths = self._changed(artifact)
        return tuple(other for other in above if paths and self._may_write(other, paths))

    def _may_write(self, step_id: StepId, paths: frozenset[str]) -> bool:
        newest, places = self._newest.get(step_id), self._plan.steps[step_id].produces
        if newest is None or any(is_beneath(path, places) for path in paths):
            return True
        return not paths.isdisjoint(self._changed(newest))

    def _changed(self, artifact: Artifact) -> frozenset[str]:
        """The paths of the changes that an artifact holds; none if nobody can tell."""
        if artifact.form != "tree":
            return frozenset()
        if artifact.digest not in self._paths:
            found: frozenset[str] = frozenset()
            with suppress(IntegrityError):
                manifest = self._store.get(artifact.digest)
                found = frozenset(change.path for change in changes_in(manifest))
            self._paths[artifact.digest] = found
        return self._paths[artifact.digest]

    def theirs(self, step: Step) -> tuple[str, ...]:
        """The files at its outputs that are stored as a person's version."""
        if self._is_cut_off(step.id):
            return ()
        return self._outputs.written_by_people(step, self._there(step), lambda: self._all(step))

    def absent(self, step: Step, artifact: Artifact) -> tuple[str, ...]:
        """The files of an artifact at whose output path nothing lies; EditError if it is no such file."""
        wanted = self._outputs.wanted(step, artifact.digest, artifact.form)
        missing = self._outputs.missing(step, self._there(step), wanted)
        return tuple(entry.path for entry in missing)

    def _there(self, step: Step) -> tuple[Entry, ...]:
        """What lies at the outputs of a step; looked at once, however much is asked about it in a row."""
        if self._seen is None or self._seen[0] is not step:
            self._seen = step, self._outputs.read(step)
        return self._seen[1]

    def _all(self, step: Step) -> Iterator[Artifact]:
        return self._outputs.known(self._plan.project, self._line, step)

    def put_back(self) -> dict[StepId, tuple[str, ...]]:
        """The files that a run would first put back to what they were before an attempt was cut off."""
        found = {}
        for step_id, started in self._attempts_cut_off().items():
            step = self._plan.steps.get(step_id)
            if step is None or started.before is None or started.reguard is not None:
                continue
            if step.workspace not in COPIES and (paths := self._left(step, started.before)):
                found[step_id] = paths
        return found

    def _left(self, step: Step, before: Digest) -> tuple[str, ...]:
        try:
            changes = self._outputs.changes(step.produces, tree_entries(self._store.get(before)))
        except EditError:  # a link or a device among them
            return step.produces
        return tuple(change.path for change in changes)

    def _is_cut_off(self, step: StepId) -> bool:
        return step in self._attempts_cut_off()

    def _attempts_cut_off(self) -> Mapping[StepId, AttemptStarted]:
        if self._cut_off is None:
            self._cut_off = self._running_still()
        return self._cut_off

    def _running_still(self) -> Mapping[StepId, AttemptStarted]:
        """The attempts that the previous run began and never ended."""
        if self._previous is None:
            return {}
        journal = f"run:{self._previous}"
        last = self._store.last(journal)
        for recorded in self._store.read(journal, max(0, last - 1)):
            if isinstance(recorded.event, RunEnded | RunRested):
                return {}
        past = self._prober.earlier.past(self._previous)
        return {} if past is None else past.running

    def held(self, step: Step) -> bool:
        """Whether an unconfirmed effect of an earlier run is in the way, and nobody asked to repeat it."""
        if not step.done_once or step.id in self._options.force_steps:
            return False
        return self._open_since(step) is not None

    def given(self, step: Step) -> Artifact | None:
        """What a person gave in the place of an unconfirmed effect, if nobody asked to repeat it."""
        if step.effects != "external" or step.id in self._options.force_steps:
            return None
        since = self._open_since(step)
        return None if since is None else self._prober.earlier.given(step.id, since)

    def _open_since(self, step: Step) -> Mapping[RunId, int] | None:
        """As the line's runs will tell it once the one that a dead engine left is ended."""
        run = self._previous
        past = None if run is None else self._prober.earlier.past(run)
        if run is not None and past is not None and is_cut_off(past, step.id):
            return None if self.drives(run) else {run: past.steps[step.id].effect_at}
        return self._prober.earlier.open_since(step.id, run)

    def asks(self, step: Step, probe: Probe | None, known: Mapping[StepId, Upstream]) -> str:
        """What it waits for before an attempt; nothing if people said yes to this very situation."""
        code = "awaiting_person" if step.uses == "human" else "awaiting_approval"
        if probe is None or not probe.refs.input_ref:
            return "" if step.approve == "over_budget" and not _asks_besides(step) else code
        if self._book is None:
            self._book, self._w_ref = Book(), w_ref(self.base)
            for recorded in self._store.read(line_journal(self._plan.project, self._line)):
                self._book.take(recorded)
        probed = Probed(probe, b"", self._survey.observe(step).parts)
        asked = before(step, self._w_ref, probed, lambda need: _content(known, need), 0)
        use = Use(RunId(""), step.id, 1)
        granted = all(self._book.granted(item.subject, use, self._now) for item in asked)
        return "" if granted else code

    def lacking(self, step: Step, known: Mapping[StepId, Upstream]) -> tuple[str, ...]:
        """The named outputs that it reads and that what it needs does not have."""

        def read(need: StepId) -> bytes | None:
            try:
                return self._store.get(known[need].digest)
            except IntegrityError:
                return None

        return lacking(step, read)

    def unmet(self, step: Step, known: Mapping[StepId, Upstream]) -> str:
        """Why the condition of a step does not hold; empty if it does."""

        def read(need: StepId) -> Content:
            form = self._form(need, known[need])
            given = given_artifact(self._store.get, known[need].digest, form)
            return readable(collected(given, need, self._plan.steps))

        return condition_unmet(step, read, [n.step for n in step.needs if n.step not in known])

    def _form(self, step: StepId, above: Upstream) -> Form:
        row = self._newest.get(step)
        if row is None or row.digest != above.digest:
            row = accepted_as(self._store, self._plan.project, self._line, step, above)
        return row.form if row is not None else "bytes"

    def has_run_under(self, step: Step, ref: Digest) -> bool:
        """Whether any artifact of the line was accepted under this config ref."""
        return any(row.config_ref == ref for row in self._once_accepted(step.id, self._line))

    def edits(self, step: Step) -> tuple[str, ...]:
        """The digests of what lies at a step's output paths."""
        try:
            return tuple(entry.digest for entry in self._outputs.read(step))
        except EditError:
            return ()

    # --- a failure before, and what changed since -------------------------------------------------------

    def named(self, outlook: Outlook, step_id: StepId) -> Outlook:
        """Name the failure before and the change beside each other, where one would hide the other."""
        probe = outlook.probe
        if outlook.decision != "run" or probe is None or outlook.reason.code == "forced":
            return outlook
        if outlook.reason.code == "previous_failed":
            return replace(outlook, failed_before=True, also=_first(probe.changes))
        if not self._failed_before(step_id):
            return outlook
        since = self._since_failure(self._plan.steps[step_id])
        return replace(outlook, failed_before=True, also=since)

    def _failed_before(self, step: StepId) -> bool:
        if self._previous is None or self._prober.earlier.was_completed(self._previous):
            return False
        past = self._prober.earlier.past(self._previous)
        then = None if past is None else past.steps.get(step)
        return then is not None and then.phase == "failed" and then.attempts > 0

    def _since_failure(self, step: Step) -> Reason | None:
        """What is other than it was in the attempt that failed, as far as the step itself can tell."""
        own = self._last_tried().get(step.id)
        if own is None:
            return None
        try:
            before = cast("Mapping[str, Json]", json.loads(self._store.get(own)))
            now = encode_own(step, self._survey.observe(step).parts)
        except (EditError, IntegrityError):
            return None
        return _first(differences(before, cast("Mapping[str, Json]", json.loads(now)), None, {}))

    def _last_tried(self) -> Mapping[StepId, Digest]:
        """The own parts under which the previous run last tried each step."""
        if self._tried is None:
            events = self._store.read(f"run:{self._previous}")
            starts = (r.event for r in events if isinstance(r.event, AttemptStarted))
            self._tried = {event.step: event.own_ref for event in starts}
        return self._tried


def _content(known: Mapping[StepId, Upstream], need: StepId) -> Digest | None:
    return known[need].digest if need in known else None


def _asks_besides(step: Step) -> bool:
    """Whether people are asked before the first attempt already."""
    return step.uses == "human" or any(need.asks for need in step.needs)


def _first(changes: tuple[Change, ...]) -> Reason | None:
    return Reason(changes[0].code, changes[0].names) if changes else None


# --- what earlier runs tell ------------------------------------------------------------------------------


def earlier_plan(store: Store, run: RunId) -> Earlier | None:
    """The plan that a run was begun with; None if it is gone."""
    for recorded in store.read(f"run:{run}"):
        if not isinstance(recorded.event, RunStarted):
            break
        try:
            content = store.get(recorded.event.plan)
        except IntegrityError:
            break
        data = cast("Mapping[str, Json]", json.loads(content))
        return Earlier(plan_from_json(data), run, recorded.at)
    return None


def changes_since(before: Plan | None, plan: Plan, foreseen: Foreseen) -> ChangeReport:
    """What changed since an earlier version, and what a person changed on disk."""
    modified = tuple(s for s, outlook in foreseen.outlooks.items() if outlook.is_edited)
    if before is not None and plan_digest(before) == plan_digest(plan):
        return ChangeReport(output_modified=modified)
    return compare(before, plan, output_modified=modified)


def timings(store: Store, plan: Plan, line: str) -> dict[StepId, Timing]:
    """How long the steps of a plan took, from the newest runs of the line; bounded, newest first."""
    samples: dict[StepId, list[int]] = {}
    left = MOST_EVENTS
    rows = runs_of(store, plan.project, line)
    for row in reversed(rows[-MOST_RUNS:]):
        journal = f"run:{row.run}"
        last = store.last(journal)
        for step_id, taken in durations(store.read(journal, max(0, last - left))).items():
            if step_id in plan.steps:
                samples.setdefault(step_id, []).extend(taken)
        left -= last
        enough = len(samples) == len(plan.steps) and min(map(len, samples.values())) >= ENOUGH
        if left <= 0 or enough:
            break
    return {step_id: timing(taken) for step_id, taken in samples.items()}
