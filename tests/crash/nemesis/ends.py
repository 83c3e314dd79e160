"""What must be true when all is quiet: every question has the same answer as if nothing had happened."""

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from holdfast.engine.journals import read_state
from holdfast.model.artifact import tree_entries
from holdfast.model.digest import Digest
from holdfast.model.event import AttemptAccepted, StepsReused, StepsTaken
from holdfast.ports import Store
from tests.crash.looks import left_running
from tests.crash.nemesis.world import LINES, Told, World
from tests.crash.scene import RUN_ID, Answer

BY_HAND = ("hand", "edit")  # people change these: what they wrote says what it must be
ROOM, EACH = (
    16 << 20,
    64 << 10,
)  # bytes of a store: whatever it holds, and for each step that was accepted
Facts = dict[str, list[tuple[str, dict[str, Any]]]]


def facts_of(store: Store) -> Facts:
    """The journals as they lie there."""
    return {
        name: [(item.kind, json.loads(item.body)) for item in store.raw(name)]
        for name in store.journals()
    }


def contents_of(store: Store, line: str) -> dict[str, Digest]:
    """What stands for each step in the last run of a line; added steps and items too.

    The newest that was accepted is not it: inputs that come back bring an older one back.
    """
    found: dict[str, Digest] = {}
    for run in [row.run for row in store.runs(line)][-1:]:
        for recorded in store.read(f"run:{run}"):
            match recorded.event:
                case AttemptAccepted() as event:
                    found[event.step] = event.digest
                case StepsReused() | StepsTaken() as event:
                    found.update({item.step: item.digest for item in event.items})
                case _:
                    pass
    return found


def broken(world: World, wanted: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Everything that is wrong."""
    store = world.opened()
    try:
        facts = facts_of(store)
        yield from once(facts)
        yield from open_runs(store, facts)
        yield from lost(world.told, facts)
        yield from effects(world, facts)
        yield from (f"the line is still held: {held}" for *held, _ in store.held())
        for line in LINES:
            yield from differing(store, line, wanted.get(line, {}))
        yield from chained(store, "hand", "note")
        yield from chained(store, "watched", "read", world.read("watched"))
        yield from edited(store, world)
        runs = [str(row.run) for row in store.runs()]
    finally:
        store.close()
    yield from left_running(runs, world.pids)
    yield from litter(world)


def chained(store: Store, line: str, above: str, wanted: str | None = None) -> Iterator[str]:
    """What stands below is made of what stands above; and that is what was wanted, if it is known."""
    found = contents_of(store, line)
    first, second = (store.get(found[step]).decode() for step in (above, "after"))
    if wanted is not None and first != wanted:
        yield f"{line}: {above} is {first!r}, and should be {wanted!r}"
    if second != first + "more\n":
        yield f"{line}: after is {second!r} of {first!r}"


def edited(store: Store, world: World) -> Iterator[str]:
    """The files of a step are what was made, or what a person wrote over it; the store says the same."""
    found, wanted = contents_of(store, "edit"), world.read("edit")
    kept = {
        entry.path: store.get(entry.digest).decode()
        for entry in tree_entries(store.get(found["make"]))
    }
    lies = {path: (world.root / path).read_text() for path in ("made/a.txt", "made/b.txt")}
    if kept != lies:
        yield f"edit: the store has {kept}, and the project {lies}"
    if lies["made/b.txt"] != wanted or lies["made/a.txt"] not in {wanted, *world.edited}:
        yield f"edit: {lies} of {wanted!r}"
    below = store.get(found["after"]).decode()
    if below != lies["made/a.txt"] + lies["made/b.txt"]:
        yield f"edit: after is {below!r} of {lies}"


def behind(store: Store, world: World) -> list[str]:
    """Lines whose last run is neither at its end nor waits; the watch until it saw the last change."""
    last = {row.line: row.run for row in store.runs()}
    states = {line: read_state(store, run) for line, run in last.items()}
    moving = [line for line, state in states.items() if state and state.status == "running"]
    watched = contents_of(store, "watched").get("read")
    seen = watched is not None and store.get(watched).decode() == world.read("watched")
    return moving if seen else [*moving, "watched"]


def once(facts: Facts) -> Iterator[str]:
    """A step is accepted once, unless what it was made of changed and it was opened again."""
    for name, events in facts.items():
        accepted: Counter[str] = Counter()
        for kind, body in events:
            if kind == "attempt_accepted":
                accepted[body["step"]] += 1
                if accepted[body["step"]] > 1:
                    yield f"{name}: {body['step']} was accepted twice"
            elif kind in {"steps_reopened", "gap_closed"}:
                accepted.clear()


def open_runs(store: Store, facts: Facts) -> Iterator[str]:
    for row in store.runs():
        kinds = [kind for kind, _ in facts.get(f"run:{row.run}", [])]
        if "run_ended" not in kinds:
            yield f"run {row.run} of {row.line} is not at an end: {kinds[-3:]}"


def lost(told: list[Told], facts: Facts) -> Iterator[str]:
    """What somebody was told is there, unless a person had it collected."""
    collected = {
        body["run"] for events in facts.values() for kind, body in events if kind == "run_collected"
    }
    for line, words, answer in told:
        for run in answer.runs - collected:
            if f"run:{run}" not in facts:
                yield f"{line}: {' '.join(words)} told of run {run}, which is not there"
        yield from unknown(words, answer, facts)


def unknown(words: tuple[str, ...], answer: Answer, facts: Facts) -> Iterator[str]:
    """Steps that a command told as accepted, and that its run does not have."""
    runs = [run for run in RUN_ID.findall(answer.out + answer.err) if f"run:{run}" in facts]
    if words[0] not in {"run", "resume", "retry"} or len({*runs}) != 1 or "--watch" in words:
        return
    known: set[str] = set()
    for kind, body in facts[f"run:{runs[0]}"]:
        if kind in {"attempt_accepted", "steps_reused", "steps_taken"}:
            known |= {body["step"]} if "step" in body else names_in(body["items"])
    if missing := answer.acknowledged - known:
        yield f"{' '.join(words)} told {sorted(missing)} as accepted, run {runs[0]} has them not"


def names_in(items: list[Any]) -> set[str]:
    return {item["step"] if isinstance(item, dict) else item[0] for item in items}


def effects(world: World, facts: Facts) -> Iterator[str]:
    """Each effect once, and once more only if somebody asked for it."""
    done = Counter(world.sink.read_text().split() if world.sink.exists() else ())
    for key, times in done.items():
        if times > 1 + world.retries[key]:
            asked = world.retries[key]
            yield f"effect {key} happened {times} times, {asked} times somebody asked for it again"
    confirmed = {
        body["key"]
        for events in facts.values()
        for kind, body in events
        if kind == "effect_confirmed"
    }
    if never := confirmed - done.keys():
        yield f"effects are confirmed that never happened: {sorted(never)}"


def differing(store: Store, line: str, wanted: Mapping[str, str]) -> Iterator[str]:
    """What was made is what an undisturbed run of the same inputs makes."""
    if line in BY_HAND:
        return
    found = contents_of(store, line)
    for step, digest in wanted.items():
        if found.get(step) != digest:
            yield f"{line}: {step} is {found.get(step)}, and should be {digest}"


def spread(store: Path, work: int) -> Iterator[str]:
    """The store is no larger than what was done: some room, and so much for each step."""
    if (found := size_of(store)) > ROOM + work * EACH:
        yield f"the store has {found} bytes for {work} accepted steps"


def size_of(folder: Path) -> int:
    """Bytes on the disk below a folder."""
    return sum(
        Path(place, name).lstat().st_blocks * 512
        for place, _, names in os.walk(folder)
        for name in names
    )


def litter(world: World) -> Iterator[str]:
    for place, _, names in os.walk(world.root):
        for name in names:
            path = str(Path(place, name).relative_to(world.root))
            if name.startswith(".holdfast-") and name.endswith(".tmp"):
                yield f"a temporary file is left: {path}"
            elif path.startswith(".holdfast/apply/"):
                yield f"a journal of an edit is left: {path}"
    for kind in ("apply", "scratch", "worktrees"):
        for room in (world.store / kind).glob("*/*"):
            yield f"a directory is left: {room.relative_to(world.root)}"
