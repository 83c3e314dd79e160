"""Many processes take from one store at once: everything is done, and nothing twice."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.store.postgres import make_store
from tests.postgres import Server, new_schema

ROOT = Path(__file__).parents[2]


def raced(place: str, processes: int, errands: int) -> dict[str, float]:
    """What the bench of claims says: it is a process that starts the others."""
    words = [sys.executable, "-m", "bench.own.claims", place, str(processes), str(errands)]
    said = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    told: dict[str, float] = json.loads(said.stdout)
    return told


def place_of(kind: str, request: pytest.FixtureRequest, folder: Path) -> str:
    if kind == "sqlite":
        return str(folder / "store")
    running: Server = request.getfixturevalue("postgres")
    url = running.url(new_schema())
    make_store(url)
    return url


@pytest.mark.req("D13", "R67")
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_32_processes_do_2000_errands_once_each_and_none_starves(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    told = raced(place_of(kind, request, tmp_path), 32, 2_000)
    assert (told["twice"], told["lost"]) == (0, 0)
    assert told["fewest"] > 0


@pytest.mark.soak
@pytest.mark.req("D13", "R67")
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_64000_errands_of_many_processes(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    told = raced(place_of(kind, request, tmp_path), 32, 64_000)
    assert (told["twice"], told["lost"]) == (0, 0)
    assert told["fewest"] > 0
