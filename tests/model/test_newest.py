"""The map of newest artifacts: rows that were packed are what they were, and let go of one by one."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as some

from holdfast.errors import IntegrityError
from holdfast.model.digest import digest_bytes
from holdfast.model.newest import Newest
from holdfast.model.plan import StepId
from holdfast.store.rows import artifact_from, keep_newest, leaving_values
from holdfast.store.tables import Row

STEPS = [StepId(name) for name in ("build", "test", "ship")]
HOUR = 3_600_000


def row(name: str, **other: object) -> Row:
    """A row as a store has it, after the line."""
    columns: dict[str, object] = {
        "step": name,
        **{part: bytes.fromhex(digest_bytes(f"{name} {part}".encode())) for part in "abcd"},
        "status": "accepted",
        "source": "generated",
        "run": "r-1",
        "attempt": 1,
        "form": "bytes",
        "verified": 1,
        "reusable": 1,
        "at": HOUR,
        "number": 7,
    }
    return tuple({**columns, **other}.values())  # type: ignore[arg-type]  # what a database may hold


def kept(*rows: Row) -> Newest:
    newest = Newest("shop", "main")
    for one in rows:
        keep_newest(newest, "shop", "main", one)
    return newest


rows = some.builds(
    row,
    some.sampled_from(STEPS),
    source=some.sampled_from(["generated", "human"]),
    run=some.sampled_from(["r-1", "r-2", ""]),
    attempt=some.integers(0, 3),
    form=some.sampled_from(["bytes", "program", "tree"]),
    verified=some.integers(0, 1),
    reusable=some.integers(0, 1),
    at=some.integers(-(2**63), 2**63 - 1),
    number=some.integers(1, 2**63 - 1),
    d=some.binary(min_size=31, max_size=33),  # of a damaged disk, perhaps
)


@given(some.lists(rows, max_size=9))
def test_rows_are_what_they_were(found: list[Row]) -> None:
    wanted = {row[0]: artifact_from(("shop", "main", *row)) for row in found}
    newest = kept(*found)
    assert {*newest.contents()} == {(one.digest, one.form) for one in wanted.values()}
    assert newest == wanted
    assert {*newest.contents()} == {
        (one.digest, one.form) for one in wanted.values()
    }  # unpacked too
    assert len(newest) == len(wanted)


def test_digests_of_other_lengths_are_not_shifted_into_each_other() -> None:
    odd = row("build", c=b"c" * 31, d=b"d" * 33)  # of a damaged disk
    newest = kept(row("test"), odd)
    assert newest[STEPS[0]] == artifact_from(("shop", "main", *odd))
    with pytest.raises(IntegrityError, match="is not a digest"):
        leaving_values(newest[STEPS[0]], 1, 1, "superseded")


@pytest.mark.parametrize(
    ("column", "odd"),
    [("step", 5), ("form", "heap"), ("d", "text"), ("source", 3), ("a", None)],
)
@pytest.mark.parametrize("before", [(), (row("build"),)], ids=["first", "later"])
def test_a_row_that_is_none_is_refused(before: tuple[Row, ...], column: str, odd: object) -> None:
    with pytest.raises(IntegrityError, match="row 7 of the artifact index is damaged"):
        kept(*before, row("test", **{column: odd}))


def test_who_needs_a_row_no_more_lets_go_of_it() -> None:
    newest = kept(row("build"), row("test"))
    found = newest[STEPS[0]]
    assert found is newest.of(STEPS[0])
    newest.let_go(replace(found))  # another one
    assert not newest.has_let_go(STEPS[0])
    newest.let_go(found)
    assert newest.has_let_go(STEPS[0])
    assert newest.of(STEPS[0]) is None
    assert [*newest] == ["test"]
    assert len(newest) == 1
    assert STEPS[0] not in newest
    assert [digest for digest, _ in newest.contents()] == [newest[STEPS[1]].digest]
    assert not newest.has_let_go(STEPS[2])  # it never was there


def test_a_row_may_be_taken_as_it_is() -> None:
    newest = Newest("shop", "main")
    one = kept(row("build"))[STEPS[0]]
    newest.add(one)
    assert newest.of(STEPS[0]) is one
