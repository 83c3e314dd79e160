"""Names from strangers are refused, or mean what they say."""

from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast import gitrepo
from holdfast.errors import HoldfastError, UsageError
from holdfast.gitrepo import Allowed, Client, Identity, Wish
from holdfast.gitrepo.names import check_address, check_branch, check_path, check_revision
from tests.gitrepo.repository import git
from tests.gitrepo.scene import ANN, Scene, copied, scene

REFS = (
    *("--output=MARK", "--upload-pack=touch MARK;", "--exec=touch MARK", "-x", "--", "-", ""),
    *(
        "a..b",
        "@{-1}",
        "@",
        "HEAD@{1}",
        "refs/heads/$(touch MARK)",
        "$(touch MARK)",
        "`touch MARK`",
    ),
    *(":/fix", "main:a.txt", "a b", "a\nb", "a\0b", "a.lock", ".hidden", "a//b", "x" * 300, "a\\b"),
    *("^main", "main^{/x}", "*", "a?b", "a[b", "-/x", "a/-b", "\udc80"),
)
ADDRESSES = (
    *("--upload-pack=touch MARK", "-oProxyCommand=touch MARK", "ext::sh -c touch% MARK", "fd::3"),
    *("ssh://-oProxyCommand=touch MARK/x", "-x:path", "host:-x:y::z", "http::x", "", "relative"),
    *("ftp://host/x", "https://ann:secret@host/x", "https://", "a\nb", "ssh://-x@host/", "host::x"),
)
PATHS = (
    "",
    "/abs",
    "../up",
    "a/../../b",
    ".git/config",
    "a/.GIT/x",
    "./x",
    "a//b",
    "a\0b",
    "git~1/x",
)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return scene(tmp_path_factory.mktemp("prepared") / "scene")


@pytest.fixture
def at(prepared: Scene, tmp_path: Path) -> Scene:
    return copied(prepared, tmp_path / "scene")


def marked(text: str, folder: Path) -> str:
    return text.replace("MARK", str(folder / "mark"))


@pytest.mark.req("D25")
def test_refs_that_could_be_something_else_are_refused(at: Scene, tmp_path: Path) -> None:
    client = at.client()
    calls: tuple[Callable[[str], object], ...] = (
        lambda name: gitrepo.resolve(client, name),
        lambda name: gitrepo.log(client, name),
        lambda name: gitrepo.diff_trees(client, "main", name),
        lambda name: gitrepo.create_branch(client, name),
        lambda name: gitrepo.create_branch(client, "fresh", name),
        lambda name: gitrepo.create_tag(client, name),
        lambda name: gitrepo.move_branch(client, name, new="0" * 40, old=None),
        lambda name: gitrepo.move_branch(client, "x", new=name, old=None),
        lambda name: gitrepo.delete_branch(client, name, old="0" * 40),
        lambda name: gitrepo.add_worktree(client, "w", name),
        lambda name: gitrepo.add_worktree(client, name, "w"),
        lambda name: gitrepo.remove_worktree(client, name),
        lambda name: gitrepo.find_snapshot(client, name),
        lambda name: gitrepo.rollback(client, name),
        lambda name: gitrepo.remote_address(client, name),
        lambda name: gitrepo.push(
            client, str(at.bare), [Wish("main", name)], allowed=Allowed(frozenset({"file"}))
        ),
    )
    before = git(at.root, "for-each-ref")
    for name in REFS:
        for call in calls:
            with pytest.raises(UsageError):
                call(marked(name, tmp_path) or name)
    assert git(at.root, "for-each-ref") == before
    assert not (tmp_path / "mark").exists()


@pytest.mark.req("D25")
@pytest.mark.parametrize("text", ADDRESSES)
def test_addresses_that_could_start_something_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        check_address(text)


@pytest.mark.req("D25")
def test_only_a_kind_of_connection_that_was_allowed_is_used(at: Scene) -> None:
    client = at.client()
    for url in (str(at.bare), f"file://{at.bare}", "https://localhost/x", "host:x", "git://h/x"):
        with pytest.raises(UsageError, match="nobody allowed"):
            gitrepo.push(client, url, [Wish("main", "main")], allowed=Allowed())
    assert git(at.bare, "for-each-ref") == ""


@pytest.mark.req("D25")
@pytest.mark.parametrize("path", PATHS)
def test_paths_that_leave_the_work_tree_are_refused(path: str) -> None:
    with pytest.raises(UsageError):
        check_path(path)


STRANGE = (
    "--output=x",
    "-n",
    "*",
    ":(top)a",
    "a b",
    "quo\"te'",
    "new\nline",
    "$(touch x)",
    ";",
    "ü\udcff",
)


@pytest.mark.req("D25")
def test_strange_paths_are_literal_everywhere(at: Scene) -> None:
    client = at.client()
    tree = gitrepo.add_worktree(client, "fix", "holdfast/fix")
    for number, name in enumerate(STRANGE):
        (Path(tree.folder) / name).write_text(f"{number}\n")
    assert {row.path for row in gitrepo.status(tree).entries} == set(STRANGE)
    assert gitrepo.add(tree, "*") == ("*",), "a star is a file here, not all of them"
    made = gitrepo.commit(tree, "strange", *STRANGE, identity=ANN)
    assert {row.path for row in gitrepo.diff_trees(client, "main", made.oid)} == set(STRANGE)
    for number, name in enumerate(STRANGE):
        assert gitrepo.show_file(client, made.oid, name) == f"{number}\n".encode()
        assert [row.oid for row in gitrepo.log(client, made.oid, name)] == [made.oid]
        (Path(tree.folder) / name).write_text("changed\n")
        assert [row.path for row in gitrepo.diff_files(tree, name)] == [name]
        gitrepo.restore(tree, name)
        assert (Path(tree.folder) / name).read_text() == f"{number}\n"


@pytest.mark.req("D25")
def test_messages_are_literal_and_people_are_checked(at: Scene) -> None:
    client = at.client()
    tree = gitrepo.add_worktree(client, "fix", "holdfast/fix")
    message = "--amend\n\n# not a comment\n$(touch x) `touch y`\n-m x"
    (Path(tree.folder) / "new").write_text("new\n")
    made = gitrepo.commit(tree, message, identity=Identity("-c core.x=y", "--exec=x"))
    found = gitrepo.show(client, made.oid)
    assert found.message == f"{message}\n"
    assert (found.author.name, found.author.email) == ("-c core.x=y", "--exec=x")
    for name, email in (
        ("a <$(touch MARK)>", "x"),
        ("a", "a>b"),
        ("", "x"),
        ("a\nb", "x"),
        ("a", " "),
    ):
        with pytest.raises(UsageError):
            Identity(name, email)
    for bad in ("", " \n", "a\0b", "\udc80"):
        with pytest.raises(UsageError):
            gitrepo.commit(tree, bad, identity=ANN)
    for key, value in (("a b", "x"), ("--x", "x"), ("Key", "a\nOther: b"), ("Key", "")):
        with pytest.raises(UsageError):
            gitrepo.commit(tree, "x", identity=ANN, trailers={key: value})


def test_names_that_people_use_are_fine() -> None:
    for name in ("main", "feature/tide-tables", "v1.2", "fix#3", "ümlaut", "a+b", "a@b"):
        assert check_branch(name) == name
    for name in ("HEAD", "main~2", "v1.2^", "a1b2c3d", "feature/x", "HEAD~1^2", "ümlaut~1"):
        assert check_revision(name) == name
    for url in ("https://host/x.git", "ann@host:x.git", "ssh://ann@host:22/x", "/srv/x.git"):
        assert check_address(url).url == url


def test_a_home_inside_the_work_tree_is_refused(at: Scene) -> None:
    for place in (at.root, at.root / "inside"):
        with pytest.raises(UsageError, match="lies in the work tree"):
            gitrepo.open_client(str(at.root), str(place))
    assert not (at.root / "inside").exists()


def test_outside_of_any_repository_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="lies in no work tree of git"):
        gitrepo.open_client(str(tmp_path), str(tmp_path / "home"))
    (tmp_path / ".git").write_text("gitdir: nowhere\n")
    with pytest.raises(HoldfastError, match="is no git directory"):
        gitrepo.open_client(str(tmp_path), str(tmp_path / "home"))


def test_who_commits_is_read_from_the_persons_own_configuration_alone(
    at: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(at.root, "config", "user.name", "the repository")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    (tmp_path / "gitconfig").write_text("")
    monkeypatch.chdir(at.root)
    with pytest.raises(UsageError, match="nobody said who commits"):
        gitrepo.person()
    (tmp_path / "gitconfig").write_text("[user]\nname = Ann\nemail = ann@example.org\n")
    assert gitrepo.person() == Identity("Ann", "ann@example.org")


def test_every_name_is_there() -> None:
    for name in gitrepo.__all__:
        assert getattr(gitrepo, name) is not None
    assert isinstance(gitrepo.Client, type)
    assert Client is gitrepo.Client
