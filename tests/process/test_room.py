"""The files that a command names, as a part of its key."""

import errno
from pathlib import Path

import pytest

from holdfast.errors import StoreError
from holdfast.process import room


@pytest.mark.req("D03")
def test_a_file_that_the_disk_refuses_is_not_taken_for_one_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key without it would be another one: the step would be made again for nothing."""
    (tmp_path / "left.sh").write_text("true\n")

    def broken(*_: object) -> str:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(room, "_digest", broken)
    with pytest.raises(StoreError, match="input/output error"):
        room.named_files(["sh", "left.sh"], str(tmp_path))
