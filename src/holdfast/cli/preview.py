"""plan: what a run would do, and for which reasons."""

from __future__ import annotations

import click

from holdfast import wire
from holdfast.cli.place import Place, json_option, known_step, place, place_options
from holdfast.cli.say import out, out_json
from holdfast.core.preview import Outlook
from holdfast.core.reasons import sentence
from holdfast.core.refs import w_ref
from holdfast.core.views import reason_json
from holdfast.engine.foresee import Foreseen, foresee
from holdfast.engine.survey import Survey
from holdfast.formats.planfile import Loaded
from holdfast.model.digest import Json
from holdfast.model.event import Drift, Options
from holdfast.model.plan import Plan, plan_digest
from holdfast.ports import Store

SIGNS = {"run": "~", "reuse": "=", "maybe": "?", "wait": "⏸"}


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
        survey = survey_of(where, loaded.plan, store)
        return foresee(
            loaded.plan, loaded.plan.name, where.root, store, survey, options, wire.now_ms
        )
    finally:
        store.close()


def survey_of(where: Place, plan: Plan, store: Store) -> Survey:
    """The project as it is now, tools asked for their versions."""
    survey = Survey(where.root, store, wire.identities(), plan, wire.ignore_rules)
    if any(step.tool_versions for step in plan.steps.values()):
        import asyncio

        from holdfast.engine.tools import tool_versions

        survey.know(asyncio.run(tool_versions(plan, where.root)))
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
