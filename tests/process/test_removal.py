"""Directories that commands filled go, whatever they are filled with."""

import os
from pathlib import Path

import pytest

from holdfast.process.removal import discard_folder, remove_folder


def deep(folder: Path, levels: int) -> None:
    here = os.getcwd()
    try:
        os.chdir(folder)
        for level in range(levels):
            Path("file").write_text("x")
            os.symlink("/", "link")
            os.mkdir(str(level % 3))
            os.chdir(str(level % 3))
        os.chmod(".", 0)
    finally:
        os.chdir(here)


@pytest.mark.req("R142")
def test_a_directory_goes_however_deep_it_is(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine").write_text("mine")
    (tmp_path / "room").mkdir()
    (tmp_path / "room/0").symlink_to(outside)
    (tmp_path / "room/deep").mkdir()
    deep(tmp_path / "room/deep", 2000)
    remove_folder(str(tmp_path / "room"))
    assert not (tmp_path / "room").exists()
    assert (outside / "mine").read_text() == "mine"


def test_nothing_there_is_nothing_to_remove(tmp_path: Path) -> None:
    remove_folder(str(tmp_path / "gone"))
    (tmp_path / "file").write_text("mine")
    discard_folder(str(tmp_path / "file"))
    assert (tmp_path / "file").read_text() == "mine"
