"""Files of other formats: brought in as plans, given back, and run only after a person approved them."""

from __future__ import annotations

import os
import shlex
import zipfile
from collections.abc import Callable, Container, Iterable
from typing import NamedTuple

import click

from holdfast import wire
from holdfast.cli.again import again, out_next
from holdfast.cli.ask import ask, who
from holdfast.cli.measure import count
from holdfast.cli.place import Place
from holdfast.cli.say import out, talk
from holdfast.cli.view import view, width_now
from holdfast.core.waves import graph_of
from holdfast.engine.trust import Trust
from holdfast.errors import ELSEWHERE, PlanError, UsageError
from holdfast.formats.planfile import Asked, Loaded, load_text, read_file
from holdfast.model.digest import Json
from holdfast.model.event import Options
from holdfast.model.plan import Plan, Step, plan_digest
from holdfast.model.provider import TIERS
from holdfast.model.text import one_line, wrap

SHORTEST = 12
_FEW = 8
_SUFFIXES = (".yaml", ".yml", ".json", ".jsonl")


# --- running one ------------------------------------------------------------------------------


def trust_foreign(
    where: Place,
    loaded: Loaded,
    options: Options,
    given: str | None,
    asked: Callable[[], bool] | None = None,
) -> None:
    """Go on with a plan that came from elsewhere only if a person approved its digest.

    `asked` shows it to somebody who is there and says what he answered.
    """
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
        elif not (asked() if asked is not None else _asked(where, loaded, digest)):
            talk("not approved; nothing was run")
            raise click.exceptions.Exit(0)
        trust.approve(loaded.plan, who(), terminal=given is None)
    finally:
        store.close()


def say_unapproved(where: Place, loaded: Loaded) -> bool:
    """Say so if a plan came from elsewhere and nobody approved it yet; whether that was said."""
    if not loaded.foreign:
        return False
    if where.exists():
        store = where.open(readonly=True)
        try:
            trust = Trust(store, loaded.plan.project, loaded.plan.name, wire.now_ms)
            if trust.covers(plan_digest(loaded.plan)):
                return False
        finally:
            store.close()
    talk(f"{_whence(where)}, and nobody approved it yet")
    return True


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
    kind = f"{loaded.file} is a {loaded.foreign} that comes from elsewhere"
    talk(f"{kind} · plan {digest[:SHORTEST]}")
    for step in [*loaded.plan.steps.values()][:_FEW]:
        talk(one_line(f"  {step.id}: {_does(step)}"))
    if len(loaded.plan.steps) > _FEW:
        talk(f"  … and {len(loaded.plan.steps) - _FEW} more: {again(_look(where))}")
    return ask("run it?", default=False)


def _does(step: Step) -> str:
    words = step.shell or shlex.join(step.run)
    if step.asks_model:
        file = f" → {step.produces[0]}" if step.produces else ""
        words = f"asks {step.model or 'a model'}: {step.description}{file}"
    elif step.uses == "human":
        words = "asks a person"
    return f"{step.agent} {step.action}: {words}" if step.agent else words


def _refuse_idle(where: Place, plan: Plan, options: Options) -> None:
    """Say of what cannot run, before anybody is asked about it, what it lacks."""
    chosen = [plan.steps[step_id] for step_id in options.select or plan.steps]
    known = wire.market.known_models(where.root).providers
    idle = [step for step in chosen if step.is_idle]
    lost = [step for step in chosen if step.asks_model and not _is_known(step.model, known)]
    if not idle and not lost:
        return
    first = (idle or lost)[0]
    more = f" (and {len(idle or lost) - 1} more)" if len(idle or lost) > 1 else ""
    hint = f"holdfast import {where.file} -o plan.yaml"
    if idle:
        how = f": nobody said how '{first.agent}' does '{first.action}'" if first.agent else ""
        raise UsageError(f"'{first.id}'{more} has nothing to run{how}", hint=hint)
    which = "which model does it"
    if first.model in TIERS:
        which = f"which model '{first.model}' is"
        hint = f'say [tiers] {first.model} = "provider:model" in your config.toml'
    elif first.model:
        which = f"who '{first.model}' is"
    raise UsageError(f"'{first.id}'{more} cannot run: nobody said {which}", hint=hint)


def _is_known(model: str, providers: Container[str] | None) -> bool:
    provider, colon, _ = model.partition(":")
    return bool(colon) and (providers is None or provider in providers)


# --- bringing one in --------------------------------------------------------------------------


class Wanted(NamedTuple):
    """What an import is asked for: a format, another line, a file to write, prompts that were named."""

    format: str = "auto"
    plan_id: str | None = None
    target: str | None = None
    prompts: str = ""
    force: bool = False


def is_plan(path: str) -> bool:
    """Whether a file is taken for a plan of some format, and not for an export of runs."""
    return path.endswith(_SUFFIXES) and not (os.path.isfile(path) and zipfile.is_zipfile(path))


def _a(word: str) -> str:
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"


RECORDS = ("trace", "hashes", "prompts")


def prompts_among(files: Iterable[str]) -> str:
    """The one of some files that holds prompts; empty if none does."""
    from holdfast.formats.foreignrecords import PROMPTS, record_in

    for path in files:
        if path.endswith(".json") and os.path.isfile(path):
            found = record_in(path, wire.walls_at(os.path.dirname(path) or "."))
            if found is not None and found.format == PROMPTS:
                return path
    return ""


def bring_in(path: str, wanted: Wanted, *, quiet: bool) -> dict[str, Json]:
    """Check a file of any format and, with a target, write its plan as a plan file of one's own."""
    if wanted.format in {"auto", *RECORDS} and (answer := _record(path, wanted, quiet=quiet)):
        return answer
    find, check, own = wire.project_files, wire.guard_flaw, wire.own_agents
    walls = wire.walls_at(os.path.dirname(path) or ".")
    content, root = read_file(path, walls=walls)
    asked = Asked(
        wanted.plan_id,
        find=find,
        check=check,
        own=own,
        models=wire.market.known_models,
        prompts=wanted.prompts,
        walls=walls,
    )
    loaded = load_text(content, path, root, asked)
    target = wanted.target
    kind = loaded.foreign or "plan"
    if wanted.format not in {"auto", kind}:
        raise UsageError(
            f"'{path}' is {_a(kind)} file, not {_a(wanted.format)} file", hint=f"--format {kind}"
        )
    if target is not None:
        _write(loaded.plan, target, force=wanted.force)
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


def _record(path: str, wanted: Wanted, *, quiet: bool) -> dict[str, Json] | None:
    """A file that holds no plan, checked; None if it is something else."""
    from holdfast.formats.foreignrecords import record_in

    found = record_in(path, wire.walls_at(os.path.dirname(path) or "."))
    if found is None:
        if wanted.format == "auto":
            return None
        raise UsageError(f"'{path}' holds no {wanted.format}", hint="--format auto")
    if wanted.format not in {"auto", found.format}:
        raise UsageError(f"'{path}' holds {found.format}, not {wanted.format}")
    if wanted.target is not None and path != wanted.prompts:
        raise UsageError(f"'{path}' is {found.format} and holds no plan: there is nothing to write")
    if not quiet:
        _out(f"{path}: {found.format}, {found.says}")
        if found.format == "prompts":
            _out(again("they are read with the workflow that is named, or that is beside them"))
        else:
            _out(again("these are claims: nothing of them is taken over"))
    return {
        "file": path,
        "format": found.format,
        "result": "loaded",
        "plan": None,
        "claims": found.data,
        "errors": [],
        "warnings": [line_of(str(item)) for item in found.warnings],
    }


def refused_file(path: str, errors: list[Json]) -> dict[str, Json]:
    """The answer for a file that was refused, in the shape of every other."""
    from holdfast.formats.foreignrecords import format_in

    kind = format_in(path) if is_plan(path) else None
    return {
        "file": path,
        "format": kind,
        "result": "refused",
        "plan": None,
        "errors": errors,
        "warnings": [],
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


def refuse_old(target: str, *, force: bool) -> None:
    """Raise UsageError if a file is there that nobody said may go."""
    if os.path.lexists(target) and not force:
        raise UsageError(f"'{target}' is there already", hint="name another file, or say --force")


def write_new(target: str, text: str, *, force: bool) -> None:
    """Write a file that was not there, whole or not at all."""
    refuse_old(target, force=force)
    draft = f"{target}.{os.getpid()}.tmp"
    try:
        with open(draft, "x", encoding="utf-8") as opened:
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        os.replace(draft, target)
    except OSError as error:
        raise UsageError(f"cannot write '{target}': {error.strerror}", hint=ELSEWHERE) from error


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
    lost = [step_id for step_id, step in plan.steps.items() if step.asks_model and not step.model]
    out(f"wrote {target}")
    if idle:
        names = ", ".join(idle[:_FEW]) + (
            f" and {len(idle) - _FEW} more" if len(idle) > _FEW else ""
        )
        _out(again(f"give these a 'run', 'shell' or 'uses' first: {names}"))
    elif lost:
        _out(again("say first which model does its steps: defaults: {model: …}"))
    out_next(f"holdfast check {target}")


def _out(text: str) -> None:
    """A line that goes on below if it is too long."""
    for piece in wrap(text, width_now()):
        out(piece)
