"""What an engine is given: the store, the executor, the project directory, the clock, its own identity."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from holdfast.core.likeness import Alike, equal
from holdfast.model.agent import Registry
from holdfast.model.digest import Digest
from holdfast.model.event import Agreed, Recorded
from holdfast.model.fixed import fixed
from holdfast.model.plan import Plan, RunId, Step, StepId
from holdfast.model.walls import WALLS, Walls
from holdfast.ports import ChatModel, Executor, Fragments, Holder, IgnoreRules, Lock, Owner, Store

if TYPE_CHECKING:  # it brings asyncio, which looking at a plan does without
    from holdfast.engine.commit import Writer
    from holdfast.engine.decisions import Policy
    from holdfast.engine.purse import Purse
    from holdfast.process.terms import Terms


@fixed
class World:
    """Everything outside.

    `home` is a directory of Holdfast's own; `inline` are the functions of this process that steps are;
    `gone` tells whether another engine's process has ended; `lock` gives the lock of a line (project,
    name) that a process keeps while it holds it alone, None where there is no such thing. `clock` is the
    time of day, which people set; `monotonic` only ever grows. Without `writer` changes are written by a
    thread.
    """

    store: Store
    executor: Executor
    root: str
    home: str
    owner: Owner
    clock: Callable[[], int]
    new_id: Callable[[], str]
    gone: Callable[[Holder], bool]
    sweep: Callable[[str], int]
    ignores: Callable[[Iterable[str]], IgnoreRules]
    models: Callable[[], ChatModel] | None = None  # without it no model can be asked
    hidden: Callable[[], Sequence[str]] = tuple  # keys and secrets: never to be written down
    purse: Callable[[], Purse | None] = lambda: None  # the budgets that hold over more than one run
    paid: Callable[[Step], bool] = lambda _: False  # whether what it asks of models costs money
    agreed: Agreed = "anything"  # what of that somebody said yes to, for this run
    fragments: Fragments | None = None  # without it no steps can be added
    ready: Callable[[Plan], Digest | None] = lambda _: None  # what is to take the place of a plan
    file: str = ""  # of the plan, as seen from the root; empty if there is none
    alike: Alike = equal  # how alike two texts are, from 0 to 1
    secrets: Collection[str] = frozenset()  # what a person allowed steps to see
    lock: Callable[[str, str], Lock] | None = None
    writer: Callable[[], Writer] | None = None
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    inline: Mapping[StepId, object] = field(default_factory=dict)
    terms: Terms | None = None  # on which tools are asked for their versions
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    parallel: int = 1  # attempts that work on this machine at once
    elsewhere: int = 0  # attempts that may be under way on other machines
    one_by_one: bool = False  # no two steps at once, whatever they do
    resources: Mapping[str, int] = field(default_factory=dict)  # how much there is of some here
    walls: Walls = WALLS  # how large anything may be here
    beat_seconds: float = 10.0
    poll_seconds: float = 1.0
    lease_seconds: float = 30.0
    registry: Callable[[], Registry] = Registry  # the agents of this project
    stays: bool = False  # keep going while only a person is waited for
    policy: Policy | None = None  # decides in a person's place what its rules fit
    on_events: Callable[[list[Recorded]], None] = lambda _: None
    on_output: Callable[[StepId, str, bytes], None] | None = None
    say: Callable[[str], None] = lambda _: None
    remind: Callable[[str], None] = lambda _: None  # said now, and again when all is over

    @property
    def scratch(self) -> str:
        """Where attempts have their private directories."""
        return f"{self.home}/scratch"

    def journal(self, run: RunId) -> str:
        """Where sets of files on their way into the project are written down, for one run."""
        return os.path.join(self.home, "apply", run)
