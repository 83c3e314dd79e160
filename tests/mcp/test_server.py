"""The server itself: what a tool that breaks comes to."""

import asyncio
import logging

import pytest

from holdfast.errors import BugError
from holdfast.mcp.desk import Desk
from holdfast.mcp.server import Service


def test_a_bug_of_a_tool_is_called_one_once(caplog: pytest.LogCaptureFixture) -> None:
    def breaks() -> None:
        raise OverflowError("too much")

    with caplog.at_level(logging.CRITICAL), pytest.raises(BugError) as caught:
        asyncio.run(Service(Desk()).work(breaks))
    assert caught.value.message == "OverflowError: too much [this is a bug]"
    assert BugError(caught.value.message).message == caught.value.message
