"""What a run needs before it begins: the libraries, keys and prices of the models that it would ask."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from holdfast import wire
from holdfast.cli.ahead import look_ahead_of
from holdfast.cli.gates import ASKED
from holdfast.cli.place import Place
from holdfast.core.estimate import asked_models
from holdfast.core.moves import NOT_SELECTED
from holdfast.core.preview import Outlook
from holdfast.core.state import COMPLETE, State, StepState
from holdfast.engine.foresee import Foreseen
from holdfast.errors import CredentialsError, UsageError
from holdfast.formats.planfile import Loaded
from holdfast.model.event import Options
from holdfast.model.plan import Plan, Step, StepId

_NAMED = 5
Askers = Mapping[str, list[StepId]]  # whom or what, and the steps that ask it


def provide(where: Place, loaded: Loaded, options: Options, max_cost: int | None) -> None:
    """Refuse to begin what could not go on: for want of a library or a key, or of a price to keep a bound by.

    Only steps that would run count; what stands needs nobody. Who has all of it is not kept waiting.
    """
    plan = loaded.plan
    if _may_lack(where.root, plan, plan.steps.values(), max_cost):
        foreseen = look_ahead_of(where, plan, options)
        _check(where.root, foreseen.plan, _asked(foreseen), max_cost)


def provide_again(
    where: Place, state: State, steps: Iterable[StepId], max_cost: int | None
) -> None:
    """The same for these steps of a run that is to go on; what stands of another run needs nobody."""
    bound = state.max_cost if max_cost is None else max_cost
    left = {s for s in steps if is_to_do(state.steps[s])}
    if not _may_lack(where.root, state.plan, (state.plan.steps[s] for s in left), bound):
        return
    foreseen = look_ahead_of(where, replace(state.plan, name=state.line), state.options)
    _check(where.root, foreseen.plan, _asked(foreseen, left), bound)


def provide_all(where: Place, plan: Plan, steps: Iterable[StepId], max_cost: int | None) -> None:
    """The same for steps that are made whatever stands."""
    chosen = [plan.steps[s] for s in steps]
    if _may_lack(where.root, plan, chosen, max_cost):
        _check(where.root, plan, _askers(chosen), max_cost)


def provide_guards(where: Place, plan: Plan, step: Step, max_cost: int | None) -> None:
    """The same for the guards of a step that look at something outside of a run; its limits do not hold."""
    plan = replace(plan, limits=replace(plan.limits, usd=None))
    asked = {model: [step.id] for model in asked_models(step, about_it=True)}
    if any(_lacks(where.root, plan, step, model, max_cost) for model in asked):
        _check(where.root, plan, asked, max_cost)


def is_to_do(step: StepState) -> bool:
    """Whether a run that goes on may come to a step."""
    unselected = step.reason is not None and step.reason.code == NOT_SELECTED
    return step.phase not in COMPLETE and not (step.phase == "skipped" and unselected)


def _may_lack(root: str, plan: Plan, steps: Iterable[Step], max_cost: int | None) -> bool:
    return any(
        _lacks(root, plan, step, model, max_cost) for step in steps for model in asked_models(step)
    )


def _lacks(root: str, plan: Plan, step: Step, model: str, max_cost: int | None) -> bool:
    bounded = is_bounded(root, plan, step, max_cost)
    return wire.market.may_lack(root, model, bounded=bounded)


def _check(root: str, plan: Plan, asked: Askers, max_cost: int | None) -> None:
    _check_libraries(root, asked)
    _check_keys(root, asked)
    if unknown := _unpriced(root, plan, asked, max_cost):
        raise UsageError(unpriced_words(unknown), hint=_price_hint(next(iter(unknown))))


def can_bound(root: str, steps: Iterable[Step], *, about_it: bool = False) -> bool:
    """Whether a bound in dollars can be kept while these steps run: every price is known."""
    models = {model for step in steps for model in asked_models(step, about_it=about_it)}
    return all(wire.market.has_price(root, model) for model in models)


def is_bounded(root: str, plan: Plan, step: Step, max_cost: int | None = None) -> bool:
    """Whether the dollars that a step spends are bounded by anybody."""
    own = wire.market.budgets(root)
    bounds = (max_cost, plan.limits.usd, own.run, own.day, own.project, step.budget.get("usd"))
    return any(bound is not None for bound in bounds)


def unpriced(root: str, foreseen: Foreseen, max_cost: int | None = None) -> Askers:
    """The models of unknown price that steps with a bound in dollars would ask."""
    return _unpriced(root, foreseen.plan, _asked(foreseen), max_cost)


def _unpriced(root: str, plan: Plan, asked: Askers, max_cost: int | None) -> Askers:
    return {
        model: bounded
        for model, askers in asked.items()
        if (bounded := [s for s in askers if is_bounded(root, plan, plan.steps[s], max_cost)])
        and not wire.market.has_price(root, model)
    }


def unpriced_words(unknown: Askers) -> str:
    """That a bound cannot be kept, of which models and steps."""
    told = "; ".join(f"the price of '{m}' is not known ({_few(s)})" for m, s in unknown.items())
    return f"{told}, so no bound in dollars can be kept"


def _price_hint(model: str) -> str:
    return (
        f'say in your own config.toml, under [prices."{model}"], what a million tokens of input and'
        " output cost in dollars; or bound 'tokens' instead"
    )


def _askers(steps: Iterable[Step]) -> dict[str, list[StepId]]:
    found: dict[str, list[StepId]] = {}
    for step in steps:
        for model in asked_models(step):
            found.setdefault(model, []).append(step.id)
    return found


def _asked(foreseen: Foreseen, among: Collection[StepId] | None = None) -> dict[str, list[StepId]]:
    found: dict[str, list[StepId]] = {}
    for step_id, outlook in foreseen.outlooks.items():
        if _would_run(outlook) and (among is None or step_id in among):
            step = foreseen.plan.steps[step_id]
            for model in asked_models(step, about_it=outlook.means == "adopt"):
                found.setdefault(model, []).append(step_id)
    return found


def _would_run(outlook: Outlook) -> bool:
    """Whether a run comes to it, perhaps after a person said yes; what may stand still needs nobody yet."""
    return outlook.decision == "run" or outlook.reason.code in ASKED


def _check_libraries(root: str, asked: Askers) -> None:
    lacking: dict[str, dict[StepId, None]] = {}
    extras = []
    for model, steps in asked.items():
        if extra := wire.market.extra_lacking(root, model):
            extras.append(extra)
            lacking.setdefault(_provider(model), {}).update(dict.fromkeys(steps))
    if lacking:
        told = "; ".join(f"'{name}' needs a library ({_few(s)})" for name, s in lacking.items())
        packages = ",".join(dict.fromkeys(extras))
        raise UsageError(
            f"{told} that is not installed", hint=f"pip install 'holdfast[{packages}]'"
        )


def _check_keys(root: str, asked: Askers) -> None:
    lacking: dict[str, dict[StepId, None]] = {}
    hints = {}
    for model, steps in asked.items():
        if hint := wire.market.key_lacking(root, model):
            hints[_provider(model)] = hint
            lacking.setdefault(_provider(model), {}).update(dict.fromkeys(steps))
    if lacking:
        told = (f"there is no key for '{name}' ({_few(steps)})" for name, steps in lacking.items())
        raise CredentialsError("; ".join(told), hint="; ".join(hints.values()))


def _provider(model: str) -> str:
    return model.partition(":")[0]


def _few(steps: Iterable[StepId]) -> str:
    names = [f"'{step}'" for step in steps]
    more = f" and {len(names) - _NAMED} more" if names[_NAMED:] else ""
    return f"asked by {', '.join(names[:_NAMED])}{more}"
