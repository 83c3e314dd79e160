"""What carries steps elsewhere may not start; that is no fault of a step."""

from pathlib import Path

import pytest

from holdfast.errors import StoreError
from holdfast.executors.elsewhere import Carrier
from holdfast.store.sqlite import SqliteStore
from holdfast.wire import executor_for
from holdfast.wire.remote import elsewhere
from tests.contracts.test_executors import TERMS, Bed, project


class LateError(Exception):
    """As Ray raises plain ones."""


@pytest.mark.req("R177")
def test_a_carrier_that_does_not_start_is_no_fault_of_the_step(tmp_path: Path) -> None:
    project(tmp_path)
    store = SqliteStore.open(str(tmp_path / ".holdfast"), create=True)

    def make() -> Carrier:
        raise LateError("The current node timed out during startup.\nsee its logs")

    executor = elsewhere(executor_for(None, terms=TERMS), make, store, TERMS)
    bed = Bed(tmp_path, store, executor, "shell")
    with pytest.raises(StoreError, match="does not start: The current node timed out") as told:
        bed.run("good")
    assert "--executor local" in str(told.value.hint)
    bed.wait(executor.close())
    bed.runner.close()
    store.close()
