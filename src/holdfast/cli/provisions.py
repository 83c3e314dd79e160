"""What a run needs before it begins: the libraries, keys and prices of the models that it would ask."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast import wire
from holdfast.cli.ahead import look_ahead
from holdfast.cli.gates import ASKED
from holdfast.cli.place import Place
from holdfast.core.estimate import asked_models
from holdfast.core.preview import Outlook
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
    root, plan = where.root, loaded.plan
    models = {
        (model, is_bounded(root, plan, step, max_cost))
        for step in plan.steps.values()
        for model in asked_models(step)
    }
    if not any(wire.market.may_lack(root, model, bounded=bounded) for model, bounded in models):
        return
    foreseen = look_ahead(where, loaded, options)
    asked = _asked(foreseen)
    _check_libraries(root, asked)
    _check_keys(root, asked)
    if unknown := unpriced(root, foreseen, max_cost):
        raise UsageError(unpriced_words(unknown), hint=_price_hint(next(iter(unknown))))


def is_bounded(root: str, plan: Plan, step: Step, max_cost: int | None = None) -> bool:
    """Whether the dollars that a step spends are bounded by anybody."""
    own = wire.market.budgets(root)
    bounds = (max_cost, plan.limits.usd, own.run, own.day, own.project, step.budget.get("usd"))
    return any(bound is not None for bound in bounds)


def unpriced(root: str, foreseen: Foreseen, max_cost: int | None = None) -> Askers:
    """The models of unknown price that steps with a bound in dollars would ask."""
    steps = foreseen.plan.steps
    return {
        model: bounded
        for model, askers in _asked(foreseen).items()
        if (bounded := [s for s in askers if is_bounded(root, foreseen.plan, steps[s], max_cost)])
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


def _asked(foreseen: Foreseen) -> dict[str, list[StepId]]:
    found: dict[str, list[StepId]] = {}
    for step_id, outlook in foreseen.outlooks.items():
        if _would_run(outlook):
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
