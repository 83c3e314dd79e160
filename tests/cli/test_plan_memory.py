"""A hostile plan file of the largest size that is read costs a bounded amount of memory."""

import os
import subprocess
from collections.abc import Callable

import pytest

from tests.cli.project import COMMAND, Project

SIZE = 64_000_000
MORE = 200_000  # KB beyond what a small plan takes
FILES: dict[str, Callable[[], bytes]] = {
    "pairs": lambda: b"a: b\n" * (SIZE // 5),
    "letters": lambda: b"steps: {a: {run: '" + b"x" * (SIZE - 40) + b"\n",
    "items": lambda: b"steps: {a: {run: x, with: {v: [" + b"1," * (SIZE // 2 - 30),
    "brackets": lambda: b"[" * SIZE,
    "lines": lambda: b"steps:\n" + b"  a: {run: x}\n" * ((SIZE - 10) // 14),
}


def peak(project: Project, name: str) -> tuple[int, str]:
    """The most memory, in KB, that a check of a file takes, and what it said."""
    process = subprocess.Popen(
        [*COMMAND, "check", name],
        cwd=project.root,
        env=project.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    with process.stderr as errors:
        said = errors.read().decode()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in {0, 2}, said
    return used.ru_maxrss, said


@pytest.mark.req("I16", "D32")
@pytest.mark.parametrize(
    "name",
    [
        "pairs",
        *(pytest.param(one, marks=pytest.mark.soak("other")) for one in FILES if one != "pairs"),
    ],
)
def test_the_largest_hostile_file_takes_no_more_than_its_share(project: Project, name: str) -> None:
    project.write("small.yaml", "name: x\nsteps:\n  a: {run: x}\n")
    small, said = peak(project, "small.yaml")
    assert "error" not in said
    (project.root / "large.yaml").write_bytes(FILES[name]())
    large, said = peak(project, "large.yaml")
    assert "error[P" in said
    assert large - small < MORE, f"{(large - small) // 1000} MB more"
