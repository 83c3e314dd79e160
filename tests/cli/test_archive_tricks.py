"""Archives that lie about themselves, lead elsewhere or are no files: each is refused, and soon."""

import hashlib
import io
import os
import stat
import struct
import subprocess
import tarfile
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.errors import UsageError
from holdfast.store.archive import Archive
from tests.cli.here import run_here
from tests.cli.project import COMMAND, Answer, Project
from tests.cli.test_archive import Entries, first, head, lay, packed, unpacked

SECONDS = 6  # three times the promise, of processor time
MEMORY = 128 << 20  # a listing may take half of it


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = Project(tmp_path_factory.mktemp("good"))
    lay(project)
    run_here(project)
    project.ok("export", "@", "run.zip")
    return project.root / "run.zip"


def one_entry(name: bytes, packed_up: bytes, size: int) -> bytes:
    """A ZIP file with one deflated entry that says it has this size."""
    parts = (0, 8, 0, 0, 0, len(packed_up), size, len(name), 0)
    local = struct.pack("<4s5H3L2H", b"PK\3\4", 20, *parts) + name + packed_up
    listing = struct.pack("<4s6H3L5H2L", b"PK\1\2", 20, 20, *parts, *[0] * 5) + name
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, len(listing), len(local), 0)
    return local + listing + end


def hollow(megabytes: int = 512) -> bytes:
    """Zeros, packed up: the same piece again and again."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    piece = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return piece * megabytes + packer.flush()


def overlapping(good: Path) -> bytes:
    """Five hundred names for one content of 1 MB, which is in the file once."""
    zeros = bytes(1 << 20)
    digest = hashlib.sha256(zeros).hexdigest()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(f"contents/{digest[:2]}/{digest}", zeros)
        file.writestr("holdfast.json", unpacked(good)["holdfast.json"])
    raw = stream.getvalue()
    at, end = raw.index(b"PK\1\2"), raw.index(b"PK\5\6")
    names = (f"contents/{n % 256:02x}/{n % 256:02x}{n:062x}".encode() for n in range(500))
    listing = raw[at:end] + b"".join(raw[at : at + 46] + name for name in names)
    sizes = (502, 502, len(listing), at, 0)
    return raw[:at] + listing + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, *sizes)


def many_journals(entries: Entries) -> None:
    rows = [
        {"name": f"line:{n}", "file": f"journals/{n:06}.jsonl", "last": 1, "hash": ""}
        for n in range(20_000)
    ]
    head(entries, lambda data: data.update(journals=rows))


def through_a_link(path: Path, entries: Entries, to: str) -> None:
    """A link to a folder outside, and a file whose name leads through it."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in entries.items():
            file.writestr(name, content)
        link = zipfile.ZipInfo("contents/00")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        file.writestr(link, to)
        file.writestr("contents/00/MARK", "owned")


def tapes(folder: Path, outside: Path) -> Iterator[str]:
    """Tar files: a hard link out, a device, and links that grow beyond what is looked at."""
    kinds = {"hard": tarfile.LNKTYPE, "symbolic": tarfile.SYMTYPE, "device": tarfile.CHRTYPE}
    for name, kind in kinds.items():
        with tarfile.open(folder / f"{name}.tar", "w") as tape:
            link = tarfile.TarInfo("link")
            link.type, link.linkname = kind, str(outside)
            tape.addfile(link)
            tape.addfile(tarfile.TarInfo("link/MARK"))
        yield f"{name}.tar"
    with tarfile.open(folder / "steps.tar.gz", "w:gz") as tape:
        place, long = "", "d" * 247
        for letter in "abcdefghijklmnop":  # its real path is longer than any that is resolved
            deep = tarfile.TarInfo(place + long)
            deep.type = tarfile.DIRTYPE
            tape.addfile(deep)
            link = tarfile.TarInfo(place + letter)
            link.type, link.linkname = tarfile.SYMTYPE, long
            tape.addfile(link)
            place += f"{long}/"
        link = tarfile.TarInfo("/".join("abcdefghijklmnop") + "/" + "l" * 254)
        link.type, link.linkname = tarfile.SYMTYPE, "../" * 16
        tape.addfile(link)
        escape = tarfile.TarInfo("escape")
        escape.type, escape.linkname = tarfile.SYMTYPE, f"{link.name}/../../MARK"
        tape.addfile(escape)
        tape.addfile(tarfile.TarInfo("escape"))
    yield "steps.tar.gz"


def shifted(good: Path, change: Callable[[bytearray, int], None]) -> bytes:
    """The good file with the listing of its first content changed."""
    raw = bytearray(good.read_bytes())
    name = first(unpacked(good), "contents/").encode()
    change(raw, raw.index(name, raw.index(b"PK\1\2")) - 46)
    return bytes(raw)


def write(raw: bytearray, at: int, number: int) -> None:
    raw[at : at + 4] = struct.pack("<L", number)


def laid(project: Project, good: Path) -> dict[str, str]:
    """The files, and what is said of each."""
    root, entries = project.root, unpacked(good)
    os.mkfifo(root / "pipe.zip")
    (root / "zero.zip").symlink_to("/dev/zero")
    (root / "folder.zip").mkdir()
    said = dict.fromkeys(("pipe.zip", "zero.zip", "folder.zip"), "not a regular file")
    made = {
        "liar.zip": (one_entry(b"holdfast.json", hollow(), 10), "cannot be read"),
        "overlapping.zip": (overlapping(good), "unpacks to"),
        "small.zip": (shifted(good, lambda raw, at: write(raw, at + 24, 1)), "cannot be read"),
        "large.zip": (shifted(good, lambda raw, at: write(raw, at + 24, 0xFFFFFFF0)), "unpacks to"),
        "moved.zip": (shifted(good, lambda raw, at: write(raw, at + 42, 0)), "cannot be read"),
        "locked.zip": (shifted(good, lambda raw, at: write(raw, at + 8, 0x80001)), "is encrypted"),
    }
    for name, (content, words) in made.items():
        (root / name).write_bytes(content)
        said[name] = words
    through_a_link(root / "through.zip", entries, str(project.folder))
    said["through.zip"] = "does not belong"
    for number, name in enumerate(("contents\\..\\..\\MARK", "./holdfast.json", "a\x1b[2Jb")):
        packed(root / f"name{number}.zip", {**entries, name: b"owned"})
        said[f"name{number}.zip"] = "does not belong"
    many_journals(entries)
    packed(root / "journals.zip", entries)
    said["journals.zip"] = "not the ones it names"
    return said | dict.fromkeys(tapes(root, project.folder), "no export")


@pytest.mark.req("D34", "R68", "I16")
def test_no_trick_of_an_archive_leads_out_hangs_or_is_believed(
    project: Project, good: Path
) -> None:
    said = laid(project, good)
    before = sorted(project.folder.rglob("*"))
    done = subprocess.run(
        ["sh", "-c", f'ulimit -t {SECONDS}; exec "$@"', "sh", *COMMAND, "import", "--json", *said],
        cwd=project.root,
        env=project.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=False,
    )
    answer = Answer(done.returncode, done.stdout.decode(), done.stderr.decode())
    assert (answer.code, "Traceback" in answer.err) == (2, False), answer.err
    told = {item["file"]: (item["result"], item["errors"][0]) for item in answer.json["files"]}
    assert {name: found for name, found in told.items() if said[name] not in found[1]} == {}
    assert {result for result, _ in told.values()} == {"refused"}
    left = [path for path in sorted(project.folder.rglob("*")) if path not in before]
    assert [path for path in left if project.store not in (path, *path.parents)] == []
    assert not list(project.store.glob("blobs/??/*"))


@pytest.mark.req("D34", "I16")
def test_an_entry_is_never_unpacked_beyond_what_it_says_it_has(tmp_path: Path) -> None:
    liar = tmp_path / "liar.zip"
    liar.write_bytes(one_entry(b"holdfast.json", hollow(), 10))
    tracemalloc.start()
    try:
        with pytest.raises(UsageError, match="cannot be read"):
            Archive.open(str(liar))
        assert tracemalloc.get_traced_memory()[1] < MEMORY
    finally:
        tracemalloc.stop()
