"""No path, link or swap leads outside the root; what is read is what is there."""

import ctypes
import hashlib
import os
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.edits.apply import apply, forget, recover
from holdfast.edits.change import ANY, FileChange
from holdfast.edits.tree import Entry, read_tree, split_path, write_all
from holdfast.errors import EditError

SHORT = hashlib.sha256(b"evil").hexdigest()
INSIDE = hashlib.sha256(b"inside").hexdigest()
OUTSIDE = hashlib.sha256(b"outside").hexdigest()

REFUSED = [
    "../x",
    "a/../../x",
    "a/..",
    "/MARK",
    "//MARK",
    "../project-evil/x",
    f"/proc/self/{'root'}/MARK",
    "/dev/fd/3",
    "/artifact/../../etc/passwd",
    "a\0b",
    "",
    ".",
    "./x",
    "a/./x",
    "a//x",
    "a/",
    "x ",
    "d /x",
    "x\t",
    "x\n",
    "a" * 5000,
    "/".join(["a"] * 300),
    "b" * 256,
    "é" * 128,
    "%2e%2e/x",
    "%2E./x",
    "a/..%2f..%2fx",
    "..%5cx",
    "..\\x",
    "a\\b",
    "C:\\x",
    ".git",
    ".git/hooks/pre-commit",
    ".GIT/config",
    "sub/.Git/config",
    ".holdfast/store.db",
    ".HoldFast/x",
    "%2egit/config",
    ".git%2fconfig",
    "．git/config",  # noqa: RUF001 - a full-width stop, on purpose
    ".ｇit/config",  # noqa: RUF001 - a full-width letter, on purpose
    ".g\u200cit/config",
    ".git./config",
    "‥/x",
    "．．/x",  # noqa: RUF001 - full-width stops, on purpose
    "a/\ud800",
    ".holdfast-0123.tmp",
    "d/.HOLDFAST-x.tmp",
]


def manifest(base: Path) -> dict[str, tuple[int, int, int, int, bytes | str]]:
    """Kind with mode, owner, inode, mtime, and content or link target of everything below."""
    found: dict[str, tuple[int, int, int, int, bytes | str]] = {}
    for path in sorted(base.rglob("*")):
        status = path.lstat()
        content: bytes | str = b""
        if path.is_symlink():
            content = os.readlink(path)
        elif path.is_file():
            content = path.read_bytes()
        key = str(path.relative_to(base))
        found[key] = (status.st_mode, status.st_uid, status.st_ino, status.st_mtime_ns, content)
    return found


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A project beside things that must never change."""
    for name in ("project", "project/d", "project/.git", "outside", "project-evil", "journals"):
        (tmp_path / name).mkdir()
    (tmp_path / "outside/f").write_bytes(b"outside")
    (tmp_path / "project-evil/x").write_bytes(b"outside")
    (tmp_path / "project/.git/config").write_bytes(b"[core]")
    (tmp_path / "project/d/f").write_bytes(b"inside")
    return tmp_path


def write(base: Path, path: str) -> None:
    change = FileChange(path, ANY, SHORT)
    apply(
        str(base / "project"),
        [change],
        lambda _: b"evil",
        journal_dir=str(base / "journals"),
        key="k",
    )


@pytest.mark.parametrize("path", REFUSED, ids=ascii)
@pytest.mark.req("D22", "I8")
def test_a_path_that_leads_out_or_to_protected_names_is_refused(base: Path, path: str) -> None:
    before = manifest(base)
    with pytest.raises(EditError) as raised:
        write(base, path)
    with pytest.raises(EditError):
        read_tree(str(base / "project"), [path])
    assert manifest(base) == before
    assert str(raised.value).isascii() or str(raised.value).isprintable()
    assert len(str(raised.value)) < 2000


@pytest.mark.parametrize(
    "path",
    [
        "a",
        "d/new",
        ".github/workflows/x.yml",
        ".gitignore",
        "a b",
        "é",
        "...",
        "x.tmp",
        "http%3A%2F%2Fexample.com%2Fpage",
        "100%",
        "project-evil/x",
    ],
)
def test_a_plain_path_is_allowed(base: Path, path: str) -> None:
    outside = manifest(base / "project-evil")
    write(base, path)
    assert (base / "project" / path).read_bytes() == b"evil"
    assert manifest(base / "project-evil") == outside


def symlink_file(base: Path) -> str:
    (base / "project/link").symlink_to(base / "outside/f")
    return "link"


def symlink_inside(base: Path) -> str:
    (base / "project/link").symlink_to("d/f")
    return "link"


def symlink_directory(base: Path) -> str:
    (base / "project/link").symlink_to(base / "outside")
    return "link/f"


def symlink_above_new(base: Path) -> str:
    (base / "project/link").symlink_to(base / "outside")
    return "link/new/deep/f"


def symlink_dangling(base: Path) -> str:
    (base / "project/link").symlink_to(base / "outside/none")
    return "link"


def directory(base: Path) -> str:
    (base / "project/sub").mkdir()
    return "sub"


def file_as_parent(base: Path) -> str:
    return "d/f/x"


def fifo(base: Path) -> str:
    os.mkfifo(base / "project/pipe")
    return "pipe"


def unix_socket(base: Path) -> str:
    home = os.getcwd()
    os.chdir(base / "project")  # the name of a socket has a short limit
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("socket")
    finally:
        os.chdir(home)
    return "socket"


def device(base: Path) -> str:
    if os.geteuid() != 0:
        pytest.skip("only root makes devices")
    os.mknod(base / "project/null", 0o20666, os.makedev(1, 3))
    return "null"


HOSTILE = [
    symlink_file,
    symlink_inside,
    symlink_directory,
    symlink_above_new,
    symlink_dangling,
    file_as_parent,
    fifo,
    unix_socket,
    device,
]


@pytest.mark.parametrize("plant", [*HOSTILE, directory])
@pytest.mark.req("D22", "I8")
def test_a_target_that_is_no_regular_file_is_refused(
    base: Path, plant: Callable[[Path], str]
) -> None:
    path = plant(base)
    before = manifest(base)
    with pytest.raises(EditError):
        write(base, path)
    assert manifest(base) == before


@pytest.mark.req("D22", "I8")
def test_a_target_with_a_second_hard_link_is_refused(base: Path) -> None:
    (base / "project/hard").hardlink_to(base / "outside/f")
    before = manifest(base)
    with pytest.raises(EditError, match="hard links"):
        write(base, "hard")
    assert manifest(base) == before


@pytest.mark.parametrize("plant", HOSTILE)
@pytest.mark.req("D22")
def test_reading_refuses_links_and_devices(base: Path, plant: Callable[[Path], str]) -> None:
    path = plant(base)
    with pytest.raises(EditError):
        read_tree(str(base / "project"), [path])


def test_reading_refuses_a_link_deep_in_a_directory(base: Path) -> None:
    (base / "project/d/link").symlink_to(base / "outside/f")
    with pytest.raises(EditError, match="d/link"):
        read_tree(str(base / "project"), ["d"])


def test_read_tree_lists_files_sorted_once_with_plain_modes(base: Path) -> None:
    root = base / "project"
    (root / "d/empty").mkdir()
    (root / "d/z").mkdir()
    (root / "d/z/run").write_bytes(b"outside")
    (root / "d/z/run").chmod(0o700)
    (root / "top").write_bytes(b"")
    (root / "top").chmod(0o600)
    inside = Entry("d/f", INSIDE, 6, 0o644)
    run = Entry("d/z/run", OUTSIDE, 7, 0o755)
    top = Entry("top", hashlib.sha256(b"").hexdigest(), 0, 0o644)
    given_paths = ["top", "d", "d/f", "d/z", "none", "none/deep", "d/none"]
    assert read_tree(str(root), given_paths) == (inside, run, top)
    assert read_tree(str(root), []) == ()


@given(st.text(max_size=60))
def test_an_accepted_path_stays_beneath_its_root(path: str) -> None:
    try:
        parts = split_path(path)
    except EditError:
        return
    assert "/".join(parts) == path
    assert os.path.normpath(path) == path
    assert not path.startswith(("/", ".."))


@given(st.binary(max_size=300), st.lists(st.integers(1, 50), min_size=1, max_size=20))
@pytest.mark.req("D05")
def test_a_short_write_is_continued(data: bytes, sizes: list[int]) -> None:
    taken = bytearray()
    plan = iter(sizes)

    def short(_: int, rest: memoryview) -> int:
        size = min(next(plan, 7), len(rest))
        taken.extend(rest[:size])
        return size

    write_all(-1, data, short)
    assert bytes(taken) == data


def test_a_write_that_takes_nothing_is_an_error() -> None:
    with pytest.raises(OSError, match="Input/output"):
        write_all(-1, b"x", lambda _fd, _rest: 0)


def swap_until(base: Path, stop: threading.Event, swaps: list[int]) -> None:
    """Exchange `project/d`, a directory, and `project/link`, which leads outside, atomically."""
    exchange = ctypes.CDLL(None, use_errno=True).renameat2
    here, there = os.fsencode(base / "project/d"), os.fsencode(base / "project/link")
    while not stop.is_set() or swaps[0] % 2:
        assert exchange(-100, here, -100, there, 2) == 0
        swaps[0] += 1


def race(base: Path, rounds: int) -> None:
    if sys.platform != "linux":
        pytest.skip("the exchange of two names is Linux's")
    (base / "project/link").symlink_to(base / "outside")
    stop, swaps = threading.Event(), [0]
    before = manifest(base / "outside")
    root, journals = str(base / "project"), str(base / "journals")
    swapper = threading.Thread(target=swap_until, args=(base, stop, swaps))
    swapper.start()
    written = refused = read = 0
    done = 0
    try:
        while done < rounds or swaps[0] < rounds:
            done += 1
            key = f"k{done}"
            try:
                apply(
                    root,
                    [FileChange("d/f", ANY, SHORT)],
                    lambda _: b"evil",
                    journal_dir=journals,
                    key=key,
                )
                written += 1
            except EditError:
                refused += 1
            forget(journals, key)
            try:
                found = read_tree(root, ["d/f"])
            except EditError:
                continue
            assert all(entry.digest in {INSIDE, SHORT} for entry in found)
            read += len(found)
    finally:
        stop.set()
        swapper.join()
    assert min(written, refused, read) > 0
    assert manifest(base / "outside") == before
    assert recover(root, journals, committed=lambda _: False) == []
    assert os.listdir(base / "project/d") == ["f"]


@pytest.mark.req("D23", "I8")
def test_a_directory_swapped_for_a_link_never_leads_outside(base: Path) -> None:
    race(base, 1_000)


@pytest.mark.soak("law")
@pytest.mark.req("D23", "I8")
def test_a_directory_swapped_for_a_link_never_leads_outside_in_the_long_run(base: Path) -> None:
    race(base, 30_000)
