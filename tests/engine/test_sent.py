"""What the notes of an engine say about the calls that it sent, and when they say nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.engine.sent import Call, Left, Notes
from holdfast.model.digest import Digest
from holdfast.model.event import AttemptStarted, Reason
from holdfast.model.plan import RunId, StepId

RUN = RunId("r-1")
NONE = Digest("0" * 64)
STARTED = AttemptStarted(StepId("a step"), 2, NONE, NONE, NONE, Reason("forced"))
FIRST, SECOND = (Call(STARTED.step, STARTED.attempt, number) for number in (1, 2))


def left(scratch: Path, boot: str = "boot/1") -> tuple[int, ...]:
    return Left(str(scratch), RUN, boot).unsent(STARTED, [1, 2])


def noted(scratch: Path, *calls: Call) -> Notes:
    notes = Notes(str(scratch), RUN, "boot/1")
    notes.begin()
    for call in calls:
        notes.sending(call)
    return notes


@pytest.mark.req("R165")
def test_calls_without_a_note_were_never_sent(tmp_path: Path) -> None:
    notes = noted(tmp_path, FIRST)
    assert notes.unsent(STARTED, [1, 2]) == (2,)
    notes.close()
    assert left(tmp_path) == (2,)


def test_nothing_is_known_while_the_writer_lives(tmp_path: Path) -> None:
    text = (
        "import sys; from holdfast.engine.sent import *; n = Notes(sys.argv[1], 'r-1', 'boot/1');"
        "n.begin(); print('ready', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", text, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        assert left(tmp_path) == ()
        writer.kill()
        writer.wait()
    assert left(tmp_path) == (1, 2)


@pytest.mark.parametrize("boot", ["boot/2", "other/1"])
def test_nothing_is_known_on_another_machine_or_after_its_end(tmp_path: Path, boot: str) -> None:
    noted(tmp_path).close()
    assert left(tmp_path, boot) == ()


def test_nothing_is_known_without_notes(tmp_path: Path) -> None:
    assert left(tmp_path) == ()
    notes = Notes(str(tmp_path), RUN, "unknown/1")
    notes.begin()
    notes.sending(FIRST)
    assert left(tmp_path, "unknown/1") == ()


def test_nothing_is_known_when_a_note_could_not_be_written(tmp_path: Path) -> None:
    notes = noted(tmp_path, FIRST)
    full = os.open("/dev/full", os.O_WRONLY)
    assert notes._file is not None
    os.dup2(full, notes._file)
    os.close(full)
    notes.sending(SECOND)
    assert left(tmp_path) == ()


def test_a_damaged_note_says_nothing(tmp_path: Path) -> None:
    noted(tmp_path, FIRST).close()
    (place,) = tmp_path.rglob("calls.sent")
    place.write_bytes(place.read_bytes() + b"\xff nonsense\n")
    assert left(tmp_path) == ()
