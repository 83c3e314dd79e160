"""Waits that others can shorten."""

import subprocess
import sys

import pytest

DEAF = """
import asyncio, socket, threading
from pathlib import Path
from holdfast.process.hints import hearing

loop = hearing(asyncio.new_event_loop())
loop._csock.shutdown(socket.SHUT_RDWR)  # what wakes it is refused, and asyncio says nothing of that
loop.remove_reader(loop._ssock)
told, me = loop.create_future(), threading.get_native_id()

def tell():
    while Path(f"/proc/self/task/{me}/stat").read_text().rpartition(")")[2].split()[0] != "S":
        pass
    loop.call_soon_threadsafe(told.set_result, "heard")

loop.call_soon(threading.Thread(target=tell).start)
print(loop.run_until_complete(told))
"""


@pytest.mark.req("D03")
def test_a_thread_is_heard_that_could_not_wake_the_loop() -> None:
    words = [sys.executable, "-c", DEAF]
    ended = subprocess.run(words, check=False, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (0, "heard\n"), ended.stderr
