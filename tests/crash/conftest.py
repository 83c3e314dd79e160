"""What the sweeps share: the tools that break things, and what an undisturbed run leaves."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.crash.faults import Reference, Report, Shim, build_shim, lay, reference_of
from tests.postgres import Server

MOST_FAULTS = 4  # in one case


@pytest.fixture
def strace(require_part: Callable[[str], str]) -> str:
    return require_part("strace")


@pytest.fixture
def shim(require_part: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Shim:
    return build_shim(require_part("gcc"), tmp_path_factory.mktemp("shim"))


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Reference]:
    """The undisturbed end of a plan, found once."""
    known: dict[str, Reference] = {}

    def find(plan: str) -> Reference:
        if plan not in known:
            folder = tmp_path_factory.mktemp("undisturbed") / plan
            known[plan] = reference_of(lay(folder, plan), "-j", "2")
        return known[plan]

    return find


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Callable[[], Server]:
    """A PostgreSQL server, if one is asked for."""

    def find() -> Server:
        found = request.getfixturevalue("postgres")
        assert isinstance(found, Server)
        return found

    return find


@pytest.fixture
def settle(sweep: Callable[[Report], None]) -> Callable[[Report], None]:
    """A sweep is good if it broke something, something was done, and nothing was violated."""

    def check(report: Report) -> None:
        sweep(report)
        assert not report.violations, "\n".join(report.violations[:6])
        assert 0 < report.fired <= report.tried * MOST_FAULTS
        assert report.kept > 0
        assert report.work > 0

    return check


@pytest.fixture
def disk(tmp_path: Path, require_part: Callable[[str], str]) -> Iterator[Callable[[int], Path]]:
    """Mounts a small disk in memory; without the right to mount, the test is skipped by name."""
    mounted: list[Path] = []

    def mount(megabytes: int) -> Path:
        place = tmp_path / f"disk-{len(mounted)}"
        place.mkdir()
        words = [require_part("mount"), "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs"]
        done = subprocess.run([*words, str(place)], check=False, capture_output=True, text=True)
        if done.returncode:
            if os.environ.get("HOLDFAST_REQUIRE_PARTS") == "1" and os.geteuid() == 0:
                pytest.fail(f"no disk can be mounted: {done.stderr}")
            pytest.skip(f"no disk can be mounted: {done.stderr.strip()}")
        mounted.append(place)
        return place

    yield mount
    for place in mounted:
        subprocess.run(["umount", "--lazy", str(place)], check=True)
