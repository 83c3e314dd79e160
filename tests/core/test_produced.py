"""A step that reads an output by its name starts only if that output was produced."""

from dataclasses import replace

import pytest

from holdfast.core.produced import lacking
from holdfast.model.plan import Need, StepId
from tests.core.builders import sid, step

STEP = replace(
    step("s"),
    needs=(
        Need(sid("a"), key="x"),
        Need(sid("a"), key="y"),
        Need(sid("b"), key="z", optional=True),
        Need(sid("c")),
    ),
)


def missing(content: bytes | None) -> tuple[str, ...]:
    asked: list[StepId] = []

    def read(name: StepId) -> bytes | None:
        asked.append(name)
        return content

    found = lacking(STEP, read)
    assert set(asked) == {sid("a")}  # what is optional, or read whole, cannot lack a key
    return found


def test_each_output_that_is_not_there_is_named_with_its_step() -> None:
    assert missing(b'{"x": 1, "y": null}') == ()
    assert missing(b'{"x": 1}') == ("'y' of a",)


@pytest.mark.parametrize("content", [None, b"x y", b'["x", "y"]', b'"xy"', b"[" * 100_000])
def test_what_is_no_json_object_has_no_outputs(content: bytes | None) -> None:
    assert missing(content) == ("'x' of a", "'y' of a")
