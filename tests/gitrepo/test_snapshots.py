"""What a snapshot holds comes back exactly, and nothing is lost on the way."""

import os
import random
import stat
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from holdfast import gitrepo
from holdfast.errors import EditError, UsageError
from holdfast.gitrepo import Client, describe
from tests.gitrepo.repository import git, repository
from tests.gitrepo.scene import ANN

NAMES = [
    b"a",
    b"b",
    b"c.txt",
    b"new\nline",
    b'quo"te',
    b"sp ace",
    b"-n",
    b"\xff\xfe",
    b"\xc3\xa4",
    b"\\",
]
PATHS = [*NAMES, *(b"d/" + name for name in NAMES[:6]), b"d/e/deep", b"c.txt/below", b"a/below"]
FILE = st.tuples(
    st.just("file"), st.binary(max_size=40), st.sampled_from([0o644, 0o755, 0o600, 0o664])
)
LINK = st.tuples(st.just("link"), st.sampled_from([b"a", b"d", b"nowhere", b"../up"]), st.just(0))
GONE = st.tuples(st.just("gone"), st.just(b""), st.just(0))
CHANGE = st.tuples(st.sampled_from(PATHS), st.one_of(FILE, FILE, LINK, GONE))


def listed(top: Path) -> dict[bytes, tuple[str, int, bytes]]:
    """Every file and link, with permissions and content; no folder."""
    found: dict[bytes, tuple[str, int, bytes]] = {}
    for folder, folders, names in os.walk(os.fsencode(top)):
        folders[:] = [name for name in folders if name != b".git"]
        for name in [*names, *folders]:
            place = os.path.join(folder, name)
            about = os.lstat(place)
            path = os.path.relpath(place, os.fsencode(top))
            if stat.S_ISLNK(about.st_mode):
                found[path] = ("link", 0, os.readlink(place))
            elif stat.S_ISREG(about.st_mode) and name != b".git":
                with open(place, "rb") as file:
                    found[path] = ("file", stat.S_IMODE(about.st_mode), file.read())
    return found


def change(top: Path, path: bytes, what: tuple[str, bytes, int]) -> None:
    """Make a path a file, a link or nothing; whatever is in the way goes."""
    place = os.fsencode(top)
    parts = path.split(b"/")
    for depth, part in enumerate(parts):
        place = os.path.join(place, part)
        is_last = depth == len(parts) - 1
        if os.path.islink(place) or os.path.isfile(place):
            os.unlink(place)
        if is_last and os.path.isdir(place):
            _remove(place)
        if not is_last and not os.path.isdir(place):
            os.mkdir(place)
    kind, content, mode = what
    if kind == "file":
        with open(place, "wb") as file:
            file.write(content)
        os.chmod(place, mode)
    elif kind == "link":
        os.symlink(content, place)


def _remove(folder: bytes) -> None:
    for name in os.listdir(folder):
        place = os.path.join(folder, name)
        if os.path.isdir(place) and not os.path.islink(place):
            _remove(place)
        else:
            os.unlink(place)
    os.rmdir(folder)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Client:
    folder = tmp_path_factory.mktemp("snapshots")
    root = repository(folder / "repo", {"a": "a\n", "d/a": "d\n", "c.txt": "c\r\n"})
    (root / ".gitattributes").write_text("*.txt text eol=crlf\n")
    git(root, "config", "core.autocrlf", "true")
    return gitrepo.open_client(str(root), str(folder / "home"))


@pytest.mark.req("R145")
@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@example(before=[(b"c.txt", ("file", b"\r\n\n", 0o644))], after=[(b"c.txt", ("gone", b"", 0))])
@example(before=[], after=[(b"a/below", ("gone", b"", 0))])  # an empty folder where a file was
@given(before=st.lists(CHANGE, max_size=8), after=st.lists(CHANGE, max_size=8))
def test_what_comes_back_is_what_was_there(
    home: Client,
    before: list[tuple[bytes, tuple[str, bytes, int]]],
    after: list[tuple[bytes, tuple[str, bytes, int]]],
) -> None:
    top = Path(home.place.top)
    for path in os.listdir(os.fsencode(top)):
        if path not in {b".git", b".gitattributes"}:
            change(top, path, ("gone", b"", 0))
    git(top, "checkout", "-q", ".")
    for path, what in before:
        change(top, path, what)
    there = listed(top)
    snapshot = gitrepo.take_snapshot(home)
    for path, what in after:
        change(top, path, what)
    meanwhile = listed(top)
    done = gitrepo.restore_snapshot(home, snapshot.oid, dirty="save")
    assert listed(top) == there
    assert done.kept == ()
    gitrepo.restore_snapshot(home, done.saved.oid, dirty="save")
    assert listed(top) == meanwhile, "what was replaced is kept, exactly, too"


@pytest.mark.req("R145")
def test_the_persons_tree_is_left_alone_if_it_is_not_clean(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"a.txt": "a\n"})
    client = gitrepo.open_client(str(root), str(tmp_path / "home"))
    clean = gitrepo.take_snapshot(client)
    (root / "mine").write_text("mine\n")
    before = listed(root)
    for call in (
        lambda: gitrepo.restore_snapshot(client, clean.oid),
        lambda: gitrepo.rollback(client, "main"),
    ):
        with pytest.raises(EditError, match="is not clean: nothing was done"):
            call()
    assert listed(root) == before
    index = (root / ".git/index").read_bytes()
    gitrepo.rollback(client, "main", dirty="save")
    assert not (root / "mine").exists()
    assert (root / ".git/index").read_bytes() == index, "their index is theirs"
    gitrepo.restore_snapshot(client, gitrepo.list_snapshots(client)[0].oid)
    assert listed(root) == before


@pytest.mark.req("R145", "E19")
def test_back_to_the_last_green_commit_with_untracked_files(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"a.txt": "a\n", ".gitignore": "build/\n"})
    client = gitrepo.open_client(str(root), str(tmp_path / "home"))
    tree = gitrepo.add_worktree(client, "fix", "holdfast/fix")
    top = Path(tree.folder)
    (top / "a.txt").write_text("good\n")
    good = gitrepo.commit(tree, "good", identity=ANN)
    (top / "notes").write_text("untracked, and wanted\n")
    (top / "empty").write_bytes(b"")
    gitrepo.mark_green(tree)
    there = listed(top)
    (top / "a.txt").write_text("bad\n")
    (top / "build").mkdir()
    (top / "build/out").write_text("out\n")
    (top / "empty").unlink()
    bad = gitrepo.commit(tree, "bad", identity=ANN)
    (top / "notes").write_text("overwritten\n")
    (top / "more").write_text("more\n")
    git(top, "init", "-q", "inner")
    done = gitrepo.rollback(tree)
    assert listed(top) == there | {b"build/out": ("file", 0o644, b"out\n")} | {
        path: row for path, row in listed(top).items() if path.startswith(b"inner/")
    }
    assert (done.to, done.head) == (good.oid, bad.oid)
    assert gitrepo.head_of(tree) == good.oid
    assert [row.path for row in gitrepo.status(tree).entries] == ["empty", "inner/", "notes"]
    assert describe(done) == (
        'ignored by git, and left as it is: "build/"',
        'not looked into, and left as it is: "inner"',
    )
    assert gitrepo.show(client, bad.oid).subject == "bad", "what was left is not lost"
    gitrepo.restore_snapshot(tree, done.restored.saved.oid)
    assert (top / "notes").read_text() == "overwritten\n"


@pytest.mark.req("R145")
def test_two_names_of_a_file_are_no_change_of_it(tmp_path: Path) -> None:
    from holdfast.gitrepo.laying import Wanted, lay, stamp_of

    (tmp_path / "a").write_text("x")
    (tmp_path / "b").hardlink_to(tmp_path / "a")
    (tmp_path / "c").hardlink_to(tmp_path / "a")
    seen = {name: stamp_of((tmp_path / name).lstat()) for name in "abc"}
    wanted = [Wanted(name, b"new", 0o644, is_link=False) for name in "bc"]
    assert lay(str(tmp_path), seen, ["a"], iter(wanted)).kept == ()
    assert (tmp_path / "b").read_text() == (tmp_path / "c").read_text() == "new"


def test_what_a_person_changes_meanwhile_is_kept(tmp_path: Path) -> None:
    from holdfast.gitrepo.laying import Wanted, lay, stamp_of

    (tmp_path / "a").write_text("stored\n")
    seen = {"a": stamp_of(os.lstat(tmp_path / "a"))}
    (tmp_path / "a").write_text("written since\n")
    wanted = [Wanted("a", b"old\n", 0o644, False), Wanted("b", b"b\n", 0o644, False)]
    (tmp_path / "b").write_text("new since\n")
    assert lay(str(tmp_path), seen, ["a"], iter(wanted)).kept == ("a", "a", "b")
    assert (tmp_path / "a").read_text() == "written since\n"
    assert (tmp_path / "b").read_text() == "new since\n"
    os.symlink("/", tmp_path / "out")
    assert lay(str(tmp_path), {}, ["out/x"], iter([Wanted("out/x", b"", 0o644, False)])).kept == (
        "out/x",
    )


def test_an_ignored_file_in_the_way_is_not_touched(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"a": "a\n", ".gitignore": "*.o\n"})
    client = gitrepo.open_client(str(root), str(tmp_path / "home"))
    (root / "a").unlink()
    (root / "a").mkdir()
    (root / "a/x.o").write_text("ignored\n")
    before = listed(root)
    with pytest.raises(EditError, match="is a folder now"):
        gitrepo.rollback(client, "main", dirty="save")
    assert listed(root) == before


def test_snapshots_go_by_number_and_age_and_never_what_is_named(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"a.txt": "a\n"})
    now = [1000.0]
    client = replace(gitrepo.open_client(str(root), str(tmp_path / "home")), clock=lambda: now[0])
    made = []
    for number in range(6):
        now[0] += 100
        (root / "a.txt").write_text(f"{number}\n")
        made.append(gitrepo.mark_green(client) if number == 1 else gitrepo.take_snapshot(client))
    gone = gitrepo.collect(client, keep=2, age=250, named=[made[0].oid])
    assert set(gone) == {made[2].oid}, "one is named, one green, one young, two are the newest"
    with pytest.raises(UsageError, match="no snapshot"):
        gitrepo.find_snapshot(client, made[2].oid)
    for number in (0, 1, 3, 4, 5):
        gitrepo.restore_snapshot(client, made[number].oid, dirty="save")
        assert (root / "a.txt").read_text() == f"{number}\n"
    git(tmp_path, "--git-dir", client.store, "fsck", "--strict")


def test_a_snapshot_outlives_the_persons_repository(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"a.txt": "a\n"})
    client = gitrepo.open_client(str(root), str(tmp_path / "home"))
    snapshot = gitrepo.take_snapshot(client)
    objects = root / ".git/objects"
    for file in random.Random(1).sample(sorted(objects.rglob("*")), 3):
        if file.is_file():
            file.unlink()
    (root / "a.txt").unlink()
    git(tmp_path, "--git-dir", client.store, "fsck", "--strict", "--full")
    assert (
        git(tmp_path, "--git-dir", client.store, "show", f"{snapshot.files}:a.txt").encode()
        == b"a\n"
    )


@pytest.mark.req("D22", "D24")
@pytest.mark.parametrize("name", [b"..", b".git", b".GIT"])
def test_a_tree_with_names_that_lead_out_is_not_laid(tmp_path: Path, name: bytes) -> None:
    root = repository(tmp_path / "repo", {"a.txt": "a\n"})
    client = gitrepo.open_client(str(root), str(tmp_path / "home"))
    blob = git(root, "hash-object", "-w", "a.txt").strip().encode()
    inner = tree_of(root, b"100644 blob " + blob + b"\tevil")
    outer = tree_of(root, b"040000 tree " + inner + b"\t" + name)
    words = ("-c", "user.name=a", "-c", "user.email=a@b", "commit-tree", outer.decode(), "-m", "x")
    commit = git(root, *words).strip()
    before = listed(root)
    with pytest.raises(UsageError, match="path"):
        gitrepo.rollback(client, commit, dirty="save")
    assert listed(root) == before
    assert not list(tmp_path.rglob("evil"))


def tree_of(root: Path, row: bytes) -> bytes:
    """A tree object as git itself would not write it."""
    mode, _, rest = row.partition(b" ")
    oid, _, name = rest.partition(b" ")[2].partition(b"\t")
    raw = mode.lstrip(b"0") + b" " + name + b"\0" + bytes.fromhex(oid.decode())
    words = ["git", "hash-object", "-t", "tree", "-w", "--stdin", "--literally"]
    return subprocess.run(
        words, cwd=root, input=raw, check=True, capture_output=True
    ).stdout.strip()
