"""Every store against a model written by hand: any calls in any order, by processes that come and go."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as with_seed
from hypothesis.stateful import run_state_machine_as_test

from holdfast.ports import Store
from holdfast.store.memory import MemoryStore
from holdfast.store.postgres import PostgresStore, make_store
from holdfast.store.sqlite import SqliteStore
from tests.contracts.machine import Place, StoreMachine
from tests.crash.report import Report
from tests.postgres import Server, new_schema

FEW = {"memory": 15, "sqlite": 15, "postgres": 3}  # examples; a server makes each a schema
MANY = {"memory": 5_000, "sqlite": 1_000, "postgres": 300}
SLICES, CALLS = 5, 50


class InMemory:
    """One store that all share: nothing outlives a process, so nobody crashes."""

    def __init__(self) -> None:
        self._store = MemoryStore()

    def open(self) -> Store:
        return self._store

    def crash(self, store: Store) -> Store:
        return store

    def close(self) -> None:
        """Nothing to give back."""


class InFiles:
    """A directory; a process that is gone closed nothing before the next one came."""

    def __init__(self, folder: Path) -> None:
        self._folder = Path(tempfile.mkdtemp(dir=folder))

    def open(self) -> Store:
        return SqliteStore.open(str(self._folder / "store"), create=True)

    def crash(self, store: Store) -> Store:
        found = self.open()
        store.close()
        return found

    def close(self) -> None:
        shutil.rmtree(self._folder)


class InServer:
    """A schema of its own; a process that is gone is one whose connection was cut."""

    def __init__(self, server: Server) -> None:
        self._server, self._schema = server, new_schema()
        self._url = server.url(self._schema)
        make_store(self._url)

    def open(self) -> Store:
        return PostgresStore.open(self._url)

    def crash(self, store: Store) -> Store:
        store.close()
        return self.open()

    def close(self) -> None:
        with psycopg.connect(self._server.url(), autocommit=True) as connection:
            connection.execute(f'DROP SCHEMA "{self._schema}" CASCADE'.encode())


def place_of(kind: str, request: pytest.FixtureRequest, folder: Path) -> Callable[[], Place]:
    if kind == "memory":
        return InMemory
    if kind == "sqlite":
        return lambda: InFiles(folder)
    server: Server = request.getfixturevalue("postgres")
    return lambda: InServer(server)


def played(
    make: Callable[[], Place], examples: int, calls: int, *, name: str = "", seed: int | None = None
) -> Report:
    """Play so many examples; what was tried and what was refused."""
    tally: dict[str, int] = {}
    kind = type("Machine", (StoreMachine,), {"make": staticmethod(make), "tally": tally})
    asked = settings(
        max_examples=examples,
        stateful_step_count=calls,
        deadline=None,
        derandomize=seed is None,  # else other examples each time
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
        print_blob=True,
    )
    report = Report(name or "any calls in any order", "model")
    run_state_machine_as_test(kind if seed is None else with_seed(seed)(kind), settings=asked)
    report.tried = tally["calls"]
    report.fired = tally["crashed"] + tally["FencedError"] + tally["ConflictError"]
    report.kept = report.work = tally["written"]
    report.outcomes.update(tally)
    return report


@pytest.mark.req("I2", "I3", "I4", "I5", "I10")
@pytest.mark.parametrize("kind", FEW)
def test_a_store_is_what_the_model_says(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    report = played(place_of(kind, request, tmp_path), FEW[kind], 30)
    assert report.fired > 0
    assert report.work > 0


@pytest.mark.soak("model")
@pytest.mark.req("I2", "I3", "I4", "I5", "I10")
@pytest.mark.parametrize("slice_", range(SLICES))
@pytest.mark.parametrize("kind", MANY)
def test_a_store_is_what_the_model_says_for_many_calls(
    kind: str,
    slice_: int,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    sweep: Callable[[Report], None],
) -> None:
    report = played(
        place_of(kind, request, tmp_path), MANY[kind] // SLICES, CALLS, name=kind, seed=slice_
    )
    sweep(report)
    for what in ("crashed", "FencedError", "ConflictError", "written", "buried", "collected"):
        assert report.outcomes[what] > 0, what
