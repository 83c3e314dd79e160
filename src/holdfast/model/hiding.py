"""Calls without secrets: what is asked and answered, as it may be sent and written down."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from holdfast.model.call import Answer, Message, Offer, Request, ToolUse
from holdfast.model.digest import Json
from holdfast.model.secret import struck_text

_NAME = re.compile(r"[A-Za-z0-9_.:\-]{1,128}\Z")


def asked_without(request: Request, secrets: Sequence[str]) -> Request:
    """A request that holds no secret: nobody needs one in order to answer."""
    if not secrets:
        return request
    found = replace(
        request,
        messages=tuple(_message(message, secrets) for message in request.messages),
        parameters=_object(request.parameters, secrets),
        schema=_value(request.schema, secrets),
        offers=tuple(_offer(offer, secrets) for offer in request.offers),
    )
    return request if found == request else found


def answered_without(answer: Answer, secrets: Sequence[str]) -> Answer:
    """An answer that repeats no secret, and whose name is one or nothing; one that holds a secret is none."""
    text, uses = struck_text(answer.text, secrets), _uses(answer.uses, secrets)
    is_name = _NAME.match(answer.id) and struck_text(answer.id, secrets) == answer.id
    name = answer.id if is_name else ""
    if text == answer.text and uses == answer.uses and name == answer.id:
        return answer
    return replace(answer, text=text, uses=uses, id=name)


def _message(message: Message, secrets: Sequence[str]) -> Message:
    return replace(
        message,
        text=struck_text(message.text, secrets),
        uses=_uses(message.uses, secrets),
        answers=struck_text(message.answers, secrets),  # as the use that it answers
        tool=struck_text(message.tool, secrets),
    )


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


def _offer(offer: Offer, secrets: Sequence[str]) -> Offer:
    return replace(
        offer,
        name=struck_text(offer.name, secrets),
        words=struck_text(offer.words, secrets),
        schema=_value(offer.schema, secrets),
    )


def _object(value: Mapping[str, Json], secrets: Sequence[str]) -> dict[str, Json]:
    return {struck_text(key, secrets): _value(item, secrets) for key, item in value.items()}


def _value(value: Json, secrets: Sequence[str]) -> Json:
    if isinstance(value, str):
        return struck_text(value, secrets)
    if isinstance(value, Mapping):
        return _object(value, secrets)
    if isinstance(value, Sequence):
        return [_value(item, secrets) for item in value]
    return value
