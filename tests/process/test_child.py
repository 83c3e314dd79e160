"""A long-lived child: frames both ways, and its end with every descendant."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from holdfast.errors import ProcessError
from holdfast.process.run import Child, probe

ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
DEADLINE = 20.0
# Answers each frame with its reverse; a few frames are orders.
ECHO = """
import os, struct, subprocess, sys
while head := sys.stdin.buffer.read(4):
    frame = sys.stdin.buffer.read(struct.unpack(">I", head)[0])
    if frame == b"spawn":
        subprocess.Popen(["setsid", "sleep", "999"])
    if frame == b"complain":
        os.write(2, b"something is wrong" * 1000)
    if frame == b"die":
        os._exit(3)
    answer = frame[::-1]
    sys.stdout.buffer.write(struct.pack(">I", len(answer)) + answer)
    sys.stdout.buffer.flush()
"""

StartChild = Callable[..., Child]


@pytest.fixture(params=["auto", "never"])
def start(
    request: pytest.FixtureRequest, require_part: Callable[[str], str], mark: str
) -> StartChild:
    if request.param == "auto":
        require_part("bubblewrap")
        assert probe().pid_namespace, probe().reason

    def make(code: str = ECHO, **options: object) -> Child:
        argv = (sys.executable, "-S", "-c", code)
        return Child.start(argv, "/", ENV, mark, confine=request.param, **options)  # type: ignore[arg-type] # checked by the test

    return make


@pytest.fixture
def mark() -> str:
    return f"test-child-{os.getpid()}:"


def survivors(mark: str) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with contextlib.suppress(OSError):
                environ = Path(f"/proc/{name}/environ").read_bytes()
                if b"\0HOLDFAST_MARK=" + mark.encode() in b"\0" + environ:
                    found.append(int(name))
    return found


def within_deadline(scenario: Coroutine[None, None, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, DEADLINE))


async def exchange_for_ever(child: Child) -> None:
    while True:
        await child.receive()
        await child.send(b"more")


def test_frames_go_both_ways(start: StartChild, mark: str) -> None:
    async def scenario() -> None:
        child = start()
        for frame in (b"abc", b"", bytes(range(256)), b"x" * 3_000_000):
            await child.send(frame)
            assert await child.receive() == frame[::-1]
        await child.kill()
        assert not child.alive
        assert survivors(mark) == []

    within_deadline(scenario())


@pytest.mark.req("D20")
def test_kill_ends_every_descendant_and_may_be_repeated(start: StartChild, mark: str) -> None:
    async def scenario() -> None:
        child = start()
        await child.send(b"spawn")
        await child.receive()
        assert child.alive
        assert survivors(mark) != []
        await asyncio.gather(child.kill(), child.kill())
        await child.kill()
        assert survivors(mark) == []
        with pytest.raises(ProcessError, match="was killed"):
            await child.send(b"abc")

    within_deadline(scenario())


def test_the_death_of_the_child_ends_a_receive(start: StartChild, mark: str) -> None:
    async def scenario() -> None:
        child = start()
        await child.send(b"spawn")  # holds the pipe open
        await child.receive()
        await child.send(b"complain")
        await child.receive()
        await child.send(b"die")
        with pytest.raises(ProcessError, match="ended before it answered"):
            await child.receive()
        assert not child.alive
        await child.kill()
        assert survivors(mark) == []

    within_deadline(scenario())


def test_a_child_whose_pipe_has_ended_is_over(mark: str) -> None:
    async def scenario() -> None:
        argv = (sys.executable, "-S", "-c", "import os, signal; os.close(1); signal.pause()")
        child = Child.start(argv, "/", ENV, mark, confine="never")
        with pytest.raises(ProcessError, match="ended before it answered"):
            await child.receive()
        assert not child.alive, "whoever wants to go on needs another one"
        await child.kill()
        assert survivors(mark) == []

    within_deadline(scenario())


def test_a_kill_ends_a_waiting_receive(start: StartChild) -> None:
    async def scenario() -> None:
        child = start()
        waiting = asyncio.create_task(child.receive())
        await asyncio.wait({waiting}, timeout=0)
        await child.kill()
        with pytest.raises(ProcessError):
            await waiting

    within_deadline(scenario())


def test_a_cancelled_receive_loses_nothing(start: StartChild) -> None:
    async def scenario() -> None:
        child = start()
        for _ in range(20):
            waiting = asyncio.create_task(child.receive())
            await asyncio.wait({waiting}, timeout=0)
            waiting.cancel()
            await asyncio.wait({waiting})
        await child.send(b"abc")
        assert await child.receive() == b"cba"
        await child.kill()

    within_deadline(scenario())


def test_a_send_that_was_cut_short_refuses_the_next(start: StartChild) -> None:
    async def scenario() -> None:
        child = start("import signal; signal.pause()")
        sending = asyncio.create_task(child.send(b"x" * 10_000_000))
        await asyncio.wait({sending}, timeout=0)
        sending.cancel()
        await asyncio.wait({sending})
        with pytest.raises(ProcessError, match="only in part"):
            await child.send(b"abc")
        await child.kill()

    within_deadline(scenario())


def test_stderr_is_streamed_and_capped(start: StartChild) -> None:
    async def scenario() -> None:
        got = bytearray()
        child = start(on_stderr=got.extend, keep_err=100)
        await child.send(b"complain")
        await child.receive()
        await child.kill()
        assert bytes(got) == b"something is wrong" * 1000
        assert len(child.stderr) == 100

    within_deadline(scenario())


def test_a_listener_that_raises_ends_the_child(start: StartChild, mark: str) -> None:
    async def scenario() -> None:
        def refuse(chunk: bytes) -> None:
            raise LookupError

        child = start(on_stderr=refuse)
        await child.send(b"complain")
        with pytest.raises(LookupError):
            await exchange_for_ever(child)
        await child.kill()
        assert survivors(mark) == []

    within_deadline(scenario())


def test_frames_over_the_limit_are_refused(start: StartChild) -> None:
    async def scenario() -> None:
        child = start(most=10)
        with pytest.raises(ProcessError, match="over the limit"):
            await child.send(b"x" * 11)
        await child.send(b"abc")
        assert await child.receive() == b"cba"
        await child.kill()
        child = start("import os; os.write(1, b'HTTP/1.1 200'); input()", most=10)
        with pytest.raises(ProcessError, match="over the limit"):
            await child.receive()
        await child.kill()

    within_deadline(scenario())


def test_a_program_that_is_not_there_is_an_error() -> None:
    async def scenario() -> None:
        with pytest.raises(ProcessError, match='"no-such-program" is not found'):
            Child.start(("no-such-program",), "/", ENV, "m")

    within_deadline(scenario())


def test_no_descriptor_is_left(start: StartChild) -> None:
    async def scenario() -> None:
        await start().kill()
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(3):
            child = start()
            await child.send(b"abc")
            waiting = asyncio.create_task(child.receive())
            await asyncio.wait({waiting}, timeout=0)
            await child.kill()
            await asyncio.wait({waiting})
            waiting.exception()
        assert len(os.listdir("/proc/self/fd")) == before

    within_deadline(scenario())
