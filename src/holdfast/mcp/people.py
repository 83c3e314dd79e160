"""approval_request_human: show a person what waits for them. What comes back here decides nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mcp.server import ServerRequestContext
from mcp.types import (
    CallToolRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
)
from mcp.types.version import is_version_at_least

from holdfast.cli.again import again
from holdfast.cli.approvals import approval_json, decisions_at
from holdfast.cli.card import card
from holdfast.cli.gates import commands
from holdfast.cli.pageaddress import APPROVALS, page_address
from holdfast.cli.say import plain
from holdfast.engine.journals import read_state
from holdfast.errors import UsageError
from holdfast.mcp.answer import Answer, Next
from holdfast.mcp.desk import Desk
from holdfast.mcp.given import Given
from holdfast.mcp.statuses import WAIT
from holdfast.model.digest import Json

Context = ServerRequestContext[dict[str, object]]
KEY = "look"  # under which a client sends back what the person answered
_EMBEDDED = "2026-07-28"  # from this protocol on questions are part of an answer
_ASKED: dict[str, Json] = {
    "type": "object",
    "properties": {
        "seen": {
            "type": "boolean",
            "title": "I have seen it",
            "description": "This decides nothing: the command above does.",
        }
    },
}


@dataclass(frozen=True, slots=True)
class Question:
    """What waits for a person, in words, and whether it still does."""

    approval: str
    step: str
    run: str
    state: str
    lines: tuple[str, ...]
    commands: tuple[str, ...]  # by which a person decides, and the one that opens the page
    data: Mapping[str, Json]
    seq: int = 0  # how far the run is that waits
    page: str = ""  # its address, if one is served

    @property
    def message(self) -> str:
        """What the person is shown."""
        decide, *_, look = self.commands
        how = [f"to decide, type: {decide}", self.looking or f"or open the page: {look}"]
        return "\n".join([*self.lines, "", *how])

    @property
    def looking(self) -> str:
        """Where the page is, if one is served; no way into it, which is for the person alone."""
        if not self.page:
            return ""
        return f"or on the page: {self.page} ('{self.commands[-1]}' lets a browser in)"


def question(desk: Desk, given: Given) -> Question:
    """An approval, as it stands now."""
    name = given.text("approval_id")
    with desk.here() as where:
        store = where.open(readonly=True)
        try:
            decisions = decisions_at(where, store)
            wanted = {one.approval.id: one for one in decisions.wanted()}
            fits = [one for one in decisions.book if one.id.startswith(name)]
            if len(fits) != 1:
                names = ", ".join(wanted) or "nothing waits"
                raise UsageError(f"there is no one approval '{name}'", hint=names)
            found = fits[0]
            data = approval_json(decisions, found)
            if (asked := wanted.get(found.id)) is None:
                line = f"{found.id} of '{found.request.step}' is {data['state']}"
                request, stand = found.request, str(data["state"])
                return Question(found.id, request.step, request.run, stand, (line,), (), data)
            shown = card(decisions, store, asked, where.root)
            lines = tuple(plain(line, raw=raw) for line, raw in shown.lines())
            state = read_state(store, asked.run)
            assert state is not None  # it was read to find the question
            step = state.plan.steps[asked.step]
            offers = [*commands(step, state.steps[asked.step].reason), "holdfast ui"]
            said = tuple(again(one) for one in offers)
            page = page_address(where.location)
            return Question(
                found.id,
                asked.step,
                asked.run,
                "open",
                lines,
                said,
                data,
                state.seq,
                f"{page}{APPROVALS}" if page else "",
            )
        finally:
            store.close()


def answered(asked: Question, looked: str) -> Answer:
    """What the agent is told: where the approval stands, and that only a person can change that."""
    data: dict[str, Json] = {
        "approval": asked.approval,
        "step": asked.step,
        "run_id": asked.run,
        "state": asked.state,
        "shown_to_person": looked,
        "subject": asked.data.get("subject"),
        "decision": asked.data.get("decision"),
        "page": asked.page or None,
    }
    if asked.state != "open":
        resume = Next("run_control", {"run_id": asked.run, "action": "resume"})
        return Answer(asked.lines, data, [resume])
    words = {
        "accept": "the person has seen it, and still has to decide",
        "decline": "the person does not want to look at it now",
        "cancel": "the person closed the question",
        "": "this client cannot show it: tell the person",
    }
    lines = [*asked.lines, "", f"{words.get(looked, words[''])}; no tool can decide this"]
    lines += [f"a person decides by a command {asked.looking}"] if asked.page else []
    following = [Next("run_status", {"run_id": asked.run, "wait_s": WAIT, "since": asked.seq})]
    return Answer(lines, data, following, asked.commands)


async def shown(
    context: Context, params: CallToolRequestParams, asked: Question
) -> str | InputRequiredResult:
    """Show it by the client's own means; what the person did, or the question that the client has to show."""
    capabilities = context.session.client_capabilities
    elicits = capabilities.elicitation if capabilities is not None else None
    if (
        asked.state != "open"
        or elicits is None
        or (elicits.form is None and elicits.url is not None)
    ):
        return ""
    if is_version_at_least(context.protocol_version, _EMBEDDED):
        reply = (params.input_responses or {}).get(KEY)
        if isinstance(reply, ElicitResult):
            return reply.action
        form = ElicitRequestFormParams(message=asked.message, requested_schema=dict(_ASKED))
        return InputRequiredResult(input_requests={KEY: ElicitRequest(params=form)})
    if not context.session.can_send_request:
        return ""
    result = await context.session.elicit_form(asked.message, dict(_ASKED), context.request_id)
    return result.action
