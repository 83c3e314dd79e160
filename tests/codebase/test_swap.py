"""While another process swaps a directory for a link, nothing outside is found, counted or indexed."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.codebase.index import Index
from holdfast.codebase.search import Query, ripgrep, search

SWAPPER = """
import ctypes, os, sys, time
exchange = ctypes.CDLL(None, use_errno=True).renameat2
here, there = os.fsencode(sys.argv[1]), os.fsencode(sys.argv[2])
for number in range(int(sys.argv[3])):
    if exchange(-100, here, -100, there, 2):
        sys.exit(f"no swap: {os.strerror(ctypes.get_errno())}")
    time.sleep(0.0005)
"""
SWAPS = 2_000


def searched(program: str) -> Callable[[Path], tuple[int, int]]:
    def look(root: Path) -> tuple[int, int]:
        hits = search(str(root), Query("inside|outside"), program)
        stolen = [line for line in hits.lines if "outside" in line.text]
        return len(hits.counts), len(stolen) + sum(count != 1 for count in hits.counts.values())

    return look


def indexed(root: Path) -> tuple[int, int]:
    with Index(str(root)) as index:
        index.update()
        names = {symbol.name for _, symbol in index.symbols()}
        said = index.database.rows("SELECT 1 FROM words WHERE words MATCH 'outside'")
        return len(names & {"inside"}), len(names & {"outside"}) + len(said)


@pytest.mark.req("D23", "I8")
@pytest.mark.parametrize("how", ["ripgrep", "python", "index"])
def test_no_search_and_no_index_follows_a_link_that_is_swapped_in(tmp_path: Path, how: str) -> None:
    if sys.platform != "linux":
        pytest.skip("the exchange of two names is Linux's")
    root, outside = tmp_path / "root", tmp_path / "outside"
    for number in range(20):
        for place, text in ((root / "d", "inside = 1\n"), (outside, "outside = 1\n" * 3)):
            (place / f"s{number}").mkdir(parents=True)
            for name in ("a.py", "b.py", "c.py"):
                (place / f"s{number}" / name).write_text(text)
    (root / "link").symlink_to(outside)
    program = ripgrep()
    if how == "ripgrep" and not program:
        pytest.skip("ripgrep is not installed")
    look = indexed if how == "index" else searched(program if how == "ripgrep" else "")
    names = [str(root / "d"), str(root / "link"), str(SWAPS)]
    swapper = subprocess.Popen([sys.executable, "-I", "-S", "-c", SWAPPER, *names])
    found = stolen = 0
    while swapper.poll() is None:
        seen, wrong = look(root)
        found, stolen = found + seen, stolen + wrong
    assert swapper.returncode == 0
    assert stolen == 0
    assert found > 0
