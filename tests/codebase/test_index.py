"""The index follows the files: whatever happened, it says what a new one would say."""

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.codebase.index import Index
from tests.codebase import languages
from tests.codebase.repository import commit, fresh, git, repository, told, write

PATHS = ["a.py", "app/session.py", "app/store.py", "tests/test_session.py", "lib/x.ts", "lib/y.ts"]
TEXTS = [
    languages.PYTHON,
    "from app.session import Session\n\ndef test_open():\n    Session().open('x')\n",
    languages.TYPESCRIPT,
    "import { parse } from './x'\nexport const openSession = () => parse('a')\n",
    "def open_store(): pass\n" * 3,
    "",
]
EDITS = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(PATHS), st.sampled_from(TEXTS)),
    st.tuples(st.just("delete"), st.sampled_from(PATHS), st.just("")),
    st.tuples(st.just("move"), st.sampled_from(PATHS), st.sampled_from(PATHS)),
    st.tuples(st.just("commit"), st.just(""), st.sampled_from(["open sessions", "fix store"])),
    st.tuples(st.just("undo"), st.just(""), st.just("")),
    st.tuples(st.just("ignore"), st.just(""), st.sampled_from(["lib/", "*.ts\n!y.ts", ""])),
)


def carry_out(root: Path, edit: tuple[str, str, str]) -> None:
    kind, path, what = edit
    match kind:
        case "write":
            write(root, path, what)
        case "delete":
            (root / path).unlink(missing_ok=True)
        case "move" if (root / path).exists() and path != what:
            (root / what).parent.mkdir(parents=True, exist_ok=True)
            os.replace(root / path, root / what)
        case "commit":
            commit(root, what)
        case "undo" if len(git(root, "rev-list", "--all").split()) > 1:
            git(root, "reset", "-q", "--hard", "HEAD~1")
        case "ignore":
            write(root, ".gitignore", what)
        case _:
            pass  # nothing to move, nothing to undo


ROUNDS = st.lists(st.lists(EDITS, max_size=4), min_size=1, max_size=4)


@pytest.mark.req("R138")
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rounds=ROUNDS)
def test_an_index_that_followed_says_what_a_new_one_says(
    tmp_path: Path, rounds: list[list[tuple[str, str, str]]]
) -> None:
    follow(tmp_path, rounds)


@pytest.mark.soak("law")
@pytest.mark.req("R138")
@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(rounds=ROUNDS)
def test_an_index_that_followed_much_says_what_a_new_one_says(
    tmp_path: Path, rounds: list[list[tuple[str, str, str]]]
) -> None:
    follow(tmp_path, rounds)


def follow(tmp_path: Path, rounds: list[list[tuple[str, str, str]]]) -> None:
    root = tmp_path / "root"
    shutil.rmtree(root, ignore_errors=True)
    repository(root)
    write(root, "app/session.py", languages.PYTHON)
    commit(root, "first")
    place = str(tmp_path / "code.db")
    for name in tmp_path.glob("code.db*"):
        name.unlink()
    for edits in rounds:
        for edit in edits:
            carry_out(root, edit)
        with Index(str(root), place) as index:
            index.update()
            assert told(index) == fresh(root)


def test_nothing_is_read_twice_and_a_move_is_not_parsed_again(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write(root, "a.py", languages.PYTHON)
    write(root, "b.py", "x = 1\n")
    for path in root.iterdir():
        os.utime(path, (1, 1))
    place = str(tmp_path / "code.db")
    with Index(str(root), place) as index:
        assert (index.update().read, index.update().parsed) == (2, 0)
    (root / "a.py").rename(root / "c.py")
    with Index(str(root), place) as index:
        updated = index.update()
        assert (updated.parsed, updated.removed) == (0, 1)
        assert [file.path for file in index.files()] == ["b.py", "c.py"]


def test_a_change_that_keeps_size_and_time_is_seen(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write(root, "a.py", "first = 1\n")
    os.utime(root / "a.py", (1, 1))
    place = str(tmp_path / "code.db")
    with Index(str(root), place) as index:
        index.update()
    write(root, "a.py", "other = 1\n")
    os.utime(root / "a.py", (1, 1))
    with Index(str(root), place) as index:
        index.update()
        assert [symbol.name for _, symbol in index.symbols()] == ["other"]


def test_names_that_are_no_text_are_held_to_gitignore_and_keep_the_index(tmp_path: Path) -> None:
    root = tmp_path / "root"
    said: list[str] = []
    write(root, ".gitignore", b"*.pyc\nout\xe9.py\n")
    for name in (b"lat\xe9.py", b"lat\xe9.pyc", b"out\xe9.py"):
        with open(os.fsencode(root) + b"/" + name, "wb") as file:
            file.write(b"x = 1\n")
    for _ in range(2):
        with Index(str(root), str(tmp_path / "code.db"), say=said.append) as index:
            index.update()
            found = [os.fsencode(file.path) for file in index.files()]
        assert found == [b".gitignore", b"lat\xe9.py"]
    assert said == []


@pytest.mark.req("R138")
def test_a_directory_without_git_is_indexed_as_its_gitignore_allows(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for path in ("a.py", "built/b.py", "deep/c.py", "deep/out/d.py", ".git/e.py", ".holdfast/f.py"):
        write(root, path, "x = 1\n")
    write(root, ".gitignore", "built/\n")
    write(root, "deep/.gitignore", "/out\n")
    shutil.rmtree(root / ".git")
    with Index(str(root)) as index:
        index.update()
        found = [file.path for file in index.files()]
    assert found == [".gitignore", "a.py", "deep/.gitignore", "deep/c.py"]


def test_what_is_no_text_or_cannot_be_parsed_is_named_with_the_reason(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write(root, "deep.py", "(" * 100_000)  # takes time by the square of it
    write(root, "fine.py", "def fine(): pass\n")
    write(root, "image.png", b"\x89PNG\0\0")
    write(root, "huge.py", b"x = 1\n" * 200_000)
    write(root, "latin.py", b"# caf\xe9\nx = 1\n")
    write(root, "wide.txt", "wide words".encode("utf-16"))
    with Index(str(root)) as index:
        assert index.update().left_out == (
            ("deep.py", "takes too long or too much memory: not parsed"),
            ("huge.py", "too large: only its name is known"),
            ("image.png", "no text"),
            ("latin.py", "no UTF-8: not parsed"),
        )
        assert [(path, symbol.name) for path, symbol in index.symbols()] == [("fine.py", "fine")]


@pytest.mark.req("D22")
def test_links_are_not_followed_neither_files_nor_directories(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    write(outside, "secret.py", "secret_key = 1\n")
    root = repository(tmp_path / "root")
    write(root, "real/a.py", "x = 1\n")
    write(root, "pipe.py", "x = 1\n").chmod(0o644)
    commit(root, "first")
    (root / "pipe.py").unlink()
    shutil.rmtree(root / "real")
    (root / "real").symlink_to(outside)
    write(outside, "a.py", "stolen = 1\n")
    (root / "link.py").symlink_to(outside / "secret.py")
    os.mkfifo(root / "pipe.py")
    with Index(str(root)) as index:
        updated = index.update()
        assert [file.path for file in index.files()] == []
    assert ("link.py", "a link") in updated.left_out
    assert ("pipe.py", "no regular file") in updated.left_out


def test_names_that_are_no_text_are_kept_as_they_are(tmp_path: Path) -> None:
    root = repository(tmp_path / "root")
    hostile = [b"caf\xe9.py", b"new\nline.py", b"\x1b[31mred.py", b"--force.py", b'"quoted".py']
    for name in hostile:
        with open(os.fsencode(root) + b"/" + name, "wb") as file:
            file.write(b"x = 1\n")
    commit(root, "first")
    with Index(str(root)) as index:
        index.update()
        assert sorted(os.fsencode(file.path) for file in index.files()) == sorted(hostile)


def test_submodules_and_worktrees_belong_and_other_repositories_do_not(tmp_path: Path) -> None:
    inner = repository(tmp_path / "inner")
    write(inner, "part.py", "part = 1\n")
    commit(inner, "part")
    root = repository(tmp_path / "root")
    write(root, "a.py", "x = 1\n")
    git(root, "submodule", "--quiet", "add", str(inner), "vendor/inner")
    commit(root, "first")
    repository(root / "other")
    write(root, "other/b.py", "x = 1\n")
    git(root, "worktree", "add", "-q", str(tmp_path / "tree"))
    with Index(str(root)) as index:
        updated = index.update()
        assert [file.path for file in index.files()] == [
            ".gitmodules",
            "a.py",
            "vendor/inner/part.py",
        ]
    assert updated.left_out == (("other", "a repository of its own"),)
    with Index(str(tmp_path / "tree")) as index:
        updated = index.update()
        assert [file.path for file in index.files()] == [".gitmodules", "a.py"]
        assert updated.commits == 1
    assert updated.left_out == (("vendor/inner", "a submodule that is not checked out"),)


def test_a_part_of_a_repository_is_a_code_base_too(tmp_path: Path) -> None:
    root = repository(tmp_path / "root")
    write(root, "part/a.py", "x = 1\n")
    write(root, "b.py", "x = 1\n")
    commit(root, "session handling in both")
    write(root, "b.py", "x = 2\n")
    commit(root, "elsewhere")
    with Index(str(root / "part")) as index:
        assert index.update().commits == 1
        assert [file.path for file in index.files()] == ["a.py"]
        answer = told(index, "session handling")["relevant"]
    assert [one.path for one in answer.files] == ["a.py"]


@pytest.mark.req("D24")
def test_nothing_that_the_repository_configures_is_run(tmp_path: Path) -> None:
    root = repository(tmp_path / "root")
    mark = tmp_path / "mark"
    program = write(tmp_path, "evil.sh", f"#!/bin/sh\ntouch {mark}\ncat\n")
    program.chmod(0o755)
    write(root, "a.py", "x = 1\n")
    write(root, ".gitattributes", "*.py filter=evil diff=evil\n")
    commit(root, "first")
    for name in ("post-index-change", "post-checkout", "pre-commit", "fsmonitor-watchman"):
        hook = root / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        shutil.copy(program, hook)
    for key in (
        "core.fsmonitor",
        "filter.evil.clean",
        "filter.evil.smudge",
        "diff.evil.textconv",
        "diff.external",
        "gpg.program",
        "core.pager",
    ):
        git(root, "config", key, str(program))
    git(root, "config", "log.showSignature", "true")
    write(root, "a.py", "y = 22\n")
    write(root, "b.py", "z = 1\n")
    with Index(str(root)) as index:
        index.update()
        assert [file.path for file in index.files()] == [".gitattributes", "a.py", "b.py"]
    assert not mark.exists()


def test_a_commit_is_indexed_without_a_work_tree_and_without_what_came_later(
    tmp_path: Path,
) -> None:
    root = repository(tmp_path / "root")
    write(root, "a.py", "def alpha(): pass\n")
    first = commit(root, "alpha")
    write(root, "b.py", "def beta(): pass\n")
    second = commit(root, "beta")
    with Index.of_commit(str(root / ".git"), first) as index:
        assert index.update().commits == 1
        assert [symbol.name for _, symbol in index.symbols()] == ["alpha"]
        index.move_to(second)
        updated = index.update()
        assert (updated.parsed, updated.commits) == (1, 1)
        assert [symbol.name for _, symbol in index.symbols()] == ["alpha", "beta"]
