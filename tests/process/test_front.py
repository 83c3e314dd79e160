"""Commands from programs without an event loop: limits, output kept whole, secrets, copies."""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.edits.trials import commit
from holdfast.errors import EditError, ProcessError
from holdfast.process import landlock, restrain
from holdfast.process.confine import Sandbox
from holdfast.process.front import call
from holdfast.process.syscalls import call_filter
from holdfast.process.trial import Trial

SECRET = "correct-horse-battery"


@pytest.mark.req("R142")
def test_a_command_says_how_it_went(tmp_path: Path) -> None:
    heard: list[tuple[str, bytes]] = []
    done = call(
        ["sh", "-c", "echo $X; echo err >&2; pwd; read line; exit 3"],
        cwd=str(tmp_path),
        env={"X": "given"},
        on_output=lambda stream, chunk: heard.append((stream, chunk)),
    )
    assert (done.success, done.code, done.ended) == (False, 3, "exited")
    assert (done.stdout, done.stderr) == (f"given\n{tmp_path}\n".encode(), b"err\n")
    assert done.duration > 0
    assert b"".join(chunk for stream, chunk in heard if stream == "stdout") == done.stdout


@pytest.mark.req("R142")
def test_silence_ends_a_command_and_talk_does_not() -> None:
    silent = call("sleep 60", idle=0.3)
    assert (silent.ended, silent.signal) == ("idle", signal.SIGKILL)
    talking = call(["sh", "-c", "for i in 1 2 3 4 5 6; do echo; sleep 0.1; done"], idle=30)
    assert talking.success


@pytest.mark.req("R142")
def test_the_whole_output_is_kept_in_a_file_up_to_its_bound(tmp_path: Path) -> None:
    script = ["sh", "-c", "seq 100000; seq 3 >&2"]
    done = call(script, keep=1000, whole=str(tmp_path / "out"))
    assert done.success
    assert len(done.stdout) == 1000
    kept = (tmp_path / "out").read_bytes()
    assert kept == b"".join(b"%d\n" % number for number in range(1, 100001))
    assert (tmp_path / "out.err").read_bytes() == b"1\n2\n3\n"
    assert kept.startswith(done.stdout[:500])
    assert kept.endswith(done.stdout[500:])
    with pytest.raises(ProcessError, match="cannot be made"):
        call(script, whole=str(tmp_path / "out"))


@pytest.mark.req("R142")
def test_secrets_are_struck_out_of_all_that_is_said(tmp_path: Path) -> None:
    heard: list[bytes] = []
    done = call(
        [
            "sh",
            "-c",
            f"printf {SECRET[:8]}; sleep 0.2; printf '{SECRET[8:]}\\n'; echo {SECRET} >&2",
        ],
        hide=[SECRET],
        whole=str(tmp_path / "out"),
        on_output=lambda _, chunk: heard.append(chunk),
    )
    for said in (done.stdout, done.stderr, b"".join(heard), (tmp_path / "out").read_bytes()):
        assert SECRET.encode() not in said
    assert (done.stdout, done.stderr) == (b"[secret]\n", b"[secret]\n")


def test_in_an_event_loop_it_says_what_to_call() -> None:
    async def main() -> None:
        call("true")

    with pytest.raises(ProcessError, match="event loop"):
        asyncio.run(main())


# --- copies ---------------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "sub").mkdir(parents=True)
    for name in ("kept", "changed", "removed", "sub/below"):
        (root / name).write_text(name)
    (root / "link").symlink_to("kept")
    return root


CHANGE = (
    "echo new > changed; rm removed; chmod +x kept; mkdir a; echo b > a/b; rm -r sub; touch link"
)


LONG = "d" * 200  # so many levels of it are longer than a path may be
DEEP = f"python3 -c 'import os; [(os.mkdir(x), os.chdir(x)) for x in [\"{LONG}\"] * 25]'"


def tried(project: Path, script: str, require_part: Callable[[str], str]) -> Trial:
    require_part("bubblewrap")
    trial = Trial(str(project), str(project.parent / "copy"))
    done = call(["sh", "-c", script], cwd=str(project), sandbox=trial.sandbox(Sandbox()))
    assert done.success, done
    assert done.sandboxed
    return trial


def files(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def test_a_trial_changes_nothing_until_it_is_committed(
    project: Path, require_part: Callable[[str], str]
) -> None:
    before = files(project)
    trial = tried(project, f"cd {project}; {CHANGE}", require_part)
    assert files(project) == before
    found = {
        c.path: (c.base is not None, c.digest is not None, c.executable) for c in trial.changes()
    }
    assert found == {
        "a/b": (False, True, False),
        "changed": (True, True, False),
        "kept": (True, True, True),
        "removed": (True, False, False),
        "sub/below": (True, False, False),
    }
    commit(trial, journal_dir=str(project.parent / "journal"), key="t1")
    assert files(project) == {"a/b": b"b\n", "changed": b"new\n", "kept": b"kept"}
    assert os.access(project / "kept", os.X_OK)
    trial.drop()
    assert not (project.parent / "copy").exists()


def test_a_commit_keeps_the_modes_of_files(
    project: Path, require_part: Callable[[str], str]
) -> None:
    modes = {"key": 0o600, "shared": 0o664, "tool": 0o700, "swapped": 0o600, "shut": 0o644}
    (project / "kept").chmod(0o644)
    for name, mode in modes.items():
        (project / name).write_text("k\n")
        (project / name).chmod(mode)
    script = (
        f"for f in {' '.join(modes)}; do echo more >> $f; done; chmod 600 shut; chmod +x shared; "
        "cp swapped new; chmod 644 new; mv -f new swapped; (umask 077; echo s > secret); "
        "chmod 640 kept; chmod 666 changed"
    )
    trial = tried(project, script, require_part)
    commit(trial, journal_dir=str(project.parent / "journal"), key="t1")
    after = {name: (project / name).stat().st_mode & 0o777 for name in (*modes, "secret")}
    assert after == modes | {"shared": 0o775, "shut": 0o600, "secret": 0o600}
    assert (project / "kept").stat().st_mode & 0o777 == 0o640
    assert "changed" not in {change.path for change in trial.changes()}


def test_an_aborted_trial_leaves_nothing(project: Path, require_part: Callable[[str], str]) -> None:
    before = files(project)
    trial = tried(project, f"{CHANGE}; mkdir deep; touch deep/x; chmod 0 deep", require_part)
    trial.drop()
    assert files(project) == before
    assert not (project.parent / "copy").exists()


def test_what_somebody_else_changed_meanwhile_is_not_overwritten(
    project: Path, require_part: Callable[[str], str]
) -> None:
    trial = tried(project, CHANGE, require_part)
    (project / "changed").write_text("another's")
    before = files(project)
    with pytest.raises(EditError):
        commit(trial, journal_dir=str(project.parent / "journal"), key="t1")
    assert files(project) == before


@pytest.mark.parametrize(
    "script",
    ["ln -s /etc made", "ln -sf /etc link", "mkfifo pipe", "ln kept hard", "rm link", DEEP],
)
def test_links_and_special_files_are_never_taken_over(
    project: Path, script: str, require_part: Callable[[str], str]
) -> None:
    before = files(project)
    trial = tried(project, script, require_part)
    assert trial.unfit
    with pytest.raises(EditError, match="cannot be taken over"):
        commit(trial, journal_dir=str(project.parent / "journal"), key="t1")
    assert files(project) == before
    trial.drop()
    assert not (project.parent / "copy").exists()


# --- Landlock -------------------------------------------------------------------------------------


def test_landlock_holds_writes_homes_and_tcp(tmp_path: Path) -> None:
    if not landlock.version():
        pytest.skip("the kernel has no Landlock")
    (tmp_path / "mine").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other/secret").write_text("secret")
    words = restrain.words(Sandbox(writable=(str(tmp_path / "mine"),)))
    script = (
        f"touch {tmp_path}/mine/a {tmp_path}/other/b /etc/c; cat {tmp_path}/other/secret; "
        "ls /root /home; exec 3<>/dev/tcp/127.0.0.1/9"
    )
    done = call([*words, "bash", "-c", script], cwd="/", confine="never")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "mine", "other", "secret"]
    assert done.stdout == b""
    assert done.stderr.count(b"Permission denied") >= 5, done.stderr
    if call_filter():
        words = restrain.words(Sandbox())
        odd = call([*words, "unshare", "--user", "true"], cwd="/", confine="never")
        assert b"Operation not permitted" in odd.stderr
