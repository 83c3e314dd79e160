"""A snapshot gives back the ledger that was folded, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.ledger import folded
from holdfast.core.said import Said
from holdfast.core.told import Told
from holdfast.engine.snapshots import Learned, read, written
from holdfast.model.handoff import Handoff
from holdfast.model.plan import RunId, StepId
from tests.core.test_ledger import alike, handoffs


@pytest.mark.req("R72", "R126")
@given(st.lists(st.tuples(st.integers(0, 3), handoffs), max_size=6), st.booleans())
def test_a_snapshot_is_read_as_it_was_written(
    given_: list[tuple[int, Handoff]], is_contested: bool
) -> None:
    told = [
        Told(f"h-{n:012d}", StepId(f"s{step}"), step, handoff, 5, RunId("r-1"), 2, n, n == 1)
        for n, (step, handoff) in enumerate(given_)
    ]
    said = [Said("evidence", "", "it rains", "somebody", 7, "I saw it", 9)]
    said += [Said("contest", "a.csv", "no", "somebody", 8, "no", 10)] if is_contested else []
    whole = Learned(
        folded(told, alike, {"H1": "untested"}, said), tuple(said), {StepId("s1"): ("e-1", "e-2")}
    )
    assert read(written(whole)) == whole
    assert written(read(written(whole))) == written(whole)
