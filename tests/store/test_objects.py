"""Large contents in files and in an object storage: one contract, and what only a server can do."""

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import obstore
import pytest
from obstore.store import from_url

from holdfast.errors import HoldfastError, IntegrityError, StoreError, UsageError
from holdfast.model.digest import Digest, digest_bytes
from holdfast.store.blobs import BlobFiles, Blobs
from holdfast.store.contents import Contents
from holdfast.store.objects import LEASE, BlobObjects
from holdfast.store.sqlite import SqliteStore
from tests.scarce import no_larger_files
from tests.store import s3

pytestmark = pytest.mark.req("R178")

PIECES = [bytes([number]) * 9000 for number in range(8)]
WHOLE = b"".join(PIECES)
DIGEST = digest_bytes(WHOLE)
KEY = f"{DIGEST[:2]}/{DIGEST}"
LARGE = b"0123456789abcdef" * (20 << 16)  # 20 MB, sent in three parts
PUT = """
import sys
from holdfast.store.objects import BlobObjects
size = int(sys.argv[2])
print(BlobObjects(sys.argv[1], None).put(iter([b"0123456789abcdef" * (size // 16)])))
"""


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    with s3.server() as found:
        yield found


@pytest.fixture
def door(address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[s3.Door]:
    door = s3.Door(address)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in s3.variables(door.address).items():
        monkeypatch.setenv(name, value)
    yield door
    door.shut()


@pytest.fixture
def location(door: s3.Door) -> str:
    return f"s3://{s3.BUCKET}/{uuid.uuid4().hex}/deep"


class Server:
    """What lies on the server, past everything that is tested."""

    def __init__(self, location: str) -> None:
        self._store = from_url(location, client_options={"allow_http": True})

    def __getitem__(self, key: str) -> bytes:
        return bytes(obstore.get(self._store, key).bytes())

    def __setitem__(self, key: str, content: bytes) -> None:
        obstore.put(self._store, key, content)

    def __delitem__(self, key: str) -> None:
        obstore.delete(self._store, key)

    def __iter__(self) -> Iterator[str]:
        return (meta["path"] for page in obstore.list(self._store) for meta in page)


@pytest.fixture
def objects(location: str, tmp_path: Path) -> BlobObjects:
    return BlobObjects(location, str(tmp_path / "cache"))


@pytest.fixture
def server(location: str) -> Server:
    return Server(location)


def poisoned(why: str) -> None:
    raise AssertionError(why)


@pytest.fixture(params=["files", "objects"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    if request.param == "files":
        return BlobFiles(str(tmp_path / "blobs"), poisoned)
    found: Blobs = request.getfixturevalue("objects")
    return found


def read(blobs: Blobs, digest: Digest = DIGEST) -> bytes:
    return b"".join(blobs.chunks(digest))


# the contract


def test_what_is_put_is_read(blobs: Blobs) -> None:
    assert not blobs.has(DIGEST)
    assert not blobs.known(DIGEST, len(WHOLE))
    assert blobs.put(PIECES) == DIGEST
    assert blobs.has(DIGEST)
    assert blobs.known(DIGEST, len(WHOLE))
    assert not blobs.known(DIGEST, len(WHOLE) + 1)
    assert read(blobs) == WHOLE


def test_what_is_missing_says_so(blobs: Blobs) -> None:
    with pytest.raises(IntegrityError, match=f"content '{DIGEST}' is missing"):
        read(blobs)
    blobs.quarantine(DIGEST)
    blobs.forget(DIGEST)
    blobs.forget(DIGEST, int(time.time()))
    assert list(blobs.digests()) == []


def test_equal_content_is_stored_once(blobs: Blobs) -> None:
    assert blobs.put(PIECES) == blobs.put(iter([WHOLE])) == DIGEST
    assert list(blobs.digests()) == [DIGEST]


def test_contents_are_listed_in_order_with_sizes_and_times(blobs: Blobs) -> None:
    began = int(time.time())
    sizes = {blobs.put([bytes([n]) * (20_000 + n)]): 20_000 + n for n in range(5)}
    assert list(blobs.digests()) == sorted(sizes)
    stored = list(blobs.stored())
    assert [(digest, size) for digest, size, _ in stored] == sorted(sizes.items())
    assert all(began <= at <= time.time() for *_, at in stored)


def test_only_what_is_old_is_forgotten(blobs: Blobs) -> None:
    blobs.put(PIECES)
    blobs.forget(DIGEST, int(time.time()) - 60)
    assert read(blobs) == WHOLE
    blobs.forget(DIGEST, int(time.time()) + 60)
    assert not blobs.has(DIGEST)
    with pytest.raises(IntegrityError, match="is missing"):
        read(blobs)


def test_a_purge_asks_for_no_age(blobs: Blobs) -> None:
    blobs.put(PIECES)
    blobs.mark([DIGEST], "7 line:main")
    assert blobs.marked() == {DIGEST: "7 line:main"}
    blobs.forget(DIGEST)
    blobs.forget_damaged(DIGEST)
    blobs.sync_removed([DIGEST])
    blobs.unmark([DIGEST])
    assert blobs.marked() == {}
    assert list(blobs.digests()) == []


def test_a_source_that_breaks_leaves_nothing(blobs: Blobs) -> None:
    def broken() -> Iterator[bytes]:
        yield WHOLE
        raise KeyError("source")

    with pytest.raises(KeyError):
        blobs.put(broken())
    assert list(blobs.digests()) == []


# a whole store


@pytest.mark.req("D07")
def test_a_store_keeps_its_large_contents_there(
    objects: BlobObjects, location: str, server: Server, tmp_path: Path
) -> None:
    with SqliteStore.open(str(tmp_path / "store"), create=True) as store:
        contents = Contents(store._database, objects)
        assert contents.put(b"small") == digest_bytes(b"small")
        assert contents.put(PIECES) == contents.put(WHOLE) == DIGEST
        assert list(server) == [KEY]
        assert {item.digest: item.size for item in contents.stored()} == {
            digest_bytes(b"small"): 5,
            DIGEST: len(WHOLE),
        }
        fresh = Contents(store._database, BlobObjects(location, None))
        server[KEY] = b"x" * len(WHOLE)
        with pytest.raises(IntegrityError, match="is damaged"):
            list(fresh.chunks(DIGEST))
        assert not contents.has(DIGEST)
        assert contents.put(WHOLE) == DIGEST
        assert b"".join(fresh.chunks(DIGEST)) == WHOLE


# damage


@pytest.mark.req("D07")
@pytest.mark.parametrize("left", [b"", WHOLE[:-1], WHOLE[:-1] + b"x", WHOLE + b"x"])
def test_a_damaged_object_is_never_given_and_is_repaired(
    location: str, server: Server, left: bytes
) -> None:
    objects = BlobObjects(location, None)
    objects.put(PIECES)
    server[KEY] = left
    given: list[bytes] = []
    with pytest.raises(IntegrityError, match=f"content '{DIGEST}' is damaged"):
        given.extend(objects.chunks(DIGEST))
    assert b"".join(given) != left or not left
    objects.quarantine(DIGEST)
    assert server[f"quarantine/{DIGEST}"] == left
    assert not objects.has(DIGEST)
    assert objects.put(PIECES) == DIGEST
    assert server[KEY] == read(objects) == WHOLE
    objects.forget_damaged(DIGEST)
    assert list(server) == [KEY]


@pytest.mark.req("D07")
@pytest.mark.parametrize("left", [b"", WHOLE[:-1] + b"x", WHOLE + b"x"])
def test_storing_again_replaces_what_is_damaged(
    objects: BlobObjects, server: Server, left: bytes
) -> None:
    server[KEY] = left
    assert objects.put(PIECES) == DIGEST
    assert server[KEY] == WHOLE


def test_what_was_repaired_meanwhile_is_not_taken_away(location: str, server: Server) -> None:
    objects = BlobObjects(location, None)
    server[KEY] = WHOLE[:-1] + b"x"
    with pytest.raises(IntegrityError):
        read(objects)
    server[KEY] = WHOLE
    objects.quarantine(DIGEST)
    assert read(objects) == WHOLE


def test_strange_keys_among_the_objects_are_not_contents(
    objects: BlobObjects, server: Server
) -> None:
    objects.put(PIECES)
    for key in ("notes.txt", f"00/{DIGEST}", f"quarantine/{DIGEST}", f"{KEY}.bak", f"x/{KEY}"):
        server[key] = b"hello"
    assert list(objects.digests()) == [DIGEST]


# the cache


def cached(tmp_path: Path) -> list[Path]:
    return [path for path in (tmp_path / "cache").glob("??/*") if path.is_file()]


def test_a_copy_saves_the_way(door: s3.Door, objects: BlobObjects, location: str) -> None:
    BlobObjects(location, None).put(PIECES)
    assert read(objects) == read(objects) == WHOLE
    assert door.count("GET", KEY) == 1


def test_what_is_stored_here_is_not_fetched(door: s3.Door, objects: BlobObjects) -> None:
    digest = objects.put([LARGE])
    assert read(objects, digest) == LARGE
    assert door.count("GET", digest) == 0


@pytest.mark.req("D07")
@pytest.mark.parametrize("kind", ["changed", "cut", "empty", "link", "folder"])
def test_a_damaged_copy_is_fetched_again(
    objects: BlobObjects, server: Server, tmp_path: Path, kind: str
) -> None:
    objects.put(PIECES)
    (copy,) = cached(tmp_path)
    match kind:
        case "changed":
            copy.write_bytes(WHOLE[:-1] + b"x")
        case "cut":
            copy.write_bytes(WHOLE[:-1])
        case "empty":
            copy.write_bytes(b"")
        case "link":
            (tmp_path / "other").write_bytes(WHOLE)
            copy.unlink()
            copy.symlink_to(tmp_path / "other")
        case _:
            copy.unlink()
            copy.mkdir()
    assert read(objects) == WHOLE
    assert list(server) == [KEY]


def test_a_copy_of_what_is_gone_does_not_count(
    objects: BlobObjects, server: Server, tmp_path: Path
) -> None:
    objects.put(PIECES)
    del server[KEY]
    with pytest.raises(IntegrityError, match="is missing"):
        read(objects)
    assert cached(tmp_path) == []


def test_the_copies_used_longest_ago_make_room(location: str, tmp_path: Path) -> None:
    objects = BlobObjects(location, str(tmp_path / "cache"), limit=100_000)
    digests = [objects.put([bytes([n]) * 30_000]) for n in range(3)]
    for number, digest in enumerate(digests):
        path = tmp_path / "cache" / digest[:2] / digest
        os.utime(path, (number, number))
    read(objects, digests[0])  # so the second is the oldest
    newest = objects.put([b"n" * 30_000])
    assert {path.name for path in cached(tmp_path)} == {digests[0], newest}


def test_copies_of_other_processes_count(location: str, tmp_path: Path) -> None:
    both = [BlobObjects(location, str(tmp_path / "cache"), limit=100_000) for _ in range(2)]
    for number in range(12):
        both[number % 2].put([bytes([number]) * 20_000])
        assert sum(path.stat().st_size for path in cached(tmp_path)) <= 100_000


def test_what_is_larger_than_the_cache_goes_past_it(location: str, tmp_path: Path) -> None:
    objects = BlobObjects(location, str(tmp_path / "cache"), limit=len(WHOLE) - 1)
    objects.put(PIECES)
    assert read(objects) == WHOLE
    assert cached(tmp_path) == []


def test_a_cache_that_cannot_be_written_is_skipped(location: str, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the cache should be")
    objects = BlobObjects(location, str(tmp_path / "cache"))
    assert objects.put(PIECES) == DIGEST
    assert read(objects) == WHOLE


@pytest.mark.req("D03")
def test_a_disk_that_refuses_costs_only_the_copies(
    objects: BlobObjects, location: str, tmp_path: Path
) -> None:
    with no_larger_files(10_000):
        assert objects.put(PIECES) == DIGEST
        assert read(objects) == WHOLE
        with pytest.raises(StoreError, match="content cannot be stored"):
            objects.put([LARGE])
    assert cached(tmp_path) == []
    assert list((tmp_path / "cache" / "tmp").iterdir()) == []
    assert list(objects.digests()) == [DIGEST]


def test_a_read_that_stops_leaves_no_copy(
    objects: BlobObjects, location: str, tmp_path: Path
) -> None:
    digest = BlobObjects(location, None).put([LARGE])
    pieces = objects.chunks(digest)
    next(pieces)
    pieces.close()  # type: ignore[attr-defined]  # it is a generator
    assert cached(tmp_path) == []
    assert list((tmp_path / "cache" / "tmp").iterdir()) == []


def test_what_a_kill_left_in_the_cache_is_removed(location: str, tmp_path: Path) -> None:
    objects = BlobObjects(location, str(tmp_path / "cache"))
    for age in (0, 3600):
        litter = tmp_path / "cache" / "tmp" / f"{age}"
        litter.parent.mkdir(parents=True, exist_ok=True)
        litter.write_bytes(b"half")
        os.utime(litter, (time.time() - age, time.time() - age))
    objects.put(PIECES)
    assert [path.name for path in (tmp_path / "cache" / "tmp").iterdir()] == ["0"]


# age, and removing what is stored again


def test_what_is_old_is_stored_again(door: s3.Door, location: str) -> None:
    BlobObjects(location, None).put(PIECES)
    later = BlobObjects(location, None, now=lambda: time.time() + 3600)
    assert not later.known(DIGEST, len(WHOLE))
    assert later.put(PIECES) == DIGEST
    puts = [item for item in door.asked if item.method == "PUT" and KEY in item.path]
    assert ["If-None-Match" in {name.title() for name in item.headers} for item in puts] == [
        True,
        True,
        False,
    ]


def test_a_removal_under_way_is_waited_for(location: str, server: Server) -> None:
    waits = 0

    def wait(seconds: float) -> None:
        nonlocal waits
        waits += 1
        del server[KEY]  # by somebody who saw it before it was renewed
        del server[f"removing/{DIGEST}"]

    server[KEY] = b"damaged, or old"
    server[f"removing/{DIGEST}"] = b"-"
    objects = BlobObjects(location, None, wait=wait)
    assert objects.put(PIECES) == DIGEST
    assert waits == 1
    assert server[KEY] == WHOLE


def test_a_note_of_the_dead_does_not_hold_anybody_up_for_ever(
    location: str, server: Server
) -> None:
    waits: list[float] = []
    server[KEY] = b"damaged, or old"
    server[f"removing/{DIGEST}"] = b"-"
    assert BlobObjects(location, None, wait=waits.append).put(PIECES) == DIGEST
    assert sum(waits) == LEASE
    assert list(server) == [KEY]


def test_two_removers_do_not_meet(objects: BlobObjects, server: Server) -> None:
    objects.put(PIECES)
    server[f"removing/{DIGEST}"] = b"-"
    objects.forget(DIGEST, int(time.time()) + 60)
    assert objects.has(DIGEST)
    objects.forget_unfinished(int(time.time()) - 60)
    assert f"removing/{DIGEST}" in list(server)
    objects.forget_unfinished(int(time.time()) + 60)
    objects.forget(DIGEST, int(time.time()) + 60)
    assert list(server) == []


def test_a_remover_that_was_slow_leaves_the_object(location: str) -> None:
    clock = iter([0.0, 61.0])
    objects = BlobObjects(location, None, now=lambda: next(clock))
    objects.put(PIECES)
    objects.forget(DIGEST, int(time.time()) + 60)
    assert objects.has(DIGEST)


def test_a_server_that_knows_no_conditions_will_do(
    location: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CONDITIONAL_PUT", "disabled")
    objects = BlobObjects(location, None)
    assert objects.put(PIECES) == objects.put(PIECES) == DIGEST
    server[KEY] = b"damaged"
    assert objects.put(PIECES) == DIGEST
    assert server[KEY] == WHOLE
    server[f"removing/{DIGEST}"] = b"-"
    objects.forget(DIGEST, int(time.time()) + 60)
    assert objects.has(DIGEST)


# processes and servers that come and go


def started(location: str, size: int) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    argv = [sys.executable, "-c", PUT, location, str(size)]
    return subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE)


def test_two_processes_put_the_same_content(door: s3.Door, location: str, server: Server) -> None:
    door.meeting = threading.Barrier(2)
    both = [started(location, 64_000) for _ in range(2)]
    said = {process.communicate(timeout=120)[0].strip().decode() for process in both}
    content = LARGE[:64_000]
    assert said == {digest_bytes(content)}
    assert [server[key] for key in server] == [content]


@pytest.mark.req("D01")
@pytest.mark.parametrize("size, held", [(64_000, "/deep/"), (len(LARGE), "partNumber=2")])
def test_a_kill_in_the_midst_of_a_put_leaves_nothing(
    door: s3.Door, objects: BlobObjects, location: str, size: int, held: str
) -> None:
    door.hold = held
    process = started(location, size)
    assert door.held.wait(120)
    process.send_signal(signal.SIGKILL)
    assert process.communicate(timeout=60)[0] == b""
    door.hold = ""
    digest = digest_bytes(LARGE[:size])
    assert not objects.has(digest)
    assert list(objects.digests()) == []
    assert objects.put([LARGE[:size]]) == digest
    assert read(BlobObjects(location, None), digest) == LARGE[:size]


def test_a_server_that_is_gone_is_told_and_may_come_back(door: s3.Door, location: str) -> None:
    objects = BlobObjects(location, None, patience=0.2)
    door.shut()
    asks: list[Callable[[], object]] = [
        lambda: objects.put(PIECES),
        lambda: objects.put([LARGE]),
        lambda: objects.known(DIGEST, 1),
        lambda: objects.has(DIGEST),
        lambda: read(objects),
        lambda: list(objects.digests()),
        lambda: objects.forget(DIGEST),
        lambda: objects.mark([DIGEST], "1 run:x"),
    ]
    for ask in asks:
        with pytest.raises(StoreError) as told:
            ask()
        assert told.value.message == (
            f"'{location}' at '{door.address}' cannot be reached: connection refused"
        )
        assert told.value.hint == "check AWS_ENDPOINT_URL and the network"
    door.open()
    assert not objects.has(DIGEST)
    assert objects.put(PIECES) == DIGEST
    assert read(objects) == WHOLE


def test_a_busy_server_is_asked_again(door: s3.Door, objects: BlobObjects) -> None:
    door.busy = 2
    assert objects.put(PIECES) == DIGEST
    door.busy = 2
    assert objects.has(DIGEST)
    assert door.busy == 0


def test_a_server_that_stays_busy_is_told(door: s3.Door, location: str) -> None:
    door.busy = 1 << 30
    with pytest.raises(StoreError, match=r"cannot serve contents \(503\)"):
        BlobObjects(location, None, patience=0.2).put(PIECES)


def test_an_answer_that_breaks_off_is_no_damage(
    door: s3.Door, objects: BlobObjects, location: str
) -> None:
    digest = BlobObjects(location, None).put([LARGE])
    door.cut = 1
    assert read(objects, digest) == LARGE
    assert door.count("GET", digest) == 2


# addresses and keys


def test_wrong_keys_are_told_without_them(
    address: str, objects: BlobObjects, location: str
) -> None:
    objects.put(PIECES)
    s3.ask(f"{address}/moto-api/reset-auth", "POST", b"0")
    try:
        for ask in (objects.put, lambda _: objects.has(DIGEST), lambda _: list(objects.digests())):
            with pytest.raises(StoreError, match=r"refused the credentials \(403") as told:
                ask(PIECES)
            assert f"'{location}'" in told.value.message
            for secret in s3.KEYS.values():
                assert secret not in str(told.value)
            assert told.value.__cause__ is None
    finally:
        s3.ask(f"{address}/moto-api/reset-auth", "POST", b"inf")


def test_a_missing_bucket_is_told(door: s3.Door) -> None:
    objects = BlobObjects("s3://nowhere/x", None)
    for ask in (lambda: objects.put(PIECES), lambda: read(objects), lambda: [*objects.digests()]):
        with pytest.raises(StoreError, match=r"there is no bucket for 's3://nowhere/x' at"):
            ask()


def test_keys_of_a_profile_are_used(
    door: s3.Door, location: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in s3.KEYS:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_PROFILE", "team")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    with pytest.raises(UsageError, match="the profile 'team' has no static keys"):
        BlobObjects(location, None)
    (tmp_path / "credentials").write_text(
        "[default]\naws_access_key_id = AKIAOTHER\naws_secret_access_key = other\n"
        "[team]\naws_access_key_id = AKIATEAM\naws_secret_access_key = secret\n"
    )
    BlobObjects(location, None).put(PIECES)
    assert "Credential=AKIATEAM/" in door.asked[-1].headers["authorization"]


@pytest.mark.parametrize(
    "place, told",
    [
        ("s3://", "'s3://' is no place"),
        ("memory:///", "'memory:///' is no place"),
        ("file:///tmp/x", "'file:///tmp/x' is no place"),
        ("ftp://host/x", "'ftp://host/x' is no place"),
        ("s3://b/x?key=1", "is no place"),
        ("s3://[b/x", "is no place"),
        ("s3://name:word@bucket/x", "'s3://…@bucket' has a key in it"),
        ("s3://word@bucket/x", "'s3://…@bucket' has a key in it"),
    ],
)
def test_what_is_no_place_is_refused(door: s3.Door, place: str, told: str) -> None:
    with pytest.raises(UsageError, match=told) as error:
        BlobObjects(place, None)
    assert "word" not in str(error.value)


def test_a_server_without_encryption_must_be_allowed(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ALLOW_HTTP")
    with pytest.raises(UsageError, match="without encryption") as told:
        BlobObjects(location, None)
    assert told.value.hint == "AWS_ALLOW_HTTP=true allows that"


def test_words_before_a_server_are_not_told(
    door: s3.Door, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://name:word@127.0.0.1:1")
    with pytest.raises(HoldfastError, match=r"at 'http://127.0.0.1:1' cannot be reached") as told:
        BlobObjects(location, None, patience=0.1).has(DIGEST)
    assert "word" not in str(told.value)


def test_without_the_library_one_line_says_what_to_install() -> None:
    script = (
        "import sys; sys.modules['obstore'] = None\n"
        "from holdfast.store.objects import BlobObjects\n"
        "try: BlobObjects('s3://b/x', None)\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout.decode() == (
        "UsageError contents in 's3://b/x' need obstore, which is not installed\n"
        "hint: pip install 'holdfast[s3]'\n"
    )
