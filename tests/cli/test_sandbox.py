"""Commands of plans run in a sandbox: what they cannot do, what a person may grant, what is told."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.process.terms import Terms
from tests.cli.coders import PROTOCOL
from tests.cli.project import Project, finish, until
from tests.cli.test_graph_files import digest, employ, put
from tests.passing import listening_for_a_moment


@pytest.fixture(autouse=True)
def _bubblewrap(require_part: Callable[[str], str]) -> None:
    require_part("bubblewrap")


@pytest.fixture
def alone(project: Project) -> Project:
    """A project whose person granted nothing: steps cannot write beside it."""
    given = project.environment

    def bare(extra: Any = None) -> dict[str, str]:
        found = given(extra)
        if found.get("HOLDFAST_WRITABLE") == str(project.folder):
            del found["HOLDFAST_WRITABLE"]
        return found

    project.environment = bare  # type: ignore[method-assign] # for this test alone
    return project


def configure(project: Project, text: str) -> None:
    place = project.home / ".config/holdfast"
    place.mkdir(parents=True, exist_ok=True)
    (place / "config.toml").write_text(text)


def test_a_step_writes_in_its_project_and_sees_no_home_and_no_store(alone: Project) -> None:
    (alone.home / "key").write_text("secret")
    (alone.folder / "beside").mkdir()
    script = (
        f"echo x > made; cat {alone.home}/key; ls -A {alone.folder}/beside; touch {alone.folder}/beside/x; "
        f"cat .holdfast/state.db; echo x > .holdfast/state.db; touch /etc/x; ls -A $HOME $TMPDIR; exit 0"
    )
    alone.plan({"a": {"shell": script, "produces": ["made"]}})
    run = alone.run()
    assert run.states == {"a": "done"}, run
    said = alone.ok("logs", "a").out
    assert "secret" not in said
    assert list((alone.folder / "beside").iterdir()) == []
    assert alone.read("made") == "x\n"
    assert alone.ok("verify").code == 0
    assert alone.ok("show", "a", "--json").json["confined"] is True


@pytest.mark.req("I14")
@pytest.mark.parametrize("uses", ["shell", "python", "guard"])
def test_the_network_is_a_person_s_to_grant(alone: Project, uses: str) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        code = f"import socket; socket.create_connection(('127.0.0.1', {port}), 5).close()"
        alone.write("reach.py", f"def reach():\n    {code}\n    return 'reached'\n")
        command = [sys.executable, "-c", code]
        step: dict[str, Any] = {"run": command}
        if uses == "python":
            step = {"uses": "python", "run": "reach:reach"}
        if uses == "guard":
            step = {"run": "echo x", "guards": [{"command": command}]}
        alone.plan({"a": step})
        assert alone.run().states == {"a": "failed"}
        assert alone.run("--network").states == {"a": "done"}
        assert alone.run("--force", env={"HOLDFAST_NETWORK": "1"}).states == {"a": "done"}
        configure(alone, "[sandbox]\nnetwork = true\n")
        assert alone.run("--force").states == {"a": "done"}
        assert alone.run("--force", env={"HOLDFAST_NETWORK": "0"}).states == {"a": "failed"}


def test_neither_a_plan_nor_a_project_can_grant_anything(alone: Project) -> None:
    alone.plan({"a": {"run": "true"}}, sandbox={"network": True})
    assert alone.call("check").code == 2
    alone.plan({"a": {"run": "true", "network": True}})
    assert alone.call("check").code == 2
    alone.plan({"a": {"run": "true"}})
    alone.write("holdfast.toml", "[sandbox]\nnetwork = true\n")
    refused = alone.call("run")
    assert (refused.code, "belongs to a person" in refused.err) == (2, True)


@pytest.mark.parametrize(
    "text",
    [
        "network = 1",
        "writable = 'x'",
        "writable = ['x']",
        "readable = ['/']",
        "memory = 'lots'",
        "processes = 0",
        "processes = '4 GB'",
        "nonsense = 1",
    ],
)
def test_what_is_wrong_in_the_configuration_is_said_before_anything_runs(
    alone: Project, text: str
) -> None:
    alone.plan({"a": {"run": "true"}})
    configure(alone, f"[sandbox]\n{text}\n")
    refused = alone.call("run")
    assert refused.code == 2
    assert "config.toml" in refused.err
    assert text.split(maxsplit=1)[0] in refused.err


def test_a_person_grants_places_and_limits(alone: Project) -> None:
    (alone.folder / "data").mkdir()
    alone.plan({"a": {"shell": f"echo x > {alone.folder}/data/x; ulimit -n"}})
    assert alone.run().states == {"a": "failed"} or not (alone.folder / "data/x").exists()
    configure(alone, f"[sandbox]\nwritable = ['{alone.folder}/data']\nopen_files = 77\n")
    assert alone.run("--force").states == {"a": "done"}
    assert (alone.folder / "data/x").exists()
    assert alone.shown("a") == b"77\n"


def test_a_scratch_step_cannot_write_the_project(alone: Project) -> None:
    alone.write("in.txt", "in")
    script = "echo x > $HOLDFAST_ROOT/leak; cat in.txt > out.txt"
    step = {"shell": script, "workspace": "scratch", "inputs": ["in.txt"], "produces": ["out.txt"]}
    alone.plan({"a": step})
    assert alone.run().states == {"a": "done"}
    assert alone.read("out.txt") == "in"
    assert not alone.has("leak")


TRICKS = {
    "hooks": "echo 'touch /x' > .git/hooks/post-commit; chmod +x .git/hooks/post-commit",
    "configuration": "git config core.fsmonitor 'touch /x'",
    "moved": "mv .git .g; cp -r .g .git; git config core.fsmonitor 'touch /x'",
    "elsewhere": "cp -r .git evil; echo ../evil > .git/commondir",
    "no hooks yet": "mkdir -p .git/hooks; echo 'touch /x' > .git/hooks/pre-commit",
}


@pytest.mark.req("D24")
@pytest.mark.parametrize("trick", TRICKS)
def test_git_reads_in_a_step_and_what_it_runs_stays_as_it_was(alone: Project, trick: str) -> None:
    git(alone, "init", "-q", ".")
    alone.write("a.txt", "a")
    git(alone, "add", "a.txt")
    git(alone, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one")
    if trick == "no hooks yet":
        shutil.rmtree(Path(alone.root) / ".git/hooks")
    before = files_of(Path(alone.root) / ".git")
    alone.plan({"a": {"shell": f"git log --format=%s; {TRICKS[trick]}; exit 0"}})
    assert alone.run().states == {"a": "done"}
    assert alone.ok("show", "a").out.startswith("one\n")
    assert files_of(Path(alone.root) / ".git") == before


def repository(folder: Path) -> Path:
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    commit = ["commit", "-q", "--allow-empty", "-m", "one"]
    subprocess.run(["git", *who, *commit], cwd=folder, check=True)
    return folder


def plain(alone: Project, library: Path) -> None:
    """A submodule as git adds it."""
    git(alone, "init", "-q", ".")
    git(alone, *FROM_FILES, "submodule", "--quiet", "add", str(library), "deep/lib")


def embedded(alone: Project, library: Path) -> None:
    """A repository of its own that was added as it was, to an index of the newest form."""
    git(alone, "init", "-q", ".")
    shutil.copytree(library, Path(alone.root, "deep/lib"))
    for name in ("deep/a", "deep/kb", "deep/z"):
        alone.write(name, "x")
    git(alone, "-c", "advice.addEmbeddedRepo=false", "add", "deep")
    git(alone, "update-index", "--index-version", "4")


def nested(alone: Project, library: Path) -> None:
    """A submodule of a submodule."""
    outer = repository(library.parent / "outer")
    command = ["git", *FROM_FILES, "submodule", "--quiet", "add", str(library), "lib"]
    subprocess.run(command, cwd=outer, check=True)
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", *who, "commit", "-qm", "two"], cwd=outer, check=True)
    git(alone, "init", "-q", ".")
    git(alone, *FROM_FILES, "submodule", "--quiet", "add", str(outer), "deep")
    git(alone, *FROM_FILES, "submodule", "--quiet", "update", "--init", "--recursive")


def linked(alone: Project, library: Path) -> None:
    """The project is a worktree of another repository."""
    main = repository(library.parent / "main")
    Path(alone.root).rmdir()
    command = ["git", "worktree", "add", "--quiet", "-b", "side", str(alone.root)]
    subprocess.run(command, cwd=main, check=True)
    git(alone, *FROM_FILES, "submodule", "--quiet", "add", str(library), "deep/lib")


def separate(alone: Project, library: Path) -> None:
    """The git directory lies elsewhere in the project; the submodule is checked out in part."""
    git(alone, "init", "-q", "--separate-git-dir", str(Path(alone.root, "kept.git")), ".")
    git(alone, *FROM_FILES, "submodule", "--quiet", "add", str(library), "deep/lib")
    git(alone, "-C", "deep/lib", "config", "extensions.worktreeConfig", "true")
    git(alone, "-C", "deep/lib", "config", "--unset", "core.worktree")
    place = str(Path(alone.root, "deep/lib"))
    git(alone, "-C", "kept.git/modules/deep/lib", "config", "--worktree", "core.worktree", place)


def above(alone: Project, library: Path) -> None:
    """The project is a folder of a repository."""
    top = repository(Path(alone.root).parent)
    inner = os.path.relpath(Path(alone.root, "deep/lib"), top)
    command = ["git", *FROM_FILES, "submodule", "--quiet", "add", str(library), inner]
    subprocess.run(command, cwd=top, check=True)


FROM_FILES = ("-c", "protocol.file.allow=always")


@pytest.mark.parametrize("lay", [plain, embedded, nested, linked, separate, above])
def test_a_step_makes_no_repository_of_a_submodule(
    alone: Project, lay: Callable[[Project, Path], None], tmp_path_factory: pytest.TempPathFactory
) -> None:
    lay(alone, repository(tmp_path_factory.mktemp("given") / "library"))
    tricks = [
        "rm -rf deep/lib/.git",
        "mv deep/lib deep/other",
        "mv deep other",
        "git init -q deep/lib",
        "git -C deep/lib config core.fsmonitor 'touch /x'",
        "git config core.fsmonitor 'touch /x'",
    ]
    alone.plan({"a": {"shell": f"echo x > deep/lib/x; {'; '.join(tricks)}; exit 0"}})
    assert alone.run().states == {"a": "done"}
    assert alone.read("deep/lib/x") == "x\n"
    for folder in (".", "deep/lib"):
        assert "fsmonitor" not in git(alone, "-C", folder, "config", "--list")


def test_a_git_directory_behind_a_link_is_read_only(alone: Project) -> None:
    git(alone, "init", "-q", ".")
    for place in (Path(alone.root) / ".g", alone.home / "elsewhere"):
        place.parent.mkdir(parents=True, exist_ok=True)
        (Path(alone.root) / ".git").resolve().rename(place)
        (Path(alone.root) / ".git").unlink(missing_ok=True)
        (Path(alone.root) / ".git").symlink_to(place)
        alone.plan(
            {"a": {"shell": f"echo {place.name}; git config core.fsmonitor 'touch /x'; exit 0"}}
        )
        assert alone.run().states == {"a": "done"}
        assert "fsmonitor" not in (place / "config").read_text()


def test_a_worktree_step_stages_and_harms_no_object(alone: Project) -> None:
    git(alone, "init", "-q", ".")
    alone.write("a.txt", "a")
    git(alone, "add", "a.txt")
    git(alone, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one")
    before = files_of(Path(alone.root) / ".git/objects")
    stage = "echo b > a.txt; git add a.txt; git diff --cached --stat; git stash list"
    harm = "rm -rf $(git rev-parse --git-common-dir)/objects/*"
    step = {"shell": f"{stage} && git log --format=%s; {harm}; exit 0", "workspace": "worktree"}
    guard = {
        "command": ["git", "diff", "--cached", "--quiet", "--exit-code", "HEAD", "--", "nothing"]
    }
    alone.plan({"a": {**step, "effects": "workspace", "guards": [guard]}})
    assert alone.run().states == {"a": "done"}
    assert files_of(Path(alone.root) / ".git/objects") == before
    assert "1 file changed" in alone.ok("logs", "a").out


def test_a_step_that_may_write_to_git_commits(alone: Project) -> None:
    git(alone, "init", "-q", ".")
    configure(alone, f"[sandbox]\nwritable = ['{alone.root}/.git']\n")
    commit = "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m two"
    alone.plan({"a": {"shell": commit}})
    assert alone.run().states == {"a": "done"}
    assert git(alone, "log", "--format=%s") == "two\n"


def test_a_pointer_that_a_step_wrote_opens_no_place(alone: Project) -> None:
    victim = alone.home / "victim"
    victim.mkdir(parents=True)
    (victim / "key").write_text("secret")
    pointer = f"echo 'gitdir: {alone.root}/fake' > .git"
    forge = f"mkdir -p fake; {pointer}; echo {victim} > fake/commondir"
    alone.plan(
        {
            "one": {"shell": forge},
            "two": {
                "needs": ["one"],
                "shell": f"echo owned >> {victim}/key; cat {victim}/key; exit 0",
            },
        }
    )
    assert alone.run().states == {"one": "done", "two": "done"}
    assert alone.ok("show", "two").out.strip() == ""
    assert (victim / "key").read_text() == "secret"


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "index"  # git refreshes that
    }


def git(project: Project, *words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=project.root, check=True, capture_output=True, text=True
    ).stdout


@pytest.mark.req("D38")
def test_a_tool_that_is_asked_for_its_version_is_held_too(alone: Project, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    ask = ["sh", "-c", f"touch {mark} mark; echo 1"]
    alone.plan({"a": {"run": "true", "tool_versions": {"odd": ask}}})
    alone.ok("plan")
    assert alone.run().states == {"a": "done"}
    assert not mark.exists()
    assert not alone.has("mark")


def test_an_environment_that_a_step_wrote_shows_no_hidden_place(alone: Project) -> None:
    keys = alone.home / "keys"
    (keys / "bin").mkdir(parents=True)
    (keys / "key").write_text("secret")
    named = "".join(f"home = {place}\\n" for place in (f"{keys}/bin", alone.store / "shims"))
    forge = f"mkdir -p .venv/bin; printf '{named}' > .venv/pyvenv.cfg"
    look = {"needs": ["one"], "shell": f"cat {keys}/key; ls .holdfast | grep -v scratch; exit 0"}
    alone.plan({"one": {"shell": forge}, "two": look})
    for words in ((), ("--force",)):  # the second finds it from the beginning
        assert alone.run(*words).states == {"one": "done", "two": "done"}
        assert alone.ok("show", "two").out.strip() == ""


TAKING = """
import glob, os, pathlib

def _folder():
    return glob.glob(os.environ["HOLDFAST_HANDOFF"].rsplit("/", 1)[0] + "/call-*")[0]

def result(key: str) -> str:
    os.symlink(key, _folder() + "/result")
    pathlib.Path.write_bytes = lambda self, content: 0
    return "x"

def pipe(key: str) -> str:
    os.mkfifo(_folder() + "/result")
    pathlib.Path.write_bytes = lambda self, content: 0
    return "x"

def log(key: str) -> str:
    os.unlink(_folder() + "/log")
    os.symlink(key, _folder() + "/log")
    return "y"

def added(key: str) -> str:
    os.rmdir(os.environ["HOLDFAST_ADD"])
    os.symlink(os.path.dirname(key), os.environ["HOLDFAST_ADD"])
    return "z"
"""


@pytest.mark.parametrize("way", ["result", "pipe", "log", "added"])
def test_the_engine_follows_no_link_that_a_python_step_lays(alone: Project, way: str) -> None:
    (alone.home / "keys").mkdir()
    (alone.home / "keys/key.yaml").write_text("secret: word")
    alone.write("taking.py", TAKING)
    key = str(alone.home / "keys/key.yaml")
    step = {"uses": "python", "run": f"taking:{way}", "with": {"key": key}, "timeout": "30s"}
    alone.plan({"a": step})
    alone.run()
    said = [alone.call(*words).out for words in (("show", "a"), ("logs", "a"), ("status",))]
    assert not any("secret" in text for text in said)


def test_a_python_step_cannot_change_what_judges_it(alone: Project) -> None:
    alone.write("check.py", "def judge(text: str):\n    return text.startswith('good')\n")
    alone.write("work.py", "import check\n\ndef make():\n    check.judge = len\n    return 'bad'\n")
    step = {"uses": "python", "run": "work:make", "guards": [{"python": "check:judge"}]}
    alone.plan({"a": step})
    assert alone.run().states == {"a": "failed"}


def test_a_thread_that_python_does_not_count_ends_with_its_step(alone: Project) -> None:
    alone.write(
        "work.py",
        "import _thread, os, time\n\ndef make():\n"
        "    _thread.start_new_thread(time.sleep, (60,))\n    return str(os.getpid())\n\n"
        "def second():\n    return str(len(os.listdir('/proc/self/task')))\n",
    )
    alone.plan(
        {
            "one": {"uses": "python", "run": "work:second"},
            "a": {"uses": "python", "run": "work:make", "needs": ["one"]},
            "b": {"uses": "python", "run": "work:second", "needs": ["a"]},
        }
    )
    assert alone.run().states == {"one": "done", "a": "done", "b": "done"}
    assert alone.ok("show", "b").out == alone.ok("show", "one").out


@pytest.mark.req("D24")
def test_comparing_with_a_commit_runs_no_filter(alone: Project) -> None:
    git(alone, "init", "-q", ".")
    alone.plan({"a": {"shell": "echo 1"}})
    alone.write(".gitattributes", "* filter=evil\n")
    git(alone, "add", "-A")
    git(alone, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one")
    mark = alone.folder / "mark"
    git(alone, "config", "filter.evil.smudge", f"touch {mark}; cat")
    alone.plan({"a": {"shell": "echo 2"}})
    assert "~ a: shell" in alone.call("diff", "HEAD").out
    assert not mark.exists()


# --- told -----------------------------------------------------------------------------------------


def bare_path(project: Project) -> str:
    """A PATH without bubblewrap."""
    folder = project.folder / "bin"
    folder.mkdir()
    for name in ("sh", "env", "cat", "touch", "setpriv", "git", "true"):
        if found := shutil.which(name):
            (folder / name).symlink_to(found)
    return str(folder)


def test_without_bubblewrap_a_person_s_commands_run_and_it_is_told(alone: Project) -> None:
    alone.plan({"a": {"shell": "echo x > made; echo fine"}})
    env = {"PATH": bare_path(alone)}
    done = alone.call("run", env=env)
    assert done.code == 0, done
    assert done.err.count("unconfined;") == 1
    assert "✓ a" in done.err
    assert alone.ok("show", "a", "--json").json["confined"] is False
    assert "unconfined" in alone.ok("why", "a", "--run", "@").out
    assert "sandbox" in alone.call("doctor", env=env).out


def test_no_sandbox_is_a_person_s_word_and_is_told(alone: Project) -> None:
    alone.plan({"a": {"shell": f"touch {alone.folder}/outside"}})
    alone.run()
    assert not (alone.folder / "outside").exists(), "it wrote to a /tmp of its own, at most"
    done = alone.call("run", "--no-sandbox", "--force")
    assert done.code == 0, done
    assert (alone.folder / "outside").exists()
    assert "unconfined" in done.err


def test_without_a_sandbox_the_next_attempt_has_the_same_room_emptied(alone: Project) -> None:
    say = 'echo "$TMPDIR"; ls -A "$TMPDIR" "$HOME"; touch "$TMPDIR/left" "$HOME/left"'
    alone.plan({"a": {"shell": say}, "b": {"shell": say, "needs": ["a"]}})
    done = alone.call("run", "--no-sandbox")
    assert done.code == 0, done
    first, second = (alone.call("show", step).out for step in ("a", "b"))
    assert first == second
    assert "scratch" in first
    assert "left" not in first


def test_commands_that_nobody_here_wrote_are_refused_without_a_sandbox(alone: Project) -> None:
    """Though a person approved the plan, and though Landlock would hold some of it."""
    put(alone)
    employ(alone)
    words = ("run", "graph.json", "--trust", digest(alone))
    bare = {"PATH": bare_path(alone)}
    refused = alone.call(*words, env=bare)
    assert refused.code == 1
    assert "commands that nobody here wrote need a sandbox" in refused.out
    assert "bubblewrap (bwrap) is not installed" in refused.out
    assert "--no-sandbox" in refused.out
    assert alone.ran() == []
    assert "need a sandbox" in alone.call("resume", "-f", "graph.json", env=bare).out
    assert alone.ran() == []
    taken = alone.call("run", "graph.json", "--no-sandbox", env=bare)
    assert taken.code == 0, taken
    assert taken.err.count("unconfined;") == 1
    assert alone.ran() == ["check", "write"]
    shown = alone.ok("show", "-f", "graph.json", "write", "--json").json
    assert shown["confined"] is False
    assert alone.run("graph.json", "--force").states == {"write": "done", "check": "done"}
    assert alone.ok("show", "-f", "graph.json", "write", "--json").json["confined"] is True


def test_what_a_stranger_s_command_may_not_change_is_wider(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    where = (str(tmp_path), str(tmp_path), str(tmp_path / "room"), "/bin")
    box = Terms(written_here=False).sandbox_for(*where)
    assert box is not None
    for name in (".git", ".github", ".env", "holdfast.toml"):
        assert str(tmp_path / name) in box.protected
    granted = Terms(written_here=False, writable=(str(tmp_path / ".git"),))
    (tmp_path / ".git").mkdir()
    box = granted.sandbox_for(*where)
    assert box is not None
    assert str(tmp_path / ".git") not in box.protected


def test_doctor_says_what_is_in_force(alone: Project) -> None:
    checks = {c["name"]: c["words"] for c in alone.call("doctor", "--json").json["checks"]}
    assert "bubblewrap" in checks["sandbox"]
    assert "no network" in checks["sandbox"]
    assert "system calls" in checks["sandbox"]
    assert "processes 4096" in checks["sandbox limits"]
    configure(alone, "[sandbox]\nnetwork = true\nprocesses = 99\n")
    checks = {c["name"]: c["words"] for c in alone.call("doctor", "--json").json["checks"]}
    assert "no network" not in checks["sandbox"]
    assert "processes 99" in checks["sandbox limits"]
    configure(alone, f"[sandbox]\nwritable = ['{alone.folder}', '/nowhere/at/all']\n")
    checks = {c["name"]: c["words"] for c in alone.call("doctor", "--json").json["checks"]}
    assert checks["sandbox places"].startswith(f"writable {alone.folder}, /nowhere/at/all")
    assert checks["sandbox places"].endswith("not there: /nowhere/at/all")


def test_a_failure_that_sounds_like_the_sandbox_says_what_would_help(alone: Project) -> None:
    alone.plan({"a": {"shell": "touch /etc/holdfast-mark"}})
    assert "commands write into the project alone" in alone.call("run").out
    alone.plan({"a": {"shell": "echo 'curl: Could not resolve host: x' >&2; exit 6"}})
    assert "holdfast resume --network" in alone.call("run").out


# --- bombs ----------------------------------------------------------------------------------------

SMALL = """
[sandbox]
processes = 80
memory = "150 MB"
file_size = "4 MB"
open_files = 100
scratch = "4 MB"
"""
PYTHON = f"{sys.executable} -c"
HOLD = "x = bytearray(10**8); import time; time.sleep(600)"
BOMBS = {
    "forks": "bomb(){ bomb|bomb& }; bomb; sleep 600",
    "a large file": "head -c 10G /dev/zero > big",
    "many files in scratch space": "cd /tmp; while echo 1 > f$((i=i+1)); do :; done; exit 9",
    "a large allocation": f"{PYTHON} 'x = bytearray(8 * 10**9)'",
    "allocations of many": f"for i in 1 2 3 4; do {PYTHON} '{HOLD}' & done; wait; exit 9",
    "endless output": "yes",
    "one endless line": "tr '\\0' x < /dev/zero",
    "sleep for ever": "sleep infinity",
    "many descriptors": f"{PYTHON} 'x = [open(\"/dev/null\") for _ in range(100000)]'",
    "shared memory": "cat /dev/zero > /dev/shm/x; exit 9",
}
# Seconds for those that no other limit need end; each is tried twice.
UNTIL_THEIR_TIME = {
    "allocations of many": 3,
    "endless output": 2,
    "one endless line": 2,
    "sleep for ever": 1,
}


@pytest.mark.soak("other")  # all at once: test_bombs
@pytest.mark.req("D40")
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_ends_at_its_limit_and_another_step_is_unharmed(alone: Project, name: str) -> None:
    configure(alone, SMALL)
    timeout = f"{UNTIL_THEIR_TIME.get(name, 6)}s"
    step = {"shell": BOMBS[name], "workspace": "scratch", "timeout": timeout, "produces": ["out"]}
    alone.plan({"bomb": step, "other": {"shell": "for i in 1 2 3; do echo $i; sleep 0.3; done"}})
    run = alone.run("-j", "2")
    assert run.states == {"bomb": "failed", "other": "done"}, run
    left = [path for path in alone.store.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in left) < 50 * 10**6, "the disk is given back"
    assert not list((alone.store / "scratch").glob("*/*"))


@pytest.mark.req("D40")
def test_stdout_of_a_step_ends_at_its_limit(alone: Project) -> None:
    """Without `produces` stdout is the artifact: at its end by time here, by size after a gigabyte."""
    configure(alone, SMALL)
    alone.plan({"bomb": {"shell": "yes | head -c 20000000; exec sleep 600", "timeout": "2s"}})
    run = alone.run()
    assert run.states == {"bomb": "failed"}


MARK = "$HOLDFAST_ROOT/../MARK"
LINES = [
    "ls;touch MARK",
    "ls\ntouch MARK",
    "ls & touch MARK; wait",
    "ls | touch MARK",
    "echo $(touch MARK)",
    "echo `touch MARK`",
    "find . -exec touch MARK \\;",
    "sed 1e'touch MARK' f",
    "awk 'BEGIN{system(\"touch MARK\")}'",
    "awk '{print > \"MARK\"}' f",
    "echo x|xargs -I{} touch MARK",
    "env -S 'touch MARK'",
    "tar cf /dev/null f --checkpoint=1 --checkpoint-action=exec='touch MARK'",
    "git -c core.fsmonitor='touch MARK;false' status",
    "true;" * 60 + "touch MARK",
    "./ls",
    "echo x > MARK",
]


@pytest.mark.req("D38")
def test_no_trick_of_a_command_leaves_a_mark_outside(alone: Project) -> None:
    place = alone.folder / "MARK"
    alone.write("f", "x\n")
    alone.write("ls", f"#!/bin/sh\ntouch {place}\n", executable=True)
    steps = {
        f"s{number}": {"shell": line.replace("MARK", str(place)) + "\nexit 0"}
        for number, line in enumerate(LINES)
    }
    alone.plan(steps)
    run = alone.run()
    assert set(run.states.values()) == {"done"}
    assert not place.exists()
    unheld = alone.call("run", "--no-sandbox", "--force-node", "s0")
    assert unheld.code == 0
    assert place.exists(), "outside of a sandbox the trick works: the test can fail"


@pytest.mark.req("D20")
@pytest.mark.parametrize("flags", [(), ("--network",), ("--no-sandbox",)])
def test_killing_the_engine_ends_all_whatever_the_sandbox(
    project: Project, flags: tuple[str, ...]
) -> None:
    project.plan({"a": {"shell": f"setsid sleep 997 & touch {project.folder}/up; sleep 997"}})
    engine = project.start("run", *flags)
    until(lambda: (project.folder / "up").exists() or engine.poll() is not None, "it is up")
    assert engine.poll() is None, finish(engine)
    engine.kill()
    engine.wait()

    def sleepers() -> list[str]:
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                if str(project.root).encode() in path.read_bytes():
                    found.append(path.parent.name)
            except OSError:
                continue
        return found

    until(lambda: not sleepers(), "nothing is left", 15)


@pytest.mark.req("C35")
def test_who_stops_listening_fails_no_step(
    project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shown = tmp_path_factory.mktemp("shown")
    configure(project, f'[sandbox]\nreadable = ["{shown}"]\n')
    project.write("called.py", "def made():\n    return 1\n")
    body = "top, prompt, number = begin()\nend(number)\n"
    project.write("agent.py", f"import json, sys\n{PROTOCOL}\n{body}")
    agent = {"uses": "cli-agent", "run": ["acp:python3", "agent.py"], "inputs": ["agent.py"]}
    project.plan(
        {
            "a": {"shell": "echo 1"},
            "b": {"uses": "python", "run": "called:made"},
            "c": {**agent, "prompt": "do it", "retries": 0},
        }
    )
    with listening_for_a_moment(shown):
        ended = project.run("-j", "1")
    assert (ended.code, set(ended.states.values())) == (0, {"done"}), (ended.states, ended.err)
    assert "unconfined" not in ended.err
