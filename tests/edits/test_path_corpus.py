"""Paths that strangers write, two hundred and changes of them, judged by what is there afterwards.

Nothing outside the project may change, nor what is protected in it, whatever the answer was.
"""

import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.edits.apply import apply
from holdfast.edits.change import ANY, FileChange
from holdfast.edits.tree import read_tree
from holdfast.errors import EditError
from tests.cli.test_edit import CORPUS as OF_COMMAND
from tests.crash.power import MEMORY
from tests.crash.report import Report
from tests.edits.test_tree import REFUSED, SHORT, manifest

UPWARDS = ("..", "../..", "./..", "d/../..", "d/../../.", "../project/..", "d/../../project-evil")
ENDS = ("x", "outside/f", "project-evil/x", "MARK", "etc/passwd", ".ssh/id_rsa")
PROCESSES = ("self/root", "self/cwd/..", "1/root")  # of a process: its root, and where it stands
ABSOLUTE = ("/", "//", "/.", "/dev/fd/", *(f"/proc/{one}/" for one in PROCESSES))
LINKS = ("link", "away/f", "away/new", "dangling", "hard", "fifo", "d/back/../../x", "loop/x")
NAMES = (".git", ".GIT", ".Git", ".gIT", ".holdfast", ".HOLDFAST", ".g\u200dit", ".gi\u0074\u0300")
BELOW = ("config", "hooks/pre-commit", "objects/x", "../.git/config", "./config")
ENCODED = ("%2e%2e/x", "..%2fx", "%2e%2e%2fx", "..%5cx", "..\\x", "..\\..\\x", "C:\\x", "\\\\h\\x")
ODD = ("\0", "a\0b", "a\nb", "a\rb", "\x1b[2J", "\u202ex", "a\u2028b", "\ud800", "\ufeffx", "~/x")
LONG = ("a" * 300, "a" * 5000, "a/" * 300 + "x", "../" * 2000 + "x", "d/../" * 500 + "../x")
SHAPES = ("", ".", "..", "./", "../", "d/", "d/.", "d/..", "d//f", "d/./f", "/", "//", " ", "d/f ")


def corpus() -> list[str]:
    """Every path once."""
    found = [*REFUSED, *OF_COMMAND, *LINKS, *ENCODED, *ODD, *LONG, *SHAPES]
    found += [f"{up}/{end}" for up in UPWARDS for end in ENDS]
    found += [f"{top}{end}" for top in ABSOLUTE for end in ENDS]
    found += [f"{name}/{below}" for name in NAMES for below in BELOW]
    found += [f"d/{name}/config" for name in NAMES]
    return list(dict.fromkeys(found))


def changed(count: int) -> Iterator[str]:
    """Seeded changes of the corpus."""
    kept = corpus()
    pieces = ["..", "/", ".", "\\", "%2e", "\0", "link", "away", ".git", " ", "d", "\u200d", "．"]  # noqa: RUF001 - a full-width stop, on purpose
    for number in range(count):
        dice = random.Random(f"path {number}")
        text = dice.choice(kept)[:400]
        for _ in range(dice.choice((1, 1, 2, 3, 5))):
            at = dice.randrange(len(text) + 1)
            match dice.randrange(4):
                case 0:
                    text = text[:at] + dice.choice(pieces) + text[at:]
                case 1:
                    text = text[:at] + text[at + dice.randrange(4) :]
                case 2:
                    text = text.swapcase()
                case _:
                    text = f"{text}/{dice.choice(kept)[:100]}"
        yield text


def laid() -> Path:
    """A project with links that lead out, beside what must never change."""
    base = Path(tempfile.mkdtemp(dir=MEMORY if MEMORY.is_dir() else None))
    for name in ("project/d", "project/.git/hooks", "outside", "project-evil", "journals"):
        (base / name).mkdir(parents=True)
    for name in ("outside/f", "project-evil/x", "project/.git/config", "project/d/f"):
        (base / name).write_bytes(b"old")
    (base / "project/link").symlink_to(base / "outside/f")
    (base / "project/away").symlink_to(base / "outside")
    (base / "project/dangling").symlink_to(base / "outside/none")
    (base / "project/loop").symlink_to("loop")
    (base / "project/d/back").symlink_to("..")
    (base / "project/hard").hardlink_to(base / "outside/f")
    os.mkfifo(base / "project/fifo")
    return base


def canaries(base: Path) -> dict[str, object]:
    """What no path may change: all beside the project, the repository in it, and every link."""
    return {
        name: one
        for name, one in manifest(base).items()
        if not f"{name}/".startswith(("project/", "journals/"))
        or f"{name}/".startswith("project/.git/")
        or (base / name).is_symlink()
        or name in {"project/hard", "project/fifo"}
    } | {
        "marks": [mark.exists() for mark in (Path("/MARK"), Path("/x"), base / "x", base / "MARK")]
    }


def write(base: Path, path: str, key: str) -> None:
    """Write a file whatever lies there; each time under another key, or only the first would count."""
    change = FileChange(path, ANY, SHORT)
    journals = str(base / "journals")
    apply(str(base / "project"), [change], lambda _: b"evil", journal_dir=journals, key=key)


def tried(paths: Iterator[str] | list[str], report: Report) -> None:
    base = laid()
    before = canaries(base)
    for path in paths:
        report.tried += 1
        try:
            write(base, path, f"k{report.tried}")
            report.work += 1
        except EditError as error:
            report.fired += 1
            if len(str(error)) > 5_000:
                report.violations.append(f"{path!r}: an answer of {len(str(error))} characters")
        except Exception as error:  # noqa: BLE001 - anything but a typed error is a finding
            report.violations.append(f"{path[:200]!r}: {type(error).__name__}: {error}")
        with suppress(EditError):
            read_tree(str(base / "project"), [path])
        if canaries(base) != before:
            report.violations.append(f"{path[:200]!r} changed what is not its own")
            shutil.rmtree(base)
            base = laid()
            before = canaries(base)
    shutil.rmtree(base)


@pytest.mark.req("D22", "I8")
def test_no_path_of_the_corpus_leaves_the_project(sweep: Callable[[Report], None]) -> None:
    report = Report("paths", "other")
    tried(corpus(), report)
    sweep(report)
    assert report.tried >= 200
    assert report.fired > 150, "most are refused"
    assert not report.violations, report.violations[:10]


@pytest.mark.soak("other")
@pytest.mark.req("D22", "I8")
def test_no_changed_path_leaves_the_project(sweep: Callable[[Report], None]) -> None:
    report = Report("changed paths", "other", total=10_000)
    tried(changed(10_000), report)
    sweep(report)
    assert report.work > 100, "some are ordinary paths, and are written"
    assert not report.violations, report.violations[:10]
