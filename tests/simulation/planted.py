"""Mistakes to be found: each puts one into the engine or a store, as somebody might write it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import pytest

from holdfast.core.state import State
from holdfast.engine import claims, finish, hearts, hold, loop, losses, runs, scribe
from holdfast.engine.world import World
from holdfast.model.event import RunEvent
from holdfast.model.plan import RunId, StepId
from holdfast.ports import Append, Batch, ClaimKey, Holder
from holdfast.store import memory, relational, sqlite

Patch = pytest.MonkeyPatch


def no_fence(patch: Patch) -> None:
    """Writes to a run's journal are not checked against its fence."""

    def unchecked(run: str, fence: int, append: Append) -> None:
        """Says yes."""

    patch.setattr(memory, "check_fence", unchecked)
    patch.setattr(relational, "check_fence", unchecked)


def claims_granted_twice(patch: Patch) -> None:
    """A claim is given although a live engine has it."""
    whole = memory.MemoryStore.claim

    def claim(self: memory.MemoryStore, key: ClaimKey, engine: str) -> int | None:
        if any(found == key and owner != engine for found, owner, _ in self.claims()):
            del self._claims[key]
        return whole(self, key, engine)

    patch.setattr(memory.MemoryStore, "claim", claim)


def claims_given_up_too_early(patch: Patch) -> None:
    """An attempt that did not count gives the claim up, although the step is tried again under it."""
    patch.setattr(claims.Claims, "_is_given_up", lambda *_: False)
    whole = claims.Claims.ended

    def ended(self: claims.Claims, step_id: StepId) -> None:
        whole(self, step_id)
        self.let_go(step_id)

    patch.setattr(claims.Claims, "ended", ended)


def claims_kept(patch: Patch) -> None:
    """An engine keeps its claims on steps that failed, also when it leaves."""
    patch.setattr(claims.Claims, "let_go", lambda *_: None)
    whole = memory.MemoryStore.leave

    def leave(self: memory.MemoryStore, engine: str) -> None:
        claims = dict(self._claims)
        hold_of = {key: item for key, item in self._holds.items() if key[2] == engine}
        whole(self, engine)
        self._claims = claims
        for (project, _, name), item in hold_of.items():
            self._holds[project, "gone", name] = replace(item, line="gone")

    patch.setattr(memory.MemoryStore, "leave", leave)


def lease_by_the_time_of_day(patch: Patch) -> None:
    """A heart is judged by the clock that people set."""
    whole = hearts.Hearts.look

    def look(self: hearts.Hearts, holders: Iterable[Holder]) -> list[Holder]:
        world = self._world
        assert isinstance(world, World)
        patch.setattr(hearts, "LONGEST_LOOK", 1e9)
        self._world = replace(world, monotonic=lambda: world.clock() / 1000)
        found = whole(self, holders)
        self._world = world
        return found

    patch.setattr(hearts.Hearts, "look", look)


def hearts_unheard(patch: Patch) -> None:
    """An engine elsewhere is never taken for dead while others work beside it."""

    async def pulse(self: hold.Hold, writer: object) -> None:
        self._hearts._seen = {}
        await whole(self, writer)  # type: ignore[arg-type]

    whole = hold.Hold.pulse
    patch.setattr(hold.Hold, "pulse", pulse)


def told_before_stored(patch: Patch) -> None:
    """People hear of an event as soon as it is decided."""
    whole = scribe.Scribe.append

    def append(self: scribe.Scribe, event: RunEvent, at: int | None = None) -> None:
        whole(self, event, at)
        self._world.on_events(self.pending.events[-1:])

    patch.setattr(scribe.Scribe, "append", append)


def launched_before_stored(patch: Patch) -> None:
    """An attempt begins before the commit that names it."""
    whole = loop.Engine._flush

    def flush(self: loop.Engine) -> None:
        if not self._scribe.committing and self._error is None:
            early, self._scribe.pending.launch = self._scribe.pending.launch, []
            for started in early:
                self._crew.launch(started)
        whole(self)

    patch.setattr(loop.Engine, "_flush", flush)


def an_acceptance_forgotten(patch: Patch) -> None:
    """Who takes a run over does not know the last step that was accepted."""
    whole = losses.take_over

    def take_over(world: World, run: RunId, *, unless_driven: bool = False) -> tuple[int, State]:
        fence, state = whole(world, run, unless_driven=unless_driven)
        done = [step for step in state.graph.order if state.steps[step].phase == "done"]
        for step in done[-1:] if not state.ended else ():
            state.steps[step].phase = "pending"
            state.counts["done"] -= 1
            state.counts["pending"] += 1
            state.ready.add(step)
            state.ready_log.append(step)
        return fence, state

    patch.setattr(losses, "take_over", take_over)
    patch.setattr(runs, "take_over", take_over)


def nothing_swept(patch: Patch) -> None:
    """What a dead engine started goes on while its run is continued."""
    patch.setattr(losses, "leftovers", lambda *_: None)


def nothing_put_back(patch: Patch) -> None:
    """Half a file that a lost attempt left stays where it is."""
    patch.setattr(finish.Finisher, "_put_back", lambda *_, **__: None)


def facts_without_rows(patch: Patch) -> None:
    """Events and the rows of the index are stored in two transactions."""
    whole = sqlite.SqliteStore.commit

    def commit(self: sqlite.SqliteStore, batch: Batch, *, wait: bool = True) -> None:
        whole(self, replace(batch, artifacts=()), wait=wait)
        whole(self, Batch(artifacts=batch.artifacts), wait=wait)

    patch.setattr(sqlite.SqliteStore, "commit", commit)


PLANTED: Sequence[Callable[[Patch], None]] = (
    *(no_fence, claims_granted_twice, claims_given_up_too_early, claims_kept),
    *(lease_by_the_time_of_day, told_before_stored, launched_before_stored),
    *(an_acceptance_forgotten, nothing_swept, nothing_put_back, facts_without_rows),
)
