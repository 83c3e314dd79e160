"""However an attempt ends, nothing of it is left: no process in any session, no port that is taken."""

import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.project import Project, alive, finish, kill, until
from tests.forge import Running

GONE = 15.0  # three times the promise

WORK = '''
"""Take a port, start processes that nobody looks after, and stay."""

import os
import signal
import socket
import subprocess
import sys


def stay(flag, port, up):
    """Only the first time; afterwards it is enough that the port is free."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        if os.path.exists(flag):
            return "fine"
        open(flag, "w").close()
        subprocess.Popen(["setsid", "sleep", "999"])
        subprocess.Popen(["sh", "-c", "(sleep 999 &) ; exit 0"])
        open(up, "w").close()
        signal.pause()


if __name__ == "__main__":
    print(stay(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
'''

Kind = Callable[[Project, int], dict[str, object]]


def as_shell(project: Project, port: int) -> dict[str, object]:
    words = f"work.py {project.folder}/flag {port} {project.folder}/up"
    return {"shell": f"setsid sleep 999 & (sleep 999 &) ; {sys.executable} {words}"}


def as_function(project: Project, port: int) -> dict[str, object]:
    values = {"flag": f"{project.folder}/flag", "port": port, "up": f"{project.folder}/up"}
    return {"uses": "python", "run": "work:stay", "with": values}


@pytest.fixture(params=[as_shell, as_function])
def kind(request: pytest.FixtureRequest) -> Kind:
    made: Kind = request.param
    return made


@pytest.fixture
def port() -> int:
    return free_port()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number: int = free.getsockname()[1]
        return number


def is_free(port: int) -> bool:
    with socket.socket() as asked:
        try:
            asked.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def begin(project: Project, step: dict[str, object], port: int) -> tuple[Running, list[int]]:
    """An engine whose second step is up, and the processes of that step."""
    project.write("work.py", WORK)
    need = {"step": "before", "type": "sequence"}
    project.plan({"before": {"run": "true"}, "stays": {**step, "needs": [need]}})
    engine = project.start("run", "--json", "--network", "-j", "2")
    until(lambda: (project.folder / "up").exists() or engine.poll() is not None, "it is up")
    assert engine.poll() is None, finish(engine)
    found = until(lambda: with_sleepers(engine.pid), "all of it is up")
    assert not is_free(port), "it is the port of this machine"
    project.watch(*found)
    return engine, found


def with_sleepers(pid: int) -> list[int]:
    """The descendants of an engine; none before those that nobody looks after are there."""
    found = list(below(pid))
    return found if sum(b"sleep\x00999" in command(one) for one in found) >= 2 else []


def below(pid: int) -> Iterator[int]:
    """Every descendant, also one that left the session: none leaves its engine, its slot or its child."""
    with suppress(OSError):  # one that is just ending
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield int(child)
                yield from below(int(child))


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def check_gone(processes: list[int], port: int) -> None:
    until(lambda: not any(map(alive, processes)), "nothing is left", GONE)
    until(lambda: is_free(port), "the port is free", GONE)


def ends(project: Project) -> list[tuple[str, str | None]]:
    """How the attempts at the step ended."""
    kinds = {"attempt_lost", "attempt_accepted", "attempt_failed"}
    return [
        (event["event"], event.get("code"))
        for event in project.events()
        if event.get("step") == "stays" and event["event"] in kinds
    ]


@pytest.mark.req("D20")
def test_a_stopped_attempt_leaves_nothing(project: Project, kind: Kind, port: int) -> None:
    engine, processes = begin(project, kind(project, port), port)
    project.ok("stop", "--now")
    assert finish(engine).code == 130
    check_gone(processes, port)
    assert project.resume("--network").code == 0
    assert ends(project)[-1][0] == "attempt_accepted"


@pytest.mark.req("D20")
def test_an_attempt_that_takes_too_long_leaves_nothing(
    project: Project, kind: Kind, port: int
) -> None:
    engine, processes = begin(project, {**kind(project, port), "timeout": "5s"}, port)
    assert finish(engine).code == 0, "the second attempt found the port free"
    check_gone(processes, port)
    assert ends(project) == [("attempt_lost", "timed_out"), ("attempt_accepted", None)]


@pytest.mark.req("D20")
def test_a_killed_engine_leaves_nothing(
    project: Project, kind: Kind, port: int, require_part: Callable[[str], str]
) -> None:
    require_part("bubblewrap")
    engine, processes = begin(project, kind(project, port), port)
    kill(engine)
    check_gone(processes, port)
    assert project.resume("--network").code == 0


@pytest.mark.req("D20", "R74")
@pytest.mark.parametrize("whose", ["own", "bubblewrap"])
def test_a_killed_slot_or_child_loses_the_attempt_and_not_the_engine(
    project: Project, kind: Kind, port: int, whose: str, require_part: Callable[[str], str]
) -> None:
    require_part("bubblewrap")
    engine, processes = begin(project, kind(project, port), port)
    name = b"/process/slot.py" if kind is as_shell else b"/generators/child.py"
    holders = [pid for pid in processes if name in command(pid)]
    is_wrapper = {pid: b"bwrap" in command(pid).split(b"\0")[0] for pid in holders}
    chosen = [pid for pid in holders if is_wrapper[pid] == (whose == "bubblewrap")]
    assert chosen
    for pid in chosen:
        if alive(pid):
            os.kill(pid, signal.SIGKILL)
    assert finish(engine).code == 0, "the second attempt found the port free"
    check_gone(processes, port)
    assert ends(project) == [("attempt_lost", "lost"), ("attempt_accepted", None)]
