"""check, plan, why: what is wrong, what would happen, and for which reason."""

from __future__ import annotations

import asyncio
import difflib
import json
from collections.abc import Mapping

import click

from holdfast import wire
from holdfast.cli.place import (
    Place,
    file_option,
    find_run,
    json_option,
    known_step,
    place,
    place_options,
)
from holdfast.cli.say import out, out_json, talk
from holdfast.cli.show import load_state
from holdfast.core.changes import Change, unchanged_parts
from holdfast.core.preview import Outlook
from holdfast.core.reasons import sentence
from holdfast.core.refs import own_parts, w_ref
from holdfast.core.views import reason_json
from holdfast.core.waves import graph_of
from holdfast.engine.foresee import Foreseen, foresee
from holdfast.engine.survey import NoInputError, Survey
from holdfast.errors import PlanError
from holdfast.formats.planfile import Loaded
from holdfast.model.digest import Json
from holdfast.model.event import Drift, Options, Reason
from holdfast.model.plan import Plan, StepId, plan_digest
from holdfast.ports import Store

SIGNS = {"run": "~", "reuse": "=", "maybe": "?", "wait": "⏸"}


@click.command(epilog="\b\nExample:\n  holdfast check plan.yaml")
@click.argument("plan", required=False)
@place_options
@json_option
def check(plan: str | None, store: str | None, plan_id: str | None, *, as_json: bool) -> int:
    """Check a plan file: everything that is wrong with it, at once."""
    where = place(plan, store, plan_id)
    try:
        loaded = where.load()
        graph = graph_of(loaded.plan)
    except PlanError as error:
        if not as_json:
            raise
        problems: list[Json] = [
            {
                "code": p.code,
                "file": p.file,
                "line": p.line,
                "column": p.column,
                "message": p.message,
                "hint": p.hint,
            }
            for p in error.problems
        ]
        out_json({"schema": "holdfast.check/1", "ok": False, "problems": problems})
        return 2
    for warning in loaded.warnings:
        talk(str(warning))
    if as_json:
        out_json(
            {"schema": "holdfast.check/1", "ok": True, "problems": [], "steps": len(graph.order)}
        )
    else:
        out(f"{where.file}: {len(graph.order)} steps in {len(graph.waves())} waves, nothing wrong")
    return 0


@click.command(
    "plan", epilog="\b\nExample:\n  holdfast plan\n  holdfast plan --json --detailed-exitcode"
)
@click.argument("plan_file", metavar="[PLAN]", required=False)
@place_options
@json_option
@click.option("--force", is_flag=True, help="As if every step were forced.")
@click.option(
    "--force-node", "forced", multiple=True, metavar="STEP", help="As if this step were forced."
)
@click.option("--cutoff", is_flag=True, help="As with run --cutoff.")
@click.option("--on-drift", type=click.Choice(["adopt", "regenerate", "fail"]), default="adopt")
@click.option("-v", "verbose", is_flag=True, help="Also list what is reused.")
@click.option("--detailed-exitcode", is_flag=True, help="Exit 10 if there is work to do.")
def plan(
    plan_file: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    as_json: bool,
    force: bool,
    forced: tuple[str, ...],
    cutoff: bool,
    on_drift: Drift,
    verbose: bool,
    detailed_exitcode: bool,
) -> int:
    """Show what a run would do, and why; nothing is run, created or written."""
    where = place(plan_file, store, plan_id)
    loaded = where.load()
    steps = tuple(known_step(loaded.plan, name) for name in forced)
    options = Options(force=force, force_steps=steps, cutoff=cutoff, on_drift=on_drift)
    foreseen = look_ahead(where, loaded, options)
    if as_json:
        out_json(preview_json(where, loaded.plan, foreseen))
    else:
        _print_preview(loaded.plan, foreseen, verbose=verbose)
    work = any(outlook.decision != "reuse" for outlook in foreseen.outlooks.values())
    return 10 if detailed_exitcode and work else 0


def look_ahead(where: Place, loaded: Loaded, options: Options) -> Foreseen:
    """A preview against the store, or against nothing if there is none yet."""
    store: Store = where.open(readonly=True) if where.exists() else wire.empty_store()
    try:
        survey = _survey(where, loaded.plan, store)
        return foresee(
            loaded.plan, loaded.plan.name, where.root, store, survey, options, wire.now_ms
        )
    finally:
        store.close()


def _survey(where: Place, plan: Plan, store: Store) -> Survey:
    survey = Survey(where.root, store, wire.executor_for(plan), plan)
    if any(step.tool_versions for step in plan.steps.values()):
        asyncio.run(survey.prepare())
    return survey


def preview_json(where: Place, plan: Plan, foreseen: Foreseen) -> dict[str, Json]:
    """The preview as programs read it."""
    outlooks = foreseen.outlooks
    counts = {word: sum(o.decision == word for o in outlooks.values()) for word in SIGNS}
    none: dict[str, Json] = {"p50": 0.0, "p90": 0.0, "basis": "none"}
    return {
        "schema": "holdfast.preview/1",
        "plan": {
            "line": plan.name,
            "ref": w_ref(plan),
            "digest": plan_digest(plan),
            "file": where.file,
        },
        "waves": [list(wave) for wave in foreseen.graph.waves()],
        "steps": {
            step_id: {
                "decision": outlook.decision,
                "reason": reason_json(outlook.reason),
                "cost_usd": dict(none),
                "duration_ms": {"p50": 0, "p90": 0},
            }
            for step_id, outlook in outlooks.items()
        },
        "totals": {"steps": len(outlooks), **counts, "cost_usd": 0.0},
        "changes": {
            "added": [],
            "removed": [],
            "contract_changed": [],
            "deps_changed": [],
            "output_modified": [],
        },
    }


def _print_preview(plan: Plan, foreseen: Foreseen, *, verbose: bool) -> None:
    compared = f" · compared with {foreseen.previous}" if foreseen.previous else ""
    out(f"{plan.name} · {len(plan.steps)} steps · plan {plan_digest(plan)[:12]}{compared}")
    width = max((len(s) for s in plan.steps), default=0)
    reused = 0
    for step_id, outlook in foreseen.outlooks.items():
        if outlook.decision == "reuse" and not verbose:
            reused += 1
            continue
        out(f" {_sign(outlook)} {step_id:<{width}}  {_words(outlook)}")
    if reused:
        out(f" = {reused} reused" + " " * max(2, width - 6) + "(list: -v)")
    decisions = [outlook.decision for outlook in foreseen.outlooks.values()]
    sure, maybe = decisions.count("run"), decisions.count("maybe")
    span = f"{sure}–{sure + maybe}" if maybe else str(sure)
    out(f"runs {span} of {len(decisions)}" if sure or maybe else "nothing to do")
    out("next: holdfast run" if sure or maybe else "next: holdfast status")


def _sign(outlook: Outlook) -> str:
    if outlook.decision == "run" and outlook.reason.code == "never_ran":
        return "+"
    return SIGNS[outlook.decision]


def _words(outlook: Outlook) -> str:
    if outlook.decision == "maybe" and outlook.reason.code == "upstream_changed":
        return f"only if {', '.join(outlook.reason.because)} changes"
    if outlook.decision == "maybe" and outlook.reason.code == "guard_changed":
        return "only its guards changed: the kept artifact is guarded again"
    return sentence(outlook.reason)


@click.command(epilog="\b\nExample:\n  holdfast why build\n  holdfast why build --run @")
@click.argument("step")
@click.option("--run", "run_id", metavar="RUN", help="Why it did what it did in that run.")
@file_option
@place_options
@json_option
@click.option("--cutoff", is_flag=True, help="As with run --cutoff.")
def why(
    step: str,
    run_id: str | None,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    as_json: bool,
    cutoff: bool,
) -> int:
    """Say why a step would run or be reused now, or did in a run, with what changed."""
    where = place(plan, store, plan_id)
    answer = (
        _recorded(where, step, run_id) if run_id else _ahead(where, step, Options(cutoff=cutoff))
    )
    if as_json:
        out_json(answer)
    else:
        _print_why(answer)
    return 0


def _recorded(where: Place, step: str, run_id: str) -> dict[str, Json]:
    store = where.open(readonly=True)
    try:
        state = load_state(store, find_run(store, run_id, where.line()))
    finally:
        store.close()
    step_id = known_step(state.plan, step)
    reasons = {s: found.reason for s, found in state.steps.items() if found.reason}
    now = state.steps[step_id]
    return {
        "step": step_id,
        "run": state.run,
        "decision": now.phase,
        "reason": reason_json(now.reason),
        "changed": [],
        "unchanged": [],
        "root": _root(step_id, reasons),
        "otherwise": "",
    }


def _ahead(where: Place, step: str, options: Options) -> dict[str, Json]:
    loaded = where.load()
    step_id = known_step(loaded.plan, step)
    foreseen = look_ahead(where, loaded, options)
    outlook = foreseen.outlooks[step_id]
    probe = outlook.probe
    changes = probe.changes if probe else ()
    if outlook.reason.code == "upstream_changed" and not any(c.part == "upstream" for c in changes):
        above = Change("upstream", "upstream_changed", outlook.reason.because, None, None)
        changes = (*changes, above)
    return {
        "step": step_id,
        "decision": outlook.decision,
        "reason": reason_json(outlook.reason),
        "changed": [{"part": c.part, "before": c.before, "after": _after(c)} for c in changes],
        "unchanged": list(_unchanged(where, loaded.plan, step_id, changes)),
        "root": _root(
            step_id, {s: o.reason for s, o in foreseen.outlooks.items() if o.decision != "reuse"}
        ),
        "otherwise": _otherwise(outlook),
    }


def _after(change: Change) -> Json:
    """What a part is now; of steps above whose content is not known yet, their names."""
    return list(change.names) if change.part == "upstream" else change.after


def _unchanged(
    where: Place, plan: Plan, step_id: StepId, changes: tuple[Change, ...]
) -> tuple[str, ...]:
    survey = _survey(where, plan, wire.empty_store())
    step = plan.steps[step_id]
    try:
        return unchanged_parts(own_parts(step, survey.observe(step).parts), changes)
    except NoInputError:
        return ()


def _root(step_id: StepId, reasons: Mapping[StepId, Reason]) -> list[Json]:
    """The chain of causes, the root first: because this changed, because that changed."""
    chain: list[Json] = []
    seen: set[str] = set()
    current = step_id
    while current in reasons and current not in seen:
        seen.add(current)
        reason = reasons[current]
        chain.append({"step": current, "reason": reason_json(reason)})
        if (
            reason.code not in {"upstream_changed", "dependency_failed", "dependency_skipped"}
            or not reason.because
        ):
            break
        current = StepId(reason.because[0])
    return chain[::-1]


def _otherwise(outlook: Outlook) -> str:
    newest = outlook.probe.newest if outlook.probe else None
    if outlook.decision == "reuse" or newest is None:
        return ""
    origin = newest.run or "an amendment"
    return f"with everything as it was, {newest.digest[:12]} of {origin} would be reused"


_VERB = {"run": "will run", "reuse": "is reused", "maybe": "may run", "wait": "waits"}


def _print_why(answer: Mapping[str, Json]) -> None:
    reason = answer["reason"]
    words = reason.get("text") if isinstance(reason, Mapping) else "nothing is known yet"
    decision = str(answer["decision"])
    out(f"{answer['step']} {_VERB.get(decision, decision)}: {words}")
    _print_root(answer["root"])
    changed = answer["changed"]
    for change in changed if isinstance(changed, list) else []:
        if isinstance(change, Mapping):
            _print_change(change)
    unchanged = answer["unchanged"]
    if isinstance(unchanged, list) and unchanged:
        out(f"  unchanged  {' · '.join(str(part) for part in unchanged)}")
    if answer["otherwise"]:
        out(f"  {answer['otherwise']}")


def _print_root(root: Json) -> None:
    if not isinstance(root, list) or len(root) <= 1:
        return
    links = [link for link in root if isinstance(link, Mapping)]
    first = links[0]["reason"]
    if isinstance(first, Mapping):
        out(f"  root cause {links[0]['step']}: {first['text']}")
        out(f"  through    {' → '.join(str(link['step']) for link in links[1:])}")


def _print_change(change: Mapping[str, Json]) -> None:
    before, after = change["before"], change["after"]
    if change["part"] == "upstream" and isinstance(after, list):
        out(f"  changed    upstream: {', '.join(str(name) for name in after)}")
        return
    out(f"  changed    {change['part']}")
    if before is None and after is None:
        return
    old, new = _lines(before), _lines(after)
    for line in list(difflib.unified_diff(old, new, n=0, lineterm=""))[2:22]:
        if not line.startswith("@@"):
            out(f"               {line[0]} {line[1:]}")


def _lines(value: Json) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str):
        return value.splitlines()
    return json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True).splitlines()
