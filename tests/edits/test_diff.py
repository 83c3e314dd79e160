"""A diff of two contents is right for every pair, and cheap for large ones."""

import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from holdfast.edits.compare import spans
from holdfast.edits.diff import difference

LINES = st.lists(st.sampled_from("abc"), max_size=30)
MANY = st.lists(st.integers(0, 60), min_size=60, max_size=400)


@given(LINES | MANY, LINES | MANY)
def test_the_spans_turn_one_text_into_the_other(old: list[object], new: list[object]) -> None:
    made: list[object] = []
    at = 0
    for a, b, c, d in spans(old, new):
        made += old[at:a] + new[c:d]
        at = b
    assert made + old[at:] == new


@given(LINES, LINES)
def test_the_fewest_lines_are_changed(old: list[str], new: list[str]) -> None:
    assume(old[:1] != new[:1] and old[-1:] != new[-1:])  # what the ends have in common comes first,
    assume(
        not any(old.count(line) == new.count(line) == 1 for line in old)
    )  # then what both have once
    common = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for x, one in enumerate(old):
        for y, other in enumerate(new):
            best = max(common[x][y + 1], common[x + 1][y])
            common[x + 1][y + 1] = common[x][y] + 1 if one == other else best
    kept = len(old) - sum(b - a for a, b, _, _ in spans(old, new))
    assert kept == common[-1][-1]


def test_texts_that_have_no_end_of_ways_to_compare_them_count_as_changed() -> None:
    dice = random.Random(3)
    old, new = ([dice.randrange(2) for _ in range(50_000)] for _ in range(2))
    [(a, b, c, d)] = spans(old, new)
    assert min(b - a, d - c) > 49_000


@pytest.mark.parametrize("seed", range(12))
def test_git_applies_what_is_printed(
    tmp_path: Path, seed: int, require_part: Callable[[str], str]
) -> None:
    dice = random.Random(seed)
    old = b"".join(b"line %d\n" % dice.randrange(20) for _ in range(60)) + (b"end" * (seed % 2))
    lines = old.splitlines(keepends=True)
    for _ in range(seed):
        lines[dice.randrange(len(lines)) :][:1] = [b"changed\n"]
        lines.insert(dice.randrange(len(lines)), b"new\n")
        del lines[dice.randrange(len(lines))]
    new = b"".join(lines)
    (tmp_path / "a b.txt").write_bytes(old)
    (tmp_path / 'l"é').write_bytes(b"caf\xe9\r\nb\r\n")
    changes = [
        difference("a b.txt", old, new, (0o644, 0o755)),
        difference("made", None, b"made"),
        difference("empty", None, b""),
        difference('l"é', b"caf\xe9\r\nb\r\n", b"caf\xe9\r\nB\r\n"),
    ]
    patch = "".join(one.text for one in changes).encode("utf-8", "surrogateescape")
    git = require_part("git")
    subprocess.run([git, "apply", "-"], input=patch, cwd=tmp_path, check=True)
    assert (tmp_path / 'l"é').read_bytes() == b"caf\xe9\r\nB\r\n"
    assert (tmp_path / "a b.txt").read_bytes() == new
    assert (tmp_path / "a b.txt").stat().st_mode & 0o100
    assert (tmp_path / "made").read_bytes() == b"made"
    assert (tmp_path / "empty").read_bytes() == b""


def test_a_large_file_with_two_changes_far_apart_is_two_changes() -> None:
    lines = [b"line %d\n" % (n % 50_000) for n in range(100_000)]
    other = list(lines)
    other[10], other[90_000] = b"x\n", b"y\n"
    del other[95_000]
    assert difference("f", b"".join(lines), b"".join(other)).stat == (2, 3)


def test_a_binary_file_is_named_and_utf_16_is_shown() -> None:
    assert difference("a", b"\0old", b"\0new").text.endswith("Binary files a/a and b/a differ\n")
    shown = difference("a", "x\ny\n".encode("utf-16"), "x\nz\n".encode("utf-16"))
    assert shown.text.endswith("@@ -1,2 +1,2 @@\n x\n-y\n+z\n")
    assert shown.stat == (1, 1)
