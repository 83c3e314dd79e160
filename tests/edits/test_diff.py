"""A diff of two contents is right for every pair, and cheap for large ones."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.edits.diff import blocks, count_lines, split_lines, unified

LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"\n", b"d\r\n"]), max_size=30)
ENDS = st.sampled_from([b"", b"a", b"x\r"])
CONTENTS = st.builds(lambda lines, end: b"".join(lines) + end, LINES, ENDS)


@given(CONTENTS, CONTENTS)
def test_the_blocks_turn_one_content_into_the_other(old: bytes, new: bytes) -> None:
    before, after = split_lines(old), split_lines(new)
    made: list[bytes] = []
    at = 0
    for block in blocks(before, after):
        made += before[at : block.old_start] + after[block.new_start : block.new_end]
        at = block.old_end
    assert b"".join(made + before[at:]) == new


@pytest.mark.parametrize("seed", range(12))
def test_git_applies_what_is_printed(
    tmp_path: Path, seed: int, require_part: Callable[[str], str]
) -> None:
    import random

    dice = random.Random(seed)
    old = b"".join(b"line %d\n" % dice.randrange(20) for _ in range(60)) + (b"end" * (seed % 2))
    lines = split_lines(old)
    for _ in range(seed):
        lines[dice.randrange(len(lines)) :][:1] = [b"changed\n"]
        lines.insert(dice.randrange(len(lines)), b"new\n")
        del lines[dice.randrange(len(lines))]
    new = b"".join(lines)
    (tmp_path / "a b.txt").write_bytes(old)
    patch = unified("a b.txt", old, new, (0o644, 0o755)) + unified("made", None, b"made")
    patch += unified("empty", None, b"")
    git = require_part("git")
    subprocess.run([git, "apply", "-"], input=patch.encode(), cwd=tmp_path, check=True)
    assert (tmp_path / "a b.txt").read_bytes() == new
    assert (tmp_path / "a b.txt").stat().st_mode & 0o100
    assert (tmp_path / "made").read_bytes() == b"made"
    assert (tmp_path / "empty").read_bytes() == b""


def test_a_large_file_with_two_changes_far_apart_is_two_changes() -> None:
    lines = [b"line %d\n" % (n % 50_000) for n in range(100_000)]
    other = list(lines)
    other[10], other[90_000] = b"x\n", b"y\n"
    del other[95_000]
    assert count_lines(b"".join(lines), b"".join(other)) == (2, 3)


def test_a_binary_file_is_named_and_not_shown() -> None:
    assert unified("a", b"\0old", b"\0new").endswith("Binary files a/a and b/a differ\n")
