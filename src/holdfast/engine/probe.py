"""Finds out about a step whose needs are complete: its refs, what is stored under them, what changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple, cast

from holdfast.core.changes import Change, Probe, differences, guards_only
from holdfast.core.effects import changes_untold
from holdfast.core.refs import (
    Encoder,
    Refs,
    Upstream,
    encode_own,
    halves,
    refs_from,
    refs_of,
    spell,
)
from holdfast.engine.additions import Additions
from holdfast.engine.earlier import EarlierRuns, accepted_as
from holdfast.engine.journals import Followed
from holdfast.engine.lines import line_journal
from holdfast.engine.needed import whole_of
from holdfast.engine.survey import NoInputError, Survey
from holdfast.engine.unwind import Parts, Unwinder
from holdfast.engine.words import Contests
from holdfast.errors import IntegrityError
from holdfast.model.artifact import Artifact
from holdfast.model.digest import Digest, Json, digest_bytes, digest_parts
from holdfast.model.event import AttemptAccepted, Options
from holdfast.model.newest import Newest
from holdfast.model.plan import Plan, RunId, Step, StepId
from holdfast.ports import Store


class Probed(NamedTuple):
    """The answer, with the encoding of the step's own parts and what was observed for them.

    If what the plan itself changed is left out, as of what stands and not of an attempt, `whole` is all that
    was observed.
    """

    probe: Probe
    own: bytes
    seen: Mapping[str, Json]
    whole: Mapping[str, Json] | None = None

    @property
    def as_begun(self) -> bool:
        """Whether what the plan itself changed is left out."""
        return self.whole is not None

    @property
    def lying(self) -> Mapping[str, Json]:
        """What was observed, with all that the plan itself changed."""
        return self.seen if self.whole is None else self.whole


class _Asked(NamedTuple):
    """What is asked of a step: what its needs brought, and which of them are known to have changed."""

    step: Step
    upstream: Mapping[StepId, Upstream]
    options: Options
    previous: RunId | None
    moved: Callable[[Step], tuple[str, ...]]


class Prober:
    """Looks steps up in one line of one store."""

    def __init__(self, store: Store, survey: Survey, plan: Plan, project: str, line: str) -> None:
        self._store = store
        self._survey = survey
        self._project = project
        self._line = line
        self.earlier = EarlierRuns(store, project, line, self._is_there)
        self._newest: Newest | None = None
        self._whole: set[Digest] | None = (
            None  # contents that were all there when they were asked for
        )
        self._read_to = -1
        self._seen: Mapping[str, Json] = {}
        self._spelled = spell(self._seen)
        self._encoder = Encoder()
        self._unwinder = Unwinder(
            store,
            plan,
            self._newest_of,
            self.earlier.made,
            self.earlier.lately,
            partial(accepted_as, store, project, line),
            self._saw,
            survey,
        )
        self.alone = True  # no other engine adds artifacts to this line meanwhile
        self._followed: Followed | None = None
        self._unfit: Callable[[Artifact], str] = lambda _: ""
        self._contests = Contests(store, project, line)
        self._contests.refresh()

    def probe(
        self,
        step: Step,
        upstream: Mapping[StepId, Upstream],
        options: Options,
        *,
        previous: RunId | None,
        moved: Callable[[Step], tuple[str, ...]] = lambda _: (),
        runs: bool = False,
    ) -> Probed:
        """Probe one step. `moved` names the needs that are known to have changed in this run.

        If it is known that the step `runs`, what lies there now is what it will be made from.
        """
        asked = _Asked(step, upstream, options, previous, moved)
        begins = not runs and not self._unwinder.is_idle
        if begins and (begun := self._as_before(asked)) is not None:
            return begun
        untold = self._unwinder.untold(step.id) if begins else ()
        try:
            seen = self._survey.observe(step)
        except NoInputError as error:
            if begins and (begun := self._as_left(asked)) is not None:
                return begun
            is_free = options.force or options.wants(step.id)
            if untold and not is_free and step.id in (options.select or (step.id,)):
                raise changes_untold(step.id, untold, options.force_steps) from error
            raise
        own = self._encode(step, seen.parts)
        head, above = halves(step, own, upstream)
        ref = digest_parts(head, above)
        found = self._find(step, ref)
        if begins:
            begun = self._as_left(asked) if found is None else self._as_stood(asked, found)
            if begun is not None:
                return begun
        if found is not None and not seen.unsure:
            return Probed(self._standing(found), own, seen.parts)
        probe = self._changed(asked, own, refs_from(ref, head, own), found)
        return Probed(probe._replace(unsure=seen.unsure, untold=untold), own, seen.parts)

    def _standing(self, found: Artifact) -> Probe:
        """What is to be said of a step that stands; under one config ref the others are the same."""
        return Probe(
            found.step,
            Refs(found.config_ref, found.input_ref, found.own_ref),
            found=found,
            newest=found,
            gone=not self._is_there(found),
            contested=self._contests.of(found),
            unfit=self._unfit(found),
        )

    def _changed(self, asked: _Asked, own: bytes, refs: Refs, found: Artifact | None) -> Probe:
        """What is to be said of a step that changed, or of whose key not all is known."""
        step, previous = asked.step, asked.previous
        same = self._with_same_content(step, refs, asked.options)
        newest = found or self._newest_of(step.id)

        def since(base: Artifact) -> tuple[Change, ...]:
            return self._changes(asked, own, base)

        stood, changes = self.compared(step, newest, previous, since) if newest else (None, ())
        base = stood or newest
        probe = Probe(
            step=step.id,
            refs=refs,
            found=found,
            same_content=same,
            newest=newest,
            stood=stood,
            changes=changes,
            previous="" if previous is None else self.earlier.before(step.id, refs, previous),
            gone=base is not None and not self._is_there(base),
            undone=found is None and self.earlier.is_undone(step.id, refs.config_ref, newest),
            contested=self._contests.of(found or same or newest),
            unfit=self._unfit(same) if same is not None else "",
        )
        return probe._replace(lost=self._lost(step, probe, asked.options))

    def _lost(self, step: Step, probe: Probe, options: Options) -> Artifact | None:
        """What would answer for the step if its content had not been purged or lost."""
        newest, refs = probe.newest, probe.refs
        if newest is not None:
            guarded = step.done_once or step.changes_copy
            by_guards = probe.only_guards and step.reuse != "strict" and guarded
            answers = by_guards or newest.config_ref == refs.config_ref
            if answers and self._is_lost(newest):
                return newest
        if not step.done_once:  # it is made again, for whatever changed since the newest one
            return None
        if newest is None and not self.earlier.said().received.gone:
            return None
        found, by_content = None, options.cutoff or step.reuse == "content"
        for row in self.earlier.once_accepted(step.id):
            same = by_content and row.input_ref == refs.input_ref
            if (same or row.config_ref == refs.config_ref) and self._is_lost(row):
                found = row
        return found

    def _is_lost(self, artifact: Artifact) -> bool:
        """Whether an artifact cannot stand only because its content was purged, or is not there."""
        if artifact.source == "imported":  # it says so where it comes from
            return True
        return self.earlier.was_purged(artifact) or not self._is_there(artifact)

    def _as_begun(self, asked: _Asked, then: Parts | None = None) -> Probed | None:
        """What stands, or would, if the changes that the plan itself made to what it reads do not count.

        If it is given what the step saw `then`, only what was changed since does not.
        """
        step, options = asked.step, asked.options
        seen = self._survey.observe(step, lenient=True)
        parts = self._unwinder.taken_back(step, seen.parts, then=then)
        if parts is None or seen.unsure:
            return None
        own = encode_own(step, parts)
        head, above = halves(step, own, asked.upstream)
        refs = refs_from(digest_parts(head, above), head, own)
        found, newest = self._find(step, refs.config_ref), self._newest_of(step.id)
        same = None if found is not None else self._with_same_content(step, refs, options)
        if newest is not None and (step.changes_copy or then is not None):  # another was taken back
            found = found if found is not None and found.digest == newest.digest else None
            same = same if same is not None and same.digest == newest.digest else None
        if found is not None:
            return Probed(self._standing(found), own, parts, seen.parts)
        if newest is None:
            return None
        changes = self._changes(asked, own, newest)
        probe = Probe(
            step.id,
            refs,
            same_content=same,
            newest=newest,
            changes=changes,
            gone=not self._is_there(newest),
            undone=self.earlier.is_undone(step.id, refs.config_ref, newest),
            contested=self._contests.of(same or newest),
            unfit=self._unfit(same or newest),
        )
        probe = probe._replace(lost=self._lost(step, probe, options))
        by_guards = guards_only(changes) and step.reuse != "strict"
        stays = probe.lost is not None or same is not None or by_guards
        return Probed(probe, own, parts, seen.parts) if stays else None

    def _as_before(self, asked: _Asked) -> Probed | None:
        """The same, and its newest artifact rather than another one: what lies there may follow from both."""
        begun = self._as_begun(asked)
        if begun is None:
            return None
        found, newest = begun.probe.found, self._newest_of(asked.step.id)
        if found is None:
            return None if self._is_newest(asked.step, asked.upstream) else begun
        if newest is None or newest.config_ref == found.config_ref:
            return begun
        other = self._as_begun(asked, self._saw(newest))
        stands = other is not None and other.probe.refs.config_ref == newest.config_ref
        return other if stands else begun

    def _is_newest(self, step: Step, upstream: Mapping[StepId, Upstream]) -> bool:
        """Whether its newest artifact was made from the very files that lie there."""
        newest = self._newest_of(step.id)
        own = encode_own(step, self._survey.observe(step, lenient=True).parts)
        ref = digest_parts(*halves(step, own, upstream))
        return newest is not None and newest.reusable and newest.config_ref == ref

    def _with_same_content(self, step: Step, refs: Refs, options: Options) -> Artifact | None:
        """What stands under these refs for whoever goes by contents alone."""
        if not options.cutoff and step.reuse != "content":
            return None
        same = self._find(step, refs.input_ref, content=True)
        return None if same is None or not self._is_there(same) else same

    def _as_left(self, asked: _Asked) -> Probed | None:
        """The same by what its newest result saw, or else by what an earlier run left."""
        newest = self._newest_of(asked.step.id)
        begun = None if newest is None else self._as_begun(asked, self._saw(newest))
        return begun or self._as_earlier(asked.step, asked.upstream)

    def _as_stood(self, asked: _Asked, found: Artifact) -> Probed | None:
        """What stood in the previous run, if all that its steps read is as that run left it.

        What it left may be what the one that was `found` began with.
        """
        came_to = {} if asked.previous is None else self.earlier.results(asked.previous)
        if came_to.get(asked.step.id) in {None, (found.config_ref, found.digest)}:
            return None
        return self._as_earlier(asked.step, asked.upstream, came_to)

    def _as_earlier(
        self,
        step: Step,
        upstream: Mapping[StepId, Upstream],
        last: Mapping[StepId, Upstream] | None = None,
    ) -> Probed | None:
        """What an earlier run, or the last one, came to, if all that its steps read is as that left it."""
        seen = self._survey.observe(step, lenient=True)
        if seen.unsure:
            return None
        for one, parts in self._unwinder.taken_back_earlier(step, seen.parts, last):
            own = encode_own(step, parts)
            if digest_parts(*halves(step, own, upstream)) == one.config_ref:
                found = self._find(step, one.config_ref)
                if found is not None and found.digest == one.digest:
                    return Probed(self._standing(found), own, parts, seen.parts)
        return None

    def _saw(self, artifact: Artifact) -> Parts:
        """The parts of its key that were observed when it was made."""
        try:
            own = json.loads(self._store.get(artifact.own_ref))
        except IntegrityError:
            return {}
        return cast("Parts", own.get("ext") or {})

    def _encode(self, step: Step, seen: Mapping[str, Json]) -> bytes:
        """The step's own parts; what steps of one function have in common is encoded once."""
        if seen is not self._seen:
            self._seen, self._spelled = seen, spell(seen)
        return self._encoder.encode(step, self._spelled)

    def _is_there(self, artifact: Artifact) -> bool:
        """Whether the content of an artifact is all there; a person may have had it removed, or it was lost.

        What stands is asked for in few questions. What was there once is taken to stay.
        """
        if self._whole is None:
            self._whole = whole_of(self._store, self._newest_of_all().contents())
        if artifact.digest not in self._whole:
            self._whole |= whole_of(self._store, [(artifact.digest, artifact.form)])
        return artifact.digest in self._whole

    def contested(self, artifact: Artifact | None) -> tuple[str, ...]:
        """What people contest of what came with an artifact."""
        return self._contests.of(artifact)

    def grow(self, plan: Plan) -> None:
        """The plan has further steps."""
        self._unwinder.grow(plan)

    def heed(self, additions: Additions, unfit: Callable[[Artifact], str]) -> None:
        """Mind what artifacts bring when they are reused; `unfit` says why that does not fit the plan."""
        self._unfit = unfit
        self._unwinder.count_additions(additions)

    def refresh(self) -> None:
        """Forget what was looked up if a person may have amended a step, or another engine made one."""
        last = self._store.last(line_journal(self._project, self._line))
        if last != self._read_to:
            self._read_to, self._newest = last, None
            self.earlier.forget_words()
            self._contests.refresh()
            self._unwinder.forget()
        if self._followed is not None and self.takes_back:
            has_grown = self._followed.has_grown()
            made = [isinstance(event, AttemptAccepted) for _, event in self._followed.news()]
            if has_grown or any(made):
                self._newest = None
                self._unwinder.forget()

    def not_alone(self, run: RunId) -> None:
        """Another engine joined the line of this run: what is stored may grow at any time."""
        if self.alone:
            self.alone = self.earlier.alone = False
            self._followed = Followed(self._store, self._project, self._line, run)

    @property
    def takes_back(self) -> bool:
        """Whether steps change files in copies, which is taken back for what they and others read."""
        return not self._unwinder.is_idle

    def counting(self, step: StepId, tried: set[StepId]) -> set[StepId]:
        """Those of the tried steps whose changes are taken back for this one."""
        return self._unwinder.counting(step, tried)

    def forget(self) -> None:
        """This run added artifacts that are looked for again."""
        self._newest = None
        self.earlier.forget_words()

    def _newest_of(self, step: StepId) -> Artifact | None:
        """The newest accepted artifact; of all steps in one query while nobody else adds any."""
        if self.alone:
            newest = self._newest_of_all()
            found = newest.of(step)
            if found is not None or not newest.has_let_go(step):
                return found
        return self._store.newest(self._project, self._line, step)

    def _newest_of_all(self) -> Newest:
        if self._newest is None:
            self._newest = self._store.newest_of_all(self._project, self._line)
        return self._newest

    def let_go(self, artifact: Artifact) -> None:
        """A step stands on this one and is complete: whoever asks for it again asks the store.

        A run of a million steps has a row of each, and needs it once.
        """
        if self._newest is not None and self._unwinder.is_idle:
            self._newest.let_go(artifact)

    def _find(self, step: Step, ref: Digest, *, content: bool = False) -> Artifact | None:
        found = self._own(step, ref, content=content)
        return self._shared(step, ref) if found is None and step.share and not content else found

    def _own(self, step: Step, ref: Digest, *, content: bool) -> Artifact | None:
        """What this line made under the ref. The newest artifact answers for most steps."""
        if self.alone:
            newest = self._newest_of(step.id)
            if newest is None:
                return None
            if not content and newest.config_ref == ref and newest.reusable:
                return newest
        return self._store.find(self._project, self._line, step.id, ref, content=content)

    def _shared(self, step: Step, ref: Digest) -> Artifact | None:
        """What another line of the project made under the same ref; never what a person wrote there."""
        found = None
        for row in self._store.artifacts(
            project=self._project, step=step.id, status="accepted", source="generated"
        ):
            if row.config_ref == ref and row.reusable:
                found = row
        return found

    # --- what changed -----------------------------------------------------------------------------------

    def compared(
        self,
        step: Step,
        newest: Artifact | None,
        previous: RunId | None,
        since: Callable[[Artifact], tuple[Change, ...]],
    ) -> tuple[Artifact | None, tuple[Change, ...]]:
        """What stood in the line's previous run if not `newest`, and what changed since the one that counts.

        A cause is what is other than in the previous run, whatever was tried and taken back before it.
        Only if the newest artifact will be guarded again, nothing but the guards is named.
        """
        if newest is None:
            return None, ()
        stood = self._stood(newest, previous)
        if stood == newest:
            return None, since(newest)
        if step.reuse != "strict" and guards_only(changes := since(newest)):
            return None, changes
        return stood, since(stood)

    def _stood(self, newest: Artifact, previous: RunId | None) -> Artifact:
        """The artifact that stood in the line's previous run; the newest one if none or no other did."""
        if previous is None or newest.run == previous:
            return newest
        if not newest.run and self.earlier.was_given_after(previous, newest):
            return newest
        then = self.earlier.results(previous).get(newest.step)
        if then is None or (newest.config_ref, newest.digest) == then:
            return newest
        return accepted_as(self._store, self._project, self._line, newest.step, then) or newest

    def _changes(self, asked: _Asked, own: bytes, base: Artifact) -> tuple[Change, ...]:
        """How the key differs from the one of an accepted artifact.

        Whether anything above changed is asked of the digest itself: the old own parts with what the
        needs bring now give the old ref, or they do not.
        """
        step, upstream, previous = asked.step, asked.upstream, asked.previous
        try:
            old = self._store.get(base.own_ref)
        except IntegrityError:
            return ()
        before = cast("Mapping[str, Json]", json.loads(old))
        after = cast("Mapping[str, Json]", json.loads(own))
        changes = differences(before, after, None, {})
        if any(c.part in {"needs", "key"} for c in changes):
            return changes
        if refs_of(step, old, upstream).config_ref == base.config_ref:
            return changes
        then = None if previous is None else self.earlier.results(previous).get(step.id)
        if then is not None and then.config_ref == base.config_ref:
            names = self._moved_since(previous, upstream)
        else:
            names = asked.moved(step) or self._moved_since(base.run, upstream)
        return (*changes, Change("upstream", "upstream_changed", names, None, None))

    def begun_with(
        self, step: Step, newest: Artifact | None, made: Iterable[Artifact]
    ) -> Parts | None:
        """What an accepted result of a step began with, if only the plan itself changed that since."""
        if newest is None or self._unwinder.is_idle:
            return None
        seen = self._survey.observe(step, lenient=True)
        if seen.unsure:
            return None
        ways = (
            self._unwinder.taken_back(step, seen.parts, then=then)
            for then in (None, self._saw(newest))
        )
        earlier = (parts for _, parts in self._unwinder.taken_back_earlier(step, seen.parts))
        refs: set[Digest] = set()
        for parts in (*filter(None, ways), *earlier):
            refs = refs or {row.own_ref for row in made}
            is_made = digest_bytes(encode_own(step, parts)) in refs
            if is_made or guards_only(self.own_changes(step, newest, parts)):
                return parts
        return None

    def own_changes(self, step: Step, base: Artifact, parts: Parts) -> tuple[Change, ...]:
        """How a step's own parts differ from those of an artifact, whatever its needs will bring."""
        try:
            own = encode_own(step, parts)
            before = cast("Mapping[str, Json]", json.loads(self._store.get(base.own_ref)))
        except IntegrityError:
            return ()
        return differences(before, cast("Mapping[str, Json]", json.loads(own)), None, {})

    def _moved_since(
        self, run: RunId | None, upstream: Mapping[StepId, Upstream]
    ) -> tuple[str, ...]:
        """The needs that differ from what they were in a run."""
        if run is None or not self._store.last(f"run:{run}"):
            return ()
        then = self.earlier.results(run)
        return tuple(sorted(need for need, now in upstream.items() if then.get(need) != now))
