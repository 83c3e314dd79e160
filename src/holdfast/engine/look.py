"""Looks at a ready step: what its key is now, what stands under it, and whether the disk agrees."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from holdfast.core.changes import Choice, Probe, choose
from holdfast.core.effects import RECEIPT_GONE, UNCONFIRMED, changes_lost, is_open
from holdfast.core.moves import LOST
from holdfast.core.overwritten import has_outputs_at, is_overwritten
from holdfast.core.produced import lacking
from holdfast.core.refs import Upstream
from holdfast.core.state import State, StepState
from holdfast.core.values import Content, condition_unmet
from holdfast.engine.additions import Additions
from holdfast.engine.attempt import Bench
from holdfast.engine.deeds import Deeds
from holdfast.engine.evidence import Keeper
from holdfast.engine.foresee import Foreseen, foresee
from holdfast.engine.gathering import collected
from holdfast.engine.given import readable
from holdfast.engine.kept import words_of_kept, words_of_lost
from holdfast.engine.needed import whole_of
from holdfast.engine.outputs import PLACE, Drift, Outputs, edit_key
from holdfast.engine.probe import Probed, Prober
from holdfast.engine.survey import NoInputError, Survey
from holdfast.engine.world import World
from holdfast.errors import BugError, EditError, IntegrityError
from holdfast.model.artifact import Artifact, Entry, Form
from holdfast.model.changeset import changes_in, changeset_bytes, settled_in
from holdfast.model.digest import Digest
from holdfast.model.event import AttemptStarted, Options, OutputsPlaced, Reason
from holdfast.model.plan import RunId, Step, StepId
from holdfast.ports import given_artifact

Blobs = list[tuple[Digest, bytes]]


class Look(NamedTuple):
    """What is to be done with a step. `placed` says that its outputs were written from the store."""

    probed: Probed
    choice: Choice
    placed: OutputsPlaced | None = None
    key: str = ""


class Start(NamedTuple):
    """The fact that begins an attempt, the contents it names, and what is said once they are stored."""

    started: AttemptStarted
    blobs: Blobs
    words: tuple[str, ...] = ()


class Looker:
    """Looks at the steps of one run and says how an attempt at them would begin."""

    def __init__(
        self,
        world: World,
        state: State,
        survey: Survey,
        outputs: Outputs,
        bench: Bench,
        left: State | None = None,
    ) -> None:
        self._world = world
        self._state = state
        self._survey = survey
        self._foreseen: Foreseen | None = None
        self._outputs = outputs
        self._bench = bench
        self._keeper = Keeper(world.root, world.store, survey.said, world.hidden)
        self._told: set[tuple[str, Digest]] = set()
        self._prober = Prober(world.store, survey, state.plan, state.project, state.line)
        if left is not None:
            self._prober.earlier.recall(left)
        self.deeds = Deeds(world.store, world.owner.engine, state, self._prober)

    def refresh(self) -> None:
        """Take note of what people wrote to the line meanwhile."""
        self._prober.refresh()

    def heed(self, additions: Additions, unfit: Callable[[Artifact], str]) -> None:
        """Reuse nothing whose added steps do not fit; `unfit` says why they do not."""
        self._prober.heed(additions, unfit)

    def grow(self) -> None:
        """The plan has further steps."""
        self._foreseen = None
        self._survey.grow(self._state.plan)
        self._outputs.grow(self._state.plan.steps)
        self._prober.grow(self._state.plan)

    def not_alone(self) -> None:
        """Another engine joined: what is stored may grow at any time."""
        self._prober.not_alone(self._state.run)

    def counting(self, step: StepId) -> Callable[[set[StepId]], set[StepId]] | None:
        """Which of some steps change what this one reads, but do not count for that; None if no step does."""
        return partial(self._prober.counting, step) if self._prober.takes_back else None

    def look(self, step: Step) -> Look:
        """Decide about a step whose needs are complete; EditError if that cannot be done."""
        probed, choice = self._choose(step)
        if step.changes_copy and choice.action == "reuse" and choice.artifact is not None:
            try:
                stands = self._standing(step, Look(probed, choice), choice.artifact)
            except IntegrityError as error:
                if self._is_whole(choice.artifact):
                    raise
                raise changes_lost(error.message, step.id) from error
            if stands is not None:
                return stands
        if choice.action == "skip" or not step.produces:
            return Look(probed, choice)
        if choice.artifact is None:
            history = probed.probe.newest is not None or probed.probe.undone
            if history and self._state.options.on_drift == "fail":
                edited = self._edited(step, probed, self._outputs.read(step))
                choice = Choice("run", Reason("output_modified", edited)) if edited else choice
            return Look(probed, choice)
        try:
            return self._beside(step, probed, choice, choice.artifact)
        except IntegrityError as error:  # what should be put there cannot be read: it is made again
            is_anothers = self._is_whole(choice.artifact)
            if is_anothers or not self._state.may_run(step.id):
                raise
            if step.changes_copy:
                raise changes_lost(error.message, step.id) from error
            if self._state.options.on_drift == "fail" and (edited := self.edited(step, probed)):
                return Look(probed, Choice("run", Reason("output_modified", edited)))
            self._world.remind(f"{step.id}: {error.message}; it is made again")
            missing = Reason("output_missing", step.produces)
            gone = Reason(RECEIPT_GONE) if step.done_once else None
            return Look(probed, Choice("run", missing, repeats=gone))

    def _is_whole(self, artifact: Artifact) -> bool:
        return bool(whole_of(self._world.store, [(artifact.digest, artifact.form)]))

    def _beside(self, step: Step, probed: Probed, choice: Choice, artifact: Artifact) -> Look:
        """What becomes of an artifact that stands, given what lies at its output paths."""
        drift = self._drift(step, artifact)
        if drift.state == "edited":
            if not self._state.may_run(step.id):
                return Look(probed, Choice("skip", Reason("not_selected")))
            changed = Look(probed, Choice("run", Reason("output_modified", drift.paths)))
            adopts = self._state.options.on_drift == "adopt"
            return self._completed(step, artifact, changed) if adopts else changed
        is_reused = choice.action == "reuse"
        if drift.state == "equal" or (is_reused and self._is_overwritten(step, drift.paths)):
            return Look(probed, choice)
        return self._restored(step, artifact, Look(probed, choice))

    def _standing(self, step: Step, look: Look, artifact: Artifact) -> Look | None:
        """Let changes that stand be in the project; None if a person changed one of the step's outputs.

        Where a person went on from them, or took them back by hand in part, that stays.
        """
        changes = self._bench.taker.changes(artifact.digest)
        above = self._bench.taker.outdated(step, changes)
        as_found = not look.probed.as_begun
        displaced = self._bench.taker.displaced(step, artifact.digest) if as_found else ()
        if above is not None or displaced:
            moved = Reason("upstream_changed", (above,)) if above is not None else None
            again = Choice("run", moved or Reason("output_missing", displaced))
            left_out = Choice("skip", Reason("not_selected"))
            return look._replace(choice=again if self._state.may_run(step.id) else left_out)
        files = self._bench.taker.restored(step, artifact.digest)
        if step.produces:
            drift = self._drift(step, artifact)
            if drift.state == "edited":
                return None
            if drift.state == "stale" and not self._is_overwritten(step, drift.paths):
                wanted = self._outputs.wanted(step, artifact.digest, artifact.form)
                files += self._outputs.changes(step.produces, wanted)
        if not files:
            return look
        key = edit_key(self._state.run, step.id, PLACE)
        paths = self._bench.taker.put_in_place(files, key)
        placed = OutputsPlaced(step.id, artifact.digest, artifact.form, paths)
        return look._replace(placed=placed, key=key)

    def _edited(self, step: Step, probed: Probed, there: Sequence[Entry]) -> tuple[str, ...]:
        """The outputs that a person wrote, or may have written, among those that an attempt would replace."""
        newest = probed.probe.newest
        wanted = self._outputs.meant(step, newest) if newest else ()
        drift = self._outputs.drift_of(step, there, wanted, lambda: self._known(step))
        return drift.paths if drift.state == "edited" else ()

    def edited(self, step: Step, probed: Probed) -> tuple[str, ...]:
        """The outputs that no attempt made, as they lie there now."""
        return self._edited(step, probed, self._outputs.read(step))

    def lacking(self, step: Step, content: Callable[[Digest], bytes]) -> tuple[str, ...]:
        """The named outputs that the step reads and that the artifacts above it do not have."""
        steps = self._state.steps

        def read(need: StepId) -> bytes | None:
            above = steps[need]
            if above.digest is None or above.form == "tree":
                return None
            return content(above.digest)

        return lacking(step, read)

    def unmet(self, step: Step, content: Callable[[Digest], bytes]) -> str:
        """Why the condition of a step does not hold; empty if it does."""
        steps, plan = self._state.steps, self._state.plan.steps

        def read(need: StepId) -> Content:
            above = steps[need]
            assert above.digest is not None  # what is looked at has its needs
            given = given_artifact(content, above.digest, above.form)
            return readable(collected(given, need, plan))

        return condition_unmet(step, read, [n.step for n in step.needs if self._is_lost(n.step)])

    def let_go(self, artifact: Artifact) -> None:
        """A step stands on this one and is complete."""
        self._prober.let_go(artifact)

    def reopened(self) -> None:
        """Steps are pending again: forget what was stored before."""
        self._foreseen = None
        self._prober.forget()

    def held_for(self, step: Step, look: Look) -> Reason | None:
        """Why a person must look first: nobody asked in this run to repeat what was done, or may have been.

        That somebody gave its result is no such wish: if that cannot stand, the step is held again.
        """
        if step.effects != "external":
            return None
        if self._is_open(step, look.choice):
            return Reason(UNCONFIRMED, self._undecided(step.id))
        here = self._state.steps[step.id]
        goes_on = here.asked or (
            here.effect_at and not here.stood
        )  # what this run began, it may end
        return None if goes_on else look.choice.repeats

    def _undecided(self, step: StepId) -> tuple[str, ...]:
        """What is open, if an earlier run made it and people did not decide: it was done for certain."""
        before = self._prober.earlier.open_since(step, self._state.previous) or {}
        for past in filter(None, map(self._prober.earlier.now, before)):
            then = past.steps.get(step)
            if then is None:
                continue
            if then.parked is not None:
                return (f"what it made in {past.run[:10]} was not decided about",)
            if then.reason is not None and then.reason.code == UNCONFIRMED:
                return then.reason.because
        return ()

    def _is_open(self, step: Step, choice: Choice) -> bool:
        """Whether an effect is open, or was settled by a person's word that cannot stand."""
        state, here = self._state, self._state.steps[step.id]
        if self._given(step) is not None:
            adopts = choice.reason.code == "output_modified" and state.options.on_drift == "adopt"
            return choice.action == "run" and not adopts
        if _is_answered(here):
            return True
        if step.idempotent or here.asked:
            return False
        if self._prober.earlier.given(step.id, {state.run: 0}) is not None:
            return choice.action == "run"
        if state.options.wants(step.id) and not here.effect_at:
            return self.deeds.are_news(step.id)
        if here.effect_at:
            known = is_open(state, step.id) is True
        else:
            known = self._prober.earlier.open_since(step.id, state.previous) is not None
        return known or self.deeds.is_open_beside(step.id)

    def _given(self, step: Step) -> Artifact | None:
        """What a person gave in the place of an effect that nobody confirmed: it stands, whatever its key."""
        state, here = self._state, self._state.steps[step.id]
        if step.effects != "external" or here.remade or here.asked:
            return None
        since: dict[RunId, int] | None = None
        if here.effect is not None:
            since = {**self.deeds.held_beside(step.id), state.run: here.effect_at}
        elif _is_answered(here):
            since = {state.run: here.held_at}
        elif not here.effect_at and not state.options.wants(step.id):
            since = self._prober.earlier.open_since(step.id, state.previous)
        found = (
            None if since is None else self._prober.earlier.given(step.id, {state.run: 0, **since})
        )
        refused = [fed.digest for fed in here.fed]
        return None if found is None or found.digest in refused else found

    def _choose(self, step: Step) -> tuple[Probed, Choice]:
        state = self._state
        upstream = self._above(step)
        options, previous, moved = state.options, state.previous, self._moved
        probed = self._prober.probe(step, upstream, options, previous=previous, moved=moved)
        here = state.steps[step.id]
        choice = choose(
            step,
            probed.probe,
            self._options(here),
            now=self._world.clock(),
            tried=here.last,
            refused=[fed.digest for fed in here.fed] if here.fed else (),
            selected=state.may_run(step.id),
            anew=here.remade,
        )
        if step.effects == "external" and choice.action != "reuse":
            given = self._given(step)
            if given is not None:
                choice = Choice("reguard", Reason("answered"), given)
        if probed.as_begun and choice.action == "run":
            with suppress(NoInputError):  # it removed them itself
                probed = self._prober.probe(
                    step, upstream, options, previous=previous, moved=moved, runs=True
                )
        return probed, choice

    def _above(self, step: Step) -> dict[StepId, Upstream]:
        """What the data needs of a step brought, but for those that it goes on without."""
        found, steps = {}, self._state.steps
        for need in step.needs:
            if need.type == "data":
                above = steps[need.step]
                if need.optional and above.phase in LOST:
                    continue
                if above.config_ref is None or above.digest is None:
                    raise BugError(f"'{need.step}' is needed before it is complete")
                found[need.step] = Upstream(above.config_ref, above.digest)
        return found

    def would_run(self, item: Step, base: StepId) -> bool:
        """Whether an item that is about to be added would be made: nothing of it stands."""
        state = self._state
        try:
            probed = self._prober.probe(
                item, self._above(item), state.options, previous=state.previous
            )
        except EditError:  # what keeps it from being looked at is said when it is
            return True
        now, selected = self._world.clock(), state.may_run(base)
        found = choose(item, probed.probe, state.options, now=now, selected=selected)
        return found.action == "run"

    def _options(self, here: StepState) -> Options:
        """What was asked of the run; what a person gave afterwards stands, though the step was forced."""
        options = self._state.options
        if here.last is None or here.last.code != "answered":
            return options
        return replace(options, force=False, force_steps=())

    def _is_lost(self, need: StepId) -> bool:
        return self._state.steps[need].phase in LOST

    def _moved(self, step: Step) -> tuple[str, ...]:
        """The data needs that ran, or stand on something new, in this run."""
        names = []
        for need in step.data_needs:
            above = self._state.steps[need]
            code = above.reason.code if above.reason else ""
            if above.phase == "done" or code in {
                "amended",
                "accepted_by_person",
                "reguarded",
                "unchanged_content",
            }:
                names.append(need)
        return tuple(sorted(names))

    def _drift(self, step: Step, artifact: Artifact) -> Drift:
        return self._outputs.drift(step, artifact, lambda: self._known(step))

    def _known(self, step: Step) -> Iterator[Artifact]:
        return self._outputs.known(self._state.project, self._state.line, step)

    def _is_overwritten(self, step: Step, paths: tuple[str, ...]) -> bool:
        """Whether these outputs are a later step's too, and nothing that needs this version will run."""
        state, world = self._state, self._world
        below = state.graph.below([step.id]) - {step.id}
        if not any(has_outputs_at(state.plan.steps[other], paths) for other in below):
            return False
        if self._foreseen is None:
            self._foreseen = foresee(
                state.plan,
                state.line,
                world.root,
                world.store,
                self._survey,
                state.options,
                world.clock,
                drives=lambda _: True,  # this engine does
                walls=world.walls,
            )
        return is_overwritten(state.graph, self._foreseen.outlooks, step.id, paths)

    def _completed(self, step: Step, artifact: Artifact, look: Look) -> Look:
        """Put back the outputs that are wholly absent, so that an edit is adopted with all its files."""
        wanted = self._outputs.wanted(step, artifact.digest, artifact.form)
        missing = self._outputs.missing(step, self._outputs.read(step), wanted)
        if not missing:
            return look
        key = edit_key(self._state.run, step.id, PLACE)
        paths = [entry.path for entry in missing]
        done = self._outputs.write(self._outputs.changes(paths, missing), key)
        placed = OutputsPlaced(step.id, artifact.digest, artifact.form, done)
        return look._replace(placed=placed, key=key)

    def _restored(self, step: Step, artifact: Artifact, look: Look) -> Look:
        entries = self._outputs.wanted(step, artifact.digest, artifact.form)
        key = edit_key(self._state.run, step.id, PLACE)
        there = self._outputs.read(step)
        theirs = self._outputs.written_by_people(step, there, partial(self._known, step))
        self._outputs.save([entry.path for entry in there])
        try:
            paths = self._outputs.place(step, entries, key)
        except EditError:
            if self._drift(step, artifact).state != "equal":  # else a joined engine did the same
                raise
            return look
        replaced = [entry for entry in there if entry.path in theirs and entry.path in paths]
        for line in words_of_kept(step, replaced, "an earlier version stands again"):
            self._world.remind(line)
        placed = OutputsPlaced(step.id, artifact.digest, artifact.form, paths)
        return look._replace(placed=placed, key=key)

    def start(self, step: Step, look: Look) -> Start:
        """The fact that begins an attempt, and what goes with it."""
        probed, choice = look.probed, look.choice
        refs = probed.probe.refs
        blobs: Blobs = [(refs.own_ref, probed.own), *self._keeper.keep(probed.seen)]
        reguard = choice.artifact if choice.action == "reguard" else None
        before = None
        kept = self._bench.keep_before(step) if reguard is None else None
        if kept is not None:
            before = kept.digest
            blobs += kept.blobs
        started = AttemptStarted(
            step=step.id,
            attempt=self._state.steps[step.id].attempts + 1,
            config_ref=refs.config_ref,
            input_ref=refs.input_ref,
            own_ref=refs.own_ref,
            reason=choice.reason,
            before=before,
            reguard=reguard.digest if reguard else None,
            form=reguard.form if reguard else "bytes",
            source=reguard.source if reguard else "generated",
            reusable=not probed.probe.unsure,
        )
        adopts = self._state.options.on_drift == "adopt"
        if choice.reason.code == "output_modified" and adopts:
            return self._adoption(step, probed.probe, started, blobs)
        words: tuple[str, ...] = ()
        if kept is not None and kept.entries:
            files = self._replaced(step, probed, kept.entries)
            started = replace(started, edited=tuple(entry.path for entry in files))
            newest = probed.probe.newest
            is_lost = newest is not None and self._outputs.is_lost(step, newest)
            words = tuple(
                words_of_lost(step, files, before)
                if is_lost
                else words_of_kept(step, files, "it is made again")
            )
        return Start(started, blobs, words)

    def _replaced(self, step: Step, probed: Probed, there: Sequence[Entry]) -> list[Entry]:
        """What a person wrote that this attempt will be put in the place of, once for each content."""
        known = partial(self._known, step)
        stood = self._outputs.written_by_people(step, there, known)
        edited = {*self._edited(step, probed, there), *stood}
        files = [e for e in there if e.path in edited and (e.path, e.digest) not in self._told]
        self._told.update((entry.path, entry.digest) for entry in files)
        return files

    def _adoption(self, step: Step, probe: Probe, started: AttemptStarted, blobs: Blobs) -> Start:
        """A person changed the output: that version is guarded and, if it passes, stands."""
        kept = self._outputs.keep(step)
        digest, form = kept.digest, _FORM_OF_SEVERAL
        if step.changes_copy:
            stands = probe.found or probe.same_content or probe.newest
            digest = self._with_changes(stands, kept.entries)
        elif len(step.produces) == 1 and [e.path for e in kept.entries] == [*step.produces]:
            entry = kept.entries[0]
            digest, form = entry.digest, "program" if entry.executable else "bytes"
        changed = replace(started, reguard=digest, form=form, source="human", before=None)
        return Start(changed, [*blobs, *kept.blobs])

    def _with_changes(self, stands: Artifact | None, entries: Sequence[Entry]) -> Digest:
        """A person's version of the outputs, with what the step changed beside them."""
        store = self._world.store
        if stands is None:
            return store.put(changeset_bytes(entries, ()))
        before = store.get(stands.digest)
        return store.put(changeset_bytes(entries, changes_in(before), settled_in(before)))


def _is_answered(here: StepState) -> bool:
    """Whether a person gave its result when it was held, and that did not get through yet."""
    return "answered" in {found.code for found in (here.last, here.reason) if found is not None}


_FORM_OF_SEVERAL: Form = "tree"
