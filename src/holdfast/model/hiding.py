"""Calls without secrets: what is asked and answered, as it may be sent and written down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from holdfast.model.call import Answer, Message, Request, ToolUse
from holdfast.model.secret import struck_text


def asked_without(request: Request, secrets: Sequence[str]) -> Request:
    """A request whose conversation holds no secret: nobody needs one in order to answer."""
    messages = tuple(_message(message, secrets) for message in request.messages)
    return request if messages == request.messages else replace(request, messages=messages)


def answered_without(answer: Answer, secrets: Sequence[str]) -> Answer:
    """An answer that repeats no secret."""
    text, uses = struck_text(answer.text, secrets), _uses(answer.uses, secrets)
    if text == answer.text and uses == answer.uses:
        return answer
    return replace(answer, text=text, uses=uses)


def _message(message: Message, secrets: Sequence[str]) -> Message:
    text, uses = struck_text(message.text, secrets), _uses(message.uses, secrets)
    if text == message.text and uses == message.uses:
        return message
    return replace(message, text=text, uses=uses)


def _uses(uses: tuple[ToolUse, ...], secrets: Sequence[str]) -> tuple[ToolUse, ...]:
    return tuple(
        replace(
            use,
            id=struck_text(use.id, secrets),
            name=struck_text(use.name, secrets),
            arguments=struck_text(use.arguments, secrets),
        )
        for use in uses
    )
