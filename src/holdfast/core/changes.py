"""Is it stale? The answer for one step, with the reason and the content behind it.

Unchanged means: an accepted artifact of this step under this config ref exists, and everything the
step needs is complete. Nothing here knows what runs next; that is `react`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Literal, NamedTuple

from holdfast.core.effects import DOUBTED, RECEIPT_GONE, UNRESOLVED, changes_untold
from holdfast.core.refs import Refs, Upstream
from holdfast.model.artifact import Artifact
from holdfast.model.digest import Digest, Json, same
from holdfast.model.event import Options, Reason
from holdfast.model.plan import Step, StepId

Action = Literal["reuse", "run", "reguard", "skip"]
# How the run before left a step: an attempt failed, or it failed before any was made.
Before = Literal["", "failed", "unmade", "incomplete", "interrupted"]


class Change(NamedTuple):
    """One part of the key that is not what it was."""

    part: str
    code: str
    names: tuple[str, ...]
    before: Json
    after: Json


class Probe(NamedTuple):
    """What the shell found out about a step whose needs are complete.

    `found` is the newest accepted artifact under the config ref, `same_content` under the input ref,
    `newest` under any ref. `stood` is what stood in the line's previous run, if that is another than
    `newest`. `changes` say how the present key differs from the one of `base`, the later of both in the
    life of the line. `unsure` names parts of the key that could not be computed; they disable reuse.
    `gone` says that the content of `base` is not there: a person had it removed, or it was lost. `lost` is
    what would stand, or be guarded again, if that had not happened to it; equal content that was stored
    since is not what was purged. `untold` are steps of which nobody can tell any more what they changed in
    copies: what this step reads may be as they left it.
    """

    step: StepId
    refs: Refs
    found: Artifact | None = None
    same_content: Artifact | None = None
    newest: Artifact | None = None
    stood: Artifact | None = None
    changes: tuple[Change, ...] = ()
    unsure: tuple[str, ...] = ()
    previous: Before = ""
    gone: bool = False
    lost: Artifact | None = None
    untold: tuple[StepId, ...] = ()
    undone: bool = False  # a person withdrew the artifact under this ref, or the only one there was
    contested: tuple[str, ...] = ()  # what people contested of what came with the artifact
    unfit: str = ""  # why the steps that came with the artifact cannot be added to the plan again

    @property
    def base(self) -> Artifact | None:
        """The artifact that the present is compared with when a cause is named."""
        return self.stood or self.newest

    @property
    def only_guards(self) -> bool:
        """Whether nothing but the guards stands between the newest artifact and the present key."""
        return self.stood is None and guards_only(self.changes)


class Choice(NamedTuple):
    """What to do with a step, why, and with which artifact.

    `repeats` says that a run would do again what was done outside, and why a person must look before.
    """

    action: Action
    reason: Reason
    artifact: Artifact | None = None
    repeats: Reason | None = None


def choose(
    step: Step,
    probe: Probe,
    options: Options,
    *,
    now: int,
    tried: Reason | None = None,
    refused: Collection[Digest | None] = (),
    selected: bool = True,
    anew: bool = False,
) -> Choice:
    """Reuse, guard again, run, or leave out what may not run because it was not selected.

    `tried` says that this run tried already, and how that ended; `refused` are the contents that guards
    refused in it. An attempt at guarding again that was lost on the way is made once more. With `anew`
    nothing that stands is good enough: a step below sent this one back. IntegrityError if it would be made
    again only because nobody knows what steps changed, and nobody asked for it.
    """
    if not selected:
        probe = probe._replace(untold=(), lost=None if step.changes_copy else probe.lost)
        unforced = choose(step, probe, asking_for_nothing(options), now=now)
        return unforced if unforced.action == "reuse" else Choice("skip", Reason("not_selected"))
    gone = Reason(RECEIPT_GONE) if step.done_once and probe.lost is not None else None
    doubt = _doubt(probe)
    doubted = _doubted(step, probe, now) if step.done_once else None
    if anew or options.force or step.id in options.force_steps:
        named = anew or step.id in options.force_steps  # all steps is not a wish to repeat this one
        return Choice("run", tried or Reason("forced"), repeats=None if named else gone or doubted)
    if step.id in options.resample:
        return Choice("run", tried or Reason("resampled"))
    if doubt is not None:
        return Choice("run", tried or doubt, repeats=doubted)
    if probe.found is not None and probe.gone and not (step.done_once or step.changes_copy):
        return Choice("run", tried or Reason("output_missing"), probe.found)
    if probe.found is not None:
        return _expired(step, probe.found, now) or Choice(
            "reuse", _stands(step, probe.found), probe.found
        )
    if probe.same_content is not None and (options.cutoff or step.reuse == "content"):
        expired = _expired(step, probe.same_content, now)
        return expired or Choice("reuse", Reason("unchanged_content"), probe.same_content)
    if step.reuse != "strict" and (kept := _only_guard(probe)) and kept.digest not in refused:
        return Choice("reguard", tried or Reason("guard_changed"), kept)
    if step.changes_copy and probe.lost is not None:
        if expired := _expired(step, probe.lost, now):
            return expired
        raise changes_untold(step.id, (step.id,), options.force_steps)
    if probe.untold and probe.changes and {one.part for one in probe.changes} <= _UNTOLD:
        if not step.done_once:
            raise changes_untold(step.id, probe.untold, options.force_steps)
        names = tuple(f"what '{other}' changed is gone" for other in probe.untold)
        doubted = doubted or Reason(DOUBTED, names)
    if gone is not None and probe.lost is not None:
        missing = Choice("run", tried or Reason("output_missing"), repeats=gone)
        return _expired(step, probe.lost, now) or missing
    return Choice("run", tried or _why_run(probe), repeats=doubted)


def asking_for_nothing(options: Options) -> Options:
    """The same options without a step that is to run whatever stands."""
    return replace(options, force=False, force_steps=(), resample=())


def unresolved(probe: Probe) -> Reason | None:
    """Why a step that cannot know its own key runs; None if it runs for the first time anyway."""
    names = tuple(f"{name} {UNRESOLVED}" for name in probe.unsure)
    return None if probe.newest is None else Reason("command_changed", names)


def _doubt(probe: Probe) -> Reason | None:
    """Why nothing that was accepted can stand, whatever its key: nobody knows that, or what came with it."""
    if probe.unsure:
        return unresolved(probe) or _why_run(probe)
    if probe.contested:
        return Reason("evidence_contested", probe.contested)
    return Reason("additions_unfit", (probe.unfit,)) if probe.unfit else None


def _doubted(step: Step, probe: Probe, now: int) -> Reason | None:
    """Why a person must look before such a step runs: what it did outside may be what it would do now."""
    done = probe.lost or (probe.newest if probe.previous != "failed" else None)
    if done is None or _expired(step, done, now):
        return None
    if probe.unsure:
        return Reason(DOUBTED, tuple(f"{name} {UNRESOLVED}" for name in probe.unsure))
    if probe.contested:
        return Reason(DOUBTED, tuple(f"{name} is contested" for name in probe.contested))
    if probe.unfit:
        return Reason(DOUBTED, (probe.unfit,))
    return _unknown(probe)


def _unknown(probe: Probe) -> Reason | None:
    """The same if nobody knows what the last one was made from, and nothing that was known changed since."""
    done, changes = probe.base, probe.changes
    if probe.found is not None or done is None or done.reusable or probe.gone or probe.undone:
        return None
    if not changes:
        return Reason(DOUBTED, ("what it read changed while it ran",))
    source = any(change.part == "unresolved" and change.before for change in changes)
    names: list[str] = []
    for change in changes:
        if not (source and change.part in _SOURCE):
            before, after = _mapping(change.before), _mapping(change.after)
            differs = [name for name in after if after[name] != before.get(name)]
            if change.part != "tools" or any(before.get(name) is not None for name in differs):
                return None
        names += [f"{name} was not known when it was done" for name in change.names]
    return Reason(DOUBTED, tuple(names))


_SOURCE = frozenset({"unresolved", "files", "code", "absent"})  # parts that come with a source
CLOCKS_DIFFER = 60_000  # ms by which clocks may differ before a time is not believed
_UNTOLD = frozenset({"inputs", "files", "guards"})  # what others may have changed, or needs no run
_UNCHANGED = Reason("unchanged")
_NEVER_RAN, _INCOMPLETE = Reason("never_ran"), Reason("previous_incomplete")
_STANDS = {"human": Reason("amended"), "accepted": Reason("accepted_by_person")}


def _stands(step: Step, artifact: Artifact) -> Reason:
    if step.uses == "human" and artifact.run:  # given when it was asked for, as it should be
        return _UNCHANGED
    return _STANDS.get(artifact.source, _UNCHANGED)


def _expired(step: Step, artifact: Artifact, now: int) -> Choice | None:
    if step.fresh_for is None:
        return None
    age = now - artifact.at
    if age > step.fresh_for * 1000 or age < -CLOCKS_DIFFER:  # from a time that has not come yet
        return Choice("run", Reason("expired"))
    return None


def _only_guard(probe: Probe) -> Artifact | None:
    """The artifact that only the guards stand between, if it is so."""
    kept = probe.newest
    if kept is None or probe.gone or not kept.reusable:
        return None
    return kept if probe.only_guards else None


def guards_only(changes: tuple[Change, ...]) -> bool:
    """Whether the guards are the only part that differs."""
    return [change.part for change in changes] == ["guards"]


def _why_run(probe: Probe) -> Reason:
    if probe.previous in {"failed", "unmade"}:
        return Reason("previous_failed")
    if probe.previous == "interrupted":
        return Reason("previous_interrupted")
    if probe.undone:
        return Reason("undone")
    if probe.newest is None:
        return _INCOMPLETE if probe.previous == "incomplete" else _NEVER_RAN
    if (
        not probe.changes
    ):  # the artifact under this very key may not be reused: purged, or its inputs moved under way
        return Reason("output_missing" if probe.gone or probe.lost else "input_changed")
    first = probe.changes[0]
    return Reason(
        first.code, tuple(n for c in probe.changes if c.code == first.code for n in c.names)
    )


# part of the key -> code of the reason, in the order in which causes are named: own before upstream
_EXT: Mapping[str, str] = {
    "needs": "dependencies_changed",
    "uses": "generator_changed",
    "may_use": "generator_changed",
    "run": "command_changed",
    "shell": "command_changed",
    "files": "command_changed",
    "code": "command_changed",
    "absent": "command_changed",
    "unresolved": "command_changed",
    "with": "parameters_changed",
    "inputs": "input_changed",
    "tools": "tools_changed",
    "env": "environment_changed",
    "workspace": "environment_changed",
    "effects": "contract_changed",
    "contract": "contract_changed",
    "outputs": "contract_changed",
    "produces": "contract_changed",
    "schema": "contract_changed",
    "handoff": "contract_changed",
    "context": "context_changed",
    "constraints": "specification_changed",
    "specification": "specification_changed",
    "agent": "specification_changed",
    "action": "specification_changed",
}
PARTS = ("prompt", "model", "parameters", *_EXT, "guards", "upstream")


def differences(
    before: Mapping[str, Json],
    after: Mapping[str, Json],
    above_before: Mapping[StepId, Upstream] | None,
    above_after: Mapping[StepId, Upstream],
) -> tuple[Change, ...]:
    """How two keys differ, own parts first. `above_before` is None when it is not known any more."""
    ext_before, ext_after = _mapping(before.get("ext")), _mapping(after.get("ext"))
    if ext_before.get("v") != ext_after.get("v"):
        return (Change("key", "key_version", (), ext_before.get("v"), ext_after.get("v")),)
    changes = [
        *_one("prompt", "prompt_changed", before.get("prompt"), after.get("prompt")),
        *_model(_mapping(before.get("model")), _mapping(after.get("model"))),
    ]
    for part in dict.fromkeys([*_EXT, *ext_before, *ext_after]):
        if part != "v":
            code = _EXT.get(part, "environment_changed")
            changes += _one(part, code, ext_before.get(part), ext_after.get(part))
    changes += _one(
        "guards", "guard_changed", before.get("guard_config"), after.get("guard_config")
    )
    if above_before is not None:
        changes += _above(above_before, above_after)
    return tuple(changes)


def unchanged_parts(after: Mapping[str, Json], changes: tuple[Change, ...]) -> tuple[str, ...]:
    """The parts that the key has and that stayed as they were."""
    present = {"prompt": after.get("prompt"), "guards": after.get("guard_config"), "upstream": True}
    present["model"] = after.get("model")
    present.update(_mapping(after.get("ext")))
    changed = {change.part for change in changes}
    return tuple(part for part in PARTS if present.get(part) and part not in changed)


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}


def _model(before: Mapping[str, Json], after: Mapping[str, Json]) -> list[Change]:
    old, new = _mapping(before.get("parameters")), _mapping(after.get("parameters"))
    return [
        *_one("model", "model_changed", before.get("id"), after.get("id")),
        *_one("parameters", "parameters_changed", old, new),
    ]


def _one(part: str, code: str, before: Json, after: Json) -> list[Change]:
    if same(before, after):
        return []
    if isinstance(before, Mapping) or isinstance(after, Mapping):
        old, new = _mapping(before), _mapping(after)
        both = old.keys() & new.keys()
        names = tuple(sorted(k for k in {*old, *new} if k not in both or not same(old[k], new[k])))
        if part == "guards":
            names = ()
        return [Change(part, code, names, before, after)]
    if part == "needs":
        names = tuple(sorted({*_names(before)} ^ {*_names(after)}))
        return [Change(part, code, names, before, after)]
    return [Change(part, code, (part,), before, after)]


def _names(value: Json) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


def _above(before: Mapping[StepId, Upstream], after: Mapping[StepId, Upstream]) -> list[Change]:
    moved = tuple(sorted(k for k in before.keys() & after.keys() if before[k] != after[k]))
    if not moved:
        return []
    old: Json = {name: before[name].digest for name in moved}
    new: Json = {name: after[name].digest for name in moved}
    return [Change("upstream", "upstream_changed", moved, old, new)]
