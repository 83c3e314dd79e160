"""What stands for the project directory on the far side."""

from pathlib import Path

import pytest

from holdfast.executors.far import Roots
from holdfast.executors.parcel import Laid
from holdfast.model.digest import Digest

CODE = (Laid("work/a.py", 0o644, {"text": "A = 1\n"}),)


def nothing(digest: Digest) -> bytes:
    raise AssertionError(digest)


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    return Roots(str(tmp_path), nothing)


def test_attempts_with_the_same_files_share_a_directory(roots: Roots) -> None:
    one, other = roots.take(CODE), roots.take(CODE)
    assert one is other
    assert Path(one.place, "work/a.py").read_text() == "A = 1\n"
    assert roots.take(()) is not one
    roots.leave(one, again=True)
    roots.leave(other, again=True)
    assert roots.take(CODE) is one


def test_after_one_that_could_change_it_nobody_begins_there_and_nobody_loses_it(
    roots: Roots,
) -> None:
    one, other = roots.take(CODE), roots.take(CODE)
    roots.leave(one, again=False)
    assert Path(other.place, "work/a.py").exists(), "it is in use"
    fresh = roots.take(CODE)
    assert fresh.place != other.place
    roots.leave(other, again=True)
    assert not Path(other.place).exists()
    assert Path(fresh.place).exists()
