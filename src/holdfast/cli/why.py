"""why: for which reason a step runs or is reused, with the content behind it."""

from __future__ import annotations

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
from holdfast.cli.preview import look_ahead, survey_of
from holdfast.cli.say import out, out_json
from holdfast.cli.show import load_state
from holdfast.core.changes import Change, unchanged_parts
from holdfast.core.preview import Outlook
from holdfast.core.refs import own_parts
from holdfast.core.views import reason_json
from holdfast.engine.survey import NoInputError
from holdfast.model.digest import Json
from holdfast.model.event import Options, Reason
from holdfast.model.plan import Plan, StepId


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
    survey = survey_of(where, plan, wire.empty_store())
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
