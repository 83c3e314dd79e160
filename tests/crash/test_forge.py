"""A forked command is a process like a started one: the same calls, words, end, and death."""

import os
import signal
from pathlib import Path

import pytest

from tests import forge
from tests.crash import plans
from tests.crash.faults import KILLED, Scene, Shim, lay, until
from tests.forge import Forked

RUN = ("run", "-j", "1", "--json")
ALL, NONE = 1, 10**9
# How often a line is written depends on time; an engine removes control groups that killed ones left.
UNCOUNTED = {"write", "rmdir"}


def test_forked_and_started_commands_make_the_same_calls(
    tmp_path: Path, shim: Shim, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = {}
    for one_in in (ALL, NONE):
        monkeypatch.setattr(forge, "STARTED", one_in)
        scene = lay(tmp_path / f"scene-{one_in}", "tiny")
        calls = shim.count(scene, *RUN)
        counts[one_in] = {name: calls.count(name) for name in calls if name not in UNCOUNTED}
        assert scene.said(0).acknowledged == {"a", "b"}
        assert '"status": "completed"' in scene.said(0).out
        killed = lay(tmp_path / f"killed-{one_in}", "tiny")
        assert killed.call(*RUN, fault=shim.fault(len(calls) // 2)).code == KILLED
        assert killed.call("resume").code == 0, "the next one is not armed"
    assert counts[ALL] == counts[NONE]


def test_a_forked_command_has_its_own_session_directory_and_end(
    tmp_path: Path, shim: Shim, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forge, "STARTED", NONE)
    scene = Scene(tmp_path)
    plans.write_project(scene.root, plans.patient(1), {})
    os.mkfifo(tmp_path / "gate")
    engine = scene.start("run")
    assert isinstance(engine, Forked)
    assert until(lambda: scene.begun()["waits"], engine)
    assert os.getsid(engine.pid) == engine.pid
    assert os.readlink(f"/proc/{engine.pid}/cwd") == str(scene.root)
    assert engine.poll() is None
    engine.send_signal(signal.SIGTERM)
    assert engine.wait(60) not in {0, -signal.SIGTERM}, "told to stop, it stopped in order"
    assert engine.poll() == engine.returncode
    assert scene.journal().facts
