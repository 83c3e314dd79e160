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
from dataclasses import field, replace
from functools import cache, partial
from typing import TYPE_CHECKING

from holdfast.errors import StoreError, UsageError, outside_fault
from holdfast.model.digest import Digest, Json, digest_json
from holdfast.model.event import Agreed, Options, Recorded, Where
from holdfast.model.fixed import frozen
from holdfast.model.plan import Limits, Plan, RunId, Step, StepId, plan_digest
from holdfast.wire import market
from holdfast.wire.configured import configured
from holdfast.wire.shared import (
    SCHEMES,
    SharedHome,
    is_shared,
    open_shared,
    shared_home,
)
from holdfast.wire.workshop import (
    Function,
    executor_for,
    files_size,
    guard_flaw,
    identities,
    ignore_rules,
    project_files,
)

if TYPE_CHECKING:
    import asyncio

    from holdfast import ports
    from holdfast.core.state import State
    from holdfast.engine.decisions import Person, Policy
    from holdfast.engine.hold import Hold
    from holdfast.engine.loop import Engine
    from holdfast.engine.repeat import Repeated
    from holdfast.engine.world import World
    from holdfast.model.agent import Registry
    from holdfast.model.walls import Walls
    from holdfast.ports import ChatModel, Generator, GuardKind, Store
    from holdfast.process.terms import Terms
    from holdfast.store.host import LineLock
    from holdfast.wire.telemetry import Telling

STORE_NAME = ".holdfast"
_BETWEEN_SEARCHES = 50_000  # objects made
_MOST_ELSEWHERE = 256
_IN_HAND = 4  # attempts for each processor, so that none waits for the next one
_COLLECTORS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_VERSION_AT = 60  # where a SQLite file holds the version of its tables

__all__ = [
    "Function",
    "configured",
    "executor_for",
    "files_size",
    "guard_flaw",
    "identities",
    "ignore_rules",
    "is_shared",
    "project_files",
]


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def store_location(root: str, given: str | None) -> str:
    """Where the state of a project lives: as told, else beside the plan."""
    named = given or os.environ.get("HOLDFAST_STORE") or os.path.join(root, STORE_NAME)
    kind, is_address, _ = named.partition("://")
    if not is_address:
        return os.path.abspath(named)
    if kind not in SCHEMES:
        raise UsageError(
            f"there are no stores at '{kind}://…'",
            hint="name a directory or postgresql://…: --store or HOLDFAST_STORE",
        )
    return shared_home(os.path.join(os.path.abspath(root), STORE_NAME), named)


def open_store(
    location: str,
    *,
    create: bool = False,
    readonly: bool = False,
    whole: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> Store:
    """Open a store by its location; `say` is told if its format was brought up to date.

    If some of it cannot be read any more, whoever reads has the rest, unless it must be `whole`.
    """
    if isinstance(location, SharedHome):
        return open_shared(location, create=create, readonly=readonly, say=say)
    from holdfast.store.sqlite import SqliteStore

    return SqliteStore.open(location, create=create, readonly=readonly, whole=whole, say=say)


def has_store(location: str) -> bool:
    """Whether a store was made here. Most tell it by the first page of their file, without opening it.

    IntegrityError if nothing is left of it but what tells that there was one, or if its file is none.
    """
    if is_shared(location):  # if there is none, whoever opens it says so
        return True
    from holdfast.store.peek import check_files, peeking, was_used

    path, head = os.path.join(location, "state.db"), b""
    check_files(path)
    try:
        with peeking(path) as file:
            head = os.pread(file, _VERSION_AT + 4, 0)
    except FileNotFoundError:
        if not os.path.exists(f"{path}-wal") and not was_used(location):
            return False
    except NotADirectoryError:
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


def walls_at(root: str) -> Walls:
    """How large anything may be in a project: the person's own word, which the project may lower."""
    return configured(root).walls


def known_agents() -> Registry:
    """All agents that are known whatever a plan says."""
    from holdfast.formats.agentfile import shipped

    own = own_agents()
    return shipped() if own is None else own.over(shipped())


def registry_for(plan: Plan) -> Registry:
    """All agents that are known, with what the plan says its own count for."""
    from holdfast.model.agent import with_voices

    return with_voices(known_agents(), plan.voices)


@frozen
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
    agreed: Agreed = "anything"  # what somebody said models may be paid for
    network: bool = False  # commands may reach others
    sandbox: bool = True  # False: commands may do whatever the person may
    file: str = ""  # of the plan, as seen from the project
    written_here: bool = True  # False: the commands were chosen by a model or came from elsewhere
    generators: Mapping[str, Generator] = field(default_factory=dict)  # beside the usual ones
    guards: Mapping[str, GuardKind] = field(default_factory=dict)
    fragments: ports.Fragments | None = (
        None  # who reads steps that are added, if not the grammar does
    )
    models: Callable[[], ChatModel] | None = None  # who is asked instead of providers
    executor: Where = ""  # where steps run that can leave this machine
    address: str = ""  # of the cluster there; without it one is started
    here: bool = False  # also those that name the workers who are to do them


class Fragments:
    """Reads steps that are to be added to a plan of one project."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._own = cache(own_agents)  # one registry for the whole run
        self._walls = walls_at(root)

    def read(self, content: bytes, file: str, plan: Plan) -> Mapping[StepId, Step]:
        """The steps of a file; some of them may be in the plan already."""
        from holdfast.formats.fragment import read_fragment

        return read_fragment(
            content,
            file,
            self._root,
            plan,
            check=guard_flaw,
            again=True,
            own=self._own,
            walls=self._walls,
        )

    def check(self, plan: Plan, added: Mapping[StepId, Step]) -> None:
        """See that the plan can have these steps."""
        from holdfast.formats.fragment import check_added

        check_added(plan, added)

    def held(self, plan: Plan, added: Mapping[StepId, Step]) -> tuple[dict[StepId, Step], Limits]:
        """The steps as the contracts of their agents want them, and the plan's limits with theirs."""
        from holdfast.formats.fragment import held

        return held(plan, added, self._own)


def alike(one: str, other: str) -> float:
    """How alike two texts are, from 0 to 1."""
    return _ratio()(one, other) / 100


@cache
def _ratio() -> Callable[[str, str], float]:
    from rapidfuzz import fuzz

    return fuzz.ratio


def world_for(plan: Plan, root: str, location: str, store: Store, wishes: Wishes) -> World:
    """Everything an engine is given."""
    from holdfast.engine.world import World
    from holdfast.store.host import gone, line_lock, this_process

    if is_shared(location) and not plan.project:
        raise UsageError(
            "a plan in a shared store says to which project it belongs",
            hint="add 'project: NAME' to the plan",
        )
    if not wishes.models and any(
        step.model or (step.guards and step.has_judge) for step in plan.steps.values()
    ):
        market.market(os.path.abspath(root))  # what is wrong with it is said before anything runs
    parallel = wishes.parallel or plan.limits.parallel or os.cpu_count() or 1
    vault = market.Vault(os.path.abspath(root), lambda: _secret_names(plan, wishes.secrets))
    terms, owner = terms_for(location, wishes), this_process()
    return World(
        store=store,
        executor=_executor(plan, location, store, wishes, terms, parallel, owner),
        terms=terms,
        walls=walls_at(root),
        root=os.path.abspath(root),
        home=location,
        owner=owner,
        clock=now_ms,
        new_id=lambda: str(uuid.uuid4()),
        gone=gone,
        lock=lambda project, line: line_lock(location, project, line),
        sweep=_sweep,
        ignores=ignore_rules,
        fragments=wishes.fragments or Fragments(os.path.abspath(root)),
        ready=partial(ready, os.path.abspath(root)),
        file=wishes.file,
        alike=alike,
        models=wishes.models
        or partial(
            market.models_for,
            os.path.abspath(root),
            vault,
            wishes.record,
            wishes.say,
            wishes.recorded,
        ),
        hidden=vault.values,
        purse=partial(market.purse_for, os.path.abspath(root), plan.project, location, store),
        paid=_is_free
        if wishes.recorded or wishes.models
        else partial(market.pays, os.path.abspath(root)),
        agreed=wishes.agreed,
        secrets=frozenset(wishes.secrets),
        registry=cache(lambda: registry_for(plan)),
        inline=wishes.functions,
        parallel=parallel,
        elsewhere=_elsewhere(plan, wishes, parallel),
        one_by_one=wishes.parallel == 1,
        resources=wishes.resources,
        beat_seconds=wishes.beat_seconds,
        poll_seconds=wishes.poll_seconds,
        lease_seconds=wishes.lease_seconds,
        stays=wishes.stays,
        policy=wishes.policy,
        on_events=_told(wishes, store, vault),
        on_output=wishes.on_output,
        say=wishes.say,
        remind=wishes.remind,
    )


def _has_collector() -> bool:
    """Whether the environment names somebody who is told of runs by OpenTelemetry."""
    env = os.environ
    return env.get("OTEL_SDK_DISABLED") != "true" and any(env.get(name) for name in _COLLECTORS)


def _told(wishes: Wishes, store: Store, vault: market.Vault) -> Callable[[list[Recorded]], None]:
    """Who is told of events; a collector too, if there is one."""
    if not _has_collector():
        return wishes.on_events
    try:
        from holdfast.wire.telemetry import Telling
    except ImportError:
        wishes.say(
            "the environment names a collector, and what sends telemetry is not installed;"
            " hint: pip install 'holdfast[otel]'"
        )
        return wishes.on_events
    return Telling(wishes.on_events, store, vault.values, wishes.say)


def _telling(world: World) -> Telling | None:
    """The one who tells a collector, if there is one."""
    if not _has_collector():
        return None
    with suppress(ImportError):
        from holdfast.wire.telemetry import Telling

        return world.on_events if isinstance(world.on_events, Telling) else None
    return None


def _executor(
    plan: Plan,
    location: str,
    store: Store,
    wishes: Wishes,
    terms: Terms,
    parallel: int,
    owner: ports.Owner,
) -> ports.Executor:
    """Who runs attempts: this machine, and a cluster or workers for what can leave it."""
    local = executor_for(
        plan, wishes.functions, terms=terms, more=(wishes.generators, wishes.guards)
    )
    if wishes.here:
        return local
    if not wishes.executor:
        _refuse_secrets_elsewhere(plan)
        from holdfast.store.host import gone
        from holdfast.wire.remote import Watching, queue_executor

        watching = Watching(owner, gone, wishes.poll_seconds, wishes.lease_seconds)
        return queue_executor(local, store, terms, watching, wishes.say)
    from holdfast.wire.remote import ray_executor

    return ray_executor(local, store, location, terms, wishes.address, parallel, wishes.say)


def _refuse_secrets_elsewhere(plan: Plan) -> None:
    for step in plan.steps.values():
        if step.runs_on and step.can_leave and step.secrets:
            from holdfast.executors.queue import SECRETS

            raise UsageError(
                f"'{step.id}': {SECRETS}",
                hint="leave out 'runs_on', or use --executor ray or local",
            )


def ready(root: str, plan: Plan) -> Digest | None:
    """What is to take the place of a plan, and of that one, as the files are now; None if nothing is."""
    from holdfast.core.premises import rules_of
    from holdfast.errors import PlanError
    from holdfast.formats.planfile import Asked, load_text, read_file
    from holdfast.formats.prepared import MOST

    found: list[Json] = []
    params = plan.params
    while (file := rules_of(plan).to) and len(found) < MOST:
        asked = Asked(
            plan.name, params, project_files, own=own_agents, spare=True, walls=walls_at(root)
        )
        try:
            content, where = read_file(os.path.join(root, file), walls=asked.walls)
            plan = load_text(content, file, where, asked).plan
        except (PlanError, UsageError):  # it takes nobody's place as it is
            return None
        found.append(plan_digest(plan))
    return digest_json(found) if found else None


def terms_for(location: str, wishes: Wishes) -> Terms:
    """On which terms commands run: the person's own, and what was asked for this once."""
    from holdfast.config.sandbox import read_terms

    own = read_terms()
    return replace(
        own,
        hidden=(*own.hidden, os.path.abspath(location)),
        network=own.network or wishes.network,
        sandbox=wishes.sandbox,
        written_here=wishes.written_here,
    )


def _elsewhere(plan: Plan, wishes: Wishes, parallel: int) -> int:
    """How many attempts may be under way elsewhere; how many of them run there is for those to say."""
    if not wishes.executor:
        return 0 if wishes.here else _MOST_ELSEWHERE
    most = _MOST_ELSEWHERE if wishes.address else _IN_HAND * parallel
    return plan.limits.parallel or (wishes.parallel if wishes.address else 0) or most


def _is_free(_: Step) -> bool:
    """Where all answers are recorded, or played, nobody is paid."""
    return False


def _secret_names(plan: Plan, allowed: Iterable[str]) -> set[str]:
    """The variables that steps see and nobody else; those of steps to come were allowed by a person."""
    from holdfast.engine.declared import secret_names

    return secret_names([plan]).union(allowed)


def drive(
    begin: Callable[[], tuple[Hold, Engine]], *, signals: bool = False, world: World
) -> State:
    """Begin a run and drive it to its end or rest. With `signals`, Ctrl-C once stops, twice stops now."""
    import asyncio

    with seldom_collected(), asyncio.Runner(loop_factory=_new_loop) as runner:
        runner.get_loop()  # before anything is begun: there may be no descriptors for it
        hold, engine = begin()
        telling = _telling(world)
        if telling is not None:
            telling.began(engine.state)

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
        finally:
            if telling is not None:
                telling.close()
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
        said = asyncio.run(tool_versions(plan, world.root, world.terms))
        return {
            argv: None if words is None else digest_bytes(words) for argv, words in said.items()
        }

    with seldom_collected():
        repeated = repeat_run(world, plan, plan.name, options, tools)
    telling = _telling(world)
    if repeated is not None and telling is not None:
        telling.repeated(repeated.plan, repeated.events)
    return repeated


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


def check_free(store: Store, location: str, state: State, lease_seconds: float) -> None:
    """HeldError if a live engine keeps a run from going on, before anybody is told what it will do.

    What the hold itself will say, as far as it is known without waiting: an engine on another machine whose
    heart has to be watched first is left to the hold.
    """
    from holdfast.engine.hold import held_by
    from holdfast.store.host import gone, line_lock, this_process

    project, line, here = state.project, state.line, this_process()
    for holder in store.holders(project, line):
        if gone(holder):
            continue
        if not state.options.joined and not is_shared(location):
            is_held = _is_locked(line_lock(location, project, line))
        elif holder.silent is not None:
            is_held = holder.run == state.run and holder.silent < lease_seconds
        else:
            is_near = (holder.owner.host, holder.owner.boot) == (here.host, here.boot)
            is_held = holder.run == state.run and is_near
        if is_held:
            raise held_by(holder, line, now_ms())


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

    held = (holder for _, _, holder in store.held() if not gone(holder))
    return frozenset(holder.run for holder in held if holder.run is not None)


def drives(store: Store, project: str, line: str, run: RunId) -> bool:
    """Whether a live engine drives a run of a line."""
    return driver(store, project, line, run) is not None


def driver(store: Store, project: str, line: str, run: RunId) -> ports.Owner | None:
    """The live engine that drives a run of a line."""
    from holdfast.store.host import gone

    holders = (holder for holder in store.holders(project, line) if holder.run == run)
    return next((holder.owner for holder in holders if not gone(holder)), None)


def output_of(owner: ports.Owner) -> str | None:
    """The file into which an engine of this machine writes what it says; None if there is none to be seen."""
    from holdfast.store.host import this_process

    here = this_process()
    if (owner.host, owner.boot) != (here.host, here.boot):
        return None
    try:
        path = os.readlink(f"/proc/{owner.pid}/fd/1")
    except OSError:  # somebody else's, or gone just now
        return None
    return path if os.path.isfile(path) else None
