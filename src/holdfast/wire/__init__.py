"""The one place that knows every adapter: builds a running engine from what a face asks for.

Imports stand inside the functions: a command loads only the adapters it uses.
"""

from __future__ import annotations

import gc
import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING

from holdfast.errors import StoreError, UsageError, outside_fault
from holdfast.model.event import Options, Recorded
from holdfast.model.plan import Guard, Limits, Plan, RunId, Step, StepId
from holdfast.wire import market

if TYPE_CHECKING:
    import asyncio

    from holdfast.core.state import State
    from holdfast.engine.decisions import Person, Policy
    from holdfast.engine.hold import Hold
    from holdfast.engine.loop import Engine
    from holdfast.engine.repeat import Repeated
    from holdfast.engine.world import World
    from holdfast.executors.identity import Identities
    from holdfast.executors.local import LocalExecutor
    from holdfast.model.agent import Registry
    from holdfast.model.digest import Json
    from holdfast.ports import Flaw, Generator, GuardKind, IgnoreRules, Store
    from holdfast.process.slots import Slots
    from holdfast.store.host import LineLock

Function = Callable[..., object]
STORE_NAME = ".holdfast"
_BETWEEN_SEARCHES = 50_000  # objects made
_VERSION_AT = 60  # where a SQLite file holds the version of its tables


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def store_location(root: str, given: str | None) -> str:
    """Where the state of a project lives: as told, else beside the plan."""
    named = given or os.environ.get("HOLDFAST_STORE") or os.path.join(root, STORE_NAME)
    if "://" in named:
        kind = named.partition("://")[0]
        raise UsageError(
            f"a store at '{kind}://…' is not available in this version",
            hint="name a directory: --store DIR or HOLDFAST_STORE",
        )
    return os.path.abspath(named)


def open_store(
    location: str,
    *,
    create: bool = False,
    readonly: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> Store:
    """Open a store by its location; `say` is told if its format was brought up to date."""
    from holdfast.store.sqlite import SqliteStore

    return SqliteStore.open(location, create=create, readonly=readonly, say=say)


def has_store(location: str) -> bool:
    """Whether a store was made here. Most tell it by the first page of their file, without opening it.

    IntegrityError if nothing is left of it but a log that cannot be read.
    """
    from holdfast.store.peek import peeking

    path, head = os.path.join(location, "state.db"), b""
    try:
        with peeking(path) as file:
            head = os.pread(file, _VERSION_AT + 4, 0)
    except FileNotFoundError:
        if not os.path.exists(f"{path}-wal"):
            return False
    except (NotADirectoryError, IsADirectoryError):
        return False
    except OSError as error:
        raise StoreError(f"'{location}' cannot be read: {error.strerror}") from error
    if any(head[_VERSION_AT:]):
        return True
    try:  # all of it may still be in the write-ahead log
        open_store(location, readonly=True).close()
    except UsageError:
        return False
    return True


def _guard_kinds(plan: Plan) -> set[str]:
    kinds: set[str] = set()
    pending: list[Guard] = [guard for step in plan.steps.values() for guard in step.guards]
    while pending:
        guard = pending.pop()
        kinds.add(guard.kind)
        pending += guard.items
    if any(step.schema is not None for step in plan.steps.values()):
        kinds.add("json-schema")
    if any(step.outputs for step in plan.steps.values()):
        kinds.add("outputs")
    return kinds


def ignore_rules(lines: Iterable[str]) -> IgnoreRules:
    """The rules of one `.gitignore`; with re2 any of them takes a time that its length bounds."""
    from pathspec import GitIgnoreSpec

    from holdfast.model.glob import is_steep

    given = list(lines)
    for line in () if _is_installed("re2") else filter(is_steep, given):
        raise UsageError(
            f"'{line.strip()[:60]}' in a .gitignore has too many stars to be matched without re2",
            hint="pip install 'holdfast[regex]'",
        )
    rules = GitIgnoreSpec.from_lines(given)
    return lambda path: rules.check_file(path).include


def project_files(root: str, glob: str) -> list[str]:
    """The files of a project that a glob matches, as the inputs of steps do."""
    from holdfast.engine.walk import matching

    return matching(root, glob, ignore_rules)


def files_size(root: str, glob: str) -> int:
    """The bytes of the files that a glob matches."""
    places = (os.path.join(root, path) for path in project_files(root, glob))
    return sum(os.path.getsize(place) for place in places if os.path.isfile(place))


def own_agents() -> Registry | None:
    """The agents that the person's own configuration names; None if it names none."""
    from holdfast.config.settings import agents_file

    path = agents_file()
    if path is None:
        return None
    from holdfast.formats.agentfile import read_registry
    from holdfast.formats.planfile import read_file

    content, root = read_file(path)
    return read_registry(content, path, root)


def known_agents() -> Registry:
    """All agents that are known whatever a plan says."""
    from holdfast.formats.agentfile import shipped

    own = own_agents()
    return shipped() if own is None else own.over(shipped())


def registry_for(plan: Plan) -> Registry:
    """All agents that are known, with what the plan says its own count for."""
    from holdfast.model.agent import with_voices

    return with_voices(known_agents(), plan.voices)


def guard_flaw(kind: str, value: Json) -> Flaw | None:
    """Why a guard can never judge by its value; what is plainly right is known without a library."""
    from holdfast.ports import Flaw

    if kind == "tool":
        from holdfast.generators.offers import tool_flaw

        assert isinstance(value, Mapping)  # as the plan file is read
        return tool_flaw(str(value["target"]), str(value["root"]))
    if kind == "regex":
        from holdfast.guards.linear import pattern_flaw

        pattern = value.get("pattern") if isinstance(value, Mapping) else value
        return pattern_flaw(str(pattern), ("pattern",))
    from holdfast.guards.schemaparts import is_plain

    if not _is_installed("jsonschema"):
        message = "a schema needs jsonschema, which is not installed"
        return Flaw(message, (), "pip install 'holdfast[schema]'", lacks="jsonschema")
    if is_plain(value):
        return None
    from holdfast.guards.schema import schema_flaw

    return schema_flaw(value)


@cache
def _is_installed(library: str) -> bool:
    from importlib.util import find_spec

    return find_spec(library) is not None


def identities() -> Identities:
    """What generators and guards add to keys, without loading anything that could run them."""
    from holdfast.executors.identity import Identities
    from holdfast.generators.identity import python_identity, shell_identity, tools_identity
    from holdfast.generators.imports import Imports
    from holdfast.guards.identity import guard_identity

    imports = Imports()
    return Identities(
        {
            "shell": shell_identity,
            "python": python_identity(imports),
            "human": lambda *_: {},
            "llm": lambda *_: {},
            "agent": tools_identity(imports),
        },
        lambda guard, root: guard_identity(guard, root, imports.of_module),
    )


def executor_for(plan: Plan, functions: Mapping[StepId, Function] | None = None) -> LocalExecutor:
    """An executor with the generators and guards that a plan uses."""
    from holdfast.executors.local import LocalExecutor
    from holdfast.generators.agent import AgentGenerator, FunctionTools
    from holdfast.generators.human import HumanGenerator
    from holdfast.generators.imports import Imports
    from holdfast.generators.llm import LlmGenerator
    from holdfast.generators.python import Pool, PythonGenerator
    from holdfast.generators.shell import ShellGenerator
    from holdfast.process.run import Slots

    imports, pool, slots = Imports(), Pool(), Slots()
    guards = _Guards(lambda kind: _guard(kind, guards, pool, imports, slots))
    for kind in _guard_kinds(plan):
        guards.get(kind)
    inline = None
    if functions:
        from holdfast.generators.inline import InlineFunctions

        inline = InlineFunctions(functions, imports)
    generators: dict[str, Generator] = {
        "shell": ShellGenerator(slots=slots),
        "python": PythonGenerator(pool, imports),
        "human": HumanGenerator(),
        "llm": LlmGenerator(project_files),
        "agent": AgentGenerator(FunctionTools(pool).open, project_files, imports),
    }
    return LocalExecutor(generators, guards, inline)


class _Guards(Mapping[str, "GuardKind"]):
    """Kinds of guards by name, each made when it is first asked for: a plan may grow."""

    def __init__(self, make: Callable[[str], GuardKind | None]) -> None:
        self._make = make
        self._made: dict[str, GuardKind | None] = {}

    def __getitem__(self, kind: str) -> GuardKind:
        if kind not in self._made:
            self._made[kind] = self._make(kind)
        found = self._made[kind]
        if found is None:
            raise KeyError(kind)
        return found

    def __iter__(self) -> Iterator[str]:
        return (kind for kind, found in self._made.items() if found is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _guard(
    kind: str, guards: Mapping[str, GuardKind], pool: object, imports: object, slots: Slots
) -> GuardKind | None:
    if kind in {"all", "any", "majority"}:
        from holdfast.guards.compose import CompositeGuard

        return CompositeGuard(guards)
    if kind == "command":
        from holdfast.guards.command import CommandGuard

        return CommandGuard(slots=slots)
    if kind == "python":
        return _python_guard(pool, imports)
    if kind == "json-schema":
        if not _is_installed("jsonschema"):
            lack = "a schema of this plan needs jsonschema, which is not installed"
            raise UsageError(lack, hint="pip install 'holdfast[schema]'")
        from holdfast.guards.schema import JsonSchemaGuard

        return JsonSchemaGuard()
    if kind == "human":
        from holdfast.guards.human import HumanGuard

        return HumanGuard()
    if kind == "regex":
        from holdfast.guards.pattern import RegexGuard

        return RegexGuard()
    if kind == "cites":
        from holdfast.guards.cites import CitesGuard

        return CitesGuard(project_files)
    if kind == "judge":
        from holdfast.guards.judge import JudgeGuard

        return JudgeGuard()
    from holdfast.guards import content

    plain: dict[str, Callable[[], GuardKind]] = {
        "syntax": content.SyntaxGuard,
        "file": content.FileGuard,
        "outputs": content.OutputsGuard,
    }
    return plain[kind]() if kind in plain else None


def _python_guard(pool: object, imports: object) -> GuardKind:
    from holdfast.generators.imports import Imports
    from holdfast.generators.python import Pool
    from holdfast.guards.code import PythonGuard

    assert isinstance(pool, Pool)
    assert isinstance(imports, Imports)
    return PythonGuard(pool.judge, imports.of_module)


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a face asks of an engine beside the run's own options."""

    parallel: int = 0
    resources: Mapping[str, int] = field(default_factory=dict)
    beat_seconds: float = 10.0
    poll_seconds: float = 1.0
    lease_seconds: float = 30.0
    stays: bool = False
    policy: Policy | None = None
    on_events: Callable[[list[Recorded]], None] = lambda _: None
    on_output: Callable[[StepId, str, bytes], None] | None = None
    say: Callable[[str], None] = lambda _: None
    remind: Callable[[str], None] = lambda _: None
    functions: Mapping[StepId, Function] = field(default_factory=dict)
    secrets: Sequence[str] = ()
    record: str | None = None  # where answers of models are written down
    recorded: str | None = None  # where all of them come from
    spends: bool = True  # somebody agreed to whatever models cost


class Fragments:
    """Reads steps that are to be added to a plan of one project."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._own = cache(own_agents)  # one registry for the whole run

    def read(self, content: bytes, file: str, plan: Plan) -> Mapping[StepId, Step]:
        """The steps of a file; some of them may be in the plan already."""
        from holdfast.formats.fragment import read_fragment

        return read_fragment(
            content, file, self._root, plan, check=guard_flaw, again=True, own=self._own
        )

    def check(self, plan: Plan, added: Mapping[StepId, Step]) -> None:
        """See that the plan can have these steps."""
        from holdfast.formats.fragment import check_added

        check_added(plan, added)

    def held(self, plan: Plan, added: Mapping[StepId, Step]) -> tuple[dict[StepId, Step], Limits]:
        """The steps as the contracts of their agents want them, and the plan's limits with theirs."""
        from holdfast.formats.fragment import held

        return held(plan, added, self._own)


def world_for(plan: Plan, root: str, location: str, store: Store, wishes: Wishes) -> World:
    """Everything an engine is given."""
    from holdfast.engine.world import World
    from holdfast.store.host import gone, line_lock, this_process

    if any(step.model or step.has_judge for step in plan.steps.values()):
        market.market(os.path.abspath(root))  # what is wrong with it is said before anything runs
    parallel = wishes.parallel or plan.limits.parallel or os.cpu_count() or 1
    vault = market.Vault(os.path.abspath(root), lambda: _secret_names(plan, wishes.secrets))
    return World(
        store=store,
        executor=executor_for(plan, wishes.functions),
        root=os.path.abspath(root),
        home=location,
        owner=this_process(),
        clock=now_ms,
        new_id=lambda: str(uuid.uuid4()),
        gone=gone,
        lock=lambda project, line: line_lock(location, project, line),
        sweep=_sweep,
        ignores=ignore_rules,
        fragments=Fragments(os.path.abspath(root)),
        models=partial(
            market.models_for,
            os.path.abspath(root),
            vault,
            wishes.record,
            wishes.say,
            wishes.recorded,
        ),
        hidden=vault.values,
        purse=partial(market.purse_for, os.path.abspath(root), plan.project, location, store),
        paid=partial(market.pays, os.path.abspath(root)),
        spends=wishes.spends,
        secrets=frozenset(wishes.secrets),
        registry=cache(lambda: registry_for(plan)),
        inline=frozenset(wishes.functions),
        parallel=parallel,
        one_by_one=wishes.parallel == 1,
        resources=wishes.resources,
        beat_seconds=wishes.beat_seconds,
        poll_seconds=wishes.poll_seconds,
        lease_seconds=wishes.lease_seconds,
        stays=wishes.stays,
        policy=wishes.policy,
        on_events=wishes.on_events,
        on_output=wishes.on_output,
        say=wishes.say,
        remind=wishes.remind,
    )


def _secret_names(plan: Plan, allowed: Iterable[str]) -> set[str]:
    """The variables that steps see and nobody else; those of steps to come were allowed by a person."""
    return {*allowed, *(name for step in plan.steps.values() for name in step.secrets)}


def drive(
    begin: Callable[[], tuple[Hold, Engine]], *, signals: bool = False, world: World
) -> State:
    """Begin a run and drive it to its end or rest. With `signals`, Ctrl-C once stops, twice stops now."""
    import asyncio

    with seldom_collected(), asyncio.Runner(loop_factory=_new_loop) as runner:
        runner.get_loop()  # before anything is begun: there may be no descriptors for it
        hold, engine = begin()

        async def main() -> None:  # gives nothing back: the runner would spell out a whole state
            with _signals(engine, world.say) if signals else _nothing():
                await engine.drive()

        try:
            runner.run(main())
        except BaseException as error:
            with suppress(StoreError, OSError):  # a store that failed cannot be told either
                hold.release()
            if (fault := outside_fault(error)) is not None:
                raise fault from error
            raise
        hold.release()
        return engine.state


def repeat(world: World, plan: Plan, options: Options) -> Repeated | None:
    """A run of a plan that stands whole, known without looking at each step; None if it may not."""
    import asyncio

    from holdfast.engine.repeat import repeat_run
    from holdfast.engine.tools import tool_versions
    from holdfast.model.digest import digest_bytes

    def tools() -> dict[tuple[str, ...], str | None]:
        if not any(step.tool_versions for step in plan.steps.values()):
            return {}
        said = asyncio.run(tool_versions(plan, world.root))
        return {
            argv: None if words is None else digest_bytes(words) for argv, words in said.items()
        }

    with seldom_collected():
        return repeat_run(world, plan, plan.name, options, tools)


def _sweep(mark: str) -> int:
    """End the processes of a dead engine: those with this mark, and what is left of its slots."""
    from holdfast.process.run import sweep, sweep_slots

    return sweep(mark) + sweep_slots()


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Let the search for garbage in cycles be rare: what a plan and a run are made of stays.

    Each search goes through most of it, and would cost a third of a large run.
    """
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], _BETWEEN_SEARCHES), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _new_loop() -> asyncio.AbstractEventLoop:
    """An event loop; StoreError if there is nothing to make it of.

    One that is half made complains on stderr when it is thrown away, so that is done here, unheard.
    """
    import asyncio
    import sys
    import traceback

    try:
        return asyncio.new_event_loop()
    except OSError as error:
        hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
        traceback.clear_frames(error.__traceback__)
        sys.unraisablehook = hook
        if (fault := outside_fault(error)) is not None:
            raise fault from error
        raise


@contextmanager
def _nothing() -> Iterator[None]:
    yield


@contextmanager
def _signals(engine: Engine, say: Callable[[str], None]) -> Iterator[None]:
    import asyncio
    import signal

    loop = asyncio.get_running_loop()
    presses: list[int] = []

    def interrupted() -> None:
        presses.append(1)
        if len(presses) == 1:
            say("stopping after the running steps; press Ctrl-C again to stop now")
        else:
            say("stopping now; what is running will be run again on resume")
        engine.stop(now=len(presses) > 1)

    def terminated() -> None:
        say("told to end: stopping now; resume continues from here")
        engine.stop(now=True)

    answers = {
        signal.SIGINT: interrupted,
        signal.SIGTERM: terminated,
        signal.SIGHUP: terminated,
    }
    heard = [number for number in answers if signal.getsignal(number) is not signal.SIG_IGN]
    for number in heard:  # what whoever started us ignores, as nohup does, stays ignored
        loop.add_signal_handler(number, answers[number])
    try:
        yield
    finally:
        for number in heard:
            loop.remove_signal_handler(number)


def secrets_missing(plan: Plan, allowed: Sequence[str]) -> list[tuple[Step, str]]:
    """Secrets that a plan asks for and nobody allowed: a plan file cannot grant them to itself."""
    return [
        (step, name) for step in plan.steps.values() for name in step.secrets if name not in allowed
    ]


def person(store: Store, location: str, *, terminal: bool) -> Person:
    """Who decides here; UsageError in a process that comes from a step or an engine.

    A step may not approve anything, wherever its processes went. One in a pid namespace of its own
    cannot see the engine it comes from; so nobody who cannot see a living engine of the store decides.
    """
    from holdfast.config.settings import read_people
    from holdfast.engine.decisions import Person
    from holdfast.process.descent import comes_from, own_space, sees
    from holdfast.store.host import is_hidden, line_lock, user_name

    holders = store.held()
    engines = {(held.owner.pid, held.owner.started) for _, _, held in holders}
    origin = comes_from(engines)
    if origin:
        raise UsageError(f"this process comes from {origin}, and only a person decides approvals")
    for project, line, held in holders:
        space = is_hidden(held.owner, own_space())
        if not space or sees(space):
            continue
        if held.sharing or _is_locked(line_lock(location, project, line)):
            raise UsageError(
                f"the engine of line '{line}' (process {held.owner.pid}) cannot be seen from here, "
                "as from inside a step",
                hint="decide where the engine was started",
            )
    return Person(user_name(), terminal, read_people())


def _is_locked(lock: LineLock) -> bool:
    with lock:
        return not lock.try_lock()


def empty_store() -> Store:
    """A store with nothing in it, for a project that has none yet."""
    from holdfast.store.memory import MemoryStore

    return MemoryStore()


def is_driven(store: Store, state: State) -> bool:
    """Whether a live engine drives this run."""
    return drives(store, state.project, state.line, state.run)


def live_runs(store: Store) -> frozenset[RunId]:
    """The runs that live engines drive."""
    from holdfast.store.host import gone

    held = (holder for _, _, holder in store.held() if not gone(holder.owner))
    return frozenset(holder.run for holder in held if holder.run is not None)


def drives(store: Store, project: str, line: str, run: RunId) -> bool:
    """Whether a live engine drives a run of a line."""
    from holdfast.store.host import gone

    holders = store.holders(project, line)
    return any(holder.run == run and not gone(holder.owner) for holder in holders)
