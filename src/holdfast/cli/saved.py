"""Previews that a run is held to: saved by `plan`, named by their digest, or shown before it begins."""

from __future__ import annotations

import json
import os
import string
from collections.abc import Collection, Mapping
from dataclasses import field, replace
from typing import cast

from holdfast.cli.again import again, quoted
from holdfast.cli.ahead import PREVIEW_SCHEMA, Ahead, gather, is_selected, preview_json
from holdfast.cli.ask import ask, consent_to, go_on
from holdfast.cli.consent import agreed_with, said_of_money
from holdfast.cli.course import looked
from holdfast.cli.foreign import say_unapproved
from holdfast.cli.gates import ASKED, is_paid, needs_consent
from holdfast.cli.grown import grown
from holdfast.cli.outlook import compared, print_lines, table
from holdfast.cli.place import Place
from holdfast.cli.prices import price_words
from holdfast.cli.provisions import can_bound, provide
from holdfast.cli.say import out_json
from holdfast.cli.titles import plan_title
from holdfast.cli.view import view
from holdfast.cli.waves import waves
from holdfast.core.preview import Outlook, options_from
from holdfast.core.versions import compare
from holdfast.errors import ELSEWHERE, StaleError, UsageError
from holdfast.formats.planfile import Loaded
from holdfast.model.digest import Json
from holdfast.model.event import Agreed, Options, Shown
from holdfast.model.fixed import frozen
from holdfast.model.plan import Plan, Step, StepId, plan_digest

SHORTEST = 12
MOST_BYTES = 256 * 2**20
TOLD = 5
_GUESSED = frozenset({"duration_ms", "saved_ms", "saved_usd", "without_history", "recorded"})


@frozen
class Saved:
    """A preview as it was saved: the plan file or the goal it is of, how it was asked for, what it said."""

    name: str
    file: str
    line: str
    params: Mapping[str, Json]
    options: Options
    data: Mapping[str, Json]


@frozen
class Asked:
    """What a run was asked to show or to be held to before it begins."""

    saved: Saved | None = None
    preview: str | None = None
    show_plan: bool = False
    dry_run: bool = False
    diff_plan: bool = False


@frozen
class Agreement:
    """What a run begins with: how it is asked for, and what somebody agreed to.

    `seen` are the steps that may touch the outside world or cost money, as they were then.
    """

    options: Options
    agreed: Agreed
    seen: Mapping[StepId, Step] = field(default_factory=dict)


def save(ahead: Ahead, file: str) -> None:
    """Write a preview to a file, whole or not at all; only an older preview is written over."""
    if os.path.lexists(file) and _read(file) is None:
        raise UsageError(
            f"'{file}' is there already and is no saved preview", hint="name another file"
        )
    data: dict[str, Json] = {**preview_json(ahead), "params": ahead.plan.params}
    if ahead.where.file is None:
        data["goal"] = ahead.plan.goal
    else:
        beside = os.path.dirname(os.path.abspath(file))
        data["file"] = os.path.relpath(ahead.where.file, beside)
    text = json.dumps(data, ensure_ascii=False, indent=2)
    draft = f"{file}.{os.getpid()}.tmp"
    try:
        with open(draft, "x", encoding="utf-8") as opened:
            opened.write(text + "\n")
        os.replace(draft, file)
    except OSError as error:
        raise UsageError(f"cannot write '{file}': {error.strerror}", hint=ELSEWHERE) from error


def find_saved(given: str | None) -> Saved | None:
    """The saved preview that was given in the place of a plan; None if it is none."""
    if given is None or not os.path.isfile(given):
        return None
    data = _read(given)
    if data is None and _is_begun(given):
        data = {}
    elif data is None:
        return None
    plan, options, file = data.get("plan"), data.get("options"), data.get("file")
    goal = data.get("goal")
    named = isinstance(file, str) or isinstance(goal, str)
    whole = isinstance(plan, Mapping) and isinstance(options, Mapping) and named
    whole = whole and isinstance(cast("Mapping[str, Json]", plan).get("line"), str)
    if not whole or not isinstance(data.get("digest"), str):
        raise UsageError(
            f"'{given}' is a preview, but not one that was saved whole",
            hint=f"holdfast plan -o {quoted(given)}",
        )
    head = cast("Mapping[str, Json]", plan)
    return Saved(
        name=given,
        file=str(goal) if file is None else os.path.join(os.path.dirname(given), str(file)),
        line=str(head.get("line")),
        params=_mapping(data.get("params")),
        options=options_from(cast("Mapping[str, Json]", options)),
        data=data,
    )


def _is_begun(file: str) -> bool:
    """Whether a file that is no preview begins like one that was cut."""
    try:
        with open(file, "rb") as opened:
            content = opened.read(MOST_BYTES)
        if content.lstrip().startswith(b"{") and PREVIEW_SCHEMA.encode() in content[:256]:
            json.loads(content)
    except ValueError:
        return True
    except OSError:
        pass
    return False


def _read(file: str) -> Mapping[str, Json] | None:
    """A preview from a file; None if it holds something else."""
    try:
        with open(file, "rb") as opened:
            start = opened.read(256)
            if not start.lstrip().startswith(b"{") or PREVIEW_SCHEMA.encode() not in start:
                return None
            content = start + opened.read(MOST_BYTES)
        data = json.loads(content)
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) and data.get("schema") == PREVIEW_SCHEMA else None


# --- holding a run to it -----------------------------------------------------------------------------------


def held_to(where: Place, loaded: Loaded, given: Options, asked: Asked) -> Ahead | None:
    """The preview that a run was asked to hold itself to, if it was; StaleError if it is another one now."""
    held: Ahead | None = None
    if asked.saved is not None:
        held = hold_to(where, loaded, _held_options(asked.saved, given), asked.saved)
    if asked.preview is not None:
        options = given if asked.saved is None else _held_options(asked.saved, given)
        held = hold_to_digest(where, loaded, options, asked.preview)
    return held


def hold_to(where: Place, loaded: Loaded, options: Options, saved: Saved) -> Ahead:
    """The preview, which must be what was saved."""
    ahead = gather(where, loaded, options)
    now = cast("Mapping[str, Json]", json.loads(json.dumps(preview_json(ahead))))
    if now["digest"] == saved.data["digest"] and _claims(now) == _claims(saved.data, now):
        return ahead
    told = differences(saved.data, now)
    more = f" and {len(told) - TOLD} more" if len(told) > TOLD else ""
    raise StaleError(
        f"'{saved.name}' is stale: {'; '.join(told[:TOLD])}{more}",
        hint=f"holdfast plan -o {quoted(saved.name)}",
    )


def hold_to_digest(where: Place, loaded: Loaded, options: Options, given: str) -> Ahead:
    """The preview, which must have this digest, or one that begins so."""
    wanted = given.lower()
    if len(wanted) < SHORTEST or not {*wanted} <= {*string.hexdigits}:
        raise UsageError(
            f"'{given}' is no digest of a preview; {SHORTEST} digits of it are enough",
            hint="holdfast plan --json",
        )
    ahead = gather(where, loaded, options)
    digest = ahead.foreseen.digest
    if not digest.startswith(wanted):
        raise StaleError(
            f"the preview is {digest[:SHORTEST]} now, not {wanted[:SHORTEST]}", hint="holdfast plan"
        )
    return ahead


def _claims(data: Mapping[str, Json], beside: Mapping[str, Json] | None = None) -> Json:
    """What a preview says would happen: who reads it agrees to that, not to the digest in it.

    Times are guesses that every run makes better. What changed counts if it is told against the same.
    """
    steps = _mapping(data.get("steps"))
    apart = beside is not None and data.get("against") != beside.get("against")
    return {
        **{key: data.get(key) for key in ("waves", "models", "details", "left_out")},
        "plan": {key: _at(data, "plan", key) for key in ("line", "ref", "digest")},
        "steps": {name: _without(steps[name], _GUESSED) for name in steps},
        "totals": _without(data.get("totals"), _GUESSED),
        "changes": _mapping(beside).get("changes") if apart else data.get("changes"),
    }


def _without(value: Json, keys: Collection[str]) -> Json:
    return {key: said for key, said in _mapping(value).items() if key not in keys}


def differences(then: Mapping[str, Json], now: Mapping[str, Json]) -> list[str]:
    """What a preview says otherwise than before, step by step."""
    told = []
    if _at(then, "plan", "digest") != _at(now, "plan", "digest"):
        told.append("the plan changed")
    before, after = _mapping(then.get("steps")), _mapping(now.get("steps"))
    told += [f"'{name}' left the plan" for name in before if name not in after]
    for name in after:
        was, is_now = _mapping(before.get(name)), _mapping(after[name])
        words = str(_mapping(is_now.get("reason")).get("text"))
        if name not in before:
            told.append(f"'{name}' is new")
        elif was.get("decision") != is_now.get("decision"):
            told.append(
                f"'{name}' was '{was.get('decision')}', is '{is_now.get('decision')}': {words}"
            )
        elif was.get("reason") != is_now.get("reason"):
            told.append(f"'{name}' has another reason: {words}")
        elif _at(then, "details", name) != _at(now, "details", name):
            told.append(f"'{name}' stands on something else than before")
        elif was.get("model") != is_now.get("model"):
            told.append(f"'{name}' asks {is_now.get('model') or 'no model'}")
        elif was.get("cost_usd") != is_now.get("cost_usd"):
            told.append(f"'{name}' has another price")
    if told or then.get("digest") != now.get("digest"):
        return told or ["something it was made from changed"]
    return ["it does not say what would happen"]


def _at(data: Mapping[str, Json], part: str, name: str) -> Json:
    return _mapping(data.get(part)).get(name)


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}


# --- shown before a run ------------------------------------------------------------------------------------


def show_first(
    where: Place,
    loaded: Loaded,
    options: Options,
    manner: Mapping[str, object],
    *,
    asks: bool,
) -> Ahead | None:
    """Show the preview and, if somebody is there, ask whether to go on; what he saw. Nothing is written.

    Whoever is to decide sees it wave by wave.
    """
    jobs = int(str(manner["jobs"] or 0))
    seen = looked(where, loaded, options, parallel=jobs, follows=not asks)
    ahead = seen.ahead
    if manner["as_json"]:
        out_json(seen.json())
        return None
    screen = waves if asks else table
    print_lines([*seen.lines(view().width), *screen(ahead, view(), verbose=view().verbose)])
    if not asks or not view().asks:
        return None
    provide(where, loaded, options, cast("int | None", manner["max_cost"]))
    is_open = say_unapproved(where, loaded)
    if not ask("Execute?", default=not (is_open or _touched(loaded, ahead) or paid_in(ahead))):
        return None
    _still(where, loaded, options, ahead)
    return ahead


def shown_whole(
    where: Place, loaded: Loaded, options: Options, manner: Mapping[str, object]
) -> Ahead:
    """Show a plan to whoever is to approve it, wave by wave and with its price; what he sees."""
    provide(where, loaded, options, cast("int | None", manner["max_cost"]))
    ahead = gather(where, loaded, options, parallel=int(str(manner["jobs"] or 0)))
    print_lines(waves(ahead, view(), verbose=view().verbose), err=True)
    return ahead


def consent(
    where: Place,
    loaded: Loaded,
    options: Options,
    manner: Mapping[str, object],
    seen: Mapping[StepId, Step] | None = None,
    told: Agreed | None = None,
    made_again: StepId | None = None,
) -> Agreement:
    """Ask before a run touches the outside world or costs money, after showing what it would do.

    A step that is `made_again` is the only one that was named: the rest comes with the new run.

    Without somebody to answer, a run needs --yes or a saved preview; for money a limit is enough: who names
    one agrees to spend so much. Nobody is asked about steps that are as they were `seen` before. Who said
    --verbose sees what changed in every case.
    """
    told, how = told or said_of_money(manner), view()
    ahead = None
    if how.verbose:
        ahead = gather(where, loaded, options, parallel=int(str(manner["jobs"] or 0)))
        print_lines(table(ahead, how, verbose=how.verbose), err=True)
    if manner["yes"]:
        return Agreement(options, told)
    steps = grown(where, loaded).plan.steps.values()
    pays = told == "nothing" and any(is_paid(where.root, step) for step in steps)
    if not pays and not any(needs_consent(step) for step in steps):
        _let_look(ahead, manner)
        return Agreement(options, told)
    ahead = ahead or gather(where, loaded, options, parallel=int(str(manner["jobs"] or 0)))
    found = _shown(loaded, ahead, told)
    fresh = {s for s, step in found.seen.items() if (seen or {}).get(s) != step}
    touched = [s for s in _touched(loaded, ahead) if s in fresh]
    paid = [s for s in paid_in(ahead) if s in fresh and pays]
    if not touched and not paid:
        _let_look(ahead, manner)
        return found
    if how.asks and not how.verbose:
        print_lines(table(ahead, how), err=True)
    bounds = can_bound(where.root, map(ahead.foreseen.plan.steps.__getitem__, paid))
    price = price_words(ahead) if paid else ""
    named_step = {} if made_again is None else _with_new_run(made_again)
    consent_to(touched, yes=False, paid=paid, price=price, bounds=bounds, **named_step)
    _still(where, loaded, options, ahead)
    return found


def _with_new_run(step: StepId) -> dict[str, str]:
    return {
        "first": f"'{step}' is made again in a new run",
        "look": f"look at 'holdfast plan --force-node {quoted(step)}'",
    }


def _let_look(ahead: Ahead | None, manner: Mapping[str, object]) -> None:
    """Who asked for what changed, with all its lines, looks at it before anything runs."""
    wanted = bool(manner.get("incremental")) and view().verbose and view().asks
    if wanted and ahead is not None and ahead.is_work:
        go_on("Proceed?", default=True)


def _shown(loaded: Loaded, ahead: Ahead, told: Agreed) -> Agreement:
    """What somebody agrees to who says yes to a preview."""
    steps, paid = ahead.foreseen.plan.steps, paid_in(ahead)
    seen = {step_id: steps[step_id] for step_id in (*_touched(loaded, ahead), *paid)}
    return Agreement(replace(ahead.options, shown=shown_in(ahead)), agreed_with(told, paid), seen)


def shown_in(ahead: Ahead) -> tuple[Shown, ...]:
    """The steps whose artifacts a preview could read, and what comes of them, so that it has that too."""
    found = {}
    for origin in ahead.foreseen.added.values():
        artifact = ahead.outlooks[origin].artifact
        if artifact is not None:
            found[origin] = Shown(origin, artifact.digest)
    return tuple(found.values())


def paid_in(ahead: Ahead) -> list[StepId]:
    """The steps that may ask somebody who wants money for it."""
    steps = ahead.foreseen.plan.steps
    return [
        step_id
        for step_id, outlook in ahead.outlooks.items()
        if _may_run(outlook)
        and is_selected(ahead.options, step_id)
        and is_paid(ahead.where.root, steps[step_id], about_it=outlook.means == "adopt")
    ]


def _touched(loaded: Loaded, ahead: Ahead) -> list[StepId]:
    """The steps that may touch the outside world unless somebody says no."""
    return [
        step_id
        for step_id, step in loaded.plan.steps.items()
        if needs_consent(step)
        and _may_run(ahead.outlooks[step_id])
        and is_selected(ahead.options, step_id)
    ]


def _may_run(outlook: Outlook) -> bool:
    """Whether a run may come to it, perhaps after a person decided something above it."""
    return outlook.decision in {"run", "maybe"} or outlook.reason.code in ASKED


def _still(where: Place, loaded: Loaded, options: Options, shown: Ahead) -> None:
    """The answer was to what was shown: while a person thought, the world may have changed."""
    if plan_digest(where.load(shown.plan.params).plan) != plan_digest(shown.plan):
        raise StaleError("the plan changed while you were asked", hint="holdfast plan")
    now = gather(where, loaded, options)
    if now.foreseen.digest != shown.foreseen.digest:
        told = differences(preview_json(shown), preview_json(now))
        raise StaleError(
            f"this changed while you were asked: {'; '.join(told[:TOLD])}", hint="holdfast plan"
        )


# --- two plans --------------------------------------------------------------------------------


def show_changes(where: Place, loaded: Loaded, options: Options, *, as_json: bool) -> None:
    """How the plan differs from that of the last run."""
    ahead = gather(where, loaded, options)
    if as_json:
        changes = ahead.changes
        out_json(
            {
                "schema": "holdfast.plan-diff/1",
                "before": plan_digest(ahead.earlier.plan) if ahead.earlier else None,
                "after": plan_digest(ahead.plan),
                "run": ahead.earlier.run if ahead.earlier else None,
                "added": list(changes.added),
                "removed": list(changes.removed),
                "changed": {step: list(keys) for step, keys in changes.edited.items()},
            }
        )
        return
    print_lines(_changed(ahead))


def _changed(ahead: Ahead) -> list[str]:
    from holdfast.wire import now_ms

    if ahead.earlier is None:
        return ["No previous plan to compare", again("next: holdfast plan")]
    before, after = ahead.earlier.plan, ahead.plan
    head = f"{plan_title(after)} · {compared(ahead, now_ms())}"
    lines = plan_changes(before, after, head)
    if plan_digest(before) == plan_digest(after):
        return lines
    return [*lines, again("next: holdfast plan    holdfast run")]


def plan_changes(before: Plan, after: Plan, head: str) -> list[str]:
    """How two versions of a plan differ, under a head line; what is equal is only counted."""
    changes = compare(before, after)
    same = len(after.steps) - len(changes.added) - len(changes.edited)
    if plan_digest(before) == plan_digest(after):
        return [f"{head} · plan {plan_digest(after)[:12]}", "The plans are equal"]
    lines = [f"{head} · plan {plan_digest(before)[:12]} → {plan_digest(after)[:12]}", ""]
    lines += [f" + {step}: added" for step in changes.added]
    lines += [f" - {step}: removed" for step in changes.removed]
    for step, keys in changes.edited.items():
        lines.append(f" ~ {step}: {_edit(before.steps[step], after.steps[step], keys)}")
    counts = f"{len(changes.added)} added, {len(changes.removed)} removed"
    return [*lines, "", f"{counts}, {len(changes.edited)} changed, {same} unchanged"]


def _edit(before: Step, after: Step, keys: tuple[str, ...]) -> str:
    """The keys that changed; of needs, which came and which left."""
    old, new = {n.step for n in before.needs}, {n.step for n in after.needs}
    moved = [f"+{name}" for name in sorted(new - old)] + [f"−{name}" for name in sorted(old - new)]
    words = [f"needs ({' '.join(moved)})" if key == "needs" and moved else key for key in keys]
    return f"{', '.join(words)} changed"


def agree(
    where: Place,
    loaded: Loaded,
    given: Options,
    asked: Asked,
    manner: Mapping[str, object],
    seen: Ahead | None = None,
    held: Ahead | None = None,
) -> Agreement | None:
    """What to run with once everything that was asked is answered; None to run nothing.

    Who said yes to all that is `seen`, or to what the run is `held` to, is not asked again.
    """
    options = given if asked.saved is None else _held_options(asked.saved, given)
    if asked.diff_plan:
        show_changes(where, loaded, options, as_json=bool(manner["as_json"]))
        return None
    told = said_of_money(manner)
    if asked.show_plan or asked.dry_run:
        shown = show_first(where, loaded, options, manner, asks=not asked.dry_run)
        return None if shown is None else _shown(loaded, shown, told)
    provide(where, loaded, options, cast("int | None", manner["max_cost"]))
    if held is not None:
        return _shown(loaded, held, told)
    if seen is not None:
        _still(where, loaded, options, seen)
        return _shown(loaded, seen, told)
    return consent(where, loaded, options, manner)


def _held_options(saved: Saved, given: Options) -> Options:
    """The options of a saved preview, in the manner asked for now; deciding again is no use of it."""
    manner = {
        "joined": False,
        "fail_fast": False,
        "barrier": False,
        "max_cost": None,
        "max_ms": None,
    }
    if replace(given, **manner) != Options():  # type: ignore[arg-type]  # as they are by default
        raise UsageError(
            f"'{saved.name}' says already how to run: no --force, --resample, --cutoff, --on-drift, -s",
            hint=f"holdfast run {quoted(saved.name)}",
        )
    return replace(
        saved.options,
        joined=given.joined,
        fail_fast=given.fail_fast,
        barrier=given.barrier,
        max_ms=given.max_ms,
    )
