"""The server: what a client asks goes to a tool, a resource or a prompt, and comes back as an answer."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import anyio
from mcp.server import Server, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
)

from holdfast.errors import HoldfastError, outside_fault
from holdfast.mcp.answer import Answer, Next, failed
from holdfast.mcp.desk import Desk
from holdfast.mcp.frames import INVALID_PARAMS
from holdfast.mcp.given import Given, flaw
from holdfast.mcp.previews import Previews
from holdfast.mcp.statuses import moment
from holdfast.mcp.tools import Offer, offered
from holdfast.model.version import VERSION

Context = ServerRequestContext[dict[str, object]]
MOST_AT_ONCE = 4  # questions that are worked on: the others wait their turn
PAUSE = 0.5  # seconds between looks at a run that somebody waits for
INSTRUCTIONS = """\
Holdfast runs plans of guarded steps and keeps every accepted result. Preview first (plan_preview), then start \
what you saw (run_start with its plan_hash), then wait (run_status with wait_s). why says why a step runs or is \
reused. A step that waits for a person is decided by a person alone: approval_request_human shows it to them. \
Every answer says what to do next."""


@dataclass(slots=True)
class Service:
    """What the handlers share."""

    desk: Desk
    previews: Previews = field(default_factory=Previews)
    places: anyio.CapacityLimiter = field(
        default_factory=lambda: anyio.CapacityLimiter(MOST_AT_ONCE)
    )

    @property
    def tools(self) -> dict[str, Offer]:
        """The tools that are offered."""
        return offered(read_only=self.desk.read_only)

    async def list_tools(
        self, context: Context, params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        """All of them, always in the same order."""
        del context, params
        return ListToolsResult(tools=[one.tool() for one in self.tools.values()])

    async def call_tool(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        """Check the arguments and call a tool; what it cannot do is an answer too."""
        tools = self.tools
        offer = tools.get(params.name)
        if offer is None:
            names = ", ".join(tools)
            raise MCPError(INVALID_PARAMS, f"there is no tool '{params.name:.80}', only {names}")
        arguments = params.arguments or {}
        if wrong := flaw(offer.takes, arguments):
            raise MCPError(INVALID_PARAMS, f"{offer.name}: {wrong}")
        answer = await self._answer(context, offer, Given(arguments))
        return answer.result(tools)

    async def _answer(self, context: Context, offer: Offer, given: Given) -> Answer:
        try:
            if offer.name == "run_status" and given.number("wait_s"):
                await self._wait(context, given)
            return await self.work(partial(offer.call, self.desk, self.previews, given))
        except HoldfastError as error:
            return failed(error, [Next("plan_preview")])

    async def work(self, ask: partial[Answer]) -> Answer:
        """Do something that reads or writes a store, beside the loop."""
        try:
            return await anyio.to_thread.run_sync(ask, limiter=self.places)
        except OSError as error:
            if (fault := outside_fault(error)) is not None:
                raise fault from error
            raise

    async def _wait(self, context: Context, given: Given) -> None:
        """Until a run ends or rests, or the time is over; tell of each change."""
        run, told = given.maybe("run_id"), -1
        with anyio.move_on_after(given.number("wait_s") or 0):
            while True:
                now = await anyio.to_thread.run_sync(moment, self.desk, run, limiter=self.places)
                if now.seq != told:
                    told = now.seq
                    await context.session.report_progress(now.done, now.steps, now.words)
                if not now.goes_on:
                    return
                await anyio.sleep(PAUSE)


def build(desk: Desk) -> Server[dict[str, object]]:
    """A server for one place."""
    logging.getLogger("mcp").setLevel(logging.ERROR)
    service = Service(desk)
    return Server(
        "holdfast",
        version=VERSION,
        title="Holdfast",
        instructions=INSTRUCTIONS,
        on_list_tools=service.list_tools,
        on_call_tool=service.call_tool,
    )
