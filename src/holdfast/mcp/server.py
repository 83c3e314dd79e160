"""The server: what a client asks goes to a tool, a resource or a prompt, and comes back as an answer."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import anyio
from anyio import from_thread
from mcp.server import CacheHint, Server, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    GetPromptRequestParams,
    GetPromptResult,
    InputRequiredResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    TextResourceContents,
)

from holdfast.errors import BugError, HoldfastError, outside_fault
from holdfast.mcp import resources
from holdfast.mcp.answer import Next, failed
from holdfast.mcp.desk import Desk
from holdfast.mcp.frames import INTERNAL_ERROR, INVALID_PARAMS
from holdfast.mcp.given import Given, flaw
from holdfast.mcp.people import answered, question, shown
from holdfast.mcp.previews import Previews
from holdfast.mcp.prompts import prompt, prompts
from holdfast.mcp.statuses import Moment, watch
from holdfast.mcp.tools import Offer, offered
from holdfast.model.version import VERSION

T = TypeVar("T")
Context = ServerRequestContext[dict[str, object]]
MOST_AT_ONCE = 4  # questions that are worked on: the others wait their turn
MOST_WAITING = 16  # who looks on at runs, apart from those
_WIDEST = 400  # characters of an error: it may quote what was asked for
PAUSE = 0.5  # seconds between looks at a run that somebody waits for
INSTRUCTIONS = (
    "Holdfast runs plans of guarded steps and keeps every accepted result. Preview first (plan_preview), "
    "then start what you saw (run_start with its plan_hash), then wait (run_status with wait_s). why says "
    "why a step runs or is reused. What waits for a person is decided by a person alone: "
    "approval_request_human shows it to them. Every answer says what to do next."
)


@dataclass(slots=True)
class Service:
    """What the handlers share."""

    desk: Desk
    previews: Previews = field(default_factory=Previews)
    places: anyio.CapacityLimiter = field(
        default_factory=lambda: anyio.CapacityLimiter(MOST_AT_ONCE)
    )

    waits: anyio.CapacityLimiter = field(
        default_factory=lambda: anyio.CapacityLimiter(MOST_WAITING)
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

    async def call_tool(
        self, context: Context, params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        """Check the arguments and call a tool; what it cannot do is an answer too."""
        tools = self.tools
        offer = tools.get(params.name)
        if offer is None:
            names = ", ".join(tools)
            raise MCPError(INVALID_PARAMS, f"there is no tool '{params.name:.80}', only {names}")
        arguments = params.arguments or {}
        if wrong := flaw(offer.takes, arguments):
            raise MCPError(INVALID_PARAMS, f"{offer.name}: {wrong}")
        given = Given(arguments)
        try:
            if offer.name == "approval_request_human":
                asked = await self.work(partial(question, self.desk, given))
                looked = await shown(context, params, asked)
                if isinstance(looked, InputRequiredResult):
                    return looked
                asked = await self.work(
                    partial(question, self.desk, given)
                )  # it may be decided now
                return answered(asked, looked).result(tools)
            if offer.name == "run_status" and given.number("wait_s"):
                await self._wait(context, given)
            answer = await self.work(partial(offer.call, self.desk, self.previews, given))
        except HoldfastError as error:
            answer = failed(error, [Next(offer.after)])
        return answer.result(tools)

    async def work(self, ask: Callable[[], T], places: anyio.CapacityLimiter | None = None) -> T:
        """Do something that reads or writes a store, beside the loop."""
        try:
            return await anyio.to_thread.run_sync(ask, limiter=places or self.places)
        except (HoldfastError, TimeoutError):
            raise
        except Exception as error:
            if (fault := outside_fault(error)) is not None:
                raise fault from error
            logging.getLogger("holdfast.mcp").exception("a tool failed")
            raise BugError(f"{type(error).__name__}: {error}") from error

    async def _wait(self, context: Context, given: Given) -> None:
        """Let somebody look on beside the loop, and pass on what they see, as long as it was asked for."""
        end = anyio.current_time() + (given.number("wait_s") or 0)

        def tell(now: Moment) -> None:
            from_thread.run(context.session.report_progress, now.done, now.steps, now.words)

        def pause() -> None:
            from_thread.check_cancelled()
            left = end - from_thread.run_sync(anyio.current_time)
            if left <= 0:
                raise TimeoutError
            time.sleep(min(PAUSE, left))

        with suppress(TimeoutError):
            await self.work(partial(watch, self.desk, given, tell, pause), self.waits)

    async def list_resources(
        self, context: Context, params: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        """The plan, the gaps and the last runs."""
        del context, params
        found = await self._asked(partial(resources.resources, self.desk))
        return ListResourcesResult(resources=found)

    async def list_templates(
        self, context: Context, params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        """Addresses of runs and steps."""
        del context, params
        return ListResourceTemplatesResult(resource_templates=resources.templates())

    async def read_resource(
        self, context: Context, params: ReadResourceRequestParams
    ) -> ReadResourceResult:
        """One of them."""
        del context
        found = await self._asked(partial(resources.read, self.desk, params.uri))
        text = TextResourceContents(uri=params.uri, text=found.text, mime_type=found.kind)
        return ReadResourceResult(contents=[text], ttl_ms=found.fresh_ms)

    async def list_prompts(
        self, context: Context, params: PaginatedRequestParams | None
    ) -> ListPromptsResult:
        """All of them."""
        del context, params
        return ListPromptsResult(prompts=prompts())

    async def get_prompt(self, context: Context, params: GetPromptRequestParams) -> GetPromptResult:
        """One of them."""
        del context
        return await self._asked(partial(prompt, params.name, params.arguments or {}))

    async def _asked(self, ask: Callable[[], T]) -> T:
        """The same for what has no way to say an error but that of the protocol."""
        try:
            return await self.work(ask)
        except BugError as error:
            raise MCPError(INTERNAL_ERROR, f"{error.message:.{_WIDEST}}") from error
        except HoldfastError as error:
            raise MCPError(INVALID_PARAMS, f"{error!s:.{_WIDEST}}") from error


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
        on_list_resources=service.list_resources,
        on_list_resource_templates=service.list_templates,
        on_read_resource=service.read_resource,
        on_list_prompts=service.list_prompts,
        on_get_prompt=service.get_prompt,
        cache_hints={"tools/list": CacheHint(60_000), "prompts/list": CacheHint(60_000)},
    )
