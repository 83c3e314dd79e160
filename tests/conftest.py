"""Fixtures that every test folder may use."""

import ctypes
import gc
import os
import shutil
import signal
from collections.abc import Callable, Iterator

import pytest
from hypothesis import settings

import holdfast
from holdfast.process.tree import adopt_orphans
from tests.cluster import ENVIRONMENT, Cluster, shared
from tests.crash.report import Report
from tests.postgres import Server, server
from tests.soak import Soak

PROGRAMS = {"bubblewrap": "bwrap"}
MEMORY, ROOM = "/dev/shm", 4 << 30
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of linux/prctl.h

settings.register_profile("no clocks", deadline=None)  # speed is what `make bench` measures
settings.load_profile("no clocks")

# A shell starts its background processes deaf to Ctrl-C, and what they start inherits that.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# And `nohup` makes them deaf to the end of the terminal, which tests send.
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--only", default="", help="only tests of these kinds or with these names")


def pytest_configure(config: pytest.Config) -> None:
    planted = os.environ.get("HOLDFAST_PLANTED")
    assert planted is None or holdfast.__file__.startswith(planted), "another package is tested"
    if os.path.isdir(MEMORY) and shutil.disk_usage(MEMORY).free > ROOM:
        # A run syncs a dozen times, and a disk is slow at that. Power cuts are simulated anyway.
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", MEMORY)
    config.pluginmanager.register(Soak(config), "holdfast-soak")


def pytest_collection_finish() -> None:
    """Look for garbage among what tests make only: thousands of tests are there to stay.

    To go through those again and again took a third of the time of tests that stay in this process.
    """
    gc.collect()
    gc.freeze()


def pytest_runtest_teardown() -> None:
    """Leave orphans to the machine's init again.

    A test that started commands in this process made it their parent, also for what killed engines of later
    tests leave behind. Nobody would ever take their exit status, and every sweep reads the whole table.
    """
    if adopt_orphans.cache_info().currsize:
        ctypes.CDLL(None).prctl(_SUBREAPER, 0, 0, 0, 0)
        adopt_orphans.cache_clear()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server of this process; each test makes a store of its own in it."""
    with server() as running:
        yield running


@pytest.fixture
def sweep(record_property: Callable[[str, object], None]) -> Callable[[Report], None]:
    """Hand in what a sweep found; the table at the end of `make soak` has a line of it."""

    def record(report: Report) -> None:
        record_property("sweep", report.row())
        print(report.line())

    return record


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A Ray cluster, which all test processes of a session share."""
    base = tmp_path_factory.getbasetemp()
    folder = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    with pytest.MonkeyPatch.context() as patch, shared(folder) as found:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)  # read when Ray is loaded
        yield found


@pytest.fixture
def require_part() -> Callable[[str], str]:
    """Return the path of a system program; without it, skip, or fail where parts are required.

    `HOLDFAST_REQUIRE_PARTS=1` is how CI says that a skip is a hole in the gate.
    """

    def require(name: str) -> str:
        found = shutil.which(PROGRAMS.get(name, name))
        if found is not None:
            return found
        if os.environ.get("HOLDFAST_REQUIRE_PARTS") == "1":
            pytest.fail(f'required part "{name}" was not found')
        pytest.skip(f'part "{name}" was not found')

    return require
