"""Knows that nothing a run's decisions read has changed since, without deciding about each step.

A run in which every step was reused leaves a note beside the store: the ends of its own journal and of
its line's, a digest of what was asked of it, and the stamps of every file that it looked at. As long as
all of that is equal, a run now would decide the same, step by step. What is compared, and how:

- by content: the plan, the options, Holdfast itself, environment variables, what tools say of their
  versions, and the source that functions and guards are made of, found as for a key;
- by stamps (type, mode, size, times, inode, device): files that commands name or would find, inputs,
  outputs, and the directories and `.gitignore` files that decide which files those are. A new file
  changes the stamps of its directory;
- by place: the line's journal must end where it ended. Whatever a person, another run or a clean-up
  did to the line stands there;
- by presence: contents that this run stands on and that could go without a trace must still be there,
  and nothing may have been put into quarantine since. Whether every byte is right is asked by `verify`,
  and by whatever reads it.

Stamps are only trusted if they were old when the run began to look: a file that was touched in the
last moments before could change once more without its stamps telling. Then there is no note, and the
next run looks at every step and may leave one. A note is a cache: without it, or with one that cannot
be read, a run looks at every step.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import marshal
import os
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import chain, islice
from operator import attrgetter
from typing import Any, NamedTuple

from holdfast.core.changes import CLOCKS_DIFFER
from holdfast.core.refs import KEY_VERSION
from holdfast.core.state import State
from holdfast.engine.lines import line_journal
from holdfast.engine.needed import files_of
from holdfast.engine.stamps import LONGEST, is_older, mark_of, stamps_of
from holdfast.engine.survey import SETTLED_NS, env_digest
from holdfast.engine.walk import RULES, read_by
from holdfast.engine.world import World
from holdfast.errors import EditError, IntegrityError, StoreError
from holdfast.model.changeset import changes_in
from holdfast.model.digest import Digest, Json, canonical, digest_bytes, digest_json
from holdfast.model.event import Options
from holdfast.model.items import base_of, with_templates
from holdfast.model.line import RunOpened
from holdfast.model.pattern import Pattern
from holdfast.model.plan import PARTS, Need, Plan, RunId, Step, plan_digest
from holdfast.model.version import VERSION
from holdfast.process.room import place_of, shell_words

Tools = Mapping[tuple[str, ...], str | None]  # the digest of what each tool said of its version

_FOLDER = "unchanged"
_FORM = 8
_QUARANTINE = os.path.join("blobs", "quarantine")
_DIGEST = Pattern("[0-9a-f]{64}")
_PATH = Pattern("[^/\\x00][^\\x00]*")  # in the project
_STANDS = frozenset({"unchanged", "amended", "accepted_by_person"})


class Question(NamedTuple):
    """What is asked of a run, beside what lies on disk: which plan, how, with which tools."""

    plan: Plan
    line: str
    options: Options
    tools: Tools

    def digest(self, world: World) -> Digest:
        """One digest of it, with the environment and the sources that the plan reads."""
        steps = with_templates(self.plan)
        names = sorted({name for step in steps if step.env for name in step.env})
        tools: list[Json] = [[list(argv), said] for argv, said in sorted(self.tools.items())]
        whole: list[Json] = [
            [_FORM, VERSION, KEY_VERSION, _content_of(self.plan), self.line],
            [repr(replace(self.options, max_cost=None, max_ms=None, shown=()))],
            [ascii(world.root), ascii(os.path.realpath(world.root))],
            [sources_of(world, self.plan), _functions(world, self.plan)],
            {name: env_digest(name) for name in names},
            tools,
            repr(world.walls),
        ]
        return digest_json(whole)


class Note(NamedTuple):
    """What a run in which everything stood leaves behind."""

    run: RunId
    ran: str  # the end of its journal
    end: str  # of the line's journal
    asked: Digest
    fresh: tuple[int, int] | None  # in ms since 1970, when results are neither too old nor to come
    paths: tuple[str, ...]
    stamps: Digest
    apart: tuple[Digest, ...]  # contents that could go without a trace
    lost: str  # what went into quarantine, by the stamps of that


# --- leaving a note ------------------------------------------------------------------------------


def leave_note(
    world: World, state: State, tools: Tools, sources: Digest | None, begun: Plan
) -> None:
    """Leave a note if every step of this run was reused and nothing can have moved meanwhile.

    `begun` is the plan that it began with, `sources` what `sources_of` found for it before the run began to
    look. What cannot be noted is not: it only costs the next run time.
    """
    if not _is_still(state):
        return
    with contextlib.suppress(OSError, EditError, IntegrityError, StoreError):
        opened = _opened_at(world, state)
        if opened is None or sources is None or sources_of(world, begun) != sources:
            return
        changed = {*_changed(world, state)}
        if any(os.path.basename(path) == RULES for path in changed):
            return  # what globs matched before that is not looked at now
        paths = tuple(sorted({*_looked_at(world, state.plan), *changed}))
        before = state.since * 1_000_000 - SETTLED_NS
        stamps, lost = stamps_of(world.root, paths, before), _lost(world, before)
        if stamps is None or lost is None:
            return
        apart = _apart(world, state)
        if not world.store.absent(apart):
            question = Question(begun, state.line, state.options, tools)
            asked, fresh = question.digest(world), _fresh(world, state)
            ran = end_of(world, f"run:{state.run}")
            contents = tuple(sorted(apart))
            note = Note(state.run, ran, opened, asked, fresh, paths, stamps, contents, lost)
            _write(world, state.project, state.line, note)


def _changed(world: World, state: State) -> Iterator[str]:
    """The files that steps changed in copies, and that a run would put in place again."""
    for step_id, step in state.plan.steps.items():
        digest = state.steps[step_id].digest
        if step.changes_copy and digest is not None:
            yield from (change.path for change in changes_in(world.store.get(digest)))


def _apart(world: World, state: State) -> set[Digest]:
    """The contents that this run stands on and that could go without a trace."""
    needed = {digest for here in state.steps.values() if (digest := here.digest) is not None}
    for here in state.steps.values():
        if here.form == "tree" and here.digest is not None:
            needed.update(files_of(world.store, here.digest))
    return world.store.apart(needed)


def _lost(world: World, before: int | None = None) -> str | None:
    """What tells that something was put into quarantine; None if that is not older than `before`."""
    try:
        found = os.lstat(os.path.join(world.home, _QUARANTINE))
    except (FileNotFoundError, NotADirectoryError):
        return "-"
    return mark_of(found) if before is None or is_older(found, before) else None


def _is_still(state: State) -> bool:
    """Whether the run came to nothing but the reuse of every step, and the next would say the same.

    What was decided before a run was taken up stood on what was there then.
    """
    options = state.options
    return (
        state.status == "completed"
        and state.since == state.started_at  # never taken up
        and state.counts["reused"] == len(state.steps)
        and not options.joined
        and all(base_of(step_id) for step_id in state.added)  # items follow from what is reused
        and not state.forked
        and not any(step.share for step in state.plan.steps.values())  # other lines may add to it
        and all(step.attempts == 0 for step in state.steps.values())
        and all(step.reason and step.reason.code in _STANDS for step in state.steps.values())
    )


def _opened_at(world: World, state: State) -> str | None:
    """The end of the line's journal, if the opening of this run is the last thing in it."""
    journal = line_journal(state.project, state.line)
    last = [recorded.event for recorded in world.store.read(journal, world.store.last(journal) - 1)]
    if last != [RunOpened(state.run)]:
        return None
    return end_of(world, journal)


def _fresh(world: World, state: State) -> tuple[int, int] | None:
    """The moments at which no result is too old, nor from a time that has not come yet."""
    begins, ends = [], []
    for step_id, step in state.plan.steps.items():
        ref = state.steps[step_id].config_ref
        if step.fresh_for is not None and ref is not None:
            found = world.store.find(state.project, state.line, step_id, ref)
            if found is None:
                return 0, 0
            begins.append(found.at - CLOCKS_DIFFER)
            ends.append(found.at + int(step.fresh_for * 1000))
    return (max(begins), min(ends)) if ends else None


# --- comparing with the present ------------------------------------------------------------------


def holds(world: World, note: Note, question: Question) -> bool:
    """Whether a run that is asked this now would decide as the one that left the note.

    If the line's journal is still at its end, that is: ask first, because it costs least.
    """
    if note.fresh is not None and not note.fresh[0] <= world.clock() <= note.fresh[1]:
        return False
    try:
        return (
            question.digest(world) == note.asked
            and stamps_of(world.root, note.paths) == note.stamps
            and _lost(world) == note.lost
            and not world.store.absent(note.apart)
        )
    except OSError:
        return False


def is_at_end(world: World, note: Note, project: str, line: str) -> bool:
    """Whether nothing was written to the line since."""
    return end_of(world, line_journal(project, line)) == note.end


def pass_on(world: World, note: Note, question: Question, run: RunId) -> None:
    """The same holds after a further run, which is now the last thing in the line's journal."""
    project, line = question.plan.project, question.line
    ends = end_of(world, f"run:{run}"), end_of(world, line_journal(project, line))
    note = note._replace(run=run, ran=ends[0], end=ends[1])
    with contextlib.suppress(OSError):
        _write(world, project, line, note)


def end_of(world: World, journal: str) -> str:
    """How a journal ends, which tells all that is in it."""
    seq, end = world.store.end(journal)
    return f"{seq}:{end}"


# --- what decisions read -------------------------------------------------------------------------


def _content_of(plan: Plan) -> Digest:
    """A digest of the whole plan that costs less than the one which names it, and is kept nowhere else."""
    total = hashlib.sha256()
    head = (plan.name, plan.goal, plan.description, plan.project, repr(plan.limits))
    try:
        parts = tuple(dict(getattr(plan, key)) for key in PARTS)
        total.update(marshal.dumps((head, parts), _PLAIN))
        steps = iter(plan.steps.values())
        while some := [*islice(steps, _AT_ONCE)]:
            total.update(marshal.dumps(_plain(some), _PLAIN))  # refuses what it cannot
    except ValueError:  # a value of a class of its own
        return plan_digest(plan)
    return Digest(total.hexdigest())


def _plain(steps: Sequence[Step]) -> tuple[list[Any], ...]:
    """All that some steps say, in values that can be written as they are."""
    needs = [step.needs for step in steps]
    edges = [*chain.from_iterable(needs)]
    return (
        [*map(_own_parts, steps)],
        _once([*map(_usual_parts, steps)]),
        [*map(len, needs)],
        [*map(_own_edge_parts, edges)],
        _once([*map(_usual_edge_parts, edges)]),
        [
            (step.id, repr((step.inputs, step.guards, step.template)))
            for step in steps
            if step.inputs or step.guards or step.template is not None
        ],
    )


def _once(rows: list[tuple[Json, ...]]) -> list[tuple[Json, ...]]:
    """One of rows that are all the same, which they are in most plans; else all of them.

    To be equal is enough for text and for what is empty. It is not for numbers: 1 is 1.0, and true.
    """
    if rows and all(map(_is_sure, rows[0])) and rows.count(rows[0]) == len(rows):
        return rows[:1]
    return rows


def _is_sure(value: object) -> bool:
    return value is None or value.__class__ is str or value in ((), {})


_AT_ONCE = 500  # steps; the rows of some are likelier to be the same than those of all
_PLAIN = 0  # the form of `marshal` in which equal values have equal bytes
_OTHERS = {"needs", "inputs", "guards", "template"}
_OWN = {"id", "run", "shell", "prompt", "values", "description"}  # differ from step to step
_Parts = Callable[[object], tuple[Json, ...]]


def _split(noun: type, own: Collection[str]) -> tuple[_Parts, _Parts]:
    """Reads the fields that most have of their own, or that are numbers; and those that are alike in most."""
    names = {item.name: item.default for item in fields(noun) if item.name not in _OTHERS}
    usual = [name for name, given in names.items() if name not in own and not _is_number(given)]
    return attrgetter(*(name for name in names if name not in usual)), attrgetter(*usual)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


_own_parts, _usual_parts = _split(Step, _OWN)
_own_edge_parts, _usual_edge_parts = _split(Need, {"step"})


def sources_of(world: World, plan: Plan) -> Digest | None:
    """Digest of the source that Python steps and guards are made of, and of which step has which.

    None if it cannot be read; whoever decides about such a step will say why.
    """
    try:
        return _sources(world, plan)
    except (OSError, EditError, StoreError):
        return None


def _sources(world: World, plan: Plan) -> Digest:
    numbers: dict[object, int] = {}
    parts: list[Mapping[str, Json]] = []
    which = array("Q")
    inline = world.inline
    steps: Iterable[tuple[int, Step]] = enumerate(with_templates(plan))
    if plan.steps.keys() <= inline.keys():  # only what judges them can change
        steps = [
            (place, step)
            for place, step in enumerate(plan.steps.values())
            if step.guards or step.outputs or step.schema is not None  # a property takes as long
        ]
    for place, step in steps:
        for key, asked in _identified(step, inline=step.id in inline):
            if key not in numbers:
                numbers[key] = len(parts)
                parts.append(world.executor.identity(asked, world.root))
            which.extend((place, numbers[key]))
    return _assigned(plan, parts, which)


def _functions(world: World, plan: Plan) -> Digest:
    """Digest of the functions of this process, and of which step has which; they never change."""
    functions, steps = world.inline, plan.steps
    if not functions:
        return _assigned(plan, (), array("Q"))
    keys: list[object] = [*map(id, map(functions.get, steps))]
    for place, step in enumerate(steps.values()):
        if step.guards or step.outputs or step.schema is not None:  # a property takes as long
            keys[place] = step.id
    some = dict(zip(keys, steps.values(), strict=True))
    numbers = {key: number for number, key in enumerate(some)}
    parts = [
        world.executor.identity(step, world.root) if step.id in functions else {}
        for step in some.values()
    ]
    return _assigned(plan, parts, array("Q", map(numbers.__getitem__, keys)))


def _assigned(plan: Plan, parts: Sequence[Mapping[str, Json]], which: array[int]) -> Digest:
    """Digest of parts and of the steps they belong to, which may stand in any order in a plan."""
    names = "\n".join(plan.steps) if which else ""
    return digest_bytes(names.encode() + b"\0" + canonical(parts) + which.tobytes())


def _identified(step: Step, *, inline: bool) -> Iterator[tuple[object, Step]]:
    """Steps that stand for the parts of one that are found out by content, each with a key.

    What a command names is found by stamps instead, and a function of this process never changes.
    """
    if inline:
        pass
    elif step.uses == "python":
        yield step.run, Step(step.id, uses="python", run=step.run)
    elif step.uses != "shell":
        yield (step.uses, step.id), step  # the items of one that gathers bear its name here
        return
    if step.is_judged:
        guards, schema = step.guards, step.schema
        asked = Step(step.id, guards=guards, schema=schema, outputs=step.outputs)
        yield repr((guards, schema, step.outputs)), asked


def _looked_at(world: World, plan: Plan) -> Iterator[str]:
    """Every path, relative to the project, whose state decides something about a step."""
    globs: dict[str, None] = {}
    top = os.path.realpath(world.root)
    for step in plan.steps.values():
        if step.uses == "shell" and step.id not in world.inline:
            words = step.run or shell_words(step.shell)
            yield from (path for word in words for path in _named(world.root, top, word))
        for item in step.inputs:
            globs[item.glob] = None
        for path in step.produces:
            yield from _beneath(world.root, os.path.normpath(path))
    for glob in globs:
        yield from read_by(world.root, glob, world.ignores)


def _named(root: str, top: str, word: str) -> Iterator[str]:
    """The paths in the project that a word of a command would name.

    `top` is the project without links on the way to it: by that a key names the files of commands.
    """
    if not word or "\0" in word or word in {".", ".."}:
        return
    if "/" not in word:
        yield word
        return
    ways = word.split("/../") if len(word) < LONGEST else [word]
    for count, rest in enumerate(ways[1:], 1):  # out of what a link leads to, if there is one
        way = place_of(top, "/../".join(ways[:count]))
        yield f"{os.path.relpath(way, top)}/../{rest}"
    for place in {root, top}:
        found = os.path.relpath(place_of(place, word), place)
        if found not in {".", ".."} and not found.startswith("../"):
            yield found


def _beneath(root: str, path: str) -> Iterator[str]:
    """A path and, if it is a directory, all there is beneath it."""
    pending = [path]
    while pending:
        path = pending.pop()
        yield path
        full = os.path.join(root, path)
        if os.path.isdir(full) and not os.path.islink(full):
            pending += [f"{path}/{name}" for name in os.listdir(full)]


# --- the note itself -----------------------------------------------------------------------------


def read_note(world: World, project: str, line: str) -> Note | None:
    """The note of a line; None if there is none that can be read."""
    try:
        with open(_place(world, project, line), "rb") as file:
            head, _, body = file.read().partition(b"\n")
        if hashlib.sha256(body).hexdigest() != head.decode():
            return None
        run, ran, end, asked, fresh, paths, stamps, apart, lost = json.loads(body)
        if fresh is not None:
            begins, ends = fresh
            fresh = int(begins), int(ends)
        if not all(isinstance(path, str) and _PATH.fullmatch(path) for path in paths):
            return None
        if not all(isinstance(digest, str) and _DIGEST.fullmatch(digest) for digest in apart):
            return None
    except (OSError, ValueError, TypeError):
        return None
    return Note(run, ran, end, asked, fresh, tuple(paths), stamps, tuple(apart), lost)


def _write(world: World, project: str, line: str, note: Note) -> None:
    place = _place(world, project, line)
    os.makedirs(os.path.dirname(place), 0o700, exist_ok=True)
    body = json.dumps(note).encode()
    draft = f"{place}.draft"
    with open(draft, "wb") as file:
        file.write(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
    os.replace(draft, place)


def _place(world: World, project: str, line: str) -> str:
    return os.path.join(world.home, _FOLDER, digest_json([project, line])[:32])
