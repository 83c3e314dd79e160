"""Which steps a command is about: the options `-s` and `-x`, and what they name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NoReturn, TypeVar

import click

from holdfast.cli.ahead import look_ahead
from holdfast.cli.grown import grown
from holdfast.cli.place import Place
from holdfast.cli.say import out, out_json
from holdfast.cli.view import view
from holdfast.core.select import select
from holdfast.core.waves import Graph, graph_of
from holdfast.engine.journals import read_state, runs_of
from holdfast.errors import UsageError
from holdfast.formats.planfile import Loaded
from holdfast.model.event import Options
from holdfast.model.plan import StepId

F = TypeVar("F", bound=Callable[..., object])
_TEAM = "holdfast.team"


def select_options(command: F) -> F:
    """The options that select steps."""
    command = click.option(
        "--team",
        metavar="AGENT,…",
        expose_value=False,
        callback=_keep_team,
        help="Only the steps of these agents; as -s agent:NAME.",
    )(command)
    command = click.option(
        "-x",
        "--exclude",
        "excluded",
        multiple=True,
        metavar="SEL",
        help="Leave these steps out; same language as -s.",
    )(command)
    return click.option(
        "-s",
        "--select",
        "selected",
        multiple=True,
        metavar="SEL",
        help="Only these steps: step, +step (with its needs), step+ (with what needs it), "
        "state:failed, agent:NAME, changed, wildcards; may be repeated.",
    )(command)


def _keep_team(ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
    names = [name.strip() for name in (value or "").split(",")]
    if value is not None and not all(names):
        raise UsageError(f"'{value}' is no list of agents", hint="--team reviewer,qa-engineer")
    ctx.meta[_TEAM] = [f"agent:{name}" for name in names if name]


def _team() -> list[str]:
    context = click.get_current_context(silent=True)
    return [] if context is None else list(context.meta.get(_TEAM, []))


def selected_steps(
    where: Place,
    loaded: Loaded,
    selected: Collection[str],
    excluded: Collection[str],
    graph: Graph | None = None,
) -> tuple[StepId, ...]:
    """The steps that were selected, in the order of the plan; empty if nothing was said at all."""
    selected = [*selected, *_team()]
    if not selected and not excluded:
        return ()
    graph = graph or graph_of(grown(where, loaded).plan)

    def states() -> Mapping[StepId, str]:
        return _states(where, loaded)

    def changed() -> Collection[StepId]:
        outlooks = look_ahead(where, loaded, Options()).outlooks
        return [step for step, outlook in outlooks.items() if outlook.decision != "reuse"]

    chosen = (
        select(graph, selected, states=states, changed=changed) if selected else set(graph.order)
    )
    chosen -= select(graph, excluded, states=states, changed=changed)
    if not chosen:
        said = " ".join([*selected, *(f"-x {word}" for word in excluded)])
        if any("state:" in word or "changed" in word for word in selected):
            _nothing(said)
        raise UsageError(f"no step is selected by '{said}'", hint="holdfast status, holdfast ls")
    return tuple(step for step in graph.order if step in chosen)


def _nothing(said: str) -> NoReturn:
    """What depends on how things stand may well be nothing: that is an answer, not a mistake."""
    if view().mode in {"json", "jsonl"}:
        out_json({"schema": "holdfast.selection/1", "selected": []})
    else:
        out(f"nothing to do: no step is selected by '{said}'")
    raise click.exceptions.Exit(0)


def _states(where: Place, loaded: Loaded) -> Mapping[StepId, str]:
    if not where.exists():
        return {}
    store = where.open(readonly=True)
    try:
        plan = loaded.plan
        rows = runs_of(store, plan.project, plan.name)
        state = read_state(store, rows[-1].run) if rows else None
    finally:
        store.close()
    return {step: found.phase for step, found in state.steps.items()} if state else {}
