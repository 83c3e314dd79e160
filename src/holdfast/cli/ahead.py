"""A look ahead: the preview of a plan, what it is compared with, and how long it would take."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from holdfast import wire
from holdfast.cli.additions import waiting_in
from holdfast.cli.place import Place, find_run
from holdfast.cli.unrecorded import recorded
from holdfast.core.estimate import NOTHING, UNKNOWN, Expected, Looked, Total, asked_models, total
from holdfast.core.estimate import Estimate as Cost
from holdfast.core.history import NO_HISTORY, Room, Timing, makespan
from holdfast.core.mix import Mix, models_of, tier_of
from holdfast.core.outlay import Saved
from holdfast.core.preview import Means, Outlook, options_json, outlook_refs
from holdfast.core.refs import w_ref
from holdfast.core.said import Said
from holdfast.core.versions import ChangeReport
from holdfast.core.views import Addition, reason_json, usd
from holdfast.engine.foresee import (
    Earlier,
    Foreseen,
    changes_since,
    earlier_plan,
    foresee,
    timings,
)
from holdfast.engine.survey import Survey
from holdfast.engine.versions import find_version, kept_plan, versions
from holdfast.engine.whole import assure_plan
from holdfast.errors import IntegrityError, UsageError
from holdfast.formats.heading import python_part
from holdfast.formats.planfile import Asked, Loaded, load_text
from holdfast.model.digest import Json
from holdfast.model.event import Options
from holdfast.model.fixed import frozen
from holdfast.model.plan import Plan, RunId, Step, StepId, plan_digest
from holdfast.ports import Store

if TYPE_CHECKING:  # it is made by whoever has budgets
    from holdfast.engine.purse import Room as Left

PREVIEW_SCHEMA = "holdfast.preview/1"
MOST_COUNTED = 30
DECISIONS = ("run", "reuse", "maybe", "wait")


class Estimate(NamedTuple):
    """How long it would take in milliseconds, what that is known from, and what reuse saves."""

    typical: int
    high: int
    attempts: int
    without_history: int
    saved: int


@frozen
class Ahead:
    """A preview with everything that is shown of it. `earlier` is the version it is compared with."""

    where: Place
    plan: Plan
    options: Options
    foreseen: Foreseen
    earlier: Earlier | None
    label: str
    changes: ChangeReport
    timings: Mapping[StepId, Timing]
    estimate: Estimate
    costs: Mapping[StepId, Cost]  # of the steps that may run and ask models
    money: Total
    tokens: Mapping[StepId, Cost]  # of the same steps
    used: Total
    models: Mapping[str, Mix]  # that would be asked
    recorded: Mapping[StepId, bool | None]  # whose answer is recorded; None if nobody knows
    saved: Saved
    looked: tuple[RunId, Looked] | None  # how good the estimate of the last run was
    budget: int | None  # what a run may spend, in micro-dollars
    room: Left | None  # what the budget of the day or the project leaves
    counted: Mapping[StepId, str]
    last: RunId  # the line's last run
    waiting: Sequence[Addition]  # what the last run was asked to add, and a new one leaves out
    opened: Mapping[StepId, Cost]  # of one item, where nobody knows how many there are
    is_held: bool = False  # a person would have to say first what becomes of the plan

    @property
    def outlooks(self) -> Mapping[StepId, Outlook]:
        """The outlook of every step, in the order of the plan."""
        return self.foreseen.outlooks

    def count(self, decision: str) -> int:
        """How many steps have this outlook."""
        return sum(outlook.decision == decision for outlook in self.outlooks.values())

    @property
    def is_work(self) -> bool:
        """Whether a run would do anything."""
        return any(outlook.is_work for outlook in self.outlooks.values())


def look_ahead(
    where: Place, loaded: Loaded, options: Options, unsaid: Sequence[Said] = ()
) -> Foreseen:
    """A preview against the store, or against nothing if there is none yet."""
    with reading(where) as store:
        return _foresee(where, loaded.plan, store, options, unsaid=unsaid)


def look_ahead_of(where: Place, plan: Plan, options: Options) -> Foreseen:
    """The same of a plan that comes from elsewhere than its file."""
    with reading(where) as store:
        return _foresee(where, plan, store, options)


def gather(
    where: Place,
    loaded: Loaded,
    options: Options,
    *,
    against: str | None = None,
    parallel: int = 0,
    functions: Mapping[StepId, Callable[..., object]] | None = None,
    unsaid: Sequence[Said] = (),
) -> Ahead:
    """A preview with its comparison and its estimates. `against` is a run or a git revision.

    `functions` are steps of this very process, `unsaid` is what somebody is about to say of the ledger.
    """
    plan = loaded.plan
    with reading(where) as store:
        foreseen = _foresee(where, plan, store, options, functions, unsaid)
        earlier, label = _earlier(where, plan, store, foreseen, against)
        known = timings(store, foreseen.plan, plan.name)
        counted = _counted(where, store, foreseen)
        expected, saved, looked = _costs(where, store, foreseen, plan.name)
        room = wire.market.room_left(where.root, plan.project, store) if expected else None
        known_answers = recorded(where, store, foreseen)
        last, waiting = waiting_in(store, plan)
    places = Room(
        here=parallel or plan.limits.parallel or os.cpu_count() or 1,
        whole=1 if parallel == 1 else plan.limits.parallel,
        providers=wire.market.rooms(where.root, foreseen.plan),
    )
    running = {
        s: one
        for s, one in expected.items()
        if _runs(foreseen.outlooks[s]) and is_selected(options, s)
    }
    opened = {s: one.cost for s, one in running.items() if foreseen.plan.steps[s].awaits_items}
    return Ahead(
        where=where,
        plan=plan,
        options=options,
        foreseen=foreseen,
        earlier=earlier,
        label=label,
        changes=changes_since(earlier.plan if earlier else None, plan, foreseen),
        timings=known,
        estimate=_estimate(foreseen, known, places),
        costs={s: one.cost for s, one in expected.items()},
        money=total({s: one.cost for s, one in running.items() if s not in opened}),
        tokens={s: one.tokens for s, one in expected.items()},
        used=total({s: one.tokens for s, one in running.items() if s not in opened}),
        models=_models(foreseen, running),
        recorded=known_answers,
        saved=saved,
        looked=looked,
        budget=_budget(where, foreseen.plan),
        room=room,
        counted=counted,
        last=last,
        waiting=waiting,
        opened=opened,
    )


def _counted(where: Place, store: Store, foreseen: Foreseen) -> dict[StepId, str]:
    """Reasons that are files, with how many lines of each differ; of as many as a table shows."""
    found = [
        (step_id, outlook)
        for step_id, outlook in foreseen.outlooks.items()
        if outlook.reason.code in {"input_changed", "command_changed"} and outlook.reason.because
    ]
    if not found:
        return {}
    from holdfast.engine.evidence import Texts

    texts = Texts(store, where.root)
    return {step_id: texts.counted(outlook) for step_id, outlook in found[:MOST_COUNTED]}


@contextmanager
def reading(where: Place) -> Iterator[Store]:
    """The store to read from; an empty one if there is none yet."""
    store: Store = where.open(readonly=True) if where.exists() else wire.empty_store()
    try:
        yield store
    finally:
        store.close()


def _foresee(
    where: Place,
    plan: Plan,
    store: Store,
    options: Options,
    functions: Mapping[StepId, Callable[..., object]] | None = None,
    unsaid: Sequence[Said] = (),
) -> Foreseen:
    assure_plan(store, plan, plan.name)
    survey = survey_of(where, plan, store, functions)
    return foresee(
        plan,
        plan.name,
        where.root,
        store,
        survey,
        options,
        wire.now_ms,
        wire.Fragments(where.root),
        lambda whole: _ask_tools(where, whole, survey),
        lambda run: wire.drives(store, plan.project, plan.name, run),
        wire.alike,
        unsaid,
        wire.walls_at(where.root),
    )


def survey_of(
    where: Place,
    plan: Plan,
    store: Store,
    functions: Mapping[StepId, Callable[..., object]] | None = None,
) -> Survey:
    """The project as it is now, tools asked for their versions."""
    survey = Survey(where.root, store, wire.identities(functions), plan, wire.ignore_rules)
    _ask_tools(where, plan, survey)
    return survey


def _ask_tools(where: Place, plan: Plan, survey: Survey) -> None:
    if any(step.tool_versions for step in plan.steps.values()):
        import asyncio

        from holdfast.engine.tools import tool_versions

        terms = wire.terms_for(where.location, wire.Wishes())
        survey.know(asyncio.run(tool_versions(plan, where.root, terms)))


# --- the version to compare with -----------------------------------------------------------------------


def _earlier(
    where: Place, plan: Plan, store: Store, foreseen: Foreseen, against: str | None
) -> tuple[Earlier | None, str]:
    if against is None:
        run = foreseen.previous
        found = earlier_plan(store, run) if run else None
        if found is None:
            return _version_before(store, plan)
        return found, run or ""
    is_run = against.startswith(("@", "r-"))
    if is_run or any(row.run.startswith(f"r-{against}") for row in store.runs()):
        run = find_run(store, against, plan.name)
        found = earlier_plan(store, run)
        if found is None:
            raise UsageError(f"the plan of run {run} is not kept any more")
        return found, run
    if (version := find_version(store, plan.project, plan.name, against)) is not None:
        return Earlier(kept_plan(store, version.plan)), f"plan {version.plan[:12]}"
    return Earlier(_plan_at(where, against)), f"git {against}"


def _version_before(store: Store, plan: Plan) -> tuple[Earlier | None, str]:
    """The version of the plan before this one, if nothing of the line ran yet and a model planned twice."""
    parent = None
    for version in versions(store, plan.project, plan.name):
        parent = version.parent if version.plan == plan_digest(plan) else parent
    try:
        found = None if parent is None else kept_plan(store, parent)
    except IntegrityError:  # a person had it removed
        found = None
    return (None, "") if found is None else (Earlier(found), f"plan {str(parent)[:12]}")


def _plan_at(where: Place, revision: str) -> Plan:
    """The plan file as a git revision has it; the files it names are taken as they are now."""
    import subprocess

    from holdfast.gitrepo.git import environment

    if where.file is None:
        raise UsageError(
            f"'{revision}' is neither a run nor a version of the plan", hint="holdfast plans show"
        )
    if python_part(where.file)[0]:
        from holdfast.cli.gitplan import plan_at

        return plan_at(where, revision)
    name = os.path.basename(where.file)
    if revision.startswith("-"):
        raise UsageError(f"'{revision}' is neither a run nor a git revision")
    argv = ["git", "cat-file", "blob", f"{revision}:./{name}"]
    try:
        done = subprocess.run(  # noqa: S603 - git, with one checked word
            argv,
            cwd=where.root,
            env=environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except OSError as error:
        raise UsageError(f"git cannot be asked for '{revision}': {error.strerror}") from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise UsageError(
            f"'{revision}' is neither a run nor a git revision that has '{name}'"
            + (f": {said[-1].removeprefix('fatal: ')}" if said else ""),
            hint="holdfast status, or git log",
        )
    asked = Asked(
        where.plan_id,
        where.params,
        wire.project_files,
        own=wire.own_agents,
        models=wire.market.known_models,
        walls=wire.walls_at(where.root),
    )
    return load_text(done.stdout, f"{revision}:{name}", where.root, asked).plan


# --- how long -------------------------------------------------------------------------------------------


def _estimate(foreseen: Foreseen, known: Mapping[StepId, Timing], room: Room) -> Estimate:
    outlooks = foreseen.outlooks
    running = {s for s, o in outlooks.items() if o.decision in {"run", "maybe"}}
    making = {s for s in running if outlooks[s].means == "make"}
    taking = {s: known.get(s, NO_HISTORY) for s in making}
    return Estimate(
        typical=makespan(foreseen.graph, running, {s: t.p50 for s, t in taking.items()}, room),
        high=makespan(foreseen.graph, running, {s: t.p90 for s, t in taking.items()}, room),
        attempts=sum(t.attempts for t in taking.values()),
        without_history=sum(not t.attempts for t in taking.values()),
        saved=sum(
            known.get(s, NO_HISTORY).p50 for s, o in outlooks.items() if o.decision == "reuse"
        ),
    )


# --- how much -------------------------------------------------------------------------------------------


def is_selected(options: Options, step_id: StepId) -> bool:
    """Whether a run may make a step; what is not selected stands or is left out."""
    return not options.select or step_id in options.select


def _runs(outlook: Outlook) -> bool:
    return outlook.decision in {"run", "maybe"}


def _costs(
    where: Place, store: Store, foreseen: Foreseen, line: str
) -> tuple[dict[StepId, Expected], Saved, tuple[RunId, Looked] | None]:
    """What steps that ask models may take, what those that stand had cost, and how good that was last."""
    plan, outlooks = foreseen.plan, foreseen.outlooks
    asking = {s for s, step in plan.steps.items() if asked_models(step)}
    if not asking:
        return {}, Saved(), None
    from holdfast.engine.outlays import Forecast, saved_by

    made = {
        s: outlooks[s].artifact.digest  # type: ignore[union-attr]  # there if it is reused
        for s in asking
        if outlooks[s].decision == "reuse" and outlooks[s].artifact is not None
    }
    newest = {s: o.artifact for s, o in outlooks.items() if o.artifact is not None}
    given = {**store.newest_of_all(plan.project, line), **newest}
    means = {s: _means(outlook) for s, outlook in outlooks.items() if s in asking}
    price, weigh = wire.market.price_of(where.root), partial(wire.files_size, where.root)
    forecast = Forecast(store, plan, line, price, given, weigh)
    expected = {s: _by_price(where, plan.steps[s], one) for s, one in forecast.of(means).items()}
    return expected, saved_by(store, plan.project, line, made), forecast.last()


def _by_price(where: Place, step: Step, expected: Expected) -> Expected:
    """A budget is no estimate of what has no price: nothing will be asked under it."""
    if expected.cost.basis != "price" or "usd" not in step.budget:
        return expected
    models = asked_models(step)
    known = all(wire.market.has_price(where.root, model) for model in models)
    return expected if known else expected._replace(cost=UNKNOWN)


def _models(foreseen: Foreseen, running: Collection[StepId]) -> dict[str, Mix]:
    steps, outlooks = foreseen.plan.steps, foreseen.outlooks
    adopted = [s for s in running if outlooks[s].means == "adopt"]
    made = [s for s in running if outlooks[s].means != "adopt"]
    return models_of([steps[s] for s in made], [steps[s] for s in adopted])


def _means(outlook: Outlook) -> Means:
    """What a run may do for it, perhaps after a person said yes."""
    if outlook.decision == "wait":
        return "make" if outlook.reason.code in {"awaiting_approval", "awaiting_person"} else ""
    return outlook.means if _runs(outlook) else ""


def _budget(where: Place, plan: Plan) -> int | None:
    if not any(asked_models(step) for step in plan.steps.values()):
        return None
    bound = wire.market.cost_bound(where.root, plan, None)
    return wire.market.micro(plan.limits.usd) if bound is None else bound


# --- for programs ------------------------------------------------------------------------------------------


def preview_json(ahead: Ahead) -> dict[str, Json]:
    """The preview as programs read it; saved, it is what `run` holds itself to."""
    plan, changes, estimate = ahead.plan, ahead.changes, ahead.estimate
    counts: dict[str, Json] = {word: ahead.count(word) for word in DECISIONS}
    spans: dict[str, Json] = {"p50": estimate.typical, "p90": estimate.high}
    return {
        "schema": PREVIEW_SCHEMA,
        "digest": ahead.foreseen.digest,
        "plan": {
            "line": plan.name,
            "ref": w_ref(plan),
            "digest": plan_digest(plan),
            "file": ahead.where.file,
        },
        "options": options_json(ahead.options),
        "against": ahead.label or None,
        "left_out": [{**asked.json(), "run": ahead.last} for asked in ahead.waiting],
        "waves": [list(wave) for wave in ahead.foreseen.graph.waves()],
        "models": {
            model: {"tiers": list(mix.tiers), "steps": mix.steps}
            for model, mix in ahead.models.items()
        },
        "steps": {s: _step_json(ahead, s, o) for s, o in ahead.outlooks.items()},
        "details": {s: _details(o) for s, o in ahead.outlooks.items()},
        "totals": {
            "steps": len(ahead.outlooks),
            **counts,
            "cost_usd": {
                "p50": usd(ahead.money.p50),
                "p90": usd(ahead.money.p90),
                "unknown": ahead.money.unknown + len(ahead.opened),
            },
            "tokens": {"p50": ahead.used.p50, "p90": ahead.used.p90},
            "saved_usd": None if ahead.saved.unpriced else usd(ahead.saved.cost),
            "budget_usd": usd(ahead.budget),
            "duration_ms": spans,
            "saved_ms": estimate.saved,
            "without_history": estimate.without_history,
        },
        "changes": {
            "added": list(changes.added),
            "removed": list(changes.removed),
            "contract_changed": list(changes.contract_changed),
            "deps_changed": list(changes.deps_changed),
            "output_modified": list(changes.output_modified),
        },
    }


def _step_json(ahead: Ahead, step_id: StepId, outlook: Outlook) -> dict[str, Json]:
    took = ahead.timings.get(step_id, NO_HISTORY)
    cost = ahead.costs.get(step_id, NOTHING)
    tokens = ahead.tokens.get(step_id, NOTHING)
    step = ahead.foreseen.plan.steps[step_id]
    return {
        "decision": outlook.decision,
        "reason": reason_json(outlook.reason),
        "cost_usd": {
            "p50": usd(cost.p50),
            "p90": usd(cost.p90),
            "basis": cost.basis,
            "price": "known" if cost.is_known else "unknown",
        },
        "tokens": {"p50": tokens.p50, "p90": tokens.p90, "basis": tokens.basis},
        "duration_ms": {"p50": took.p50, "p90": took.p90},
        "model": (step.model or None) if step.asks_model else None,
        "tier": tier_of(step) or None,
        "recorded": ahead.recorded.get(step_id),
        "added_by": ahead.foreseen.added.get(step_id),
    }


def _details(outlook: Outlook) -> dict[str, Json]:
    """What a decision stands on, and what it does to files."""
    return {
        **outlook_refs(outlook),
        "means": outlook.means or None,
        "edited": list(outlook.edited),
        "replaced": list(outlook.replaced),
        "writes": list(outlook.written),
        "removes": list(outlook.removed),
        "puts_back": list(outlook.put_back),
        "failed_before": outlook.failed_before,
        "also": reason_json(outlook.also),
    }
