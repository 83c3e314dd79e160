"""Running one command: what comes back, and that nothing of it stays."""

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.errors import ProcessError
from holdfast.process import run as process
from holdfast.process.run import Command, Completed, Slots, probe, sweep, sweep_slots
from holdfast.process.tree import namespace

ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
DEADLINE = 20.0
# A tree that a kill of the process group alone would not end.
TREE = "setsid sleep 999 & (sleep 999 &); (setsid sh -c 'sleep 999 & sleep 999' &); trap '' TERM; "
DRIVER = """
import asyncio, os, sys
from holdfast.process.run import Command, Slots, run
script, mode, mark = sys.argv[1:4]
confine = "never" if mode == "never" else "auto"
def command(*argv):
    return Command(argv, "/", {"PATH": "/usr/bin:/bin"}, mark=mark, confine=confine)
def show(stream, chunk):
    print(chunk.decode(), end="", flush=True)
async def main():
    slots = Slots() if mode == "slot" else None
    await run(command("true"), slots=slots)
    print((await run(command("sh", "-c", script), on_output=show, slots=slots)).ended, flush=True)
    if slots:
        await slots.close()
asyncio.run(main())
for child in open(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read().split():
    with open(f"/proc/{child}/cmdline", "rb") as words:  # empty for a zombie
        if b"process/watch.py" not in words.read():
            print(child, end="")
"""


class Slotted(Command):
    """A command that runs in a slot which another command used before."""


async def run(
    command: Command, *, on_output: Callable[[str, bytes], None] | None = None
) -> Completed:
    if not isinstance(command, Slotted):
        return await process.run(command, on_output=on_output)
    slots = Slots()
    try:
        before = Command(("sh", "-c", TREE + "exit 3"), "/", ENV, mark="before:")
        assert (await process.run(before, slots=slots)).code == 3
        return await process.run(command, on_output=on_output, slots=slots)
    finally:
        await slots.close()


@pytest.fixture(params=["slot", "auto", "never"])
def mode(request: pytest.FixtureRequest, require_part: Callable[[str], str]) -> str:
    mode: str = request.param
    if mode != "never":
        require_part("bubblewrap")
        assert probe().pid_namespace, probe().reason
    return mode


@pytest.fixture
def mark(request: pytest.FixtureRequest) -> str:
    return f"test-{os.getpid()}-{re.sub(r'[^a-z_]', '-', request.node.name)}:"


@pytest.fixture
def command(mode: str, mark: str) -> Callable[..., Command]:
    kind = Slotted if mode == "slot" else Command
    confine = "never" if mode == "never" else "auto"

    def make(*argv: str, **fields: object) -> Command:
        given = {"cwd": "/", "env": ENV, "mark": mark, "confine": confine, **fields}
        return kind(argv, **given)  # type: ignore[arg-type] # the fields are checked by the test

    return make


def survivors(mark: str) -> list[int]:
    """Living processes whose environment carries the mark; found without the code under test."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with contextlib.suppress(OSError):
                environ = Path(f"/proc/{name}/environ").read_bytes()  # empty for a zombie
                if b"\0HOLDFAST_MARK=" + mark.encode() in b"\0" + environ:
                    found.append(int(name))
    return found


def watches(engine: int) -> list[int]:
    """The processes that would end what an engine leaves."""
    children = Path(f"/proc/{engine}/task/{engine}/children").read_text().split()
    words = {int(pid): Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children}
    return [pid for pid, said in words.items() if b"process/watch.py" in said]


def until(condition: Callable[[], bool]) -> None:
    pause = threading.Event()
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        pause.wait(0.01)


def complete(command: Command) -> Completed:
    return asyncio.run(run(command))


def children() -> set[str]:
    return set(Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split())


@pytest.mark.parametrize("code", [0, 1, 126, 127, 128, 129, 200, 255])
def test_an_exit_code_comes_back(command: Callable[..., Command], code: int, mode: str) -> None:
    done = complete(command("sh", "-c", f"exit {code}"))
    assert (done.ended, done.code, done.signal) == ("exited", code, None)
    assert done.confined == (mode != "never")


@pytest.mark.parametrize("name", ["KILL", "TERM", "SEGV", "ABRT", "INT", "USR1"])
def test_a_deadly_signal_comes_back(command: Callable[..., Command], name: str) -> None:
    done = complete(command("sh", "-c", f"kill -{name} $$"))
    number = int(signal.Signals[f"SIG{name}"])
    assert (done.ended, done.code, done.signal) == ("signalled", None, number)


def test_stdout_comes_back_byte_for_byte(command: Callable[..., Command]) -> None:
    content = bytes(range(256)) * 5000
    done = complete(command("cat", stdin=content))
    assert done.stdout == content
    assert (done.stderr, done.dropped) == (b"", 0)


def test_output_is_streamed_by_name(command: Callable[..., Command]) -> None:
    got: dict[str, bytes] = {"stdout": b"", "stderr": b""}

    def take(stream: str, chunk: bytes) -> None:
        got[stream] += chunk

    done = asyncio.run(run(command("sh", "-c", "echo out; echo err >&2"), on_output=take))
    assert got == {"stdout": b"out\n", "stderr": b"err\n"}
    assert (done.stdout, done.stderr) == (b"out\n", b"err\n")


@pytest.mark.req("D20")
def test_an_error_of_the_listener_ends_the_command(
    command: Callable[..., Command], mark: str
) -> None:
    def take(stream: str, chunk: bytes) -> None:
        raise LookupError(stream)

    with pytest.raises(LookupError, match="stdout"):
        asyncio.run(run(command("sh", "-c", TREE + "echo; sleep 999"), on_output=take))
    assert survivors(mark) == []


def test_the_middle_of_a_long_stderr_is_dropped_and_counted(
    command: Callable[..., Command],
) -> None:
    script = "printf start >&2; head -c 300000 /dev/zero >&2; printf the-end >&2; exit 3"
    done = complete(command("sh", "-c", script, keep_err=1000))
    assert (done.ended, done.code) == ("exited", 3)
    assert len(done.stderr) == 1000
    assert done.stderr.startswith(b"start\0")
    assert done.stderr.endswith(b"\0the-end")
    assert done.dropped == len(b"start") + 300000 + len(b"the-end") - 1000


@pytest.mark.req("D40")
@pytest.mark.parametrize("source", ["yes", "head -c 1000000000 /dev/zero"])
def test_too_much_stdout_ends_the_command(
    command: Callable[..., Command], mark: str, source: str
) -> None:
    done = complete(command("sh", "-c", f"sleep 999 & {source}", keep=2**20))
    assert (done.ended, done.code, done.signal) == ("overflow", None, signal.SIGKILL)
    assert len(done.stdout) == 2**20
    assert survivors(mark) == []


def test_stdout_that_just_fits_is_no_overflow(command: Callable[..., Command]) -> None:
    assert complete(command("printf", "12345", keep=5)).ended == "exited"
    done = complete(command("printf", "123456", keep=5))
    assert (done.ended, done.stdout) == ("overflow", b"12345")


@pytest.mark.req("D20")
def test_a_timeout_ends_the_whole_tree(command: Callable[..., Command], mark: str) -> None:
    done = complete(command("sh", "-c", TREE + "echo up; sleep 999", timeout=1.0))
    assert (done.ended, done.code, done.signal) == ("timed_out", None, signal.SIGKILL)
    assert done.stdout == b"up\n"
    assert survivors(mark) == []


@pytest.mark.req("D20")
@pytest.mark.parametrize("cancellations", [1, 3])
def test_a_cancellation_ends_the_whole_tree(
    command: Callable[..., Command], mark: str, cancellations: int
) -> None:
    async def scenario() -> None:
        up = asyncio.Event()
        task = asyncio.create_task(
            run(
                command("sh", "-c", TREE + "echo up; sleep 999"),
                on_output=lambda *_: up.set(),
            )
        )
        await asyncio.wait_for(up.wait(), DEADLINE)
        for _ in range(cancellations):
            task.cancel()
            await asyncio.wait({task}, timeout=0)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert survivors(mark) == []

    asyncio.run(scenario())


@pytest.mark.req("D20")
def test_a_cancellation_at_once_after_the_start_ends_it(
    command: Callable[..., Command], mark: str
) -> None:
    async def scenario() -> None:
        for _ in range(20):
            task = asyncio.create_task(run(command("sh", "-c", "sleep 999")))
            await asyncio.wait({task}, timeout=0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert survivors(mark) == []

    asyncio.run(scenario())


@pytest.mark.req("D20")
def test_the_end_of_the_event_loop_ends_the_tree(
    command: Callable[..., Command], mark: str
) -> None:
    kept = []

    async def scenario() -> None:
        up = asyncio.Event()
        kept.append(
            asyncio.create_task(
                run(
                    command("sh", "-c", TREE + "echo up; sleep 999"),
                    on_output=lambda *_: up.set(),
                )
            )
        )
        await asyncio.wait_for(up.wait(), DEADLINE)

    asyncio.run(scenario())
    assert kept[0].cancelled()
    assert survivors(mark) == []


@pytest.mark.req("D20")
def test_a_closed_coroutine_leaves_nothing(command: Callable[..., Command], mark: str) -> None:
    async def scenario() -> None:
        coroutine = run(command("sh", "-c", TREE + "sleep 999"))
        coroutine.send(None)
        coroutine.close()

    asyncio.run(scenario())
    until(lambda: survivors(mark) == [])


@pytest.mark.req("D20")
def test_background_children_end_with_the_command(
    command: Callable[..., Command], mark: str
) -> None:
    before = children()
    done = complete(command("sh", "-c", TREE + "echo done; exit 4"))
    assert (done.ended, done.code, done.stdout) == ("exited", 4, b"done\n")
    assert survivors(mark) == []
    assert children() <= before  # none is left as a zombie either


@pytest.mark.req("D20")
def test_a_daemon_that_cleared_its_environment_ends_with_its_session(
    command: Callable[..., Command], tmp_path: Path
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    held = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        done = complete(command("sh", "-c", f"(env -i sleep 999 >{fifo} &); exit 0"))
        assert done.ended == "exited"
        assert os.read(held, 1) == b""  # no writer is left
    finally:
        os.close(held)


def test_a_pipe_that_a_background_child_holds_does_not_hang(
    command: Callable[..., Command], mark: str
) -> None:
    done = complete(command("sh", "-c", "echo first; setsid sh -c 'sleep 999; echo late' &"))
    assert (done.ended, done.stdout) == ("exited", b"first\n")
    assert survivors(mark) == []


@pytest.mark.req("D40")
def test_a_fork_bomb_ends_at_the_timeout(command: Callable[..., Command], mark: str) -> None:
    script = "b() { [ $1 = 8 ] && exec sleep 999; b $(($1 + 1)) & b $(($1 + 1)) & wait; }; b 0"
    done = complete(command("sh", "-c", script, timeout=0.5))
    assert done.ended == "timed_out"
    assert survivors(mark) == []


def test_a_signal_to_its_own_group_stays_with_the_command(
    command: Callable[..., Command],
) -> None:
    done = complete(command("sh", "-c", "trap '' TERM; kill 0; exit 5"))
    assert (done.ended, done.code) == ("exited", 5)


@pytest.mark.req("D20")
def test_a_killed_engine_whose_watch_is_gone_leaves_nothing_after_a_sweep(
    mode: str, mark: str
) -> None:
    script = TREE + "echo up; sleep 999"
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, script, mode, mark],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == b"up\n"
        assert survivors(mark) != []
        for pid in watches(driver.pid):
            os.kill(pid, signal.SIGKILL)
        driver.kill()
    if mode == "never":
        assert sweep(mark) >= 1  # the kernel ended only the direct child
        assert survivors(mark) == []
    until(lambda: survivors(mark) == [])
    assert sweep(mark) == 0


ABRUPT = """
import asyncio, os, subprocess, sys
from holdfast.process.confine import Sandbox
from holdfast.process.launch import start
async def main():
    folder, mark = sys.argv[1:]
    argv = ("sh", "-c", "touch begun; sleep 999")
    wanted = Sandbox(writable=(folder,))
    start(argv, folder, {"PATH": "/bin"}, mark=mark, stdin=subprocess.DEVNULL, confine="auto", wanted=wanted)
    os.kill(os.getpid(), 9)
asyncio.run(main())
"""


@pytest.mark.req("D20", "I12")
def test_an_engine_killed_while_a_sandbox_is_made_leaves_neither_it_nor_the_command(
    tmp_path: Path, mark: str, require_part: Callable[[str], str]
) -> None:
    require_part("bubblewrap")
    done = subprocess.run(
        [sys.executable, "-c", ABRUPT, str(tmp_path), mark],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    until(lambda: survivors(mark) == [])
    assert not (tmp_path / "begun").exists()


LEAVING = """
import asyncio, os, subprocess, sys
from pathlib import Path
from holdfast.process.launch import start
from holdfast.process.run import Command, Slots, run
from holdfast.process.tree import MARK, owner
how, mark = sys.argv[1:]
env = {"PATH": os.environ["PATH"]}
def begin(confine):
    argv = ("/bin/sh", "-c", "/bin/sleep 999 & /bin/sleep 999")
    start(argv, "/", env, mark=mark, stdin=subprocess.DEVNULL, confine=confine)
def watches():
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = place.read_bytes()
        except OSError:
            continue
        if b"process/watch.py" in words and owner().encode() in words:
            yield int(place.parent.name)
async def main():
    if how == "slot":
        await run(Command(("true",), "/", env, mark=mark), slots=Slots())
        subprocess.Popen(["/bin/sleep", "999"], env={MARK: f"{mark}#{owner()}.7"})
    else:
        begin("never")
    if how == "watch":
        for pid in watches():
            os.kill(pid, 9)
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        begin("never")
    print("begun", flush=True)
    os.kill(os.getpid(), 9)
asyncio.run(main())
"""


@pytest.mark.req("D20", "I12")
@pytest.mark.parametrize("how", ["alone", "watch", "slot"])
def test_a_killed_engine_leaves_no_process_whatever_bound_it(
    how: str, mark: str, require_part: Callable[[str], str]
) -> None:
    """Nothing confines it and no kernel signal is asked for; its watch was ended; it is half made."""
    if how == "slot":
        require_part("bubblewrap")
    done = subprocess.run(
        [sys.executable, "-c", LEAVING, how, mark],
        env={"PATH": ENV["PATH"] if how == "slot" else "", "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
        stdout=subprocess.PIPE,
    )
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, b"begun\n")
    until(lambda: survivors(mark) == [])


def test_a_first_run_leaves_no_zombie(mode: str, mark: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, TREE + "echo hello", mode, mark],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
    )
    assert done.stdout == b"hello\nexited\n"


def test_a_sweep_spares_other_marks(command: Callable[..., Command], mark: str) -> None:
    async def scenario() -> Completed:
        up = asyncio.Event()
        task = asyncio.create_task(
            run(command("sh", "-c", "echo up; sleep 999"), on_output=lambda *_: up.set())
        )
        await asyncio.wait_for(up.wait(), DEADLINE)
        assert sweep(mark + "other") == 0
        assert survivors(mark) != []
        assert sweep(mark) >= 1
        return await task

    assert asyncio.run(scenario()).ended == "signalled"


def test_what_is_left_of_the_slots_of_a_dead_engine_is_swept() -> None:
    """A process that bubblewrap made and did not yet let begin outlives both."""
    with subprocess.Popen(["sleep", "999"]) as engine:
        mark = f"slot#{namespace()}:{engine.pid}.1"
        left = subprocess.Popen(["sleep", "999"], env={"HOLDFAST_MARK": mark})
        until(lambda: b"sleep" in Path(f"/proc/{left.pid}/cmdline").read_bytes())
        sweep_slots()
        assert left.poll() is None, "its engine lives"
        engine.kill()
    assert sweep_slots() >= 1
    assert left.wait(DEADLINE) is not None


def test_what_an_engine_of_another_pid_namespace_started_is_spared() -> None:
    """As in a container: from here its processes are seen, but its own number is somebody else's."""
    with subprocess.Popen(["sleep", "999"]) as engine:
        engine.kill()
    elsewhere = f"slot#{int(namespace()) + 1}:{engine.pid}.1"
    with subprocess.Popen(["sleep", "999"], env={"HOLDFAST_MARK": elsewhere}) as other:
        until(lambda: b"sleep" in Path(f"/proc/{other.pid}/cmdline").read_bytes())
        sweep_slots()
        assert other.poll() is None
        other.kill()


def test_a_sweep_without_a_mark_is_refused() -> None:
    with pytest.raises(ProcessError, match="needs a mark"):
        sweep("")


def test_a_program_that_is_not_there(command: Callable[..., Command], tmp_path: Path) -> None:
    for name in ("no-such-program", "./no-such-program", "/no/such/program"):
        done = complete(command(name, cwd=str(tmp_path)))
        assert (done.ended, done.code, done.signal) == ("not_found", None, None)


def test_a_program_is_looked_up_in_the_path_of_its_own_environment(
    command: Callable[..., Command], tmp_path: Path
) -> None:
    tool = tmp_path / "bin" / "tool-of-mine"
    tool.parent.mkdir()
    tool.write_text('#!/bin/sh\necho "$0 ran"\n')
    tool.chmod(0o755)
    env = {"PATH": f"{tool.parent}:/usr/bin:/bin"}
    assert complete(command("tool-of-mine")).ended == "not_found"
    assert complete(command("tool-of-mine", env=env)).stdout == f"{tool} ran\n".encode()
    assert complete(command("bin/tool-of-mine", cwd=str(tmp_path))).ended == "exited"


@pytest.mark.parametrize(
    "content, mode, ended",
    [
        ("#!/bin/sh\n", 0o644, "not_executable"),
        ("echo no interpreter named\n", 0o755, "not_executable"),
        ("#!/no/such/interpreter\n", 0o755, "not_found"),
        ("#!/etc/passwd\n", 0o755, "not_executable"),
        ("#!\n", 0o755, "not_executable"),
        ("", 0o755, "not_executable"),
    ],
)
def test_a_file_that_cannot_be_executed(
    command: Callable[..., Command], tmp_path: Path, content: str, mode: int, ended: str
) -> None:
    script = tmp_path / "script"
    script.write_text(content)
    script.chmod(mode)
    assert complete(command("./script", cwd=str(tmp_path))).ended == ended
    assert complete(command("script", env={"PATH": str(tmp_path)})).ended == ended


def test_a_directory_cannot_be_executed(command: Callable[..., Command], tmp_path: Path) -> None:
    assert complete(command(str(tmp_path))).ended == "not_executable"


def test_a_program_whose_loader_is_missing(command: Callable[..., Command], tmp_path: Path) -> None:
    program = tmp_path / "program"
    loader = re.compile(rb"/lib[^\0]*/ld-")
    content, changed = loader.subn(
        lambda found: b"/" + b"x" * (len(found[0]) - 1), Path("/bin/sh").read_bytes(), count=1
    )
    assert changed
    program.write_bytes(content)
    program.chmod(0o755)
    assert complete(command(str(program))).ended == "not_found"


def test_a_missing_working_directory_is_an_error(command: Callable[..., Command]) -> None:
    with pytest.raises(ProcessError, match='"/no/such/folder" does not exist'):
        complete(command("true", cwd="/no/such/folder"))


def test_the_environment_is_what_was_given_and_the_mark(
    command: Callable[..., Command], mark: str, tmp_path: Path
) -> None:
    env = {**ENV, "EMPTY": "", "ODD": "a b\n=c'\"\udcff", "LD_PRELOAD": ""}
    done = complete(command("env", "-0", env=env, cwd=str(tmp_path)))
    got = dict(item.split("=", 1) for item in os.fsdecode(done.stdout).split("\0")[:-1])
    assert got.pop("HOLDFAST_MARK").startswith(mark)
    assert got == {**env, "PWD": str(tmp_path)}


def test_a_command_holds_only_the_three_standard_descriptors(
    command: Callable[..., Command],
) -> None:
    script = "for n in $(seq 3 60); do [ -e /proc/$$/fd/$n ] && echo $n; done; exit 0"
    done = complete(command("sh", "-c", script))
    assert (done.code, done.stdout) == (0, b"")


def test_stdin_is_closed_unless_given(command: Callable[..., Command]) -> None:
    assert complete(command("cat")).stdout == b""
    assert complete(command("cat", stdin=b"")).stdout == b""
    assert complete(command("wc", "-c", stdin=b"x" * 1000000)).stdout == b"1000000\n"


def test_arguments_arrive_unchanged(command: Callable[..., Command]) -> None:
    words = ["-x", "--", "a b", "", "$HOME", "é", "\udcff", "\n"]
    done = complete(command("printf", "%s\\0", *words))
    assert os.fsdecode(done.stdout).split("\0")[:-1] == words


@pytest.mark.parametrize(
    "fields",
    [
        {"argv": ()},
        {"argv": ("",)},
        {"argv": ("a\0b",)},
        {"env": {"A=B": "c"}},
        {"env": {"": "c"}},
        {"env": {"A": "\0"}},
        {"timeout": 0.0},
        {"timeout": -1.0},
        {"keep": -1},
    ],
)
def test_an_impossible_command_is_refused(fields: dict[str, object]) -> None:
    given = {"argv": ("true",), "cwd": "/", "env": {}, **fields}
    with pytest.raises(ProcessError):
        Command(**given)  # type: ignore[arg-type] # wrong on purpose


def test_no_descriptor_and_no_child_is_left(command: Callable[..., Command]) -> None:
    async def all_ways() -> None:
        await run(command("true", stdin=b"x"))
        await run(command("no-such-program"))
        await run(command("yes", keep=10))
        await run(command("sleep", "999", timeout=0.05))
        await run(command("sh", "-c", TREE))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(run(command("sleep", "999")), 0.05)

    async def scenario() -> None:
        await all_ways()
        descriptors, processes = os.listdir("/proc/self/fd"), children()
        for _ in range(3):
            await all_ways()
        assert len(os.listdir("/proc/self/fd")) == len(descriptors)
        assert children() == processes

    asyncio.run(scenario())


@pytest.mark.parametrize("many", [25, pytest.param(100, marks=pytest.mark.soak("other"))])
def test_many_run_at_once(many: int, command: Callable[..., Command], mark: str) -> None:
    async def scenario() -> list[Completed]:
        script = "setsid sleep 999 & echo $0; exit $0"
        return await asyncio.gather(
            *(run(command("sh", "-c", script, str(number))) for number in range(many))
        )

    for number, done in enumerate(asyncio.run(scenario())):
        assert (done.ended, done.code) == ("exited", number)
        assert done.stdout == f"{number}\n".encode()
    assert survivors(mark) == []


def test_one_commands_end_spares_another_of_the_same_mark(
    command: Callable[..., Command], mark: str
) -> None:
    async def scenario() -> None:
        up = asyncio.Event()
        other = asyncio.create_task(
            run(command("sh", "-c", TREE + "echo up; sleep 999"), on_output=lambda *_: up.set())
        )
        await asyncio.wait_for(up.wait(), DEADLINE)
        before = set(survivors(mark))
        assert (await run(command("sh", "-c", TREE + "exit 0"))).code == 0
        assert (await run(command("sh", "-c", TREE + "sleep 999", timeout=0.2))).code is None
        assert before <= set(survivors(mark))
        other.cancel()
        with pytest.raises(asyncio.CancelledError):
            await other

    asyncio.run(scenario())
    assert survivors(mark) == []


def test_the_loop_may_run_in_any_thread(command: Callable[..., Command], mark: str) -> None:
    done: list[Completed] = []

    def work() -> None:
        done.append(complete(command("sh", "-c", TREE + "echo hello")))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.stdout for one in done] == [b"hello\n"] * 4
    assert survivors(mark) == []


@pytest.mark.req("D20")
def test_a_kernel_without_pidfd_gives_the_same_result(
    mode: str, mark: str, require_part: Callable[[str], str]
) -> None:
    trace = [require_part("strace"), "-f", "-qq", "-o", "/dev/null", "-e", "trace=pidfd_open"]
    trace += ["-e", "inject=pidfd_open:error=ENOSYS"]
    done = subprocess.run(
        [*trace, sys.executable, "-c", DRIVER, TREE + "echo hello", mode, mark],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert done.stdout == b"hello\nexited\n", done.stderr
    assert survivors(mark) == []


def test_probe_says_why_there_is_no_confinement() -> None:
    found = probe()
    assert found.pid_namespace == (found.reason == "")
    assert found.pid_namespace == (found.program != "")
