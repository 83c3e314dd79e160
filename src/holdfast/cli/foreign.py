"""Files of other formats: brought in as plans, given back, and run only after a person approved them."""

from __future__ import annotations

import json
import os
import shlex
import zipfile

from holdfast import wire
from holdfast.cli.again import again, out_next
from holdfast.cli.ask import ask, who
from holdfast.cli.measure import count, iso
from holdfast.cli.place import SUFFIXES, Place
from holdfast.cli.say import out, talk
from holdfast.cli.view import view, width_now
from holdfast.core.waves import graph_of
from holdfast.engine.trust import Trust
from holdfast.errors import PlanError, UsageError
from holdfast.formats.planfile import Loaded, load_plan
from holdfast.model.digest import Json
from holdfast.model.event import Options
from holdfast.model.plan import Plan, Step, StepId, plan_digest
from holdfast.model.text import one_line, wrap

SHORTEST = 12
_FEW = 8


# --- running one ------------------------------------------------------------------------------


def trust_foreign(where: Place, loaded: Loaded, options: Options, given: str | None) -> None:
    """Go on with a plan that came from elsewhere only if a person approved its digest."""
    if not loaded.foreign:
        if given is not None:
            raise UsageError("--trust is for plans that come from elsewhere; this one is yours")
        return
    _refuse_idle(where, loaded.plan, options)
    store = where.open(create=True)
    try:
        trust = Trust(store, loaded.plan.project, loaded.plan.name, wire.now_ms)
        digest = plan_digest(loaded.plan)
        if trust.covers(digest):
            return
        if "HOLDFAST_STEP" in os.environ:
            raise UsageError("a step cannot approve a plan; a person must")
        if given is not None:
            if len(given) < SHORTEST or not digest.startswith(given.lower()):
                raise UsageError(
                    f"the plan is {digest[:SHORTEST]}, not '{given}'", hint=_look(where)
                )
        elif not view().asks:
            raise UsageError(
                f"{_whence(where)}, and nobody approved its plan",
                hint=f"{_seen(where)}, then say --trust {digest[:SHORTEST]}",
            )
        elif not _asked(where, loaded, digest):
            raise UsageError("not approved; nothing was run")
        trust.approve(loaded.plan, who(), terminal=given is None)
    finally:
        store.close()


def _look(where: Place) -> str:
    """The command that shows a plan which comes from elsewhere."""
    return "holdfast plan" if where.file is None else f"holdfast plan {where.file}"


def _seen(where: Place) -> str:
    look = _look(where)
    return f"see {look}" if where.file is None else f"look at '{look}'"


def _whence(where: Place) -> str:
    return (
        "a model made this plan" if where.file is None else f"'{where.file}' comes from elsewhere"
    )


def _asked(where: Place, loaded: Loaded, digest: str) -> bool:
    if where.file is None:
        talk(f"a model made this plan, and nobody approved it yet · plan {digest[:SHORTEST]}")
    else:
        kind = f"{loaded.file} is a {loaded.foreign} that comes from elsewhere"
        talk(f"{kind} · plan {digest[:SHORTEST]}")
    for step in [*loaded.plan.steps.values()][:_FEW]:
        talk(one_line(f"  {step.id}: {_does(step)}"))
    if len(loaded.plan.steps) > _FEW:
        talk(f"  … and {len(loaded.plan.steps) - _FEW} more: {again(_look(where))}")
    return ask("run it?", default=False)


def _does(step: Step) -> str:
    if step.asks_model:
        file = f" → {step.produces[0]}" if step.produces else ""
        return f"asks {step.model}: {step.description}{file}"
    words = step.shell or shlex.join(step.run)
    return f"{step.agent} {step.action}: {words}"


def _refuse_idle(where: Place, plan: Plan, options: Options) -> None:
    chosen = options.select or tuple(plan.steps)
    idle = [step_id for step_id in chosen if plan.steps[step_id].is_idle]
    if not idle:
        return
    first = plan.steps[idle[0]]
    more = f" (and {len(idle) - 1} more)" if len(idle) > 1 else ""
    raise UsageError(
        f"'{first.id}'{more} has nothing to run: nobody said how '{first.agent}' does '{first.action}'",
        hint=f"holdfast import {where.file} -o plan.yaml",
    )


# --- bringing one in --------------------------------------------------------------------------


def is_plan(path: str) -> bool:
    """Whether a file is taken for a plan of some format, and not for an export of runs."""
    return path.endswith(SUFFIXES) and not (os.path.isfile(path) and zipfile.is_zipfile(path))


def bring_in(
    path: str, wanted: str, plan_id: str | None, target: str | None, *, force: bool, quiet: bool
) -> dict[str, Json]:
    """Check a plan of any format and, with a target, write it as a plan file of one's own."""
    find, check, own = wire.project_files, wire.guard_flaw, wire.own_agents
    loaded = load_plan(
        path, name=plan_id, find=find, check=check, own=own, models=wire.market.known_models
    )
    kind = loaded.foreign or "plan"
    if wanted not in {"auto", kind}:
        raise UsageError(f"'{path}' is a {kind}, not a {wanted}", hint=f"--format {kind}")
    if target is not None:
        _write(loaded.plan, target, force=force)
    if not quiet:
        _say(loaded, path, kind, target)
    steps: list[Json] = [str(step_id) for step_id in loaded.plan.steps]
    return {
        "file": path,
        "format": kind,
        "result": "loaded",
        "plan": {"line": loaded.plan.name, "digest": plan_digest(loaded.plan), "steps": steps},
        "errors": [],
        "warnings": [line_of(str(item)) for item in loaded.warnings],
        "wrote": target,
    }


def line_of(problem: str) -> str:
    """A problem without its hint, as one line; a warning is called one."""
    return problem.partition("\n")[0].replace("error[P9", "warning[P9", 1)


def refusals(error: PlanError) -> list[Json]:
    """Everything that is wrong with a file, a line each."""
    return [line_of(str(problem)) for problem in error.problems]


def _write(plan: Plan, target: str, *, force: bool) -> None:
    from holdfast.formats.planout import plan_yaml

    write_new(target, plan_yaml(plan), force=force)


def write_new(target: str, text: str, *, force: bool) -> None:
    """Write a file that was not there, whole or not at all."""
    if os.path.lexists(target) and not force:
        raise UsageError(f"'{target}' is there already", hint="name another file, or say --force")
    draft = f"{target}.{os.getpid()}.tmp"
    try:
        with open(draft, "x", encoding="utf-8") as opened:
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        os.replace(draft, target)
    except OSError as error:
        raise UsageError(f"cannot write '{target}': {error.strerror}") from error


def _say(loaded: Loaded, path: str, kind: str, target: str | None) -> None:
    plan = loaded.plan
    waves = len(graph_of(plan).waves())
    size = f"{count(len(plan.steps), 'step')} in {count(waves, 'wave')}"
    found = f", {count(len(loaded.warnings), 'warning')}" if loaded.warnings else ""
    _out(f"{path}: {kind} {plan.name}, {size}{found} · plan {plan_digest(plan)[:SHORTEST]}")
    if target is None:
        out_next(f"holdfast check {path}    holdfast import {path} -o plan.yaml")
        return
    idle = [step_id for step_id, step in plan.steps.items() if step.is_idle]
    out(f"wrote {target}")
    if idle:
        names = ", ".join(idle[:_FEW]) + (
            f" and {len(idle) - _FEW} more" if len(idle) > _FEW else ""
        )
        _out(again(f"give these a 'run', 'shell' or 'uses' first: {names}"))
    out_next(f"holdfast check {target}")


def _out(text: str) -> None:
    """A line that goes on below if it is too long."""
    for piece in wrap(text, width_now()):
        out(piece)


# --- giving one back --------------------------------------------------------------------------


def graph_text(where: Place, run: str | None) -> tuple[str, list[StepId]]:
    """The plan of this place, or a run of it, as an execution graph."""
    from holdfast.formats.graphout import graph_document

    if run is None:
        plan = where.load().plan
        document = graph_document(plan, None, iso(wire.now_ms()))
    else:
        from holdfast.cli.checkpoint import facts_of

        plan, facts, started = facts_of(where, run)
        document = graph_document(plan, facts, started)
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n", [*plan.steps]
