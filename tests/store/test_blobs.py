"""Large contents on disk: whole or absent, whatever the disk does."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.errors import IntegrityError, StoreError
from holdfast.model.digest import Digest, digest_bytes
from holdfast.store.blobs import BlobFiles, Write
from holdfast.store.sqlite import SqliteStore

PIECES = [bytes([number]) * 9000 for number in range(8)]
WHOLE = b"".join(PIECES)
DIGEST = digest_bytes(WHOLE)
WRITER = str(Path(__file__).with_name("writer.py"))


def open_at(path: Path, write: Write = os.write) -> SqliteStore:
    return SqliteStore.open(str(path), create=True, write=write)


def file_of(path: Path, digest: Digest = DIGEST) -> Path:
    return path / "blobs" / digest[:2] / digest


def litter(path: Path) -> list[str]:
    return sorted(os.listdir(path / "blobs" / "tmp"))


def test_a_large_content_is_one_file_for_its_owner_only(tmp_path: Path) -> None:
    with open_at(tmp_path) as store:
        assert store.put(WHOLE) == DIGEST
    assert file_of(tmp_path).read_bytes() == WHOLE
    assert file_of(tmp_path).stat().st_mode & 0o777 == 0o600
    assert litter(tmp_path) == []


class Short:
    """The given call writes half of what it was given."""

    def __init__(self, call: int) -> None:
        self.left = call
        self.fired = False

    def __call__(self, handle: int, data: memoryview) -> int:
        self.left -= 1
        if self.left:
            return os.write(handle, data)
        self.fired = True
        return os.write(handle, data[: len(data) // 2])


@pytest.mark.req("D05")
@pytest.mark.parametrize("call", range(1, len(PIECES) + 1))
def test_a_short_write_is_continued(tmp_path: Path, call: int) -> None:
    short = Short(call)
    with open_at(tmp_path, short) as store:
        assert store.put(PIECES) == DIGEST
        assert short.fired
        assert store.get(DIGEST) == WHOLE
        assert list(store.check()) == []


@pytest.mark.req("D05")
def test_writes_of_one_byte_are_enough(tmp_path: Path) -> None:
    with open_at(tmp_path, lambda handle, data: os.write(handle, data[:1])) as store:
        digest = store.put(b"ab" * 10_000)
        assert store.get(digest) == b"ab" * 10_000


@pytest.mark.req("D06")
@pytest.mark.parametrize("call", [1, 2, 5, 8])
def test_a_torn_write_leaves_nothing_under_the_digest(tmp_path: Path, call: int) -> None:
    done = subprocess.run(
        [sys.executable, WRITER, str(tmp_path), "r-1", "0", f"torn:{call}"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert done.stdout == b"open\n"
    with open_at(tmp_path) as store:
        assert not store.has(DIGEST)
        assert list(store.blobs()) == []
        assert list(store.check()) == []
        assert store.put(PIECES) == DIGEST
        assert store.get(DIGEST) == WHOLE


@pytest.mark.req("D03")
def test_a_full_disk_is_an_error_that_passes(tmp_path: Path) -> None:
    full = True

    def write(handle: int, data: memoryview) -> int:
        if full:
            raise OSError(errno.ENOSPC, "no space left")
        return os.write(handle, data)

    with open_at(tmp_path, write) as store:
        with pytest.raises(StoreError, match="no space left"):
            store.put(WHOLE)
        assert litter(tmp_path) == []
        assert not store.has(DIGEST)
        full = False
        assert store.put(WHOLE) == DIGEST


def test_a_write_that_writes_nothing_ends(tmp_path: Path) -> None:
    with open_at(tmp_path, lambda *_: 0) as store, pytest.raises(StoreError, match="nothing was"):
        store.put(WHOLE)
    assert litter(tmp_path) == []


def test_a_source_that_breaks_leaves_nothing(tmp_path: Path) -> None:
    def pieces() -> object:
        yield from PIECES
        raise KeyError("source")

    with open_at(tmp_path) as store:
        with pytest.raises(KeyError):
            store.put(pieces())  # type: ignore[arg-type]  # breaks before it matters
        assert list(store.blobs()) == []
    assert litter(tmp_path) == []


@pytest.mark.req("D07")
def test_a_changed_file_is_refused_moved_away_and_repaired(tmp_path: Path) -> None:
    with open_at(tmp_path) as store:
        store.put(WHOLE)
        changed = bytearray(WHOLE)
        changed[40_000] ^= 1
        file_of(tmp_path).write_bytes(changed)
        assert store.has(DIGEST)
        given: list[bytes] = []
        with pytest.raises(IntegrityError, match=f"content '{DIGEST}' is damaged"):
            given.extend(store.chunks(DIGEST))
        assert b"".join(given) != bytes(changed)
        assert (tmp_path / "blobs" / "quarantine" / DIGEST).read_bytes() == changed
        assert not store.has(DIGEST)
        assert store.put(WHOLE) == DIGEST
        assert store.get(DIGEST) == WHOLE


@pytest.mark.req("D07")
def test_a_content_that_is_moved_away_again_changes_the_quarantine(tmp_path: Path) -> None:
    files, folder = BlobFiles(str(tmp_path / "blobs"), print), tmp_path / "blobs" / "quarantine"
    files.quarantine(DIGEST, b"once")
    os.utime(folder, (0, 0))
    files.quarantine(DIGEST, b"again")
    assert (folder / DIGEST).read_bytes() == b"again"
    assert folder.stat().st_mtime > 0


@pytest.mark.parametrize("left", [b"", WHOLE[:20_000]])
def test_a_file_of_another_size_is_replaced(tmp_path: Path, left: bytes) -> None:
    with open_at(tmp_path) as store:
        store.put(WHOLE)
        file_of(tmp_path).write_bytes(left)
        assert store.put(WHOLE) == DIGEST
        assert store.get(DIGEST) == WHOLE


def test_an_emptied_file_is_not_there(tmp_path: Path) -> None:
    with open_at(tmp_path) as store:
        store.put(WHOLE)
        file_of(tmp_path).write_bytes(b"")
        assert not store.has(DIGEST)


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_only_a_plain_file_is_content(tmp_path: Path, kind: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(WHOLE)
    with open_at(tmp_path / "store") as store:
        store.put(b"x" * 20_000)
        path = file_of(tmp_path / "store")
        path.parent.mkdir(exist_ok=True)
        match kind:
            case "link":
                path.symlink_to(elsewhere)
            case "pipe":
                os.mkfifo(path)
            case _:
                path.mkdir()
        assert not store.has(DIGEST)
        with pytest.raises((IntegrityError, StoreError)):
            store.get(DIGEST)
        assert elsewhere.read_bytes() == WHOLE


@pytest.mark.parametrize("digest", ["", "..", "../../etc/passwd", "A" * 64, "a" * 63, "g" * 64])
def test_what_is_no_digest_never_becomes_a_path(tmp_path: Path, digest: str) -> None:
    with open_at(tmp_path) as store:
        with pytest.raises(IntegrityError, match="is not a digest"):
            store.get(Digest(digest))
        with pytest.raises(IntegrityError, match="is not a digest"):
            store.has(Digest(digest))


@pytest.mark.parametrize("contents, made", [(1, 1), (100, 256)])
def test_directories_are_made_as_they_are_needed(tmp_path: Path, contents: int, made: int) -> None:
    with open_at(tmp_path) as store:
        digests = {store.put(b"%05d" % number * 5_000) for number in range(contents)}
        assert {*store.blobs()} == digests
    assert len([*(tmp_path / "blobs").glob("??")]) == made


def test_strange_names_among_the_contents_are_not_contents(tmp_path: Path) -> None:
    with open_at(tmp_path) as store:
        store.put(WHOLE)
        file_of(tmp_path).with_name("notes.txt").write_text("hello")
        assert list(store.blobs()) == [DIGEST]
        assert list(store.check()) == []
