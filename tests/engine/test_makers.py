"""Who made what, and what goes with a run: kept in little memory, and the same as if all rows were there."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from holdfast.engine.makers import Makers, lost_with
from holdfast.model.artifact import Artifact, Source, Status
from holdfast.model.digest import Digest, digest_bytes
from holdfast.model.event import AttemptAccepted, Reused
from holdfast.model.plan import RunId, StepId
from holdfast.ports import Append, Batch
from holdfast.store.memory import MemoryStore

RUNS = tuple(RunId(f"r-{name}") for name in "abcd")
STATUSES: tuple[Status, ...] = ("accepted", "accepted", "accepted", "superseded")
SOURCES: tuple[Source, ...] = ("generated", "generated", "human", "imported")
REFS = tuple(digest_bytes(name.encode()) for name in "xyz")


@st.composite
def indexes(draw: st.DrawFn) -> list[Artifact]:
    """Rows as an index may have them: a step of a run is accepted twice only if a person wrote one."""
    found, made = list[Artifact](), set[tuple[RunId, str, bool]]()
    for number in range(draw(st.integers(0, 25))):
        run, step = draw(st.sampled_from(RUNS)), draw(st.sampled_from(("s", "t", "ü")))
        source = draw(st.sampled_from(SOURCES))
        if (run, step, source == "human") in made:
            continue
        made.add((run, step, source == "human"))
        row = Artifact(
            draw(st.sampled_from(("", "p"))),
            draw(st.sampled_from(("main", "side"))),
            StepId(step),
            draw(st.sampled_from(REFS)),
            REFS[0],
            REFS[0],
            draw(st.sampled_from(REFS)),
            draw(st.sampled_from(STATUSES)),
            source,
            run,
            2 if source == "human" else 1,
            reusable=draw(st.booleans()),
            at=number,
        )
        found.append(row)
    return found


@given(indexes(), st.sets(st.sampled_from(RUNS)))
def test_a_reused_artifact_is_of_the_last_run_that_made_it(
    rows: list[Artifact], settled: set[RunId]
) -> None:
    makers = Makers(settled)
    stands = [row for row in rows if row.status == "accepted" and row.source != "imported"]
    for row in stands:
        makers.take(row)
    for project in ("", "p"):
        for step in ("s", "t", "ü"):
            for digest in REFS:
                same = [
                    r for r in stands if (r.project, r.step, r.digest) == (project, step, digest)
                ]
                for ref in REFS:
                    last = [r.run for r in same if r.config_ref == ref][-1:]
                    item = Reused(StepId(step), ref, digest)
                    assert {*makers.of(project, item)} - settled == {*last} - settled
                item = Reused(StepId(step), REFS[0], digest, code="unchanged_content")
                assert {*makers.of(project, item)} - settled == {r.run for r in same} - settled


@given(indexes(), st.sets(st.sampled_from(RUNS)))
def test_what_would_be_lost_is_what_nothing_else_is_accepted_under(
    rows: list[Artifact], gone: set[RunId]
) -> None:
    store = stored(rows)
    lost = lost_with(store, sorted(gone))
    assert sorted(lost) == sorted(plainly_lost(list(store.artifacts()), gone))
    assert len(lost) == len(list(lost))
    assert lost.work_ms == sum(item.work_ms for item in lost)
    for run in RUNS:
        assert list(lost.of({run})) == [item for item in lost if item.run == run]


def stored(rows: Sequence[Artifact]) -> MemoryStore:
    """A store with these rows; the work of an artifact is ten times its attempt, and its place."""
    store = MemoryStore()
    for run in RUNS:
        told = [
            (1, AttemptAccepted(row.step, row.attempt, row.digest, duration_ms=work(row)))
            for row in rows
            if row.run == run
        ]
        store.open_run(run, "", "main", Batch([Append(f"run:{run}", 0, told, fence=1)]))
    store.commit(Batch(artifacts=rows))
    return store


def work(row: Artifact) -> int:
    return 10 * row.attempt + len(row.project)


def plainly_lost(
    rows: Sequence[Artifact], gone: set[RunId]
) -> list[tuple[StepId, RunId, Digest, int]]:
    left = {key(row) for row in rows if row.status == "accepted" and row.run not in gone}
    last = {}
    for row in rows:
        usable = row.status == "accepted" and row.source != "imported" and row.reusable
        if usable and row.run in gone and key(row) not in left:
            last[key(row)] = row
    return [(row.step, row.run, row.digest, work(row)) for row in last.values()]


def key(row: Artifact) -> tuple[str, str, str, str]:
    return row.project, row.line, row.step, row.config_ref
