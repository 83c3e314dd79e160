"""A push says the truth about every ref, and never ends well if one did not arrive."""

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import gitrepo
from holdfast.errors import PushError
from holdfast.gitrepo import Allowed, Wish
from tests.gitrepo.repository import git
from tests.gitrepo.scene import ANN, LOCAL, Scene, copied, scene

BOTH = Allowed(frozenset({"file", "git", "http", "ssh"}))


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return scene(tmp_path_factory.mktemp("prepared") / "scene")


@pytest.fixture
def at(prepared: Scene, tmp_path: Path) -> Scene:
    return copied(prepared, tmp_path / "scene")


@pytest.fixture
def daemon(at: Scene) -> Iterator[str]:
    """The remote served by git itself, on loopback."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["git", "daemon", "--reuseaddr", f"--base-path={at.folder}", "--export-all"]
    command += ["--enable=receive-pack", "--listen=127.0.0.1", f"--port={port}", "--verbose"]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
    ) as process:
        assert process.stderr is not None
        while b"Ready to rumble" not in process.stderr.readline():
            assert process.poll() is None, "git daemon does not run"
        try:
            yield f"git://127.0.0.1:{port}"
        finally:
            os.killpg(process.pid, 15)


def refused(at: Scene, url: str, *wishes: Wish, allowed: Allowed = BOTH) -> PushError:
    with pytest.raises(PushError) as caught:
        gitrepo.push(at.client(), url, wishes, allowed=allowed)
    assert caught.value.ended != 0, "the exit code is never lost"
    assert caught.value.said
    return caught.value


@pytest.mark.req("R143", "E19")
@pytest.mark.parametrize("kind", ["path", "file", "git"])
def test_what_arrives_and_what_does_not(kind: str, at: Scene, daemon: str) -> None:
    urls = {"path": str(at.bare), "file": f"file://{at.bare}", "git": f"{daemon}/bare.git"}
    url, client = urls[kind], at.client()
    done = gitrepo.push(client, url, [Wish("main", "main"), Wish("side", "s")], allowed=BOTH)
    assert (done.code, [ref.outcome for ref in done.refs]) == (0, ["created", "created"])
    assert git(at.bare, "rev-parse", "main").strip() == gitrepo.resolve(client, "main")
    again = gitrepo.push(client, url, [Wish("main", "main")], allowed=BOTH)
    assert [ref.outcome for ref in again.refs] == ["unchanged"]
    error = refused(at, url, Wish("side", "main"))
    assert (error.reason, error.outcomes) == (
        "rejected",
        (("refs/heads/main", "non_fast_forward"),),
    )
    main = gitrepo.resolve(client, "main")
    forced = gitrepo.push(client, url, [Wish("side", "main", expected=main)], allowed=BOTH)
    assert [ref.outcome for ref in forced.refs] == ["forced"]
    late = refused(at, url, Wish("main", "main", expected=main))
    assert late.outcomes == (("refs/heads/main", "stale"),)
    assert git(at.bare, "rev-parse", "main").strip() == gitrepo.resolve(client, "side")
    (at.bare / "hooks").mkdir(exist_ok=True)
    hook = at.bare / "hooks/update"
    hook.write_text("#!/bin/sh\necho no such luck >&2\nexit 1\n")
    hook.chmod(0o755)
    declined = refused(at, url, Wish("main", "fresh"))
    assert declined.outcomes == (("refs/heads/fresh", "hook_declined"),)
    assert "no such luck" in declined.said


@pytest.mark.req("R143", "E19")
def test_of_several_all_arrive_or_none(at: Scene) -> None:
    client = at.client()
    gitrepo.push(client, str(at.bare), [Wish("main", "main")], allowed=LOCAL)
    error = refused(at, str(at.bare), Wish("side", "main"), Wish("side", "other"))
    assert dict(error.outcomes) == {
        "refs/heads/main": "non_fast_forward",
        "refs/heads/other": "not_tried",
    }
    assert git(at.bare, "for-each-ref", "refs/heads/other") == ""
    wishes = [Wish("side", "main"), Wish("side", "other")]
    with pytest.raises(PushError) as caught:
        gitrepo.push(client, str(at.bare), wishes, allowed=LOCAL, atomic=False)
    assert dict(caught.value.outcomes)["refs/heads/other"] == "created", "and still an error"


@pytest.mark.req("R143", "E19")
def test_why_a_remote_is_not_reached_is_said(at: Scene, daemon: str, tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]  # bound and not listening: nobody answers there
        wish = Wish("main", "main")
        assert refused(at, f"git://127.0.0.1:{port}/x", wish).reason == "unreachable"
        assert refused(at, f"http://127.0.0.1:{port}/x", wish).reason == "unreachable"
    assert refused(at, str(tmp_path / "nowhere.git"), wish).reason == "no_repository"
    assert refused(at, f"{daemon}/nowhere.git", wish).reason in {"no_repository", "auth"}
    fake = tmp_path / "ssh"
    fake.write_text("#!/bin/sh\necho 'ann@host: Permission denied (publickey).' >&2\nexit 255\n")
    fake.chmod(0o755)
    ssh = Allowed(frozenset({"ssh"}), ssh=str(fake))
    assert refused(at, "ann@host:x.git", wish, allowed=ssh).reason == "auth"


@pytest.mark.req("R143")
def test_a_commit_of_ours_is_pushed_without_being_in_the_persons_repository(at: Scene) -> None:
    client = at.client()
    made = gitrepo.commit_files(client, {"a.txt": b"us\n"}, "us", onto="main", identity=ANN)
    before = git(at.root, "count-objects", "-v")
    gitrepo.push(client, str(at.bare), [Wish(made.oid, "ours")], allowed=LOCAL)
    assert git(at.bare, "show", "ours:a.txt") == "us\n"
    assert git(at.root, "count-objects", "-v") == before
