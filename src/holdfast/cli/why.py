"""why: for which reason a step runs, is reused, waits or failed, with the content behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import click

from holdfast import wire
from holdfast.cli.additions import added_words
from holdfast.cli.again import again
from holdfast.cli.brought import brought_rows
from holdfast.cli.confined import was_confined
from holdfast.cli.course import Course, course
from holdfast.cli.failure import failure_lines, failure_next
from holdfast.cli.gates import ASKED, gate_words
from holdfast.cli.grown import run_with
from holdfast.cli.measure import age_words
from holdfast.cli.people import BY_PEOPLE, Decided, decided, decided_in
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
from holdfast.cli.refused import refused_rows
from holdfast.cli.say import named, out_json, seconds, short
from holdfast.cli.show import load_state
from holdfast.cli.succession import with_step, with_successor
from holdfast.cli.telling import handoff_of
from holdfast.cli.whytext import LEAST, Root, Told, commands_for, otherwise, print_told, told_json
from holdfast.core.causes import Cause, causes, unchanged_words
from holdfast.core.changes import unchanged_parts
from holdfast.core.preview import Outlook
from holdfast.core.reasons import sentence
from holdfast.core.state import COMPLETE, State
from holdfast.core.views import shown_phase
from holdfast.engine.evidence import Texts
from holdfast.engine.inquiry import Ahead, Key, Past, Shown, compare, standing
from holdfast.engine.journals import read_state
from holdfast.engine.requests import additions
from holdfast.errors import IntegrityError, UsageError
from holdfast.model.artifact import Artifact
from holdfast.model.event import Options, Reason
from holdfast.model.items import as_id, step_named
from holdfast.model.plan import RunId, Step, StepId
from holdfast.model.text import one_line
from holdfast.ports import Store

MOST_ROOTS = 3  # that are shown with their content


@click.command(
    epilog="\b\nExample:\n  holdfast why build\n  holdfast why build --run @\n  holdfast why build --not"
)
@click.argument("step")
@click.option("--run", "run_id", metavar="RUN", help="What that run decided, and why.")
@click.option("--against", metavar="RUN", help="Compare its key with the one it had in that run.")
@click.option("--not", "is_not", is_flag=True, help="Why it does not run, and what would make it.")
@click.option("--wait", "waits", is_flag=True, help="What it waits for.")
@click.option("--cost", "paid", is_flag=True, help="With every call that it took, and its price.")
@file_option
@place_options
@json_option
@click.option("--cutoff", is_flag=True, help="As with run --cutoff.")
def why(
    step: str,
    run_id: str | None,
    against: str | None,
    plan: str | None,
    store: str | None,
    plan_id: str | None,
    *,
    is_not: bool,
    waits: bool,
    paid: bool,
    as_json: bool,
    cutoff: bool,
) -> int:
    """Say why a step would run or be reused now, or did in a run, with what changed."""
    if is_not and waits:
        raise UsageError("--not and --wait ask different questions", hint="use one of them")
    if against and (is_not or waits):
        raise UsageError("--against goes with neither --not nor --wait", hint="holdfast why --help")
    if is_not and run_id:
        raise UsageError("--not is about now, --run about the past", hint="use one of them")
    where = place(plan, store, plan_id)
    told = told_of(where, step, Options(cutoff=cutoff), run_id, against, waits=waits)
    if is_not and told.decision != "reuse":
        said = sentence(told.reason) if told.reason else "nothing is kept of it"
        told = replace(told, head=f"{told.step.id} is not reused: {said}.")
    if paid:
        from holdfast.cli.whycost import with_cost

        told = with_cost(where, told)
    tell(told, as_json=as_json)
    return 0


def told_of(
    where: Place,
    step: str,
    options: Options,
    run_id: str | None = None,
    against: str | None = None,
    *,
    waits: bool = False,
) -> Told:
    """The whole answer about a step: now, or in a run; what it waits for, if that is asked."""
    way = None
    if run_id is None:
        where, way = _on_course(where, step, options)
    if waits:
        from holdfast.cli.waits import told_waiting

        told = told_waiting(where, step, run_id)
    elif run_id is not None:
        told = told_in(where, step, run_id, against)
    else:
        told = told_now(where, step, options, against)
    told = with_successor(where, _with_word(where, told))
    return told if way is None else _along(told, way)


def _on_course(where: Place, step: str, options: Options) -> tuple[Place, Course | None]:
    """Where the plan is that a run would come to, if it has the step, and how it comes to it.

    If it has not, another one may: the first that has.
    """
    if where.file is not None:
        way = course(where, where.load(), options)
        if step_named(step, way.loaded.plan.steps) is not None:
            return way.where, way
    return with_step(where, step), None


def _along(told: Told, way: Course) -> Told:
    """Say which plan it is of. A run begins with another one, so there it is asked for by its name alone."""
    following = told.next
    if told.decision == "reuse" and way.overs:
        name = named(told.step.id)
        following = (f"holdfast show {name}", f"holdfast retry {name}")
    elif told.decision == "run":
        following = (*way.commands,) or following
    rows = (*told.rows, *(("plan", line) for line in way.over_lines))
    return replace(told, rows=rows, next=following)


def _with_word(where: Place, told: Told) -> Told:
    """Name the person whose word the decision rests on, if it rests on one."""
    if told.reason is None or told.reason.code not in BY_PEOPLE:
        return told
    store = where.open(readonly=True)
    try:
        word = _word(where, store, told)
    finally:
        store.close()
    return replace(told, rows=(*told.rows, ("decided", f"by {word.words()}"))) if word else told


def _word(where: Place, store: Store, told: Told) -> Decided | None:
    if told.run is not None:
        return decided_in(store, load_state(store, told.run)).get(told.step.id)
    plan = where.load().plan
    undone = told.reason is not None and told.reason.code == "undone"
    digest = told.kept.digest if told.kept and not undone else None
    return decided(store, plan.project, plan.name).get((told.step.id, digest))


def tell(told: Told, *, as_json: bool) -> None:
    """Print the answer, with the commands that follow from it."""
    told = with_commands(told)
    if as_json:
        out_json(told_json(told))
    else:
        print_told(told)


# --- now ------------------------------------------------------------------------------------------------


def told_now(where: Place, step: str, options: Options, against: str | None = None) -> Told:
    """The answer about the present; `explain STEP` asks for it too."""
    loaded = where.load()
    foreseen = look_ahead(where, loaded, options)
    missing = step_named(step, foreseen.plan.steps) is None
    if missing and (run := run_with(where, loaded.plan, as_id(step))):
        return _only_in(run, told_in(where, step, run, against))
    step_id = known_step(foreseen.plan, step)
    store: Store = where.open(readonly=True) if where.exists() else wire.empty_store()
    try:
        survey = survey_of(where, foreseen.plan, store)
        pages = foreseen.pages
        if pages is not None:
            survey.heed(pages.on(store).page)

        def said(digest: str) -> bytes | None:
            return survey.said(digest) or (None if pages is None else pages.text(digest))

        texts = Texts(store, where.root, said)
        ahead = Ahead(store, foreseen, survey, where.root, texts)
        if against is None:
            told = _with_origin(_ahead(store, ahead, step_id), foreseen.added.get(step_id))
            past = None if foreseen.previous is None else read_state(store, foreseen.previous)
            return _with_handoff(store, past, told)
        state = load_state(store, find_run(store, against, loaded.plan.name))
        steps = foreseen.graph.steps
        told = _compared(store, texts, state, step_id, ahead.key(step_id), steps)
        return replace(told, decision=foreseen.outlooks[step_id].decision)
    finally:
        store.close()


def _only_in(run: RunId, told: Told) -> Told:
    """Say that a step is in a run only: a person added it to that."""
    name = told.step.id
    now = f"the plan has no '{name}': a new run does not have it unless it is put there"
    show = (f"holdfast show {named(name)}",) if told.decision in COMPLETE else ()
    following = told.next or (*show, f"holdfast status {short(run)}")
    return replace(told, rows=(*told.rows, ("now", now)), next=following)


def _with_origin(told: Told, origin: str | None) -> Told:
    """Say which step added it, if one did."""
    if not origin:
        return told
    return replace(told, rows=(*told.rows, ("added", f"by {origin}")))


def _with_handoff(store: Store, state: State | None, told: Told) -> Told:
    """Say what the step handed over, if it did."""
    if state is None or told.step.id not in state.steps:
        return told
    found = handoff_of(store, state, told.step.id)
    if found is None or found.failed or told.step.id in state.gaps:
        return told
    words = f"{one_line(found.handoff.attempted)} ({found.id})"
    return replace(told, rows=(*told.rows, ("handed over", words)))


def _ahead(store: Store, ahead: Ahead, step_id: StepId) -> Told:
    foreseen = ahead.foreseen
    outlook, step = foreseen.outlooks[step_id], foreseen.graph.steps[step_id]
    reasons = {s: o.reason for s, o in foreseen.outlooks.items() if o.decision != "reuse"}
    found = causes(foreseen.graph, step_id, reasons)
    own = ahead.behind(step_id)
    open_needs = [need for need in step.data_needs if need in reasons]
    maybe = tuple(need for need in open_needs if _may_stay(ahead, need))
    kept = standing(outlook)
    made = read_state(store, kept.run) if kept is not None and kept.run else None
    took = _took(made, kept)
    key = ahead.key(step_id) if kept is not None else None
    unchanged, words = _unchanged(key, own, len(step.data_needs), len(open_needs))
    roots = _roots(found, step_id, ahead.behind)
    told = Told(
        step=step,
        decision=outlook.decision,
        reason=outlook.reason,
        shown=own,
        unchanged=unchanged,
        unchanged_words=words,
        maybe=maybe,
        causes=found,
        roots=roots,
        otherwise=otherwise(outlook, own, roots, maybe, (kept, took)),
        after=_below(foreseen.graph.dependents.get(step_id, ()), foreseen.graph.steps),
        kept=kept,
        took=took,
    )
    if outlook.decision == "reuse" and key is not None and kept is not None:
        told = _standing(told, key)
        return replace(
            told, rows=(*told.rows, *brought_rows(store, kept.project, kept.line, kept.run))
        )
    return replace(told, rows=(*_asked(outlook, step), *_notes(outlook)))


def _asked(outlook: Outlook, step: Step) -> Iterator[tuple[str, str]]:
    """What people will be asked."""
    if outlook.decision == "wait" and outlook.reason.code in ASKED and not outlook.reason.because:
        yield "asks", gate_words(step)
        yield (
            "covers",
            "its command, files, inputs and variables as they are then; a change asks again",
        )
    elif outlook.decision in {"run", "maybe"} and outlook.means == "make" and step.asks_after:
        yield "then", "a person decides about what it made; until then the project stays as it is"


def _notes(outlook: Outlook) -> Iterator[tuple[str, str]]:
    """What else is to be known before it runs."""
    if outlook.means == "guard":
        yield (
            "first",
            "the kept artifact is guarded again: if it passes, it stands and nothing runs",
        )
    elif outlook.means == "adopt":
        yield "first", "your version is guarded: if it passes, it stands and nothing is made"
    elif outlook.edited and outlook.means == "make":
        yield "your edit", f"of {', '.join(outlook.edited[:4])} is stored, then replaced"
    if outlook.replaced and outlook.decision in {"run", "maybe"}:
        yield (
            "your version",
            f"of {', '.join(outlook.replaced[:4])} is stored, and will be replaced",
        )
    if outlook.failed_before and outlook.reason.code != "previous_failed":
        yield "before", "its previous attempt failed"
    if outlook.reason.code == "previous_failed" and outlook.also is not None:
        yield "also", sentence(outlook.also)


def _may_stay(ahead: Ahead, need: StepId) -> bool:
    """Whether a need that runs first may still give what it gave before, under the same ref."""
    outlook = ahead.foreseen.outlooks[need]
    found = outlook.probe.found if outlook.probe is not None else None
    sure = outlook.is_new or outlook.means == "adopt"
    return not sure and (outlook.decision == "maybe" or found is not None)


def _standing(told: Told, key: Key) -> Told:
    """A step that is reused: since when, for how long, and what would make it run."""
    kept, step = told.kept, told.step
    rows: list[tuple[str, str]] = []
    if kept is not None:
        took = f", took {seconds(max(told.took, LEAST))}" if told.took is not None else ""
        origin = f"in {short(kept.run)}{took}" if kept.run else "by a person"
        rows.append(("last made", f"{age_words(wire.now_ms() - kept.at)} {origin}"))
        rows.append(("fresh", _fresh(step, kept)))
    rows.append(("would run", f"if {_triggers(step, key)} changed"))
    head = f"{step.id} is reused: {sentence(told.reason)}." if told.reason else ""
    if told.reason is not None and told.reason.code == "unchanged":
        head = f"{step.id} is reused: all {len(told.unchanged)} parts of its key are equal."
    return replace(told, head=head, rows=tuple(rows))


def _fresh(step: Step, kept: Artifact) -> str:
    if step.fresh_for is None:
        return "for as long as nothing that decides it changes"
    left = kept.at + int(step.fresh_for * 1000) - wire.now_ms()
    return f"for another {_span(max(0, left))}"


def _triggers(step: Step, key: Key) -> str:
    """What the key depends on, as a person would edit it."""
    ext = key.own.get("ext")
    named = ext if isinstance(ext, Mapping) else {}
    words = ["its entry in the plan"]
    for part in ("inputs", "files", "code"):
        paths = named.get(part)
        listed = sorted(paths) if isinstance(paths, Mapping) else []
        if listed:
            more = f" and {len(listed) - 3} more" if len(listed) > 3 else ""  # noqa: PLR2004
            words.append(", ".join(listed[:3]) + more)
    if step.data_needs:
        words.append("the result of " + ", ".join(step.data_needs[:4]))
    if step.env:
        words.append("the variable " + ", ".join(step.env[:4]))
    if step.tool_versions:
        words.append("the version of " + ", ".join(list(step.tool_versions)[:4]))
    return " · ".join(words)


def _span(milliseconds: int) -> str:
    """A time in its largest unit, as people say it."""
    for size, word in ((86_400_000, "days"), (3_600_000, "h"), (60_000, "min")):
        if milliseconds >= 2 * size:
            return f"{milliseconds // size} {word}"
    return f"{milliseconds // 1000} s"


def _took(state: State | None, kept: Artifact | None) -> int | None:
    """How long the artifact took to make, in milliseconds; None if that is not known."""
    if state is None or kept is None or kept.step not in state.steps:
        return None
    return state.steps[kept.step].duration_ms


def _roots(
    found: Sequence[Cause], step_id: StepId, behind: Callable[[StepId], tuple[Shown, ...]]
) -> tuple[Root, ...]:
    above = [cause for cause in found if cause.step != step_id]
    return tuple(Root(cause, behind(cause.step)) for cause in above[:MOST_ROOTS])


def _below(names: Sequence[StepId], steps: Mapping[StepId, Step]) -> tuple[str, ...]:
    return tuple(
        f"{name} (touches the outside)" if steps[name].effects == "external" else name
        for name in names
    )


def _unchanged(
    key: Key | None, shown: Sequence[Shown], needs: int, moved: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The parts that stayed, by name and in words."""
    if key is None or not key.own:
        return (), ()
    changes = tuple(item.change for item in shown)
    parts = unchanged_parts(key.own, changes)
    if not needs or moved:
        parts = tuple(part for part in parts if part != "upstream")
    counts = {item.change.part: len(item.pieces) for item in shown}
    above = max((len(c.names) for c in changes if c.part == "upstream"), default=0)
    stayed = needs - max(moved, above)
    return parts, tuple(unchanged_words(key.own, parts, counts, (stayed, needs)))


# --- the past -------------------------------------------------------------------------------------------


def told_in(where: Place, step: str, run_id: str, against: str | None = None) -> Told:
    """The answer about a run."""
    store = where.open(readonly=True)
    try:
        line = where.line()
        state = load_state(store, find_run(store, run_id, line))
        step_id = known_step(state.plan, step)
        if against is None:
            return told_of_run(store, where.root, state, step_id)
        texts = Texts(store, where.root)
        past = Past(store, state, texts)
        other = load_state(store, find_run(store, against, line))
        key = _key_in(past, step_id)
        told = _compared(store, texts, other, step_id, key, state.plan.steps)
        return replace(told, decision=state.steps[step_id].phase, run=state.run)
    finally:
        store.close()


def told_of_run(store: Store, root: str, state: State, step_id: StepId) -> Told:
    """The answer about a step of a run that was read already; `root` is the project directory."""
    origin = added_words(state, step_id, additions(store, state)).removeprefix("added by ")
    past = Past(store, state, Texts(store, root))
    return _with_handoff(store, state, _with_origin(_told_past(store, past, step_id), origin))


def with_commands(told: Told) -> Told:
    """The answer with the commands that follow from it, as they are typed here."""
    from holdfast.cli.main import COMMANDS

    following = told.next or commands_for(told, COMMANDS)
    return replace(told, next=tuple(again(command) for command in following))


def _told_past(store: Store, past: Past, step_id: StepId) -> Told:
    state = past.state
    here, step = state.steps[step_id], state.plan.steps[step_id]
    reasons: dict[StepId, Reason] = {}
    for other, found in state.steps.items():
        reason = past.reason(other) if found.phase in {"done", "running"} else found.reason
        if found.phase != "reused" and reason is not None:
            reasons[other] = reason
    roots = causes(state.graph, step_id, reasons)
    ran = bool(past.attempts(step_id))
    own = past.behind(step_id) if ran else ()
    moved = next((len(s.change.names) for s in own if s.change.part == "upstream"), 0)
    earlier = past.earlier(step_id)
    key = past.key(step_id) if earlier is not None else None
    unchanged, words = _unchanged(key, own, len(step.data_needs), moved)
    failure = _failure(store, state, step_id)
    broken = next((c.step for c in roots if state.steps[c.step].phase == "failed"), None)
    above = _failure(store, state, broken) if broken and here.phase == "skipped" else []
    what = failure[0].partition(": ")[2] if failure else ""
    rows = [(line[2:13].strip(), line[14:]) for line in above[1:-1]]
    if here.phase == "done" and here.fed:
        rows += refused_rows(store, state.run, step_id)
    if ran and was_confined(store, state.run, step_id) is False:
        rows.append(("sandbox", "none: it ran unconfined"))
    rows += brought_rows(store, state.project, state.line, state.run)
    if here.phase == "reused" and earlier is not None and earlier.run != state.run:
        rows += brought_rows(store, earlier.project, earlier.line, earlier.run)
    return Told(
        step=step,
        decision=shown_phase(state, step_id),
        head=f"{step_id} failed in {short(state.run)}: {what}." if failure else "",
        reason=past.reason(step_id) if here.phase in {"done", "running"} else here.reason,
        ran_because=past.reason(step_id) if ran else None,
        run=state.run,
        shown=own,
        unchanged=unchanged,
        unchanged_words=words,
        causes=roots,
        roots=_roots(roots, step_id, past.behind),
        after=_below(state.graph.dependents.get(step_id, ()), state.plan.steps),
        failure=tuple(failure[1:]),
        rows=tuple(rows),
        next=tuple(n for n in failure_next(state, broken) if " why " not in n) if broken else (),
        kept=earlier,
    )


def _failure(store: Store, state: State, step_id: StepId) -> list[str]:
    here = state.steps[step_id]
    if here.phase != "failed":
        return []
    words = ""
    if here.fed and here.fed[-1].feedback is not None:
        try:
            words = store.get(here.fed[-1].feedback).decode("utf-8", "replace")
        except IntegrityError:  # it may have been removed since
            words = ""
    return failure_lines(state, {step_id: words}, only=step_id)


# --- one against another --------------------------------------------------------------------------------


def _key_in(past: Past, step_id: StepId) -> Key:
    key = past.key(step_id)
    if key is None:
        phase, run = past.state.steps[step_id].phase, short(past.state.run)
        raise UsageError(
            f"'{step_id}' has no key in {run}: it is {phase} there",
            hint=f"holdfast why {step_id} --run {run}",
        )
    return key


def _compared(
    store: Store,
    texts: Texts,
    other: State,
    step_id: StepId,
    key: Key,
    steps: Mapping[StepId, Step],
) -> Told:
    known_step(other.plan, step_id)
    before = _key_in(Past(store, other, texts), step_id)
    shown = compare(before, key, texts, steps)
    needs = len(steps[step_id].data_needs)
    unknown = needs - len(key.above or {})
    unchanged, words = _unchanged(key, shown, needs, unknown)
    name, run = step_id, short(other.run)
    if shown:
        first = shown[0].change
        reason = Reason(first.code, first.names)
        head = f"{name} differs from what it was in {run}: {sentence(reason)}."
    elif unknown:
        reason = Reason("unchanged")
        head = (
            f"{name} has the same own parts as in {run}; what steps above bring is not known yet."
        )
    else:
        reason = Reason("unchanged")
        head = f"{name} is as it was in {run}: all {len(unchanged)} parts of its key are equal."
    rows = [("not known", f"what {unknown} of {needs} steps above will bring")] if unknown else []
    return Told(
        step=steps[step_id],
        decision="",
        reason=reason,
        head=head,
        against=other.run,
        shown=shown,
        unchanged=unchanged,
        unchanged_words=words,
        rows=tuple(rows),
    )
