"""Who this process is, who is gone, and locks that end with their owner."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.ports import Holder, Owner
from holdfast.store import host
from holdfast.store.host import line_lock, started, this_process

CHILD = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def gone(owner: Owner, *, silent: float | None = None) -> bool:
    """Whether who entered a store as this owner is gone; `silent` where machines share it."""
    return host.gone(Holder(owner, None, 1, sharing=True, silent=silent))


def test_every_call_gives_a_fresh_name_for_the_same_process() -> None:
    one, two = this_process(), this_process()
    assert one.engine != two.engine
    assert (one.host, one.boot, one.pid, one.started) == (two.host, two.boot, two.pid, two.started)
    assert one.pid == os.getpid()
    assert one.started == started(os.getpid())


def test_a_living_process_is_not_gone() -> None:
    assert not gone(this_process())


@pytest.mark.req("D17")
def test_a_process_id_that_was_given_out_again_does_not_keep_its_owner_alive() -> None:
    assert gone(replace(this_process(), started="1"))


@pytest.mark.req("R94")
def test_a_process_that_ended_is_gone_even_before_anybody_asked_how() -> None:
    child = subprocess.Popen(["/bin/sleep", "1000"])
    owner = replace(this_process(), pid=child.pid, started=started(child.pid))
    assert not gone(owner)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # a zombie now
    assert gone(owner)
    child.wait()
    assert gone(owner)


def test_a_process_before_the_last_boot_is_gone() -> None:
    owner = this_process()
    assert gone(replace(owner, boot=f"another{owner.boot}"))


@pytest.mark.req("D15", "D16")
def test_in_a_store_that_machines_share_another_boot_may_be_another_machine() -> None:
    owner = this_process()
    assert not gone(replace(owner, boot=f"another{owner.boot}"), silent=0.1)
    assert not gone(replace(owner, boot="unknown/", started="1"), silent=0.1)
    assert gone(replace(owner, started="1"), silent=0.1), "of this very boot it is known"


@pytest.mark.req("D16")
def test_where_nobody_can_look_nobody_is_gone() -> None:
    owner = replace(this_process(), started="1")
    assert not gone(replace(owner, host="elsewhere"))
    assert not gone(replace(owner, boot=f"{owner.boot}0"))  # another container of this machine


@pytest.mark.req("R67")
def test_a_line_is_locked_by_one_at_a_time(tmp_path: Path) -> None:
    one, two = (line_lock(str(tmp_path), "shop", "main") for _ in range(2))
    assert one.try_lock()
    assert one.try_lock()
    assert one.held
    assert not two.try_lock()
    assert not two.held
    with line_lock(str(tmp_path), "shop", "docs") as other:
        assert other.try_lock()
    one.release()
    one.release()
    assert two.try_lock()
    with two:
        pass
    assert one.try_lock()
    one.release()


def test_names_that_join_to_the_same_text_are_different_lines(tmp_path: Path) -> None:
    with line_lock(str(tmp_path), "a", "bc") as one, line_lock(str(tmp_path), "ab", "c") as two:
        assert one.try_lock()
        assert two.try_lock()


def test_programs_do_not_inherit_a_lock(tmp_path: Path) -> None:
    with line_lock(str(tmp_path), "shop", "main") as lock:
        assert lock.try_lock()
        assert lock._handle is not None
        assert not os.get_inheritable(lock._handle)


HOLDER = """
import os, sys
from holdfast.store.host import line_lock
lock = line_lock(sys.argv[1], "shop", "main")
assert lock.try_lock()
if sys.argv[2] == "fork" and os.fork():
    os.write(1, b"ready\\n")
    os.read(0, 1)
elif sys.argv[2] == "fork":
    os.write(1, f"child {lock.held}\\n".encode())
    os.read(0, 1)
else:
    os.write(1, b"ready\\n")
    os.read(0, 1)
"""


@pytest.mark.req("R94")
@pytest.mark.parametrize("how", ["plain", "fork"])
def test_a_lock_ends_with_its_process_even_if_a_forked_child_lives_on(
    tmp_path: Path, how: str
) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path), how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=CHILD,
    )
    assert holder.stdout is not None
    assert holder.stdin is not None
    said = {holder.stdout.readline() for _ in range(2 if how == "fork" else 1)}
    assert said == ({b"ready\n", b"child False\n"} if how == "fork" else {b"ready\n"})
    lock = line_lock(str(tmp_path), "shop", "main")
    assert not lock.try_lock()
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert lock.try_lock()
    lock.release()
    holder.stdin.close()
    holder.stdout.close()
