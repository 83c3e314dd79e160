"""Whose a process is, also in the moment in which it becomes another program."""

import subprocess
from collections.abc import Iterator

import pytest

from holdfast.process.tree import MARK, environ_of, mark_of

LOOKS = 20_000
AGAIN = 'exec /bin/sh -c "$1" sh "$1"'


@pytest.fixture
def restless() -> Iterator[int]:
    """A process that becomes a new program again and again."""
    argv = ["/bin/sh", "-c", AGAIN, "sh", AGAIN]
    with subprocess.Popen(argv, env={"PATH": "/bin", MARK: "test-tree:1"}) as process:
        yield process.pid
        process.kill()


@pytest.mark.req("D20", "I12")
def test_a_process_keeps_its_mark_while_it_becomes_another_program(restless: int) -> None:
    assert {mark_of(restless) for _ in range(LOOKS)} == {"test-tree:1"}


def test_an_environment_that_was_cleared_is_not_waited_for() -> None:
    with subprocess.Popen(["/bin/cat"], env={}, stdin=subprocess.PIPE) as process:
        assert environ_of(process.pid) == b""
        process.communicate()
    assert environ_of(process.pid) == b""
