"""PostgreSQL alone: commits whose end nobody saw, deadlocks, servers that go, processes that stand still."""

import os
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest

from holdfast.errors import ConflictError, IntegrityError, StoreError, UsageError
from holdfast.model.digest import digest_bytes
from holdfast.model.event import RunResumed
from holdfast.model.line import StopRequested
from holdfast.model.plan import RunId
from holdfast.ports import Append, Batch, Owner
from holdfast.store.pgrefusals import refusal_of
from holdfast.store.pgtables import Address
from holdfast.store.pgwatch import connect_watched
from holdfast.store.postgres import PostgresStore, make_store
from tests.postgres import Server, new_schema

LINE = "line:main"


@pytest.fixture
def url(postgres: Server) -> str:
    made = postgres.url(new_schema())
    make_store(made)
    return made


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    opened = PostgresStore.open(url)
    yield opened
    opened.close()


def told(store: PostgresStore, number: int) -> Batch:
    event = StopRequested(RunId(f"r-{number}"), now=False, by="me")
    return Batch(appends=[Append(LINE, store.last(LINE), [(number, event)])])


@dataclass
class Cut:
    """What is broken off: the next client message that holds these words, before or after it arrives.

    Or nothing is, and the message alone is lost.
    """

    words: bytes = b"\0never"
    arrives: bool = True
    breaks: bool = True
    times: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


@contextmanager
def door(server: Server, folder: Path, cut: Cut) -> Iterator[str]:
    """A socket before the server's, that breaks connections off as it is told."""
    place = folder / ".s.PGSQL.5432"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(place))
    listener.listen()

    def serve() -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=pass_on, args=(client,), daemon=True).start()

    def pass_on(client: socket.socket) -> None:
        inner = socket.socket(socket.AF_UNIX)
        inner.connect(str(server.place / ".s.PGSQL.5432"))
        answers = threading.Thread(target=copy, args=(inner, client), daemon=True)
        answers.start()
        with suppress(OSError):
            while data := client.recv(1 << 16):
                with cut.lock:
                    hit = cut.times > 0 and cut.words in data
                    cut.times -= hit
                if hit and not cut.breaks:
                    continue
                if hit and not cut.arrives:
                    break
                if hit:
                    client.shutdown(socket.SHUT_RDWR)  # the answer finds nobody
                inner.sendall(data)
                if hit:
                    inner.recv(1 << 16)  # the server has done it
                    break
        for end in (client, inner):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        answers.join()
        for end in (client, inner):
            end.close()

    def copy(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield str(folder)
    finally:
        listener.close()


@pytest.mark.req("D19", "I2")
@pytest.mark.parametrize("arrives", [True, False], ids=["arrived", "lost"])
def test_a_commit_whose_end_nobody_saw_is_made_once(
    postgres: Server, url: str, tmp_path: Path, arrives: bool
) -> None:
    cut = Cut(b"COMMIT\0", arrives)
    with door(postgres, tmp_path, cut) as place:
        store = PostgresStore.open(url.replace(str(postgres.place), place))
        for number in range(1, 6):
            cut.times = 1
            store.commit(told(store, number))
            assert cut.times == 0
        fence = store.open_run(RunId("r-1"), "shop", "main", _first("r-1"))
        cut.times = 1
        assert store.take_run(RunId("r-1")) == fence + 1
        assert [one.seq for one in store.read(LINE)] == [1, 2, 3, 4, 5]
        assert [row.fence for row in store.runs()] == [fence + 1]
        assert list(store.check()) == []
        store.close()


@pytest.mark.req("D03", "D19")
def test_a_message_that_is_lost_is_not_waited_for(postgres: Server, tmp_path: Path) -> None:
    cut = Cut(b"SELECT 7", breaks=False)
    with door(postgres, tmp_path, cut) as place:
        info = postgres.url().replace(str(postgres.place), place)
        with connect_watched(info, unanswered=0.4) as connection:
            assert connection.execute("SELECT 6, pg_sleep(1.5)").fetchone() == (6, "")
            cut.times = 1
            with pytest.raises(psycopg.OperationalError, match="did not arrive"):
                connection.execute("SELECT 7")
            assert cut.times == 0
            assert connection.closed


@pytest.mark.req("D03", "D19")
def test_the_end_of_many_statements_that_is_lost_is_not_waited_for(
    postgres: Server, tmp_path: Path
) -> None:
    cut = Cut(b"the last one", breaks=False)
    many = [*[("x" * 20_000,)] * 30, ("the last one",)]
    with door(postgres, tmp_path, cut) as place:
        info = postgres.url().replace(str(postgres.place), place)
        with connect_watched(info, unanswered=0.4) as connection:
            connection.execute("CREATE TEMPORARY TABLE said(words text)")
            connection.execute("BEGIN")
            cut.times = 1
            with pytest.raises(psycopg.OperationalError, match="did not arrive"):
                connection.cursor(binary=True).executemany("INSERT INTO said VALUES(%s)", many)
            assert cut.times == 0
            assert connection.closed


@pytest.mark.req("D19")
@pytest.mark.parametrize("arrives", [True, False], ids=["arrived", "lost"])
@pytest.mark.parametrize("words", [b"UPDATE errand SET worker", b"UPDATE errand SET report"])
def test_an_errand_is_taken_and_reported_once_though_the_answer_was_lost(
    postgres: Server, url: str, tmp_path: Path, arrives: bool, words: bytes
) -> None:
    cut = Cut(words, arrives)
    with door(postgres, tmp_path, cut) as place:
        store = PostgresStore.open(url.replace(str(postgres.place), place))
        store.enter("", "queue:q", Owner("w", "h", "b", 1, "1", 1))
        for _ in range(3):
            store.post("q", digest_bytes(b"parcel"), "e")
        cut.times = 1
        first = store.take_errand(["q"], "w")
        assert first is not None
        assert store.report(first, digest_bytes(b"done"))
        assert cut.times == 0
        states = [(one.worker, one.report is not None) for one in store.errands("e")]
        assert states == [("w", True), (None, False), (None, False)]
        store.close()


def test_a_deadlock_is_tried_again_by_reading_again(url: str) -> None:
    stores = [PostgresStore.open(url) for _ in range(2)]
    names = ("line:a", "line:b")
    failed: list[BaseException] = []

    def write(store: PostgresStore, order: tuple[str, ...]) -> None:
        try:
            for number in range(8):
                _both(store, order, number)
        except BaseException as error:  # noqa: BLE001 - told to the test
            failed.append(error)

    threads = [
        threading.Thread(target=write, args=(one, order))
        for one, order in zip(stores, (names, names[::-1]), strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert [stores[0].last(name) for name in names] == [16, 16]
    for one in stores:
        one.close()


def _both(store: PostgresStore, order: tuple[str, ...], number: int) -> None:
    """Append to two journals at once; whoever came first is let pass."""
    event = StopRequested(RunId(f"r-{number}"), now=False, by="me")
    while True:
        appends = [Append(name, store.last(name), [(number, event)]) for name in order]
        with suppress(ConflictError):
            store.commit(Batch(appends=appends))
            return


@pytest.mark.req("D14")
def test_who_stands_still_in_a_transaction_loses_it(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.store.pgtables._STILL_MS", 200)
    monkeypatch.setitem(
        __import__("holdfast.store.pgtables", fromlist=["_SETTINGS"])._SETTINGS,
        "idle_in_transaction_session_timeout",
        "200ms",
    )
    asleep, awake = PostgresStore.open(url), PostgresStore.open(url)
    asleep.commit(told(asleep, 1))
    inside, go_on = threading.Event(), threading.Event()
    tries: list[int] = []

    def slow(cursor: object) -> None:
        tries.append(1)
        cursor.execute("SELECT id FROM journal FOR NO KEY UPDATE")  # type: ignore[attr-defined]
        inside.set()
        assert go_on.wait(60)

    thread = threading.Thread(target=lambda: asleep._database.write(slow))
    thread.start()
    assert inside.wait(60)
    awake.commit(told(awake, 2))  # waits until the server gave up on the other one
    go_on.set()
    thread.join()
    assert len(tries) == 2
    for one in (asleep, awake):
        one.close()


def test_events_are_never_changed_by_anybody(
    postgres: Server, url: str, store: PostgresStore
) -> None:
    store.commit(told(store, 1))
    base, _, schema = url.partition("&schema=")
    with psycopg.connect(base, options=f"-csearch_path={schema}") as owner:
        for statement in ("UPDATE event SET at = 0", "DELETE FROM event", "TRUNCATE event"):
            refused = pytest.raises(psycopg.errors.RaiseException, match="never change")
            with refused, owner.transaction():
                owner.execute(statement.encode())
        owner.execute("ALTER TABLE event DISABLE TRIGGER event_is_kept")
    assert "the trigger 'event_is_kept' of 'event' is missing or off" in " ".join(store.check())


@pytest.mark.req("I2", "I6")
def test_rows_without_their_rows_and_a_lost_index_are_found(url: str, store: PostgresStore) -> None:
    store.commit(told(store, 1))
    store.enter("shop", "main", Owner("e", "h", "b", 1, "1", 1))
    assert list(store.check()) == []
    base, _, schema = url.partition("&schema=")
    with psycopg.connect(base, options=f"-csearch_path={schema}") as owner:
        owner.execute("SET session_replication_role = replica")  # nothing is enforced
        owner.execute("DELETE FROM line")
        owner.execute("DROP INDEX artifact_once")
    assert [*store.check()] == [
        "database: its unique index 'artifact_once' is missing or not valid",
        "database: 1 rows of 'holder' name missing rows of 'line'",
    ]


AMCHECK = """
CREATE FUNCTION bt_index_check(index regclass) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF index::text LIKE '%artifact_find' THEN
    RAISE EXCEPTION 'item order invariant violated' USING ERRCODE = 'index_corrupted';
  END IF;
END $$;
"""


@pytest.mark.req("I6")
def test_what_amcheck_finds_is_told(postgres: Server, url: str, store: PostgresStore) -> None:
    """The wheel has no such extension: one of the same form says of one index that it is damaged."""
    place = postgres.place / "share" / "extension"
    place.mkdir(parents=True)
    for folder in (postgres.place, place.parent, place):
        folder.chmod(0o755)
    (place / "amcheck.control").write_text("default_version = '1'\nrelocatable = true\n")
    (place / "amcheck--1.sql").write_text(AMCHECK)
    with psycopg.connect(postgres.url(), autocommit=True) as owner:
        owner.execute(f"SET extension_control_path = '{place.parent}:$system'".encode())
        owner.execute("CREATE EXTENSION amcheck SCHEMA public")
        try:
            found = [*store.check()]
        finally:
            owner.execute("DROP EXTENSION amcheck")
    assert found == ["database: index 'artifact_find': item order invariant violated"]
    assert [*store.check()] == []


@pytest.mark.req("D07")
def test_a_changed_event_and_a_changed_content_are_found(url: str, store: PostgresStore) -> None:
    store.commit(told(store, 1))
    digest = store.put(b"x" * 100_000)
    base, _, schema = url.partition("&schema=")
    with psycopg.connect(base, options=f"-csearch_path={schema}") as owner:
        owner.execute("ALTER TABLE event DISABLE TRIGGER ALL")
        owner.execute("UPDATE event SET body = replace(body, 'me', 'ma')")
        owner.execute("ALTER TABLE event ENABLE TRIGGER ALL")
        owner.execute("UPDATE piece SET content = set_byte(content, 7, 0)")
    found = list(store.check())
    assert any("journal 'line:main': event 1 is damaged" in line for line in found)
    assert any(digest in line and "damaged" in line for line in found)
    with pytest.raises(IntegrityError):  # it is never served
        store.get(digest)
    assert store.put(b"x" * 100_000) == digest
    assert store.get(digest) == b"x" * 100_000


def test_a_server_that_does_not_sync_is_refused() -> None:
    from tests.postgres import server

    with server("fsync=off") as running, pytest.raises(StoreError, match="fsync = off"):
        make_store(running.url())


@pytest.mark.parametrize("setting", ["off", "local"])
def test_commits_are_durable_whatever_the_server_says_by_itself(url: str, setting: str) -> None:
    base, _, schema = url.partition("&schema=")
    with psycopg.connect(base) as owner:
        owner.execute(f"ALTER ROLE postgres SET synchronous_commit = {setting}".encode())
    try:
        store = PostgresStore.open(url)
        assert store._database.query("SHOW synchronous_commit", ()) == [("on",)]
        store.close()
    finally:
        with psycopg.connect(base) as owner:
            owner.execute("ALTER ROLE postgres RESET synchronous_commit")
    assert schema


def test_addresses_never_show_a_password() -> None:
    for given in (
        "postgresql://me:secret@db:5433/team?schema=x",
        "postgresql://me@db:5433/team?password=secret&schema=x",
    ):
        address = Address(given)
        assert address.shown == "postgresql://me@db:5433/team?schema=x"
        assert address.schema == "x"
    with pytest.raises(UsageError, match="schema"):
        Address("postgresql://db/team?schema=a;b")


def test_partitions_are_made_as_journals_come(url: str, store: PostgresStore) -> None:
    base, _, schema = url.partition("&schema=")
    with psycopg.connect(base, options=f"-csearch_path={schema}") as owner:
        owner.execute("ALTER SEQUENCE journal_id_seq RESTART WITH 65535")
    for name in ("line:a", "line:b", "line:c"):
        store.commit(Batch(appends=[Append(name, 0, [(1, RunResumed("e"))])]))
    with psycopg.connect(base, options=f"-csearch_path={schema}") as owner:
        parts = owner.execute(
            "SELECT relid::regclass::text FROM pg_partition_tree('event') WHERE isleaf"
        )
        assert sorted(name for (name,) in parts) == ["event_0", "event_1"]
    assert [store.last(name) for name in ("line:a", "line:b", "line:c")] == [1, 1, 1]
    assert list(store.check()) == []


def test_a_forked_child_does_not_use_the_connections_of_its_parent(store: PostgresStore) -> None:
    store.commit(told(store, 1))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            store.last(LINE)
        except StoreError:
            code = 0
        store.close()
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert store.last(LINE) == 1


def _first(run: str) -> Batch:
    return Batch(appends=[Append(f"run:{run}", 0, [(1, RunResumed("e"))])])


def test_several_at_once_may_let_a_role_use_the_store(postgres: Server) -> None:
    schema = new_schema()
    url, role = postgres.url(schema), f"runner_{schema}"
    with psycopg.connect(postgres.url(), autocommit=True) as owner:
        owner.execute(f"CREATE ROLE {role} LOGIN")
    for _ in range(5):
        with ThreadPoolExecutor(8) as pool:
            made = list(pool.map(lambda _: make_store(url, role=role)[1], range(8)))
        assert sum(made) <= 1
    PostgresStore.open(postgres.url(schema, user=role)).close()


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ('FATAL:  password authentication failed for user "x"', "stranger"),
        ("fe_sendauth: no password supplied", "stranger"),
        ('FATAL:  no pg_hba.conf entry for host "10.0.0.9"', "stranger"),
        ('FATAL:  role "x" does not exist', "stranger"),
        ('FATAL:  database "x" does not exist', "absent"),
        ("FATAL:  sorry, too many clients already", "crowded"),
        ('FATAL:  too many connections for role "x"', "crowded"),
        ("FATAL:  the database system is starting up", "starting"),
        ("FATAL:  the database system is not accepting connections", "starting"),
        ("Connection refused", ""),
    ],
)
def test_why_a_server_lets_nobody_in_is_read_from_its_words(said: str, why: str) -> None:
    words = f'connection to server at "127.0.0.1", port 5432 failed: {said}'
    assert refusal_of(psycopg.OperationalError(words)) == why
