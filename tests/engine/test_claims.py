"""Claims that are given up and wanted again at once: what works under one has it in the store."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from holdfast.core.changes import Probe
from holdfast.core.refs import Refs
from holdfast.core.state import empty_state
from holdfast.engine.claims import Claims
from holdfast.engine.inheritance import Beside
from holdfast.engine.pending import Pending
from holdfast.engine.probe import Probed
from holdfast.engine.scribe import Scribe
from holdfast.model.digest import digest_bytes
from holdfast.ports import Batch, ClaimKey, Owner
from holdfast.store.memory import MemoryStore
from holdfast.testing import ScriptedExecutor
from tests.laws.harness import LINE, Bed
from tests.laws.plans import plan, step

ONE = step("y")
REF = digest_bytes(b"y")
PROBED = Probed(Probe(ONE.id, Refs(REF, REF, REF)), b"", {})


@dataclass
class Desk:
    """What a scribe has ready for its next commit, and in the one under way."""

    pending: Pending = field(default_factory=Pending)
    releasing: list[tuple[ClaimKey, int]] = field(default_factory=list)


class Engine:
    """The claims of an engine that shares its line with another one."""

    def __init__(self, folder: Path) -> None:
        self.store = MemoryStore()
        world = Bed(self.store, str(folder)).world(ScriptedExecutor(lambda _: b""))
        other = Owner("other", "here", "boot", 2, "other", 0)
        for owner in (world.owner, other):
            self.store.enter("", LINE, owner)
        state = empty_state(plan(ONE))
        state.line = LINE
        self.key = ClaimKey("", LINE, ONE.id, REF)
        self.desk = Desk()
        scribe, beside = cast("Scribe", self.desk), Beside(self.store, state)
        self.claims = Claims(world, state, scribe, beside, lambda _: None)

    def commit(self) -> None:
        """The commit under way is done."""
        self.store.commit(Batch([], released=self.desk.releasing))
        self.desk.releasing = []

    def flush(self) -> None:
        """The next commit is under way."""
        self.desk.releasing, self.desk.pending = self.desk.pending.released, Pending()


@pytest.mark.req("I10")
def test_a_claim_that_is_taken_again_before_it_was_given_up_is_kept(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    assert engine.claims.take(ONE, PROBED)
    engine.claims.let_go(ONE.id)
    assert engine.claims.take(ONE, PROBED)
    engine.flush()
    engine.commit()
    assert engine.store.claim(engine.key, "other") is None


@pytest.mark.req("I10")
def test_a_claim_that_is_being_given_up_is_waited_for(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    assert engine.claims.take(ONE, PROBED)
    engine.claims.let_go(ONE.id)
    engine.flush()
    assert engine.claims.take(ONE, PROBED) is None
    assert engine.claims.take_contested() == [ONE.id]
    engine.commit()
    assert engine.claims.take(ONE, PROBED)
    assert engine.store.claim(engine.key, "other") is None
