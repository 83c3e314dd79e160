"""The one place that knows every adapter: builds a running engine from what a face asks for.

Imports stand inside the functions: a command loads only the adapters it uses.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cache, partial
from typing import TYPE_CHECKING

from holdfast.errors import UsageError
from holdfast.model.digest import Digest, Json, digest_json
from holdfast.model.event import Agreed, Recorded, Where
from holdfast.model.fixed import frozen
from holdfast.model.plan import Limits, Plan, Step, StepId, plan_digest
from holdfast.wire import market
from holdfast.wire.configured import configured
from holdfast.wire.driving import drive, has_collector, repeat, seldom_collected
from holdfast.wire.holders import (
    check_free,
    driver,
    drives,
    is_driven,
    live_runs,
    now_ms,
    output_of,
    person,
)
from holdfast.wire.shared import is_shared
from holdfast.wire.stores import STORE_NAME, empty_store, has_store, open_store, store_location
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
    from holdfast import ports
    from holdfast.engine.decisions import Policy
    from holdfast.engine.world import World
    from holdfast.model.agent import Registry
    from holdfast.model.walls import Walls
    from holdfast.ports import ChatModel, Generator, GuardKind, Store
    from holdfast.process.terms import Terms

_MOST_ELSEWHERE = 256
_IN_HAND = 4  # attempts for each processor, so that none waits for the next one

__all__ = [
    "STORE_NAME",
    "Function",
    "check_free",
    "configured",
    "drive",
    "driver",
    "drives",
    "empty_store",
    "executor_for",
    "files_size",
    "guard_flaw",
    "has_store",
    "identities",
    "ignore_rules",
    "is_driven",
    "is_shared",
    "live_runs",
    "now_ms",
    "open_store",
    "output_of",
    "person",
    "project_files",
    "repeat",
    "seldom_collected",
    "store_location",
]


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


def _told(wishes: Wishes, store: Store, vault: market.Vault) -> Callable[[list[Recorded]], None]:
    """Who is told of events; a collector too, if there is one."""
    if not has_collector():
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


def _sweep(mark: str) -> int:
    """End the processes of a dead engine: those with this mark, and what is left of its slots."""
    from holdfast.process.run import sweep, sweep_slots

    return sweep(mark) + sweep_slots()


def secrets_missing(plan: Plan, allowed: Sequence[str]) -> list[tuple[Step, str]]:
    """Secrets that a plan asks for and nobody allowed: a plan file cannot grant them to itself."""
    return [
        (step, name) for step in plan.steps.values() for name in step.secrets if name not in allowed
    ]
