"""Searches find the same lines with ripgrep and without."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.codebase.search import LONGEST, Hits, Query, ripgrep, search
from holdfast.errors import UsageError
from tests.codebase.repository import commit, repository, write

TOOLS = [pytest.param(None, id="ripgrep"), pytest.param("", id="python")]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = repository(tmp_path / "root")
    write(root, "a.py", "one\ntwo = 1\nThree\nfour two\nfive\n")
    write(root, "src/b.go", "package two\n\nfunc Two() {}\n")
    write(root, "src/deep/c.py", "two\r\n")
    write(root, ".github/w.yml", "two: 2\n")
    write(root, "ignored/x.py", "two\n")
    write(root, ".gitignore", "ignored/\n")
    commit(root, "first")
    write(root, "untracked.txt", "two\n")
    write(root, ".holdfast/notes", "two\n")
    write(root, "image.bin", b"\0two\n")
    return root


def lines(hits: Hits) -> list[str]:
    return [
        f"{one.path}:{one.number}{':' if one.is_match else '-'}{one.text}" for one in hits.lines
    ]


def test_ripgrep_is_there() -> None:
    assert ripgrep()


@pytest.mark.req("R137")
@pytest.mark.parametrize("tool", TOOLS)
def test_a_pattern_is_found_in_all_files_but_those_left_out(root: Path, tool: str | None) -> None:
    assert lines(search(str(root), Query(r"^t[wx]o\b"), tool)) == [
        ".github/w.yml:1:two: 2",
        "a.py:2:two = 1",
        "src/deep/c.py:1:two",
        "untracked.txt:1:two",
    ]


@pytest.mark.req("R137")
@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize(
    "query, found",
    [
        (Query("two", languages=("go",)), {"src/b.go": 1}),
        (Query("two", languages=("go", "yaml")), {".github/w.yml": 1, "src/b.go": 1}),
        (Query("two", globs=("*.py",)), {"a.py": 2, "src/deep/c.py": 1}),
        (Query("two", globs=("src/**",)), {"src/b.go": 1, "src/deep/c.py": 1}),
        (Query("two", globs=("*.py", "!src/**")), {"a.py": 2}),
        (Query("two", globs=("!*.py", "!*.yml")), {"src/b.go": 1, "untracked.txt": 1}),
        (Query("two", paths=("src",)), {"src/b.go": 1, "src/deep/c.py": 1}),
        (Query("two", paths=("src/../a.py",)), {"a.py": 2}),
        (Query("two", globs=("*.go",), ignore_case=True), {"src/b.go": 2}),
        (Query("Tw", word=True), {}),
        (Query("Two", word=True), {"src/b.go": 1}),
        (Query("Two()", fixed=True), {"src/b.go": 1}),
        (Query("--files", fixed=True), {}),
        (Query("(?i)THREE"), {"a.py": 1}),
    ],
    ids=repr,
)
def test_what_is_asked_for_narrows(
    root: Path, tool: str | None, query: Query, found: dict[str, int]
) -> None:
    assert search(str(root), query, tool).counts == found


@pytest.mark.req("R137")
@pytest.mark.parametrize("tool", TOOLS)
def test_lines_around_a_match_are_told_from_it(root: Path, tool: str | None) -> None:
    found = search(str(root), Query("four", before=1, after=1), tool)
    assert lines(found) == ["a.py:3-Three", "a.py:4:four two", "a.py:5-five"]
    assert (found.total, found.shown) == (1, 1)


@pytest.mark.parametrize("tool", TOOLS)
def test_beyond_the_limit_matches_are_counted(root: Path, tool: str | None) -> None:
    found = search(str(root), Query("two", limit=2), tool)
    assert (found.shown, found.total, len(found.counts)) == (2, 6, 5)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_wrong_pattern_a_wrong_type_and_a_wrong_path_are_refused(
    root: Path, tool: str | None
) -> None:
    for query, words in (
        (Query("("), "does not take the pattern"),
        (Query("x", languages=("cobol",)), "no type 'cobol'"),
        (Query("x", paths=("nowhere",)), "no file or directory 'nowhere'"),
        (Query("x", paths=("..",)), "is not beneath"),
        (Query("x", paths=(".git/config",)), "never looked into"),
        (Query("a\nb"), "line break"),
    ):
        with pytest.raises(UsageError, match=words):
            search(str(root), query, tool)


@pytest.mark.parametrize("tool", TOOLS)
def test_links_lead_nowhere_not_even_if_they_are_named(
    root: Path, tmp_path: Path, tool: str | None
) -> None:
    write(tmp_path, "outside/secret.py", "two\n")
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "link.py").symlink_to(tmp_path / "outside/secret.py")
    assert "link" not in "".join(search(str(root), Query("two"), tool).counts)
    with pytest.raises(UsageError, match="not beneath"):
        search(str(root), Query("two", paths=("link",)), tool)


@pytest.mark.parametrize("kind", ["pipe", "endless"])
def test_rules_that_never_end_hold_no_search(root: Path, kind: str) -> None:
    rules = root / "src/.gitignore"
    if kind == "pipe":
        os.mkfifo(rules)
    else:
        rules.symlink_to("/dev/zero")
    found = search(str(root), Query("two"))
    assert {"a.py", "src/deep/c.py", "untracked.txt"} <= found.counts.keys()
    assert "src/.gitignore" in found.notes[0]


@pytest.mark.parametrize("tool", TOOLS)
def test_hostile_names_and_long_lines_come_whole(root: Path, tool: str | None) -> None:
    names = [b"new\nline.txt", b"caf\xe9.txt", b"-e.txt", b"a:1:b.txt", b"\x1b[2J.txt"]
    for name in names:
        with open(os.fsencode(root) + b"/" + name, "wb") as file:
            file.write(b"hostile:9:\x1b[31m\xff\n")
    write(root, "long.txt", "hostile" + "x" * 100_000)
    found = search(str(root), Query("hostile"), tool)
    assert {os.fsencode(path) for path in found.counts} == {*names, b"long.txt"}
    assert max(len(line.text) for line in found.lines) == LONGEST + 1
    assert {line.text for line in found.lines} >= {"hostile:9:\x1b[31m�"}


def test_the_configuration_of_the_caller_is_not_obeyed(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = write(tmp_path, "rc", "--glob=*.go\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(config))
    assert search(str(root), Query("two")).total == 6


WORDS = st.text(alphabet="ab.*-\\$ \t", min_size=1, max_size=6)


@given(pattern=WORDS, text=st.lists(WORDS, max_size=8))
def test_a_fixed_pattern_finds_what_contains_it(
    tmp_path_factory: pytest.TempPathFactory, pattern: str, text: list[str]
) -> None:
    root = tmp_path_factory.mktemp("fixed")
    write(root, "a.txt", "".join(f"{line}\n" for line in text))
    expected = [number + 1 for number, line in enumerate(text) if pattern in line]
    for tool in (None, ""):
        found = search(str(root), Query(pattern, fixed=True), tool)
        assert [line.number for line in found.lines] == expected


def test_lines_of_every_encoding_are_told_as_ripgrep_reads_them(tmp_path: Path) -> None:
    wide = "first\r\nneedle é\r\n"
    (tmp_path / "be.txt").write_bytes(b"\xfe\xff" + wide.encode("utf-16-be"))
    (tmp_path / "le.txt").write_bytes(b"\xff\xfe" + wide.encode("utf-16-le"))
    (tmp_path / "latin.txt").write_bytes(b"first\nneedle \xe9\rmore")
    (tmp_path / "marked.txt").write_bytes(b"\xef\xbb\xbfneedle\r\n")
    hits = search(str(tmp_path), Query("needle"))
    assert hits.counts == {"be.txt": 1, "latin.txt": 1, "le.txt": 1, "marked.txt": 1}
    assert hits.notes == ()
