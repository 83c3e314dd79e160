"""Slots: one command after the other in the same namespace, and nothing goes from one to the next."""

import asyncio
import contextlib
import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

import holdfast
from holdfast.errors import ProcessError, StoreError
from holdfast.process import slot
from holdfast.process.run import Command, Completed, Slots, probe, run
from holdfast.process.slots import Tenant

ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}
DEADLINE = 20.0
NAMESPACE = "readlink /proc/self/ns/pid"
TREE = "setsid sleep 999 & (sleep 999 &); (setsid sh -c 'sleep 999 & sleep 999' &); "


@pytest.fixture(autouse=True)
def _confined(require_part: Callable[[str], str]) -> None:
    require_part("bubblewrap")
    assert probe().pid_namespace, probe().reason


@contextlib.asynccontextmanager
async def made(most: int = 16) -> AsyncIterator[Slots]:
    slots = Slots(most)
    try:
        yield slots
    finally:
        await slots.close()


def shell(script: str, **fields: object) -> Command:
    given = {"cwd": "/", "env": ENV, "mark": f"test-slots-{os.getpid()}:", **fields}
    return Command(("sh", "-c", script), **given)  # type: ignore[arg-type] # checked by the tests


async def said(slots: Slots, script: str) -> str:
    done = await run(shell(script), slots=slots)
    assert (done.ended, done.code) == ("exited", 0), done
    return done.stdout.decode().strip()


def in_slots(scenario: Callable[[Slots], Awaitable[None]], most: int = 16) -> None:
    async def main() -> None:
        async with made(most) as slots:
            await scenario(slots)

    asyncio.run(main())


def until(condition: Callable[[], bool]) -> None:
    pause = threading.Event()
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        pause.wait(0.01)


def below(pid: int) -> dict[int, bytes]:
    """The living descendants of a process with their command lines."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            for child in map(int, (task / "children").read_text().split()):
                found[child] = Path(f"/proc/{child}/cmdline").read_bytes()
                found |= below(child)
    return found


def has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def slot_processes() -> list[int]:
    """The slots of this process, without their bubblewraps."""
    name = os.fsencode(slot.__file__)
    return [
        pid
        for pid, line in below(os.getpid()).items()
        if name in line and b"bwrap" not in line.split(b"\0")[0]
    ]


def test_a_slot_serves_one_command_after_the_other() -> None:
    async def scenario(slots: Slots) -> None:
        places = {await said(slots, NAMESPACE) for _ in range(5)}
        assert len(places) == 1
        assert places != {os.readlink("/proc/self/ns/pid")}
        assert len(slot_processes()) == 1

    in_slots(scenario)
    assert slot_processes() == []


@pytest.mark.req("D20")
def test_the_next_command_finds_the_namespace_empty() -> None:
    async def scenario(slots: Slots) -> None:
        await said(slots, TREE + "exit 0")
        names = (await said(slots, "cd /proc; echo [0-9]*; :")).split()
        assert names[0] == "1"
        assert len(names) == 2, "the slot and the command itself"

    in_slots(scenario)


def test_commands_in_two_slots_do_not_see_each_other() -> None:
    async def scenario(slots: Slots) -> None:
        up = asyncio.Event()
        other = asyncio.create_task(
            run(shell("echo; exec sleep 998"), on_output=lambda *_: up.set(), slots=slots)
        )
        await asyncio.wait_for(up.wait(), DEADLINE)
        seen = await said(slots, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
        assert "sleep 998" not in seen
        other.cancel()
        await asyncio.wait({other})

    in_slots(scenario)


def test_a_command_cannot_end_its_slot() -> None:
    async def scenario(slots: Slots) -> None:
        await said(slots, "exit 0")
        before = slot_processes()
        await said(slots, "for s in $(seq 1 31) 34 64; do kill -$s 1; done; exit 0")
        assert slot_processes() == before

    in_slots(scenario)


LOOK = """
import asyncio, sys
from holdfast.process.run import Command, Slots, probe, run
async def main():
    assert probe().pid_namespace, probe().reason
    slots = Slots()
    for script in ("cat /proc/1/environ", "readlink -v /proc/1/fd/0", "cat /proc/1/maps"):
        done = await run(Command(("sh", "-c", script), "/", {"PATH": "/bin:/usr/bin"}), slots=slots)
        print(done.code, done.stdout, done.stderr.count(b"Permission denied"))
    await slots.close()
asyncio.run(main())
"""


def test_a_command_cannot_look_into_its_slot(require_part: Callable[[str], str]) -> None:
    words = [sys.executable]
    if os.getuid() == 0:  # nothing is hidden from root
        nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"]
        words = [require_part("setpriv"), *nobody, "/usr/bin/python3"]
    library = str(Path(holdfast.__file__).parents[1])
    done = subprocess.run(
        [*words, "-c", LOOK],
        cwd="/",
        env={"PATH": ENV["PATH"], "PYTHONPATH": library},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip(f"not possible here: {done.stderr}")
    assert done.stdout == "1 b'' 1\n" * 3, done.stderr


@pytest.mark.parametrize(
    "change, shows",
    [
        ("prlimit --pid 1 --nofile=77:77", "ulimit -n"),
        ("renice -n 7 -p 1", "nice"),
        ("taskset -p 1 1", "taskset -p $$ | sed 's/.*: //'"),
        ("mount -t tmpfs none /mnt", "grep -c ' /mnt ' /proc/self/mounts; :"),
    ],
)
def test_what_a_command_changes_in_its_slot_ends_with_it(change: str, shows: str) -> None:
    async def scenario(slots: Slots) -> None:
        before, place = await said(slots, shows), slot_processes()
        done = await run(shell(change), slots=slots)
        if done.code != 0:
            pytest.skip(f"not allowed here: {done.stderr.decode()}")
        assert await said(slots, shows) == before
        assert slot_processes() != place

    in_slots(scenario)


@pytest.mark.req("D20", "R74")
def test_a_killed_slot_loses_its_command_and_no_other() -> None:
    async def scenario(slots: Slots) -> None:
        up = [asyncio.Event(), asyncio.Event()]
        tasks = []
        for number in (0, 1):
            ready = up[number].set
            command = shell(TREE + f"echo; sleep {990 + number}")
            tasks.append(
                asyncio.create_task(
                    run(command, on_output=lambda *_, ready=ready: ready(), slots=slots)
                )
            )
            await asyncio.wait_for(up[number].wait(), DEADLINE)
        family = {pid: below(pid) for pid in slot_processes()}
        victim = next(pid for pid in family if any(b"990" in line for line in family[pid].values()))
        os.kill(victim, signal.SIGKILL)
        done = await asyncio.wait_for(tasks[0], DEADLINE)
        assert (done.ended, done.signal) == ("signalled", signal.SIGKILL)
        assert family[victim].keys() & below(os.getpid()).keys() == set()
        assert not tasks[1].done()
        assert await said(slots, "echo goes on") == "goes on"
        tasks[1].cancel()
        await asyncio.wait({tasks[1]})

    in_slots(scenario)
    assert slot_processes() == []


def test_a_slot_that_was_killed_while_nobody_used_it_is_replaced() -> None:
    async def scenario(slots: Slots) -> None:
        await said(slots, "exit 0")
        (victim,) = slot_processes()
        os.kill(victim, signal.SIGKILL)
        until(lambda: has_ended(victim))
        assert await said(slots, "echo fine") == "fine"

    in_slots(scenario)


def test_a_code_above_128_is_no_signal() -> None:
    async def scenario(slots: Slots) -> None:
        done = await run(shell("exit 137"), slots=slots)
        assert (done.ended, done.code, done.signal) == ("exited", 137, None)

    in_slots(scenario)


def test_many_words_arrive() -> None:
    words = [f"word-{number}" for number in range(20_000)]

    async def scenario(slots: Slots) -> None:
        command = Command(("printf", "%s\\n", *words), "/", ENV)
        assert (await run(command, slots=slots)).stdout.decode().split() == words

    in_slots(scenario)


def test_more_than_a_program_can_take_is_an_error_and_harms_nobody() -> None:
    async def scenario(slots: Slots) -> None:
        with pytest.raises(ProcessError, match="could not be started: Argument list too long"):
            await run(Command(("true", "x" * 200_000), "/", ENV), slots=slots)
        assert await said(slots, "echo fine") == "fine"

    in_slots(scenario)


def test_a_folder_that_went_away_is_an_error_and_harms_nobody() -> None:
    async def scenario(slots: Slots) -> None:
        tenant = slots.start("/bin/true", ("true",), "/no/such", ENV, mark="x:", stdin=None)
        assert tenant is not None
        ended = asyncio.Event()
        tenant.when_ended(ended.set)
        await asyncio.wait_for(ended.wait(), DEADLINE)
        with pytest.raises(ProcessError, match="No such file or directory"):
            await tenant.finish()
        tenant.close()
        assert await said(slots, "echo fine") == "fine"

    in_slots(scenario)


def test_without_a_free_slot_a_command_runs_by_itself() -> None:
    async def scenario(slots: Slots) -> None:
        both = await asyncio.gather(*(run(shell(f"echo {n}"), slots=slots) for n in range(3)))
        assert [done.stdout for done in both] == [b"0\n", b"1\n", b"2\n"]
        assert all(done.confined for done in both)
        assert len(slot_processes()) == 1

    in_slots(scenario, most=1)


def test_a_command_that_outlives_the_slots_ends_its_own() -> None:
    async def main() -> Completed:
        slots = Slots()
        up = asyncio.Event()
        task = asyncio.create_task(
            run(shell("echo; sleep 0.2"), on_output=lambda *_: up.set(), slots=slots)
        )
        await asyncio.wait_for(up.wait(), DEADLINE)
        await slots.close()
        return await task

    assert asyncio.run(main()).code == 0
    until(lambda: slot_processes() == [])


def test_a_long_output_at_once_arrives_whole() -> None:
    async def scenario(slots: Slots) -> None:
        done = await run(shell("head -c 3000000 /dev/zero"), slots=slots)
        assert done.stdout == bytes(3_000_000)

    in_slots(scenario)


@pytest.mark.parametrize("namespace", ["0", "own"])
def test_the_program_of_a_slot_refuses_to_be_anywhere_else(namespace: str) -> None:
    own = str(os.stat("/proc/self/ns/pid").st_ino)
    argv = [sys.executable, "-I", "-S", slot.__file__, own if namespace == "own" else "0", "0"]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert done.returncode == 1
    assert b"a pid namespace of its own" in done.stderr


@pytest.mark.req("D03")
@pytest.mark.parametrize("number", [errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE])
def test_a_machine_that_has_no_more_is_not_the_commands_fault(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slot is refused a process: nobody else would get one either."""
    monkeypatch.setattr(Tenant, "refusal", property(lambda _: number))

    async def scenario(slots: Slots) -> None:
        with pytest.raises(StoreError, match=os.strerror(number).lower()):
            await run(shell("true"), slots=slots)

    in_slots(scenario)
