"""What a command in a sandbox can touch and use up, by effect."""

import asyncio
import ctypes
import os
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.errors import ProcessError
from holdfast.process.confine import Sandbox, sockets
from holdfast.process.limits import MB, Limits
from holdfast.process.run import Command, Completed, Slots, probe_whole, run
from holdfast.process.terms import Terms
from tests.passing import listening_for_a_moment

ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}
SOCKETS = "holdfast.process.sandbox.sockets"
SMALL = Limits(processes=60, memory=200 * MB, file_size=2 * MB, open_files=64, scratch=4 * MB)


@pytest.fixture(autouse=True)
def _confined(require_part: Callable[[str], str]) -> None:
    require_part("bubblewrap")
    assert probe_whole().sandbox, probe_whole().reason


@pytest.fixture(params=["alone", "slot"])
def said(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Completed]:
    """Runs a script, in a process of its own and in a slot."""

    def call(script: str, sandbox: Sandbox, **more: object) -> Completed:
        given = {"cwd": str(tmp_path), "env": ENV, "timeout": 60.0, **more}
        command = Command(("bash", "-c", script), sandbox=sandbox, **given)  # type: ignore[arg-type] # checked by the tests

        async def main() -> Completed:
            slots = Slots() if request.param == "slot" else None
            try:
                return await run(command, slots=slots)
            finally:
                if slots is not None:
                    await slots.close()

        return asyncio.run(main())

    return call


Said = Callable[..., Completed]


def test_it_writes_where_it_may_and_nowhere_else(said: Said, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "other").mkdir()
    script = "touch mine/a; touch other/b; touch /etc/c; touch /var/d; touch /dev/e; exit 0"
    done = said(script, Sandbox(writable=(str(tmp_path / "mine"),), readable=(str(tmp_path),)))
    assert done.sandboxed, done
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "mine", "other"]
    assert done.stderr.count(b"Read-only file system") == 4, done.stderr
    assert not any(map(os.path.exists, ("/etc/c", "/var/d", "/dev/e")))


def test_homes_and_what_is_masked_are_empty(said: Said, tmp_path: Path) -> None:
    home = Path.home()
    (tmp_path / "store").mkdir()
    (tmp_path / "store/state.db").write_text("secret")
    (tmp_path / "store/room").mkdir()
    sandbox = Sandbox(
        writable=(str(tmp_path), str(tmp_path / "store/room")), masked=(str(tmp_path / "store"),)
    )
    done = said(
        f"ls -A /root /home {home}/.ssh; ls store; cat store/state.db; touch store/x", sandbox
    )
    assert b"state.db\n" not in done.stdout
    assert b"secret" not in done.stdout
    assert b"room" in done.stdout
    assert b"Read-only file system" in done.stderr
    assert (tmp_path / "store/state.db").read_text() == "secret"


def test_it_has_no_network_unless_granted(said: Said, tmp_path: Path) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        script = f"exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]} && echo reached"
        assert said(script, Sandbox(readable=(str(tmp_path),))).stdout == b""
        granted = said(script, Sandbox(readable=(str(tmp_path),), network=True))
        assert granted.stdout == b"reached\n"


def test_it_has_no_privileges_and_cannot_reach_the_kernel(said: Said, tmp_path: Path) -> None:
    tried = (
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/vm/overcommit_memory",
        "/sys/kernel/mm/transparent_hugepage/enabled",
    )
    before = [Path(path).read_bytes() for path in tried if os.path.exists(path)]
    script = "; ".join(f"cat {path} > {path}" for path in tried if os.path.exists(path))
    done = said(
        f"{script}; mount -t tmpfs x /mnt; grep -E 'CapEff|NoNewPrivs' /proc/self/status",
        Sandbox(readable=(str(tmp_path),)),
    )
    assert b"CapEff:\t0000000000000000" in done.stdout
    assert b"NoNewPrivs:\t1" in done.stdout
    assert done.stderr.count(b"\n") >= len(before) + 1, done.stderr
    assert [Path(path).read_bytes() for path in tried if os.path.exists(path)] == before


# The numbers of add_key, request_key, keyctl, io_uring_setup, bpf, perf_event_open, userfaultfd, clone
# and clone3.
CALLS = {
    "x86_64": (248, 249, 250, 425, 321, 298, 323, 56, 435),
    "aarch64": (217, 218, 219, 425, 280, 241, 282, 220, 435),
}
ASK = f"""
import ctypes, errno, os, socket, subprocess, threading
(add_key, request_key, keyctl, io_uring_setup, bpf, perf_event_open, userfaultfd, clone,
 clone3) = {CALLS.get(os.uname().machine)}
libc = ctypes.CDLL(None, use_errno=True)
def ask(*words):
    return errno.errorcode[ctypes.get_errno()] if libc.syscall(*words) < 0 else "made"
def family(number):
    try:
        socket.socket(number, socket.SOCK_DGRAM).close()
    except OSError as error:
        return errno.errorcode[error.errno]
    return "made"
"""


@pytest.fixture
def _filtered() -> None:
    if os.uname().machine not in CALLS:
        pytest.skip(f"no filter of calls is known for {os.uname().machine}")


def asked(said: Said, what: str, sandbox: Sandbox) -> list[str]:
    script = f"python3 - <<'END'\n{ASK}\nprint({what})\nEND"
    done = said(script, sandbox, cwd="/")
    assert done.code == 0, done.stderr.decode()
    return done.stdout.decode().split()


def in_thread(work: Callable[[], None]) -> None:
    """Keyrings belong to a thread: what it joins is gone with it."""
    with ThreadPoolExecutor(1) as alone:
        alone.submit(work).result()


@pytest.mark.usefixtures("_filtered")
def test_the_keys_of_whoever_started_it_are_out_of_reach(said: Said) -> None:
    add, _, control, *_ = CALLS[os.uname().machine]
    libc = ctypes.CDLL(None, use_errno=True)
    name = f"holdfast-{os.getpid()}"

    def work() -> None:
        session = ctypes.c_int(-3)
        if libc.syscall(control, 1, None) < 0:
            pytest.skip("this machine has no keyrings")
        assert libc.syscall(add, b"user", name.encode(), b"secret", 6, session) > 0
        assert name in Path("/proc/keys").read_text()
        calls = (
            f"ask(request_key, b'user', b'{name}', 0, 0)",
            "ask(add_key, b'user', b'x', b'y', 1, ctypes.c_int(-3))",
            "ask(keyctl, 0, ctypes.c_int(-3), 0)",
        )
        assert asked(said, ", ".join(calls), Sandbox()) == ["EPERM"] * 3
        assert said("cat /proc/keys", Sandbox(), cwd="/").stdout == b""

    in_thread(work)


@pytest.mark.usefixtures("_filtered")
@pytest.mark.parametrize("network", [False, True])
def test_only_sockets_that_the_network_namespace_holds_can_be_made(
    said: Said, network: bool
) -> None:
    """Neither those of the machine above (40) nor of the kernel's ciphers (38) or others (15, 29, 43)."""
    found = asked(said, "*map(family, (1, 2, 16, 15, 29, 38, 40, 43))", Sandbox(network=network))
    assert found == ["made"] * 3 + ["EAFNOSUPPORT"] * 5


@pytest.mark.usefixtures("_filtered")
def test_it_becomes_root_of_nothing_and_reaches_no_odd_corner_of_the_kernel(said: Said) -> None:
    calls = (
        *(f"ask({name}, 0, 0, 0, 0, 0)" for name in ("bpf", "perf_event_open", "userfaultfd")),
        "ask(io_uring_setup, 1, ctypes.create_string_buffer(200))",
        *(f"libc.unshare({flag}) and ctypes.get_errno()" for flag in (0x10000000, 0x20000)),
        "ask(clone, 0x10000000 | 17, 0, 0, 0, 0)",
        "ask(clone3, 0, 0)",
        "ask(700)",
        "subprocess.run(['true']).returncode",
        "threading.Thread(target=int).start()",
    )
    found = asked(said, ", ".join(calls), Sandbox())
    assert found == [*["EPERM"] * 4, "1", "1", "EPERM", "ENOSYS", "ENOSYS", "0", "None"]


def test_nobody_listens_where_it_cannot_write(said: Said, tmp_path: Path) -> None:
    for name in ("shown", "mine"):
        (tmp_path / name).mkdir()
    sandbox = Sandbox(readable=(str(tmp_path / "shown"),), writable=(str(tmp_path / "mine"),))
    reach = "import socket; socket.socket(socket.AF_UNIX).connect('s'); print('reached')"
    script = f'cd {tmp_path}/NAME; python3 -c "{reach}"; ls'
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as other:
        for server, name in ((one, "shown"), (other, "mine")):
            server.bind(str(tmp_path / name / "s"))
            server.listen()
        hidden = said(script.replace("NAME", "shown"), sandbox, cwd="/")
        assert hidden.stdout == b"s\n", hidden
        assert b"Connection refused" in hidden.stderr
        own = said(script.replace("NAME", "mine"), sandbox, cwd="/")
        assert own.stdout == b"reached\ns\n", own
        named = replace(sandbox, readable=(*sandbox.readable, str(tmp_path / "shown/s")))
        assert said(script.replace("NAME", "shown"), named, cwd="/").stdout == b"reached\ns\n"


@pytest.mark.parametrize("vanished", ["/etc/gone/s", "/etc/gone"])
def test_a_socket_that_vanishes_meanwhile_keeps_nothing_from_starting(
    said: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vanished: str
) -> None:
    listed = [[vanished], [vanished]]
    monkeypatch.setattr(SOCKETS, lambda found: listed.pop() if listed else sockets(found))
    done = said("echo once >> said; cat said", Sandbox(writable=(str(tmp_path),)))
    assert (done.stdout, listed) == (b"once\n", [])
    monkeypatch.setattr(SOCKETS, lambda _: [vanished])
    done = said("echo again >> said; cat said", Sandbox(writable=(str(tmp_path),)))
    assert done.stdout == b"once\nagain\n", "what is gone is not tried again"


@pytest.mark.req("C35")
def test_sockets_that_go_away_keep_no_sandbox_from_being_made(said: Said, tmp_path: Path) -> None:
    sandbox = Sandbox(readable=(str(tmp_path),))
    reach = "import socket; socket.socket(socket.AF_UNIX).connect('s')"
    with socket.socket(socket.AF_UNIX) as lasting, listening_for_a_moment(tmp_path):
        lasting.bind(str(tmp_path / "s"))
        lasting.listen()
        for _ in range(3):
            done = said(f'cd {tmp_path}; python3 -c "{reach}"; echo $?', sandbox, cwd="/")
            assert done.sandboxed
            assert done.stdout == b"1\n", done
            assert b"Connection refused" in done.stderr, "who stays is hidden all the same"


@pytest.mark.parametrize("vanished", ["/etc/gone/s", "/etc/gone"])
def test_a_socket_that_vanishes_meanwhile_does_not_pass_for_a_machine_without_sandboxes(
    monkeypatch: pytest.MonkeyPatch, vanished: str
) -> None:
    listed = [[vanished]]
    monkeypatch.setattr(SOCKETS, lambda found: listed.pop() if listed else sockets(found))
    probe_whole.cache_clear()
    found = probe_whole()
    assert (found.sandbox, listed) == (True, []), found.reason


@pytest.mark.req("C35")
def test_protected_paths_are_read_only_even_when_missing(said: Said, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_text("mine")
    protected = tuple(str(tmp_path / name) for name in (".git", ".github/workflows", ".env"))
    script = (
        "echo x > .git/config; touch .git/hooks; mkdir -p .github/workflows; echo x > .env; "
        "rm -rf .git .env; mv .git moved; ln -s /etc .github; touch fine; exit 0"
    )
    done = said(script, Sandbox(writable=(str(tmp_path),), protected=protected))
    assert done.code == 0, done
    assert sorted(path.name for path in tmp_path.rglob("*")) == [".git", "config", "fine"]
    assert (tmp_path / ".git/config").read_text() == "mine"


@pytest.mark.req("D40")
@pytest.mark.parametrize(
    ("script", "stays"),
    [
        ("head -c 100000000 /dev/zero > big", "big"),
        ("head -c 100000000 /dev/zero > /tmp/big; ls -s /tmp; exit 7", ""),
        ("head -c 100000000 /dev/zero > /dev/shm/big; exit 7", ""),
    ],
)
def test_files_end_at_their_limit(said: Said, tmp_path: Path, script: str, stays: str) -> None:
    done = said(script, Sandbox(writable=(str(tmp_path),), limits=SMALL))
    assert not done.success
    if stays:
        assert (tmp_path / stays).stat().st_size <= 2 * MB


@pytest.mark.req("D40")
def test_processes_end_at_their_limit(said: Said, tmp_path: Path) -> None:
    """In Python: a shell that cannot fork waits for a quarter of a minute before it says so."""
    (tmp_path / "bomb.py").write_text(
        "import os, time\n"
        "for count in range(200):\n"
        "    try:\n"
        "        os.fork() or time.sleep(60)\n"
        "    except BlockingIOError:\n"
        "        print(count)\n"
        "        break\n"
    )
    sandbox = Sandbox(readable=(str(tmp_path), *Terms().readable), limits=SMALL)
    done = said("python3 bomb.py", sandbox)
    assert (done.ended, done.code) == ("exited", 0), done
    assert 40 < int(done.stdout) < 60


@pytest.mark.req("D40")
def test_memory_ends_at_its_limit(said: Said, tmp_path: Path) -> None:
    grow = "python3 -c 'x = bytearray(10**9); print(len(x))'"
    done = said(grow, Sandbox(readable=(str(tmp_path), *Terms().readable), limits=SMALL))
    assert b"1000000000" not in done.stdout
    assert not done.success


@pytest.mark.req("D40")
def test_open_files_end_at_their_limit(said: Said, tmp_path: Path) -> None:
    script = 'for i in $(seq 100 300); do eval "exec $i</dev/null" || exit 9; done; echo all'
    done = said(script, Sandbox(readable=(str(tmp_path),), limits=SMALL))
    assert b"all" not in done.stdout
    assert not done.success


def test_a_command_that_leaves_no_room_on_the_disk_is_ended(said: Said, tmp_path: Path) -> None:
    """With a bound that no disk can keep: what would be left is looked at while it runs."""
    limits = Limits(spare=2**60)
    done = said("sleep 60", Sandbox(writable=(str(tmp_path),), limits=limits))
    assert (done.ended, done.code) == ("no_room", None)


def test_nothing_goes_from_one_command_of_a_slot_to_the_next(tmp_path: Path) -> None:
    sandbox = Sandbox(writable=(str(tmp_path),))
    leave = (
        "mkdir -p /tmp/a/b; echo x > /tmp/a/b/c; echo x > /var/tmp/d; echo x > /dev/shm/e; "
        "ln -s /etc /tmp/f; mkfifo /tmp/g; chmod 0 /tmp/a/b/c; readlink /proc/self/ns/mnt"
    )
    look = "ls -d /tmp/a /tmp/[fg] /var/tmp/d /dev/shm/e 2>/dev/null; readlink /proc/self/ns/mnt"

    async def both() -> tuple[Completed, Completed]:
        slots = Slots()
        try:
            found = []
            for script in (leave, look):
                command = Command(("bash", "-c", script), str(tmp_path), ENV, sandbox=sandbox)
                found.append(await run(command, slots=slots))
            return found[0], found[1]
        finally:
            await slots.close()

    one, other = asyncio.run(both())
    assert one.stdout == other.stdout, "the same slot, with nothing left in it"


def test_commands_share_a_slot_only_with_the_same_sandbox(tmp_path: Path) -> None:
    boxes = (Sandbox(writable=(str(tmp_path),)), Sandbox(readable=(str(tmp_path),)))

    async def main() -> list[bool]:
        slots = Slots(2)
        try:
            found = []
            for box in (*boxes, *boxes, None):
                command = Command(("touch", "made"), str(tmp_path), ENV, sandbox=box)
                found.append((await run(command, slots=slots)).success)
            return found
        finally:
            await slots.close()

    assert asyncio.run(main()) == [True, False, True, False, True]


def test_wrong_places_are_refused() -> None:
    for fields in ({"writable": ("here",)}, {"writable": ("/",)}, {"masked": ("a\0b",)}):
        with pytest.raises(ProcessError):
            Sandbox(**fields)  # type: ignore[arg-type] # that is the point
    with pytest.raises(ProcessError):
        Limits(processes=0)


def test_a_home_in_which_one_works_keeps_its_keys(
    said: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/id").write_text("key")
    (tmp_path / ".netrc").write_text("key")
    (tmp_path / "work").write_text("work")
    monkeypatch.setenv("HOME", str(tmp_path))
    done = said("cat work .ssh/id .netrc; touch made", Sandbox(writable=(str(tmp_path),)))
    assert done.stdout == b"work"
    assert (tmp_path / "made").exists()
