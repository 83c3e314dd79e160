"""What every store does. A new store is one more line in `STORES`."""

import hashlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.errors import (
    ConflictError,
    FencedError,
    IntegrityError,
    PurgedError,
    UsageError,
)
from holdfast.model.artifact import Artifact
from holdfast.model.digest import Digest, digest_bytes
from holdfast.model.event import (
    AttemptAccepted,
    AttemptStarted,
    Reason,
    Recorded,
    RunEnded,
    RunResumed,
)
from holdfast.model.line import ContentPurged, PlanVersioned, RunCollected, StopRequested
from holdfast.model.plan import RunId, StepId
from holdfast.ports import Append, Batch, ClaimKey, Holder, Owner, RunRow, Stat, Store
from holdfast.store.codec import encode, first_hash, next_hash
from holdfast.store.memory import MemoryStore
from holdfast.store.postgres import PostgresStore, make_store
from holdfast.store.relational import RelationalStore
from holdfast.store.sqlite import SqliteStore
from tests.postgres import Server, new_schema

STORES: dict[str, Callable[[pytest.FixtureRequest, Path], Store]] = {
    "memory": lambda *_: MemoryStore(),
    "sqlite": lambda _, path: SqliteStore.open(str(path / ".holdfast"), create=True),
    "postgres": lambda request, _: in_postgres(request),
}

LARGE = b"0123456789abcdef" * 5000  # 80 KB
RUN = RunId("r-1")


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    opened = STORES[request.param](request, tmp_path)
    yield opened
    opened.close()


def in_postgres(request: pytest.FixtureRequest) -> PostgresStore:
    running: Server = request.getfixturevalue("postgres")
    url = running.url(new_schema())
    make_store(url)
    return PostgresStore.open(url)


def ref(text: str) -> Digest:
    return Digest(hashlib.sha256(text.encode()).hexdigest())


def artifact(
    step: str = "build",
    content: str = "one",
    *,
    project: str = "shop",
    line: str = "main",
    key: str = "key",
    run: str = RUN,
    attempt: int = 1,
) -> Artifact:
    return Artifact(
        project=project,
        line=line,
        step=StepId(step),
        config_ref=ref(key),
        input_ref=ref(f"input of {key}"),
        own_ref=ref("own"),
        digest=ref(content),
        status="accepted",
        source="generated",
        run=RunId(run),
        attempt=attempt,
    )


def keep(store: Store, *rows: Artifact) -> None:
    store.commit(Batch(artifacts=rows))


def owner(name: str) -> Owner:
    return Owner(engine=name, host="here", boot="b", pid=7, started="9", since=1000)


def state_of(store: Store) -> tuple[object, ...]:
    """Everything a batch could have changed."""
    return (
        {name: list(store.read(name)) for name in store.journals()},
        list(store.artifacts()),
        list(store.blobs()),
        list(store.claims()),
        list(store.runs()),
    )


def started(store: Store, run: RunId = RUN, line: str = "main") -> int:
    first = Append(f"run:{run}", 0, [(1, RunResumed("e"))])
    return store.open_run(run, "shop", line, Batch(appends=[first]))


def aged(store: Store) -> None:
    """All contents that are stored until now are old."""
    if isinstance(store, MemoryStore):
        store._ages = dict.fromkeys(store._ages, 0)
    elif isinstance(store, RelationalStore):
        store._database.write(lambda cursor: cursor.execute("UPDATE blob SET at = 1000"))


KEY = ClaimKey("shop", "main", StepId("build"), ref("key"))


class TestJournals:
    def test_an_unknown_journal_is_empty(self, store: Store) -> None:
        assert store.last("line:main") == 0
        assert list(store.read("line:main")) == []
        assert list(store.journals()) == []

    def test_events_come_back_in_order_with_their_numbers_and_times(self, store: Store) -> None:
        stop = StopRequested(RUN, now=True, by="ann")
        seen = PlanVersioned(ref("plan"), ref("w"), None)
        store.commit(Batch(appends=[Append("line:main", 0, [(5, seen), (3, stop)])]))
        store.commit(Batch(appends=[Append("line:main", 2, [(4, stop)])]))
        assert list(store.read("line:main")) == [
            Recorded(1, 5, seen),
            Recorded(2, 3, stop),
            Recorded(3, 4, stop),
        ]
        assert store.last("line:main") == 3

    def test_reading_starts_after_a_number(self, store: Store) -> None:
        stop = StopRequested(RUN, now=True, by="ann")
        store.commit(Batch(appends=[Append("line:main", 0, [(n, stop) for n in range(5)])]))
        assert [item.seq for item in store.read("line:main", after=3)] == [4, 5]
        assert list(store.read("line:main", after=5)) == []
        assert list(store.read("line:main", after=99)) == []

    def test_a_long_journal_is_read_whole(self, store: Store) -> None:
        stop = StopRequested(RUN, now=False, by="ann")
        store.commit(Batch(appends=[Append("line:main", 0, [(n, stop) for n in range(2500)])]))
        assert [item.seq for item in store.read("line:main")] == list(range(1, 2501))

    def test_what_a_journal_has_can_be_appended_to_another_unread(self, store: Store) -> None:
        stop = StopRequested(RUN, now=True, by='an "n\udcff')
        seen = PlanVersioned(ref("plan"), ref("w"), None)
        store.commit(Batch(appends=[Append("line:a", 0, [(1, stop), (2, seen)])]))
        kept = list(store.kept("line:a"))
        assert [(at, one.noun, one.read()) for at, one in kept] == [
            (1, StopRequested, stop),
            (2, PlanVersioned, seen),
        ]
        store.commit(Batch(appends=[Append("line:b", 0, [(7, kept[1][1]), (8, kept[0][1])])]))
        assert list(store.read("line:b")) == [Recorded(1, 7, seen), Recorded(2, 8, stop)]
        assert list(store.kept("line:none")) == []

    def test_journals_do_not_mix(self, store: Store) -> None:
        stop = StopRequested(RUN, now=True, by="ann")
        store.commit(Batch(appends=[Append("line:a", 0, [(1, stop)])]))
        store.commit(Batch(appends=[Append("line:b", 0, [(2, stop)])]))
        store.commit(Batch(appends=[Append("line:a", 1, [(3, stop)])]))
        assert [item.at for item in store.read("line:a")] == [1, 3]
        assert [item.at for item in store.read("line:b")] == [2]
        assert list(store.journals()) == ["line:a", "line:b"]

    def test_events_of_some_kinds_are_told_over_many_journals(self, store: Store) -> None:
        stop = StopRequested(RUN, now=True, by="ann")
        seen = PlanVersioned(ref("plan"), ref("w"), None)
        store.commit(Batch(appends=[Append("line:a", 0, [(1, stop), (2, seen), (3, stop)])]))
        store.commit(Batch(appends=[Append("line:b", 0, [(4, seen), (5, stop)])]))
        store.commit(Batch(appends=[Append("line:c", 0, [(6, stop)])]))
        told = [("line:a", Recorded(1, 1, stop)), ("line:a", Recorded(3, 3, stop))]
        told += [("line:b", Recorded(2, 5, stop))]
        named = ["line:a", "line:b", "line:none"]
        assert list(store.told(named, [StopRequested])) == told
        assert list(store.told(named, [StopRequested], since=3)) == told[1:]
        both = list(store.told(reversed(named), {StopRequested, PlanVersioned}, since=3))
        assert [(name, item.at) for name, item in both] == [
            ("line:b", 4),
            ("line:b", 5),
            ("line:a", 3),
        ]
        assert list(store.told(named, [RunEnded])) == []
        assert list(store.told([], [StopRequested])) == []

    def test_very_many_events_are_told_in_their_order(self, store: Store) -> None:
        stop, seen = StopRequested(RUN, now=True, by="ann"), PlanVersioned(ref("p"), ref("w"), None)
        events = [(at, seen if at % 5 == 0 else stop) for at in range(1, 5001)]
        store.commit(Batch(appends=[Append("line:a", 0, events)]))
        store.commit(Batch(appends=[Append("line:b", 0, events[:10])]))
        told = store.told(["line:a", "line:b"], [StopRequested], since=3)
        expected = [at for at in (*range(3, 5001), *range(3, 11)) if at % 5]
        assert [item.seq for _, item in told] == expected
        assert len(list(store.told(["line:a"], [PlanVersioned]))) == 1000

    def test_one_batch_may_append_to_a_journal_twice(self, store: Store) -> None:
        stop = StopRequested(RUN, now=True, by="ann")
        store.commit(
            Batch(appends=[Append("line:a", 0, [(1, stop)]), Append("line:a", 1, [(2, stop)])])
        )
        assert [item.at for item in store.read("line:a")] == [1, 2]

    def test_an_append_of_nothing_still_says_what_it_expects(self, store: Store) -> None:
        store.commit(Batch(appends=[Append("line:a", 0, [])]))
        assert store.last("line:a") == 0
        with pytest.raises(ConflictError):
            store.commit(Batch(appends=[Append("line:a", 1, [])]))

    def test_anybody_may_state_where_the_journal_of_a_run_ends(self, store: Store) -> None:
        started(store)
        run = RUN
        stop = StopRequested(run, now=False, by="ann")
        store.commit(
            Batch(appends=[Append("line:main", 0, [(1, stop)]), Append(f"run:{run}", 1, ())])
        )
        with pytest.raises(ConflictError):
            store.commit(
                Batch(appends=[Append("line:main", 1, [(1, stop)]), Append(f"run:{run}", 0, ())])
            )
        assert store.last("line:main") == 1

    @pytest.mark.req("D13")
    @pytest.mark.parametrize("expected", [0, 2])
    def test_an_append_that_expects_another_end_is_refused(
        self, store: Store, expected: int
    ) -> None:
        stop = StopRequested(RUN, now=True, by="ann")
        store.commit(Batch(appends=[Append("line:main", 0, [(1, stop)])]))
        before = state_of(store)
        with pytest.raises(ConflictError, match="journal 'line:main' ends at 1, not at"):
            store.commit(Batch(appends=[Append("line:main", expected, [(2, stop)])]))
        assert state_of(store) == before


class TestBatches:
    def test_everything_of_a_batch_becomes_true_together(self, store: Store) -> None:
        fence = started(store)
        claim = store.claim(KEY, "e")
        assert claim is not None
        row = artifact(content="one")
        begun = AttemptStarted(
            StepId("build"), 1, row.config_ref, row.input_ref, row.own_ref, Reason("never_run")
        )
        done = AttemptAccepted(StepId("build"), 1, row.digest)
        store.commit(
            Batch(
                appends=[Append("run:r-1", 1, [(2, begun), (3, done)], fence)],
                artifacts=[row],
                blobs=[(ref("one"), b"one"), (ref("log"), b"log")],
                held=[(KEY, claim)],
                released=[(KEY, claim)],
            )
        )
        assert [item.event for item in store.read("run:r-1", after=1)] == [begun, done]
        assert list(store.artifacts()) == [replace(row, number=1)]
        assert store.get(ref("one")) == b"one"
        assert store.get(ref("log")) == b"log"
        assert list(store.claims()) == []

    @pytest.mark.req("D11")
    @pytest.mark.parametrize("reason", ["conflict", "fence", "claim", "twice"])
    def test_a_batch_that_is_refused_leaves_nothing(self, store: Store, reason: str) -> None:
        fence = started(store)
        keep(store, artifact("other"))
        stop = StopRequested(RUN, now=True, by="ann")
        before = state_of(store)
        appends = [
            Append("line:main", 0, [(1, stop)]),
            Append("run:r-1", 1, [(1, RunEnded("completed"))], fence),
        ]
        rows = [artifact("build")]
        held: list[tuple[ClaimKey, int]] = []
        match reason:
            case "conflict":
                appends[1] = replace(appends[1], expected=7)
            case "fence":
                appends[1] = replace(appends[1], fence=fence + 1)
            case "claim":
                held = [(KEY, 5)]
            case _:
                rows.append(artifact("other"))
        with pytest.raises((ConflictError, FencedError)):
            store.commit(
                Batch(appends=appends, artifacts=rows, blobs=[(ref("x"), b"x")], held=held)
            )
        assert state_of(store) == before
        assert not store.has(ref("x"))

    def test_a_large_content_in_a_batch_is_kept_too(self, store: Store) -> None:
        store.commit(Batch(blobs=[(digest_bytes(LARGE), LARGE)]))
        assert store.get(digest_bytes(LARGE)) == LARGE


class TestRuns:
    def test_a_run_begins_with_its_first_batch(self, store: Store) -> None:
        stop = StopRequested(RUN, now=True, by="ann")
        first = Batch(
            appends=[
                Append("run:r-1", 0, [(1, RunResumed("e"))]),
                Append("line:main", 0, [(1, stop)]),
            ]
        )
        assert store.open_run(RUN, "shop", "main", first) == 1
        assert list(store.runs()) == [RunRow(RUN, "shop", "main", 1, 1)]
        assert store.last("run:r-1") == 1
        assert store.last("line:main") == 1

    def test_runs_are_listed_oldest_first_and_by_line(self, store: Store) -> None:
        for name, line in [("r-b", "main"), ("r-a", "docs"), ("r-c", "main")]:
            started(store, RunId(name), line)
        assert [row.run for row in store.runs()] == ["r-b", "r-a", "r-c"]
        assert [(row.run, row.number) for row in store.runs("main")] == [("r-b", 1), ("r-c", 3)]
        assert list(store.runs("nowhere")) == []

    @pytest.mark.req("D12")
    def test_a_run_whose_first_batch_is_refused_does_not_exist(self, store: Store) -> None:
        with pytest.raises(ConflictError):
            store.open_run(
                RUN, "shop", "main", Batch(appends=[Append("line:main", 3, [(1, RunResumed("e"))])])
            )
        assert list(store.runs()) == []
        assert started(store) == 1

    def test_a_run_is_opened_once(self, store: Store) -> None:
        started(store)
        before = state_of(store)
        with pytest.raises(ConflictError, match="'r-1'"):
            started(store)
        assert state_of(store) == before

    @pytest.mark.req("D14")
    def test_whoever_lost_a_run_can_write_no_more(self, store: Store) -> None:
        old = started(store)
        new = store.take_run(RUN)
        assert new > old
        before = state_of(store)
        with pytest.raises(FencedError, match="run 'r-1' was taken over"):
            store.commit(Batch(appends=[Append("run:r-1", 1, [(1, RunResumed("old"))], old)]))
        assert state_of(store) == before
        store.commit(Batch(appends=[Append("run:r-1", 1, [(1, RunResumed("new"))], new)]))
        assert store.last("run:r-1") == 2
        assert [row.fence for row in store.runs()] == [new]

    @pytest.mark.req("D14")
    def test_whoever_lost_a_run_that_was_removed_since_is_told_so(self, store: Store) -> None:
        old = started(store)
        store.take_run(RUN)
        store.remove_run(RUN, Batch())
        with pytest.raises(FencedError, match="run 'r-1' was taken over, ended and removed"):
            store.commit(Batch(appends=[Append("run:r-1", 1, [(1, RunResumed("old"))], old)]))
        assert list(store.runs()) == []
        assert store.last("run:r-1") == 0

    def test_a_run_journal_is_never_written_without_a_fence(self, store: Store) -> None:
        started(store)
        with pytest.raises(FencedError):
            store.commit(Batch(appends=[Append("run:r-1", 1, [(1, RunResumed("e"))])]))

    def test_a_run_that_is_not_there_cannot_be_written_or_taken(self, store: Store) -> None:
        with pytest.raises(UsageError, match="no run 'r-9'"):
            store.take_run(RunId("r-9"))
        with pytest.raises(FencedError, match="'r-9'"):  # whoever has a fence had a run
            store.commit(Batch(appends=[Append("run:r-9", 0, [(1, RunResumed("e"))], 1)]))


class TestArtifacts:
    @pytest.mark.req("E1", "R50")
    def test_every_field_comes_back(self, store: Store) -> None:
        row = Artifact(
            project="shop",
            line="größe",
            step=StepId("build"),
            config_ref=ref("c"),
            input_ref=ref("i"),
            own_ref=ref("o"),
            digest=ref("d"),
            status="rejected",
            source="human",
            run=RunId("r-7"),
            attempt=3,
            form="tree",
            verified=True,
            reusable=False,
            at=1_700_000_000_123,
        )
        keep(store, row)
        assert list(store.artifacts()) == [replace(row, number=1)]

    def test_the_artifact_of_a_ref_is_found(self, store: Store) -> None:
        keep(store, artifact(key="a", content="A"), artifact(key="b", content="B", run="r-2"))
        found = store.find("shop", "main", StepId("build"), ref("a"))
        assert found == replace(artifact(key="a", content="A"), number=1)
        assert store.find("shop", "main", StepId("build"), ref("c")) is None
        assert store.find("shop", "main", StepId("test"), ref("a")) is None

    @pytest.mark.req("E5")
    def test_the_latest_accepted_wins_in_the_order_of_storing(self, store: Store) -> None:
        keep(store, replace(artifact(content="old"), at=2000))
        keep(store, replace(artifact(content="new"), source="human", attempt=0, at=1000))
        found = store.find("shop", "main", StepId("build"), ref("key"))
        assert found is not None
        assert found.digest == ref("new")

    @pytest.mark.req("R41")
    @pytest.mark.parametrize("status", ["rejected", "superseded", "interrupted"])
    def test_only_accepted_ones_are_found_but_all_are_kept(self, store: Store, status: str) -> None:
        row = replace(artifact(), status=status)  # type: ignore[arg-type]  # from the closed list
        keep(store, row)
        assert store.find("shop", "main", StepId("build"), row.config_ref) is None
        assert store.find("shop", "main", StepId("build"), row.input_ref, content=True) is None
        assert store.newest("shop", "main", StepId("build")) is None
        assert list(store.artifacts()) == [replace(row, number=1)]

    def test_the_newest_of_all_are_the_newest_of_each(self, store: Store) -> None:
        keep(store, artifact(content="old"))
        keep(store, replace(artifact(content="new"), source="human", attempt=0))
        keep(store, replace(artifact(content="bad", attempt=3), status="rejected"))
        keep(store, replace(artifact(content="else"), step=StepId("other")))
        keep(store, artifact(content="docs", line="docs", run="r-9"))
        found = store.newest_of_all("shop", "main")
        assert {step: row.digest for step, row in found.items()} == {
            "build": ref("new"),
            "other": ref("else"),
        }
        assert all(row == store.newest("shop", "main", step) for step, row in found.items())
        assert not store.newest_of_all("shop", "nowhere")

    @pytest.mark.req("R41")
    def test_a_rejected_one_does_not_hide_an_accepted_one(self, store: Store) -> None:
        keep(store, artifact(content="good"))
        keep(store, replace(artifact(content="bad", attempt=2), status="rejected"))
        found = store.find("shop", "main", StepId("build"), ref("key"))
        assert found is not None
        assert found.digest == ref("good")

    def test_what_is_not_reusable_is_never_found_but_is_the_newest(self, store: Store) -> None:
        row = replace(artifact(), reusable=False)
        keep(store, row)
        assert store.find("shop", "main", StepId("build"), row.config_ref) is None
        assert store.find("shop", "main", StepId("build"), row.input_ref, content=True) is None
        assert store.newest("shop", "main", StepId("build")) == replace(row, number=1)

    def test_by_content_the_input_ref_decides(self, store: Store) -> None:
        keep(store, artifact(key="a", content="A"))
        same_input = replace(artifact(key="b", content="B", run="r-2"), input_ref=ref("input of a"))
        keep(store, same_input)
        found = store.find("shop", "main", StepId("build"), ref("input of a"), content=True)
        assert found == replace(same_input, number=2)
        assert store.find("shop", "main", StepId("build"), ref("input of a")) is None

    def test_the_newest_of_a_step_is_found_under_any_ref(self, store: Store) -> None:
        keep(store, artifact(key="z", content="A"), artifact(key="a", content="B", run="r-2"))
        newest = store.newest("shop", "main", StepId("build"))
        assert newest is not None
        assert newest.digest == ref("B")
        assert store.newest("shop", "main", StepId("test")) is None

    @pytest.mark.req("E15")
    def test_projects_and_lines_do_not_mix(self, store: Store) -> None:
        places = [("shop", "main"), ("shop", "docs"), ("bank", "main")]
        for project, line in places:
            name = f"{project}/{line}"
            keep(store, artifact(project=project, line=line, content=name, run=f"r-{name}"))
        for project, line in places:
            found = store.find(project, line, StepId("build"), ref("key"))
            newest = store.newest(project, line, StepId("build"))
            assert found == newest
            assert found is not None
            assert found.digest == ref(f"{project}/{line}")
        assert store.find("bank", "docs", StepId("build"), ref("key")) is None

    @pytest.mark.req("R51")
    def test_rows_are_extracted_by_any_of_their_marks(self, store: Store) -> None:
        keep(
            store,
            artifact("a", "1"),
            replace(artifact("a", "2", attempt=2), status="rejected"),
            artifact("b", "1", run="r-2"),
            replace(artifact("b", "3", line="docs"), source="human"),
            artifact("b", "4", project="bank", run="r-3"),
        )

        def numbers(**asked: object) -> list[int]:
            return [row.number for row in store.artifacts(**asked)]  # type: ignore[arg-type]  # named below

        assert numbers() == [1, 2, 3, 4, 5]
        assert numbers(project="shop") == [1, 2, 3, 4]
        assert numbers(line="main") == [1, 2, 3, 5]
        assert numbers(step="a") == [1, 2]
        assert numbers(run="r-1") == [1, 2, 4]
        assert numbers(status="accepted") == [1, 3, 4, 5]
        assert numbers(source="human") == [4]
        assert numbers(digest=ref("1")) == [1, 3]
        assert numbers(project="shop", line="main", step="a", status="rejected") == [2]
        assert numbers(project="nowhere") == []

    def test_many_rows_come_in_the_order_they_were_stored(self, store: Store) -> None:
        keep(store, *(artifact(f"s{n}", str(n)) for n in range(1234)))
        assert [row.number for row in store.artifacts()] == list(range(1, 1235))

    @pytest.mark.req("D13")
    def test_a_step_of_a_run_is_accepted_once(self, store: Store) -> None:
        keep(store, artifact(content="one"))
        with pytest.raises(ConflictError, match="accepted only once"):
            keep(store, artifact(content="two"))
        assert [row.digest for row in store.artifacts()] == [ref("one")]
        with pytest.raises(ConflictError, match="accepted only once"):
            keep(store, artifact(content="two", attempt=2))
        keep(store, artifact(content="three", run="r-2"))

    def test_what_is_withdrawn_uncovers_what_stood_before_it(self, store: Store) -> None:
        first, second = artifact(content="one"), artifact(content="two", run="r-2")
        other = artifact("test", "two", attempt=2)
        keep(store, first, second, other)
        store.commit(Batch(withdrawn=[second]))
        found = store.find("shop", "main", StepId("build"), ref("key"))
        assert found is not None
        assert found.digest == ref("one")
        assert found == store.newest("shop", "main", StepId("build"))
        assert found == store.newest_of_all("shop", "main")[StepId("build")]
        assert [(row.step, row.status) for row in store.artifacts()] == [
            ("build", "accepted"),
            ("build", "withdrawn"),
            ("test", "accepted"),
        ]
        store.commit(Batch(withdrawn=[second, artifact("never")]))
        assert store.find("shop", "main", StepId("build"), ref("key")) == found

    def test_a_rebuilt_index_takes_the_place_of_the_old_one(self, store: Store) -> None:
        keep(store, artifact("a"), artifact("b"))
        rows = [artifact("c"), artifact("a", line="docs"), artifact("b")]
        store.replace_artifacts(lambda: iter(rows))
        assert list(store.artifacts()) == [
            replace(row, number=number) for number, row in enumerate(rows, 1)
        ]
        assert store.find("shop", "main", StepId("a"), ref("key")) is None
        keep(store, artifact("d"))
        assert [row.number for row in store.artifacts(step=StepId("d"))] == [4]

    def test_a_sound_store_is_assured_whatever_it_went_through(self, store: Store) -> None:
        store.assure()
        keep(store, artifact("a"), artifact("b"))
        store.assure()
        store.replace_artifacts(lambda: [artifact("b")])
        keep(store, artifact("c"))
        with store.steady():
            store.assure()


class TestBlobs:
    @pytest.mark.req("R73")
    @pytest.mark.parametrize("content", [b"", b"x", b"y" * 16384, b"z" * 16385, LARGE])
    def test_content_is_kept_under_its_digest(self, store: Store, content: bytes) -> None:
        digest = store.put(content)
        assert digest == digest_bytes(content)
        assert store.has(digest)
        assert store.get(digest) == content
        assert b"".join(store.chunks(digest)) == content
        assert list(store.blobs()) == [digest]

    @pytest.mark.parametrize("size", [10, 50_000])
    def test_content_may_come_in_pieces(self, store: Store, size: int) -> None:
        content = bytes(n % 251 for n in range(size))
        digest = store.put(content[at : at + 3000] for at in range(0, size, 3000))
        assert store.get(digest) == content

    @pytest.mark.parametrize("content", [b"small", LARGE])
    def test_equal_content_is_stored_once(self, store: Store, content: bytes) -> None:
        assert store.put(content) == store.put(content) == store.put([content])
        store.commit(Batch(blobs=[(digest_bytes(content), content)]))
        assert list(store.blobs()) == [digest_bytes(content)]

    def test_absent_content_is_said_to_be_missing(self, store: Store) -> None:
        assert not store.has(ref("nothing"))
        with pytest.raises(IntegrityError, match=f"content '{ref('nothing')}' is missing"):
            store.get(ref("nothing"))
        with pytest.raises(IntegrityError):
            list(store.chunks(ref("nothing")))

    @pytest.mark.req("D07")
    def test_content_that_is_not_what_its_digest_says_is_never_given(self, store: Store) -> None:
        store.commit(Batch(blobs=[(ref("right"), b"wrong")]))
        assert any(ref("right") in problem for problem in store.check())
        with pytest.raises(IntegrityError, match=f"content '{ref('right')}' is damaged"):
            store.get(ref("right"))

    @pytest.mark.req("D07")
    def test_damaged_content_is_repaired_by_storing_it_again(self, store: Store) -> None:
        store.commit(Batch(blobs=[(ref("right"), b"wrong")]))
        with pytest.raises(IntegrityError):
            store.get(ref("right"))
        assert not store.has(ref("right"))
        assert store.put(b"right") == ref("right")
        assert store.get(ref("right")) == b"right"
        assert list(store.check()) == []

    @pytest.mark.req("D07")
    @pytest.mark.parametrize("how", ["put", "pieces", "batch"])
    def test_damaged_content_that_nobody_read_is_repaired_by_storing_it_again(
        self, store: Store, how: str
    ) -> None:
        store.commit(Batch(blobs=[(ref("right"), b"wrong")]))
        if how == "batch":
            store.commit(Batch(blobs=[(ref("right"), b"right")]))
        else:
            store.put(b"right" if how == "put" else iter([b"ri", b"ght"]))
        assert store.get(ref("right")) == b"right"
        assert list(store.check()) == []

    @pytest.mark.req("D07")
    def test_what_is_absent_of_many_contents_is_told_at_once(self, store: Store) -> None:
        there = [store.put(b"small"), store.put(bytes(40_000))]
        there += [store.put(b"%d" % number) for number in range(600)]
        lost = {ref(f"lost {number}") for number in range(600)}
        assert store.absent([*there, *lost, *there]) == lost
        assert store.absent([*there, ref("lost 1")]) == {ref("lost 1")}
        assert store.absent([]) == set()

    def test_what_could_go_without_a_trace_is_told_of_what_is_asked(self, store: Store) -> None:
        small = store.put(b"small")
        large = {store.put(bytes([number]) * 100_000) for number in range(3)}
        asked = {*sorted(large)[1:], ref("lost")}
        assert asked <= store.apart([*asked, small]) <= {*asked, small}
        assert store.apart([]) == set()

    def test_very_many_contents_are_forgotten_however_they_are_given(self, store: Store) -> None:
        texts = [b"%d" % number for number in range(10_050)]
        store.commit(Batch(blobs=[(Digest(hashlib.sha256(t).hexdigest()), t) for t in texts]))
        large, kept = store.put(bytes(40_000)), store.put(b"kept")
        given = (Digest(hashlib.sha256(text).hexdigest()) for text in texts)
        store.forget((digest for part in (given, [large]) for digest in part), 1 << 50)
        assert list(store.blobs()) == [kept]


class TestClaims:
    @pytest.mark.req("R94", "D13")
    def test_one_engine_at_a_time_has_a_claim(self, store: Store) -> None:
        store.enter("shop", "main", owner("a"))
        store.enter("shop", "main", owner("b"))
        fence = store.claim(KEY, "a")
        assert fence is not None
        assert store.claim(KEY, "b") is None
        assert store.claim(KEY, "a") == fence
        assert list(store.claims()) == [(KEY, "a", fence)]

    def test_claims_on_other_keys_are_free(self, store: Store) -> None:
        store.enter("shop", "main", owner("a"))
        keys = [
            KEY,
            KEY._replace(step=StepId("test")),
            KEY._replace(config_ref=ref("other")),
            KEY._replace(line="docs"),
            KEY._replace(project="bank"),
        ]
        store.claim(KEY, "a")
        assert store.claim(KEY, "b") is None
        assert all(store.claim(key, "b") for key in keys[1:])
        assert {key for key, _, _ in store.claims()} == set(keys)

    @pytest.mark.req("R94", "D17")
    def test_the_claim_of_an_engine_that_left_is_free_and_its_fence_never_counts_again(
        self, store: Store
    ) -> None:
        store.enter("shop", "main", owner("a"))
        store.enter("shop", "main", owner("b"))
        old = store.claim(KEY, "a")
        store.leave("a")
        new = store.claim(KEY, "b")
        assert old is not None
        assert new is not None
        assert new > old
        with pytest.raises(FencedError, match="claim on step 'build'"):
            store.commit(Batch(artifacts=[artifact()], held=[(KEY, old)]))
        assert list(store.artifacts()) == []
        store.commit(Batch(artifacts=[artifact()], held=[(KEY, new)], released=[(KEY, new)]))

    def test_a_claim_of_an_engine_that_never_entered_is_free(self, store: Store) -> None:
        first = store.claim(KEY, "ghost")
        second = store.claim(KEY, "a")
        assert first is not None
        assert second is not None
        assert second > first

    def test_the_fence_grows_over_releases(self, store: Store) -> None:
        store.enter("shop", "main", owner("a"))
        fences = []
        for _ in range(3):
            fence = store.claim(KEY, "a")
            assert fence is not None
            fences.append(fence)
            store.commit(Batch(released=[(KEY, fence)]))
        assert fences == sorted(set(fences))
        with pytest.raises(FencedError):
            store.commit(Batch(held=[(KEY, fences[-1])]))

    def test_giving_up_what_another_has_changes_nothing(self, store: Store) -> None:
        store.enter("shop", "main", owner("a"))
        fence = store.claim(KEY, "a")
        assert fence is not None
        store.commit(Batch(released=[(KEY, fence + 1)]))
        assert list(store.claims()) == [(KEY, "a", fence)]


class TestErrands:
    def test_an_errand_is_taken_once_oldest_first_and_reported(self, store: Store) -> None:
        store.enter("", "queue:gpu", owner("w"))
        first = store.post("gpu", ref("one"), "e")
        second = store.post("gpu", ref("two"), "e")
        store.post("cpu", ref("three"), "f")
        taken = store.take_errand(["gpu", "net"], "w")
        assert taken is not None
        assert (taken.id, taken.parcel, taken.engine) == (first, ref("one"), "e")
        again = store.take_errand(["gpu"], "w")
        assert again is not None
        assert again.id == second
        assert store.take_errand(["gpu"], "w") is None
        assert store.report(taken, ref("done"))
        assert [(one.id, one.report) for one in store.errands("e")] == [
            (first, ref("done")),
            (second, None),
        ]
        assert len(store.errands()) == 3

    @pytest.mark.req("R67")
    def test_nobody_reports_twice_late_or_for_another(self, store: Store) -> None:
        store.enter("", "queue:gpu", owner("w"))
        number = store.post("gpu", ref("one"), "e")
        taken = store.take_errand(["gpu"], "w")
        assert taken is not None
        assert not store.report(taken._replace(worker="v"), ref("done"))
        assert not store.report(taken._replace(fence=taken.fence + 1), ref("done"))
        assert store.report(taken, ref("done"))
        assert not store.report(taken, ref("other"))
        store.withdraw([number])
        assert not store.report(taken, ref("other"))
        assert list(store.errands()) == []

    def test_only_who_is_there_takes_and_who_leaves_posts_no_more(self, store: Store) -> None:
        store.post("gpu", ref("one"), "e")
        assert store.take_errand(["gpu"], "w") is None
        assert store.take_errand([], "w") is None
        store.enter("shop", "main", owner("e"))
        store.enter("", "queue:gpu", owner("w"))
        store.leave("e")
        assert store.take_errand(["gpu"], "w") is None
        store.enter("shop", "main", owner("e"))
        store.post("gpu", ref("one"), "e")
        holder = store.holders("shop", "main")[0]
        assert store.bury(holder)
        assert list(store.errands()) == []

    def test_what_a_step_says_is_heard_in_order_until_it_is_not_wanted(self, store: Store) -> None:
        store.enter("", "queue:gpu", owner("w"))
        number = store.post("gpu", ref("one"), "e")
        taken = store.take_errand(["gpu"], "w")
        assert taken is not None
        assert store.tell(taken, [("out", b"a"), ("err", b"\0b")])
        assert store.tell(taken, [("out", b"c")])
        heard = store.heard(number)
        assert [(stream, content) for _, stream, content in heard] == [
            ("out", b"a"),
            ("err", b"\0b"),
            ("out", b"c"),
        ]
        assert [content for *_, content in store.heard(number, heard[1][0])] == [b"c"]
        assert not store.tell(taken._replace(worker="v"), [("out", b"d")])
        store.call_off([number])
        assert not store.tell(taken, [("out", b"d")])
        assert store.report(taken, ref("ended")), "whoever called it off waits for its end"
        store.withdraw([number])
        assert list(store.heard(number)) == []

    def test_who_listens_is_woken_or_looks_himself(self, store: Store) -> None:
        woken = threading.Event()
        with store.hints(woken.set):
            store.enter("", "queue:gpu", owner("w"))
            store.post("gpu", ref("one"), "e")
            if isinstance(store, PostgresStore):
                for _ in range(200):  # the first may have come before anybody listened
                    store.post("gpu", ref("one"), "e")
                    if woken.wait(0.05):
                        break
                assert woken.is_set()

    def test_what_is_called_off_goes_or_is_known_to_its_worker(self, store: Store) -> None:
        store.enter("", "queue:gpu", owner("w"))
        first, second = (store.post("gpu", ref(name), "e") for name in ("one", "two"))
        taken = store.take_errand(["gpu"], "w")
        assert taken is not None
        store.call_off([first, second])
        assert store.take_errand(["gpu"], "w") is None
        assert [(one.id, one.engine) for one in store.errands(worker="w")] == [(first, "")]
        assert list(store.errands("e")) == []
        store.withdraw([first])
        assert list(store.errands()) == []


class TestHolders:
    def test_engines_enter_beat_and_leave(self, store: Store) -> None:
        store.enter("shop", "main", owner("a"))
        store.enter("shop", "main", owner("b"))
        store.enter("shop", "docs", owner("c"))
        assert list(store.holders("shop", "main")) == [
            Holder(owner("a"), None, 0, sharing=False),
            Holder(owner("b"), None, 0, sharing=False),
        ]
        assert store.beat("a", sharing=False)
        assert store.beat("a", sharing=True, run=RUN)
        assert store.holders("shop", "main")[0] == Holder(owner("a"), RUN, 2, sharing=True)
        store.leave("a")
        assert [holder.owner.engine for holder in store.holders("shop", "main")] == ["b"]
        assert list(store.holders("bank", "main")) == []

    @pytest.mark.req("D17")
    def test_a_heart_that_beats_after_removal_is_told_so(self, store: Store) -> None:
        store.enter("shop", "main", owner("a"))
        store.leave("a")
        assert not store.beat("a", sharing=False)
        assert list(store.holders("shop", "main")) == []

    @pytest.mark.req("R67")
    def test_who_wants_to_be_alone_enters_only_an_empty_line(self, store: Store) -> None:
        assert list(store.enter("shop", "main", owner("a"), alone=True)) == []
        a = Holder(owner("a"), None, 0, sharing=False)
        assert list(store.enter("shop", "main", owner("b"), alone=True)) == [a]
        assert list(store.holders("shop", "main")) == [a]
        assert list(store.enter("shop", "main", owner("a"), alone=True)) == []
        assert list(store.enter("shop", "main", owner("b"))) == [a]
        assert len(store.holders("shop", "main")) == 2
        assert list(store.enter("shop", "docs", owner("c"), alone=True)) == []

    @pytest.mark.req("D17", "I10")
    def test_who_is_buried_has_no_claim_and_can_write_no_more(self, store: Store) -> None:
        fence = started(store)
        store.enter("shop", "main", owner("a"))
        store.beat("a", sharing=True, run=RUN)
        assert store.claim(KEY, "a") is not None
        (holder,) = store.holders("shop", "main")
        assert store.bury(holder)
        assert list(store.holders("shop", "main")) == []
        assert list(store.claims()) == []
        with pytest.raises(FencedError):
            store.commit(Batch([Append(f"run:{RUN}", 1, [(2, RunResumed("a"))], fence)]))
        assert store.take_run(RUN) == fence + 2
        assert not store.bury(holder)
        assert store.take_run(RUN) == fence + 3

    @pytest.mark.req("D17", "I10")
    def test_who_is_buried_is_dead_on_every_line(self, store: Store) -> None:
        fence = started(store)
        store.enter("shop", "main", owner("a"))
        store.beat("a", sharing=True, run=RUN)
        (seen,) = store.holders("shop", "main")
        store.enter("shop", "docs", owner("a"))
        assert store.claim(KEY, "a") is not None
        assert store.bury(seen)
        assert list(store.held()) == []
        assert not store.beat("a", sharing=True, run=RUN)
        with pytest.raises(FencedError):
            store.take_run(RUN, "a")
        assert store.take_run(RUN) == fence + 2

    @pytest.mark.req("D17")
    def test_nobody_is_buried_whose_heart_has_moved(self, store: Store) -> None:
        fence = started(store)
        store.enter("shop", "main", owner("a"))
        store.beat("a", sharing=False, run=RUN)
        (holder,) = store.holders("shop", "main")
        store.beat("a", sharing=False, run=RUN)
        assert not store.bury(holder)
        assert [held.beat for held in store.holders("shop", "main")] == [2]
        assert store.take_run(RUN) == fence + 1

    @pytest.mark.req("I10")
    def test_who_was_buried_opens_and_takes_no_run(self, store: Store) -> None:
        fence = started(store)
        store.enter("shop", "main", owner("a"))
        assert store.take_run(RUN, "a") == fence + 1
        assert store.bury(store.holders("shop", "main")[0])
        with pytest.raises(FencedError):
            store.take_run(RUN, "a")
        other, first = RunId("r-2"), Append("run:r-2", 0, [(1, RunResumed("a"))])
        with pytest.raises(FencedError):
            store.open_run(other, "shop", "main", Batch([first]), "a")
        assert [row.run for row in store.runs()] == [RUN]
        assert store.take_run(RUN) == fence + 2

    @pytest.mark.req("I9")
    def test_burying_the_dead_takes_nothing_from_who_took_their_run(self, store: Store) -> None:
        started(store)
        for name in ("dead", "new"):
            store.enter("shop", "main", owner(name))
            store.beat(name, sharing=True, run=RUN)
        fence = store.take_run(RUN, "new")
        dead = next(h for h in store.holders("shop", "main") if h.owner.engine == "dead")
        assert store.bury(dead)
        store.commit(Batch([Append(f"run:{RUN}", 1, [(2, RunResumed("new"))], fence)]))

    @pytest.mark.req("I9")
    def test_a_run_that_another_one_drives_is_left_alone_if_asked(self, store: Store) -> None:
        fence = started(store)
        for name in ("mine", "other"):
            store.enter("shop", "main", owner(name))
        store.beat("other", sharing=True, run=RUN)
        with pytest.raises(FencedError):
            store.take_run(RUN, "mine", unless_driven=True)
        assert store.take_run(RUN, "other", unless_driven=True) == fence + 1

    def test_who_never_opened_its_run_is_buried_too(self, store: Store) -> None:
        store.enter("shop", "main", owner("a"))
        store.beat("a", sharing=True, run=RUN)
        assert store.bury(store.holders("shop", "main")[0])
        assert list(store.holders("shop", "main")) == []

    def test_leaving_twice_is_leaving(self, store: Store) -> None:
        store.leave("a")
        store.enter("shop", "main", owner("a"))
        store.leave("a")
        store.leave("a")
        assert list(store.holders("shop", "main")) == []


class TestFiles:
    def test_digests_of_files_are_cached_by_stat(self, store: Store) -> None:
        one = Stat(3, 1_700_000_000_123_456_789, 5, 2**64 - 7)
        two = Stat(4, 1, 2, 3)
        store.remember_stats([("a", one, ref("1"), True), ("\udcfe", two, ref("2"), False)])
        assert store.stats(["a", "b", "\udcfe"]) == {
            "a": (one, ref("1"), True),
            "\udcfe": (two, ref("2"), False),
        }
        store.remember_stats([("a", two, ref("3"), False)])
        assert store.stats(["a"]) == {"a": (two, ref("3"), False)}
        assert store.stats([]) == {}


class TestCheck:
    def test_a_store_in_order_has_no_problems(self, store: Store) -> None:
        fence = started(store)
        store.put(LARGE)
        store.commit(
            Batch(
                appends=[Append("run:r-1", 1, [(1, RunEnded("completed"))], fence)],
                artifacts=[artifact(content="one")],
                blobs=[(ref("one"), b"one")],
            )
        )
        assert list(store.check()) == []

    def test_an_artifact_without_content_is_named(self, store: Store) -> None:
        keep(store, artifact(content="one"))
        problems = list(store.check())
        assert len(problems) == 1
        assert ref("one") in problems[0]
        assert "step 'build'" in problems[0]
        assert "run 'r-1'" in problems[0]


class TestMaintenance:
    def test_the_end_of_a_journal_is_its_number_and_its_chain(self, store: Store) -> None:
        nothing, empty = store.end("line:main")
        assert (nothing, empty) == (0, ref("line:main"))
        stop = StopRequested(RUN, now=True, by="ann")
        store.commit(Batch(appends=[Append("line:main", 0, [(1, stop), (2, stop)])]))
        chain = first_hash("line:main")
        for seq, at in ((1, 1), (2, 2)):
            chain = next_hash(chain, seq, at, *encode(stop))
        assert store.end("line:main") == (2, chain.hex())

    @pytest.mark.req("R187")
    def test_a_run_is_removed_with_all_that_is_its_own(self, store: Store) -> None:
        started(store)
        started(store, RunId("r-2"))
        keep(store, artifact(), artifact("test", run="r-2"))
        gone = RunCollected(RUN, 1, *store.end("run:r-1"), by="ann")
        store.remove_run(RUN, Batch(appends=[Append("line:main", 0, [(5, gone)])]))
        assert [row.run for row in store.runs()] == ["r-2"]
        assert sorted(store.journals()) == ["line:main", "run:r-2"]
        assert [row.step for row in store.artifacts()] == ["test"]
        assert [item.event for item in store.read("line:main")] == [gone]
        assert store.newest("shop", "main", StepId("build")) is None
        assert list(store.read("run:r-1")) == []
        started(store, RunId("r-3"))
        assert [row.number for row in store.runs()] == [2, 3]

    def test_a_run_that_cannot_be_removed_stays_whole(self, store: Store) -> None:
        started(store)
        keep(store, artifact())
        before = state_of(store)
        wrong = Batch(appends=[Append("line:main", 9, [(5, RunResumed("e"))])])
        with pytest.raises(ConflictError):
            store.remove_run(RUN, wrong)
        with pytest.raises(UsageError, match="no run 'r-9'"):
            store.remove_run(RunId("r-9"), Batch())
        assert state_of(store) == before

    def test_whole_runs_are_added_with_their_numbers(self, store: Store) -> None:
        row = RunRow(RUN, "shop", "main", 7, 3)
        whole = Append("run:r-1", 0, [(1, RunResumed("e")), (2, RunEnded("completed"))], 3)
        store.add_runs([row], Batch(appends=[whole]))
        assert list(store.runs()) == [row]
        assert store.last("run:r-1") == 2
        started(store, RunId("r-2"))
        assert [found.number for found in store.runs()] == [7, 8]
        before = state_of(store)
        with pytest.raises(ConflictError, match="'r-1'"):
            store.add_runs([replace(row, run=RunId("r-5"), number=0), row], Batch())
        assert state_of(store) == before

    def test_imported_runs_are_history_only(self, store: Store) -> None:
        row = RunRow(RUN, "shop", "main", 0, 1, imported=True)
        first = Append("run:r-1", 0, [(1, RunResumed("e"))], 1)
        history = replace(artifact(), source="imported")
        store.add_runs([row], Batch(appends=[first], artifacts=[history]))
        assert list(store.runs()) == []
        assert list(store.runs("main", imported=True)) == [replace(row, number=1)]
        with pytest.raises(UsageError, match="was imported"):
            store.take_run(RUN)
        assert store.find("shop", "main", StepId("build"), ref("key")) is None
        key = ref("input of key")
        assert store.find("shop", "main", StepId("build"), key, content=True) is None
        assert store.newest("shop", "main", StepId("build")) is None
        assert not store.newest_of_all("shop", "main")
        assert list(store.artifacts(source="imported")) == [replace(history, number=1)]

    @pytest.mark.parametrize("content", [b"secret", LARGE], ids=["small", "large"])
    def test_purged_content_is_gone_and_says_so(self, store: Store, content: bytes) -> None:
        digest, because = store.put(content), store.put(b"it was secret")
        keep(store, replace(artifact(), digest=digest), artifact("other"))
        store.put(b"one")
        purged = ContentPurged((digest,), "ann", because)
        store.purge([digest], [1], Batch(appends=[Append("line:main", 0, [(1, purged)])]))
        assert not store.has(digest)
        with pytest.raises(
            PurgedError, match=r"was purged on 1970-01-01 .* by 'ann': it was secret"
        ):
            store.get(digest)
        assert store.find("shop", "main", StepId("build"), ref("key")) is None
        assert store.find("shop", "main", StepId("other"), ref("key")) is not None
        assert list(store.check()) == []
        assert store.put(content) == digest
        assert store.get(digest) == content

    @pytest.mark.req("I5")
    @pytest.mark.parametrize("content", [b"secret", LARGE], ids=["small", "large"])
    def test_a_purge_that_is_refused_removes_nothing(self, store: Store, content: bytes) -> None:
        digest = store.put(content)
        keep(store, replace(artifact(), digest=digest))
        said = Append("line:main", 3, [(1, ContentPurged((digest,), "ann", None))])
        with pytest.raises(ConflictError):
            store.purge([digest], [1], Batch(appends=[said]))
        assert store.get(digest) == content
        assert store.find("shop", "main", StepId("build"), ref("key")) is not None

    def test_content_that_is_missing_without_a_purge_is_a_problem(self, store: Store) -> None:
        digest = store.put(b"kept")
        keep(store, replace(artifact(), digest=digest))
        store.forget([digest], before=1 << 50)
        assert len(list(store.check())) == 1

    @pytest.mark.req("R187")
    def test_only_what_is_old_is_forgotten(self, store: Store) -> None:
        digests = [store.put(b"small"), store.put(LARGE)]
        assert {(item.digest, item.size) for item in store.stored()} == {
            (digests[0], 5),
            (digests[1], len(LARGE)),
        }
        youngest = max(item.at for item in store.stored())
        store.forget(digests, before=youngest - 60_000)
        assert all(store.has(digest) for digest in digests)
        store.forget(digests, before=youngest + 60_000)
        assert not any(store.has(digest) for digest in digests)

    @pytest.mark.req("I5", "R187")
    def test_what_a_batch_names_again_is_young_again(self, store: Store) -> None:
        """Who looked before for what nothing names may not remove it after."""
        digest = store.put(b"old")
        aged(store)
        seen = max(item.at for item in store.stored()) + 60_000
        row = replace(artifact(), digest=digest)
        store.commit(Batch(artifacts=[row], blobs=[(digest, b"old")]))
        store.forget([digest], before=seen)
        assert store.get(digest) == b"old"

    def test_all_holders_of_all_lines_are_told(self, store: Store) -> None:
        store.enter("shop", "main", owner("e1"))
        store.enter("bank", "docs", owner("e2"))
        found = sorted((project, line, held.owner.engine) for project, line, held in store.held())
        assert found == [("bank", "docs", "e2"), ("shop", "main", "e1")]
