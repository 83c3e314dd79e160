"""graph: the plan as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import click

from holdfast.cli.additions import added_words
from holdfast.cli.again import out_next
from holdfast.cli.place import Place, find_run, json_option, place, place_options
from holdfast.cli.say import SIGNS, out, out_json, short
from holdfast.cli.selection import select_options, selected_steps
from holdfast.cli.titles import plan_title
from holdfast.cli.view import view
from holdfast.core.views import shown_phase
from holdfast.core.waves import Graph, graph_of
from holdfast.errors import IntegrityError, UsageError
from holdfast.model.digest import Json
from holdfast.model.plan import Need, Plan, StepId, plan_digest
from holdfast.model.text import cells, cut, one_line, wrap

FORMATS = ("text", "mermaid", "dot", "svg", "json")


@dataclass(frozen=True, slots=True)
class Seen:
    """The states of a run's steps; nothing if there is no run to take them from."""

    run: str
    states: Mapping[StepId, str]
    added: Mapping[StepId, str] = field(default_factory=dict)  # where steps come from
    plan: Plan | None = None  # the plan as the run has it, if it grew


@click.command(
    epilog="\b\nExample:\n  holdfast graph\n  holdfast graph --format svg > plan.svg\n"
    "  holdfast graph --format mermaid --no-state"
)
@click.argument("plan", required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="How to draw. Mermaid and SVG draw many steps as one where there are too many.",
)
@click.option("--depth", type=click.IntRange(1), metavar="N", help="Only the first N waves.")
@click.option("--state", "run_id", metavar="RUN", help="States of this run (default: the last).")
@click.option("--no-state", is_flag=True, help="Only the plan, without any states.")
@select_options
@place_options
@json_option
def graph(
    plan: str | None,
    form: str,
    depth: int | None,
    run_id: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    selected: tuple[str, ...],
    excluded: tuple[str, ...],
    no_state: bool,
    as_json: bool,
) -> int:
    """Draw the plan: waves as a list, or for Mermaid, Graphviz, a browser or a program.

    A wave is what could run at once. States come from the last run if there is one.
    """
    if no_state and run_id is not None:
        raise UsageError("--state and --no-state contradict each other")
    where = place(plan, store, plan_id)
    found = where.load()
    seen = Seen("", {}) if no_state else _seen(where, found.plan, run_id)
    loaded = seen.plan or found.plan
    ordered = graph_of(loaded)
    chosen = selected_steps(where, found, selected, excluded, ordered) or ordered.order
    steps = [s for s in chosen if depth is None or ordered.wave[s] < depth]
    if not steps:
        raise UsageError(f"no selected step is in the first {depth} waves", hint="a larger --depth")
    if as_json or view().mode in {"json", "jsonl"}:
        form = "json"
    if form == "json":
        out_json(graph_json(where, loaded, ordered, steps, seen))
    elif form == "text":
        _print_text(loaded, ordered, steps, seen)
    else:
        out(drawing(form, loaded, ordered, steps, seen))
    return 0


def _seen(where: Place, plan: Plan, run_id: str | None) -> Seen:
    """The states of the run that is meant; without a run to be found, none, unless one was named."""
    from holdfast.engine.journals import read_state

    line = plan.name
    if not where.exists():
        if run_id is not None:
            raise UsageError("there is no run yet", hint="holdfast run")
        return Seen("", {})
    store = where.open(readonly=True)
    try:
        if run_id is None and not any(row.line == line for row in store.runs()):
            return Seen("", {})
        run = find_run(store, run_id, line)
        state = read_state(store, run)
    finally:
        store.close()
    if state is None:
        raise IntegrityError(f"run '{run}' has no journal")
    states = {step_id: str(shown_phase(state, step_id)) for step_id in state.steps}
    if not state.added or state.base != plan_digest(plan):
        return Seen(run, states)
    added = {step_id: added_words(state, step_id) for step_id in state.added}
    return Seen(run, states, added, state.plan)


def graph_json(
    where: Place, plan: Plan, ordered: Graph, steps: Sequence[StepId], seen: Seen
) -> dict[str, Json]:
    """The graph as programs read it; never collapsed."""
    from holdfast.core.refs import w_ref

    waves: dict[int, list[Json]] = {}
    for step_id in steps:
        waves.setdefault(ordered.wave[step_id], []).append(step_id)
    return {
        "schema": "holdfast.graph/1",
        "plan": {"line": plan.name, "ref": w_ref(plan), "file": where.file},
        "run": seen.run or None,
        "waves": list(waves.values()),
        "steps": {
            step_id: {
                "wave": ordered.wave[step_id],
                "state": seen.states.get(step_id),
                "added": seen.added.get(step_id),
                "description": plan.steps[step_id].description,
                "needs": [_need_json(need) for need in plan.steps[step_id].needs],
            }
            for step_id in steps
        },
        "left_out": len(plan.steps) - len(steps),
    }


def _need_json(need: Need) -> dict[str, Json]:
    """An edge; `key` and `from` only where there is one."""
    more: dict[str, Json] = {"key": need.key} if need.key else {}
    more |= {"from": need.approver} if need.approver else {}
    return {"step": need.step, "type": need.type, **more}


def _need_words(need: Need) -> str:
    what = f"{need.step}.{need.key}" if need.key else need.step
    if not need.asks:
        return what
    return f"{what} (approval{f' from {need.approver}' if need.approver else ''})"


def _print_text(plan: Plan, ordered: Graph, steps: Sequence[StepId], seen: Seen) -> None:
    """Wave by wave: one line per step, with what it needs."""
    waves = ordered.wave[ordered.order[-1]] + 1
    of = f" · as in {short(seen.run)}" if seen.run else ""
    width = view().width
    for piece in wrap(_title(plan, waves) + of, width):
        out(piece)
    names = max(cells(one_line(step)) for step in steps)
    if width:
        names = min(names, max(12, width // 2))
    words = max((len(word) for word in seen.states.values()), default=0)
    wave = -1
    for step_id in steps:
        if ordered.wave[step_id] != wave:
            wave = ordered.wave[step_id]
            out(f"wave {wave + 1}")
        state = seen.states.get(step_id, "")
        sign = SIGNS.get(state, " ") if seen.run else ""
        needs = ", ".join(_need_words(need) for need in plan.steps[step_id].needs)
        tail = f"needs {needs}" if needs else ""
        if words_of := seen.added.get(step_id):
            tail = f"{tail} ({words_of})".lstrip()
        name = one_line(step_id)
        name = cut(name, names) if width else name
        name += " " * (names - cells(name))
        line = f"  {sign:<2}{name}  {state:<{words}}  {tail}".rstrip()
        out(_fitting(line if seen.run else f"  {name}  {tail}".rstrip()))
    left = len(plan.steps) - len(steps)
    if left:
        out(f"{left} of {len(plan.steps)} steps left out")
    out_next("holdfast graph --format svg > plan.svg")


def _title(plan: Plan, waves: int) -> str:
    count = len(plan.steps)
    steps, levels = ("step" if count == 1 else "steps"), ("wave" if waves == 1 else "waves")
    return f"{plan_title(plan)} · {count} {steps} in {waves} {levels}"


def _fitting(line: str) -> str:
    """A line that fits the terminal; plain lines are never cut."""
    width = view().width
    line = one_line(line)
    return cut(line, width) if width else line


def drawing(
    form: str,
    plan: Plan,
    ordered: Graph,
    steps: Sequence[StepId],
    seen: Seen,
    most_boxes: int | None = None,
) -> str:
    """The picture in a language that other programs draw; many steps are one box where there are too many."""
    from holdfast.cli import drawings
    from holdfast.core.layout import picture

    arrows = sum(len(step.needs) for step in plan.steps.values())
    boxes, most = {
        "mermaid": (drawings.MERMAID_BOXES, drawings.MERMAID_ARROWS),
        "svg": (drawings.SVG_BOXES, drawings.SVG_ARROWS),
    }.get(form, (len(steps), arrows))
    left = len(plan.steps) - len(steps)
    drawn = drawings.Drawn(
        _title(plan, ordered.wave[ordered.order[-1]] + 1)
        + (f" · {left} left out" if left else "")
        + (f" · as in {short(seen.run)}" if seen.run else ""),
        picture(ordered, steps, most_boxes=most_boxes or boxes, most_arrows=most),
        plan.steps,
        seen.states,
    )
    draw = {"mermaid": drawings.mermaid, "dot": drawings.dot, "svg": drawings.svg}[form]
    return draw(drawn)
