"""Rooms of attempts are used again, and nothing of one attempt is in the next."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.engine.rooms import Rooms

FOLDERS = {"home", "tmp", "inputs", "with", "add", "work"}


def files(room: str) -> set[str]:
    return {
        os.path.relpath(os.path.join(p, n), room) for p, d, f in os.walk(room) for n in (*d, *f)
    }


def test_a_room_is_private_and_used_again(tmp_path: Path) -> None:
    rooms = Rooms(str(tmp_path / "run"))
    first = rooms.take("a")
    assert files(first) == FOLDERS
    assert {os.stat(os.path.join(first, name)).st_mode & 0o777 for name in (".", *FOLDERS)} == {
        0o700
    }
    second = rooms.take("b")
    assert second != first
    rooms.leave("a", again=True)
    assert rooms.take("c") == first
    rooms.leave("b", again=True)
    rooms.leave("c", again=True)
    rooms.close()
    assert list((tmp_path / "run").iterdir()) == []


def fill(room: str) -> None:
    for place in ("home/.profile", "tmp/x", "inputs/need", "with/name", "handoff.json"):
        Path(room, place).write_text("of the attempt before")
    for place in ("home/.cache/deep", "work/src", "call-1"):
        Path(room, place).mkdir(parents=True)
    Path(room, "tmp/link").symlink_to("/etc")
    Path(room, "home/.cache/deep/file").write_text("")


@pytest.mark.parametrize("times", [1, 3])
def test_what_an_attempt_left_is_not_there_for_the_next(tmp_path: Path, times: int) -> None:
    rooms = Rooms(str(tmp_path))
    for number in range(times):
        room = rooms.take(number)
        assert files(room) == FOLDERS
        fill(room)
        rooms.leave(number, again=True)
    assert len(list(tmp_path.iterdir())) == 1
    assert files(rooms.take("last")) == FOLDERS
    assert Path("/etc/passwd").exists()


def open_to_all(room: str) -> None:
    os.chmod(f"{room}/home", 0o777)


def replaced_by_link(room: str) -> None:
    os.rmdir(f"{room}/tmp")
    os.symlink("/etc", f"{room}/tmp")


def removed(room: str) -> None:
    os.rmdir(f"{room}/with")


@pytest.mark.parametrize("change", [open_to_all, replaced_by_link, removed])
def test_a_room_that_is_not_as_it_was_made_is_not_used_again(
    tmp_path: Path, change: Callable[[str], None]
) -> None:
    rooms = Rooms(str(tmp_path))
    room = rooms.take("a")
    change(room)
    rooms.leave("a", again=True)
    assert not os.path.lexists(room)
    assert files(rooms.take("b")) == FOLDERS


def test_a_room_whose_processes_may_live_is_not_used_again(tmp_path: Path) -> None:
    rooms = Rooms(str(tmp_path))
    room = rooms.take("a")
    rooms.leave("a", again=False)
    assert not os.path.lexists(room)
    assert rooms.take("b") != room


def test_two_engines_of_a_run_have_rooms_of_their_own(tmp_path: Path) -> None:
    assert Rooms(str(tmp_path)).take("a") != Rooms(str(tmp_path)).take("a")
