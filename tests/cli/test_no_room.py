"""A machine that has no room just now: nobody's mistake, and nothing runs less confined for it."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import Project

WORDS = "Resource temporarily unavailable"
SAID = ("Creating new namespace failed", "Can't fork for pid 1")


def refusing(folder: Path, wrapper: str, number: int, said: str) -> dict[str, str]:
    """An environment whose bubblewrap is refused processes from its call of this number on."""
    folder.mkdir()
    program = folder / "bwrap"
    program.write_text(
        f"""#!{sys.executable} -IS
import os, sys
words = ["{wrapper}" if word == "{program}" else word for word in sys.argv[1:]]
with open("{folder}/calls", "a+") as calls:
    calls.write(".")
    calls.seek(0)
    number = len(calls.read())
if number >= {number}:
    open("{folder}/fired", "w").close()
    sys.exit("bwrap: {said}: {WORDS}")
os.execv("{wrapper}", ["bwrap", *words])
"""
    )
    program.chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


@pytest.mark.req("D03")
@pytest.mark.parametrize("uses", ["shell", "python", "guard"])
@pytest.mark.parametrize("said", SAID)
def test_a_process_that_bubblewrap_is_refused_is_the_machines_fault(
    tmp_path: Path, require_part: Callable[[str], str], uses: str, said: str
) -> None:
    wrapper = shutil.which(require_part("bubblewrap")) or ""
    fired = 0
    for number in range(1, 50):
        place = tmp_path / str(number)
        place.mkdir()
        project = Project(place)
        project.write("work.py", "def work():\n    return 'made'\n")
        steps: dict[str, dict[str, Any]] = {
            "shell": {"shell": project.sh()},
            "python": {"uses": "python", "run": "work:work"},
            "guard": {"shell": "echo 1", "guards": [{"command": ["test", "1"]}]},
        }
        project.plan({"a": steps[uses]})
        folder = place / "bin"
        env = refusing(folder, wrapper, number, said)
        answer = project.call("run", env=env)
        if not (folder / "fired").exists():
            assert answer.code == 0
            break
        fired += 1
        assert answer.code == 74, (number, answer)
        assert "the system refused: resource temporarily unavailable" in answer.err
        assert "hint:" in answer.err
        assert "unconfined" not in answer.out + answer.err
        again = project.run()
        assert (again.code, again.states) == (0, {"a": "done"})
        assert project.ok("verify").code == 0
    assert fired >= 2
