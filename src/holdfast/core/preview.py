"""What a run would do, before it does anything: reuse, run, only if something above changes, or wait.

A preview promises: a step that says `reuse` is reused, one that says `run` gets an attempt, as long as
nothing fails on the way. Where the refs of a step cannot be known before the steps above it have run,
only what is certain whatever they bring is said; the rest is `maybe`.

Certain is, without early cutoff, what stands below a step whose ref no accepted artifact has: its own
ref is as new. Certain is also a step whose own parts no accepted artifact was made with. Not certain is
a step that reads files which a step above it may write: its own parts are not known yet either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Literal

from holdfast.core.changes import Choice, Probe, choose, unresolved
from holdfast.core.effects import RECEIPT_GONE, UNCONFIRMED, changes_lost
from holdfast.core.moves import BY_CONDITION, LEFT_OUT
from holdfast.core.refs import Upstream
from holdfast.core.sight import Disk, Sight
from holdfast.core.waves import Graph
from holdfast.errors import EditError
from holdfast.model.artifact import Artifact
from holdfast.model.condition import references
from holdfast.model.digest import Digest, Json, digest_json
from holdfast.model.event import Options, Reason
from holdfast.model.fixed import frozen
from holdfast.model.items import source_of
from holdfast.model.plan import IN_REF, Need, Plan, Step, StepId, limits_json, plan_digest

Decision = Literal["run", "reuse", "maybe", "wait"]
Means = Literal["make", "guard", "adopt", ""]
KEPT_OUT = LEFT_OUT | {"dependency_skipped"}  # would have to run, or might, and will not
ATTEMPTED = frozenset({"run", "maybe"})
STUCK = frozenset({"command_failed", "output_modified", "key_missing", "dependency_failed"})


@frozen
class Outlook:
    """What would happen to one step. Its refs are known only if nothing above it will run.

    `means` is how an attempt would come by its content: make it, guard the kept artifact again, or
    adopt what a person wrote. `edited` are files a person changed, `written` files that would be
    written from the store, `removed` files that came back and would be removed again, `replaced` a
    person's version that stood and that an attempt would replace.
    `is_new` says that no accepted artifact has the ref it would run under.
    `put_back` are files that a dead engine's attempt left and that are put back before anything else.
    `failed_before` says that the line's previous run failed there, `also` what else changed then or since.
    """

    decision: Decision
    reason: Reason
    probe: Probe | None = None
    artifact: Artifact | None = None
    means: Means = ""
    edited: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    is_new: bool = False
    failed_before: bool = False
    also: Reason | None = None
    put_back: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    @property
    def is_stuck(self) -> bool:
        """Whether the step cannot go on at all, as opposed to waiting for a person's word."""
        return self.decision == "wait" and self.reason.code in STUCK

    @property
    def is_edited(self) -> bool:
        """Whether a person changed what the step had made, as opposed to being there before it."""
        modified = self.reason.code == "output_modified"
        has_made = self.probe is not None and self.probe.newest is not None
        return modified or (bool(self.edited) and has_made)

    @property
    def is_left_out(self) -> bool:
        """Whether it would have to run and may not, because of what was selected."""
        return self.decision == "wait" and self.reason.code in KEPT_OUT

    @property
    def is_work(self) -> bool:
        """Whether a run would do something for it."""
        return bool(self.written or self.put_back or self.removed) or (
            self.decision != "reuse" and not self.is_left_out
        )


def preview(graph: Graph, options: Options, sight: Sight, *, now: int) -> dict[StepId, Outlook]:
    """Decide every step in order."""
    foresight = _Foresight(graph.steps, options, sight, now)
    for step_id in graph.order:
        foresight.decide(graph.steps[step_id])
    return foresight.outlooks


class _Foresight:
    """The decisions so far: what is known of each step, and which files may still change."""

    def __init__(
        self, steps: Mapping[StepId, Step], options: Options, sight: Sight, now: int
    ) -> None:
        self.outlooks: dict[StepId, Outlook] = {}
        self._steps = steps
        self._options = options
        self._selected = frozenset(options.select)
        self._sight = sight
        self._now = now
        self._known: dict[StepId, Upstream] = {}
        sight.follow(self._known)
        self._writes: dict[StepId, StepId] = {}  # step -> one above or itself that may write files
        self._changes: dict[StepId, StepId] = {}  # the same, of any files, and by an attempt
        self._makers: dict[str, list[StepId]] = {}  # output -> those that may make it anew

    def decide(self, step: Step) -> None:
        """Add the outlook of a step whose needs are decided."""
        try:
            outlook = self._stuck_above(step) or self._outlook(step)
        except EditError as error:
            outlook = Outlook("wait", Reason("command_failed", (error.message,)))
        if step.is_idle and outlook.decision != "reuse" and not outlook.is_left_out:
            words = f"nobody said how '{step.agent}' does '{step.action}'"
            outlook = Outlook("wait", Reason("command_failed", (words,)), outlook.probe)
        if outlook.decision == "run" and self._sight.held(step):
            outlook = replace(outlook, decision="wait", reason=Reason(UNCONFIRMED))
        elif outlook.decision == "run" and outlook.means == "make" and step.asks_first:
            code = self._sight.asks(step, outlook.probe, self._known)
            outlook = replace(outlook, decision="wait", reason=Reason(code)) if code else outlook
        self.outlooks[step.id] = outlook
        if outlook.decision == "reuse" and outlook.artifact and outlook.probe:
            ref = outlook.probe.refs.config_ref
            self._known[step.id] = Upstream(ref, outlook.artifact.digest)
        self._note_writes(step, outlook)

    def _note_writes(self, step: Step, outlook: Outlook) -> None:
        touches = step.produces or step.effects == "workspace"
        if touches and outlook.is_work and outlook.decision != "wait":
            self._writes[step.id] = step.id
        elif above := next((n.step for n in step.needs if n.step in self._writes), None):
            self._writes[step.id] = self._writes[above]
        is_made = outlook.decision in ATTEMPTED
        if is_made and step.effects == "workspace":
            self._changes[step.id] = step.id
        elif above := next((n.step for n in step.needs if n.step in self._changes), None):
            self._changes[step.id] = self._changes[above]
        for place in step.produces if is_made else ():
            self._makers.setdefault(place, []).append(step.id)

    def _stuck_above(self, step: Step) -> Outlook | None:
        source = source_of(step.for_each)  # without a list there is nothing to go on with
        waits = [n.step for n in step.needs if self._waits_for(n, needed=n.step == source)]
        if not waits:
            return None
        stuck = [need for need in waits if self.outlooks[need].is_stuck]
        left_out = [need for need in waits if self.outlooks[need].is_left_out]
        code = "awaiting_person"
        if stuck:
            code = "dependency_failed"
        elif any(self.outlooks[need].reason.code in BY_CONDITION for need in left_out):
            code = "condition_above"
        elif left_out:
            code = "dependency_skipped" if self._is_selected(step) else "not_selected"
        return Outlook("wait", Reason(code, tuple(sorted(stuck or left_out or waits))))

    def _waits_for(self, need: Need, *, needed: bool) -> bool:
        """Whether a step waits because this one does: it may go on without one that is lost."""
        if self.outlooks[need.step].decision != "wait":
            return False
        return needed or not (need.optional and self._is_lost(need.step))

    def _is_selected(self, step: Step) -> bool:
        return not self._selected or step.id in self._selected

    def _outlook(self, step: Step) -> Outlook:
        if step.when is not None:
            asked = {StepId(reference.name) for reference in references(step.when)}
            open_above = tuple(sorted(s for s in asked if not self._is_settled(s)))
            if open_above:
                outlook = self._decided(step)
                if outlook.decision not in {"run", "reuse", "maybe"}:
                    return outlook
                reason = Reason("condition_open", open_above)
                return replace(
                    outlook, decision="maybe", reason=reason, artifact=None, means="make"
                )
            if words := self._sight.unmet(step, self._known):
                return Outlook("wait", Reason("condition_unmet", (words,)))
        return self._decided(step)

    def _is_settled(self, step_id: StepId) -> bool:
        """Whether it is known what a step brings, or that it brings nothing."""
        return step_id in self._known or self._is_lost(step_id)

    def _is_lost(self, step_id: StepId) -> bool:
        above = self.outlooks[step_id]
        return above.is_stuck or above.is_left_out

    def _decided(self, step: Step) -> Outlook:
        if step.awaits_items and (source := source_of(step.for_each)) not in self._known:
            return self._unlisted(step, source)
        open_needs = tuple(
            sorted(
                need.step
                for need in step.needs
                if (need.type == "data" or step.context == IN_REF)
                and need.step not in self._known
                and not (need.optional and self._is_lost(need.step))
            )
        )
        writer = self._writer_above(step)
        if not open_needs and writer is None:
            return self._ready(step)
        outlook = self._below(step, open_needs, writer)
        if outlook.decision == "run" and not self._is_selected(step):
            return Outlook("wait", Reason("not_selected"), outlook.probe)
        return self._made(step, outlook)

    def _unlisted(self, step: Step, source: StepId | None) -> Outlook:
        """It has as many items as the step finds that lists them, which is not reused."""
        probe = self._sight.own(step).probe._replace(changes=())
        reason = Reason("items_open", () if source is None else (source,))
        if probe.newest is None:
            return Outlook("run", reason, probe, None, "make", is_new=True)
        return Outlook("maybe", reason, probe, None, "make")

    def _writer_above(self, step: Step) -> StepId | None:
        """A step above that may write the files that this one declares, or that its command names."""
        if step.inputs:
            return next((self._writes[n.step] for n in step.needs if n.step in self._writes), None)
        is_below = any(need.step in self._writes for need in step.needs)
        named = self._sight.in_command(step) if is_below and step.uses == "shell" else ()
        if not named:
            return None
        above = (self._changes[n.step] for n in step.needs if n.step in self._changes)
        return next(above, None) or self._maker_above(step, named)

    def _maker_above(self, step: Step, paths: Sequence[str]) -> StepId | None:
        """A step above that may make one of these files anew. Few are: only then it is looked for."""
        ends = ((path, at) for path in paths for at in range(1, len(path) + 1))
        places = (path[:at] for path, at in ends if path[at : at + 1] in {"", "/"})
        makers = {maker for place in places for maker in self._makers.get(place, ())}
        again = self._again_above(step) if makers else ()
        return next((one for one in again if one in makers), None)

    # --- everything above is known --------------------------------------------------------------------

    def _ready(self, step: Step) -> Outlook:
        """The same questions in the same order as an engine asks them."""
        above = {need: self._known[need] for need in step.data_needs if need in self._known}
        probe = self._sight.look(step, above)
        selected = self._is_selected(step)
        choice = choose(step, probe, self._options, now=self._now, selected=selected)
        given = self._sight.given(step) if choice.action != "reuse" else None
        if given is not None:  # its guards look once more, and nothing is made
            choice = Choice("reuse", Reason("amended"), given)
        if choice.action == "skip":
            return Outlook("wait", choice.reason, probe)
        if step.reads_keys and choice.action != "reuse":
            lacking = self._sight.lacking(step, self._known)
            if lacking:
                return Outlook("wait", Reason("key_missing", lacking), probe)
        fresh = self._is_new(step, probe)
        if choice.artifact is None:
            made = self._made(
                step, Outlook("run", choice.reason, probe, None, "make", is_new=fresh)
            )
            if not choice.repeats or made.decision != "run" or self._sight.held(step):
                return made
            return replace(made, decision="wait", reason=choice.repeats)
        looks = step.produces or step.changes_copy
        disk = self._sight.disk(step, choice.artifact) if looks else Disk()
        if disk.lost:
            if step.changes_copy:
                raise changes_lost(disk.lost, step.id)
            return self._lost(step, probe, is_new=fresh, selected=selected)
        if disk.edited and not selected:
            return Outlook("wait", Reason("not_selected"), probe)
        if disk.edited:
            return replace(self._edited(step, probe, choice.artifact, disk.edited), is_new=fresh)
        if choice.action == "run":  # what stands is lost, and nobody changed what lies there
            return self._made(
                step, Outlook("run", choice.reason, probe, None, "make", is_new=fresh)
            )
        if step.changes_copy:
            due = self._sight.due(choice.artifact)
            if due.displaced:
                return self._displaced(step, probe, due.displaced, is_selected=selected)
            disk = disk._replace(written=(*disk.written, *due.written), removed=due.removed)
        if choice.action == "reuse":
            found = Outlook("reuse", choice.reason, probe, choice.artifact)
            if step.changes_copy and (anew := self._anew(step, choice.artifact)):
                reason = Reason("upstream_changed", anew)
                found = self._made(step, Outlook("maybe", reason, probe, None, "make"))
            return replace(found, written=disk.written, removed=disk.removed)
        if self._sight.held(step):
            return Outlook("wait", Reason(UNCONFIRMED), probe)
        found = Outlook("maybe", choice.reason, probe, choice.artifact, "guard", is_new=fresh)
        return replace(found, written=disk.written, removed=disk.removed)

    def _anew(self, step: Step, artifact: Artifact) -> tuple[StepId, ...]:
        """The steps above that may write anew where the changes of this one begin: it is made again then."""
        again = [one for one in self._again_above(step) if self._makes_files(one)]
        return self._sight.anew(artifact, again) if again else ()

    def _again_above(self, step: Step) -> list[StepId]:
        """The steps above that may write files, and run or may run."""
        pending, reached = [step], {step.id}
        while pending:
            above = {need.step for need in pending.pop().needs if need.step in self._writes}
            pending += [self._steps[need] for need in above - reached]
            reached |= above
        return sorted(
            one
            for one in reached - {step.id}
            if self._writes[one] == one and self.outlooks[one].decision in ATTEMPTED
        )

    def _makes_files(self, step_id: StepId) -> bool:
        step = self._steps[step_id]
        return step.changes_copy or bool(step.produces)

    def _displaced(
        self, step: Step, probe: Probe, paths: tuple[str, ...], *, is_selected: bool
    ) -> Outlook:
        """What it changed lies there no more, and it made something else since: it is made again."""
        if not is_selected:
            return Outlook("wait", Reason("not_selected"), probe)
        made = Outlook("run", Reason("output_missing", paths), probe, None, "make")
        return self._made(step, made)

    def _lost(self, step: Step, probe: Probe, *, is_new: bool, selected: bool) -> Outlook:
        """What should lie at the outputs cannot be put there: it is made again."""
        if not selected:
            return Outlook("wait", Reason("not_selected"), probe)
        missing = Reason("output_missing", step.produces)
        made = self._made(step, Outlook("run", missing, probe, None, "make", is_new=is_new))
        if not step.done_once or made.decision != "run" or self._sight.held(step):
            return made
        return replace(made, decision="wait", reason=Reason(RECEIPT_GONE))

    def _is_new(self, step: Step, probe: Probe) -> bool:
        if probe.found is not None or probe.undone:
            return False
        if probe.newest is None:
            return True
        return not self._sight.has_run_under(step, probe.refs.config_ref)

    def _made(self, step: Step, outlook: Outlook) -> Outlook:
        """A step that runs replaces its files; what a person wrote there is stored first, or in the way."""
        probe = outlook.probe
        if probe is None:
            return outlook
        if not step.produces:
            stood = probe.newest
            is_theirs = stood is not None and (stood.source, stood.status) == ("human", "accepted")
            return replace(outlook, replaced=(step.id,)) if is_theirs else outlook
        edited = self._sight.disk(step, probe.newest).edited
        has_history = probe.newest is not None or probe.undone
        if edited and has_history and self._options.on_drift == "fail":
            return Outlook("wait", Reason("output_modified", edited), probe)
        theirs = self._sight.theirs(step)
        replaced = tuple(path for path in theirs if path not in edited)
        return replace(outlook, edited=edited, replaced=replaced)

    def _edited(
        self, step: Step, probe: Probe, artifact: Artifact, edited: tuple[str, ...]
    ) -> Outlook:
        reason = Reason("output_modified", edited)
        if self._options.on_drift == "fail":
            return Outlook("wait", reason, probe)
        if self._options.on_drift == "regenerate":
            theirs = tuple(path for path in self._sight.theirs(step) if path not in edited)
            return Outlook("run", reason, probe, None, "make", edited, replaced=theirs)
        due = self._sight.due(probe.newest or artifact) if step.changes_copy else Disk()
        written = (*self._sight.absent(step, artifact), *due.written)
        return Outlook("run", reason, probe, None, "adopt", edited, written, removed=due.removed)

    # --- something above is open ----------------------------------------------------------------------

    def _below(self, step: Step, open_needs: tuple[StepId, ...], writer: StepId | None) -> Outlook:
        """Only what is certain is said, whatever the steps above will bring."""
        try:
            own = self._sight.own(step)
        except EditError:
            if writer is None:
                raise
            return self._maybe(None, open_needs, writer)
        probe, settled = own.probe, writer is None
        new_above = any(self._gives_new_ref(need) for need in open_needs)
        is_new = new_above or (settled and not own.made_before)
        run = Outlook("run", Reason("forced"), probe, None, "make", is_new=is_new)
        certain = self._certain(step, open_needs)
        if own.lacks is not None and settled and (certain or self._is_asked_for(step)):
            raise own.lacks
        if self._options.force or step.id in self._options.force_steps:
            return run
        if step.id in self._options.resample:
            return replace(run, reason=Reason("resampled"))
        if probe.unsure:
            return replace(run, reason=unresolved(probe) or _first_time(probe))
        if probe.contested:
            return replace(run, reason=Reason("evidence_contested", probe.contested))
        if probe.newest is None and not own.made_before:
            fresh = new_above or not probe.undone
            return replace(run, reason=_first_time(probe), is_new=fresh)
        first = _first(probe, stable_only=not settled)
        if certain:
            return replace(run, reason=first or Reason("upstream_changed", certain))
        if own.made_before or not settled:
            return replace(self._maybe(probe, open_needs, writer), is_new=is_new)
        if step.reuse != "strict" and probe.only_guards:
            return Outlook("maybe", Reason("guard_changed"), probe, None, "guard", is_new=is_new)
        return replace(run, reason=first or Reason("upstream_changed", open_needs))

    def _is_asked_for(self, step: Step) -> bool:
        options = self._options
        return options.force or step.id in {*options.force_steps, *options.resample}

    def _maybe(
        self, probe: Probe | None, open_needs: tuple[StepId, ...], writer: StepId | None
    ) -> Outlook:
        names = open_needs or ((writer,) if writer else ())
        return Outlook("maybe", Reason("upstream_changed", names), probe, None, "make")

    def _certain(self, step: Step, open_needs: tuple[StepId, ...]) -> tuple[StepId, ...]:
        """The needs that make this step run whatever comes. With early cutoff only new content does."""
        cutoff = self._options.cutoff or step.reuse == "content"
        sure = self._gives_new_content if cutoff else self._gives_new_ref
        return tuple(need for need in open_needs if sure(need))

    def _gives_new_ref(self, need: StepId) -> bool:
        return self.outlooks[need].is_new or self._gives_new_content(need)

    def _gives_new_content(self, need: StepId) -> bool:
        """A person's version is content that was never there before."""
        return self.outlooks[need].means == "adopt"


def _first_time(probe: Probe) -> Reason:
    if probe.undone:
        return Reason("undone")
    return Reason("previous_incomplete" if probe.previous == "incomplete" else "never_ran")


def _first(probe: Probe, *, stable_only: bool) -> Reason | None:
    """The first cause among the own parts, without those that a step above may still change."""
    changes = [c for c in probe.changes if not stable_only or c.part not in {"inputs", "files"}]
    if not changes:
        return None
    code = changes[0].code
    return Reason(code, tuple(name for c in changes if c.code == code for name in c.names))


# --- the digest of a preview -------------------------------------------------------------------------

_MANNER = frozenset(
    {"joined", "fail_fast", "barrier", "max_cost", "max_ms", "shown"}
)  # how a run is driven, not what it decides


def options_json(options: Options) -> dict[str, Json]:
    """The options that decide what a run does."""
    named = ((item.name, getattr(options, item.name)) for item in fields(Options))
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in named
        if name not in _MANNER
    }


def options_from(data: Mapping[str, Json]) -> Options:
    """Read back what `options_json` wrote; unknown names are left out."""
    known = {item.name: item.default for item in fields(Options) if item.name not in _MANNER}
    given: dict[str, object] = {}
    for name, default in known.items():
        value = data.get(name, default)
        given[name] = tuple(value) if isinstance(value, list) else value
    return Options(**given)  # type: ignore[arg-type]  # names are fields, values were written by us


def outlook_refs(outlook: Outlook) -> dict[str, Json]:
    """What a decision stands on: the refs as far as they are known, and the artifact."""
    refs = outlook.probe.refs if outlook.probe else None
    return {
        "config_ref": (refs.config_ref or None) if refs else None,
        "own_ref": (refs.own_ref or None) if refs else None,
        "artifact": outlook.artifact.digest if outlook.artifact else None,
    }


def preview_digest(
    plan: Plan,
    options: Options,
    outlooks: Mapping[StepId, Outlook],
    edits: Mapping[StepId, Iterable[str]],
) -> Digest:
    """What a saved preview names: plan, options, limits, every decision with its refs.

    `edits` are the digests of what a person wrote in the place of outputs.
    """
    decisions: dict[str, Json] = {
        step_id: {
            **outlook_refs(outlook),
            "decision": outlook.decision,
            "code": outlook.reason.code,
            "because": list(outlook.reason.because),
            "edited": list(outlook.edited),
            "edits": list(edits.get(step_id, ())),
            "written": list(outlook.written),
            **({"replaced": list(outlook.replaced)} if outlook.replaced else {}),
            **({"removed": list(outlook.removed)} if outlook.removed else {}),
        }
        for step_id, outlook in outlooks.items()
    }
    return digest_json(
        {
            "plan": plan_digest(plan),
            "options": options_json(options),
            "limits": limits_json(plan.limits),
            "steps": decisions,
        }
    )
