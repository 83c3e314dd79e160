"""Models behind an address, through pydantic-ai: one request, one answer, errors translated.

Nothing is tried again here: the engine does that, and stores each try. Addresses come from the person's
configuration; proxies of the environment and redirects are not followed.

A model that takes no schema, or not this one, is given a tool instead whose arguments are the answer, and has
to use it. One that knows no tools either is told the schema.
"""

from __future__ import annotations

import json
import os
import re
import ssl
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, cast

import httpx2
from pydantic_ai import exceptions as faults
from pydantic_ai import messages as parts
from pydantic_ai.direct import model_request_stream
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import ToolDefinition

from holdfast.errors import CallError
from holdfast.generators.transport import LEAVES, Bounded, TooLarge
from holdfast.generators.vendors.schemas import CLOSES_OBJECTS, can_be_closed, rooted, unrooted
from holdfast.model.call import Answer, Finish, Message, Request, ToolUse, Usage
from holdfast.model.digest import Json

if TYPE_CHECKING:
    from pydantic_ai.models import Model
    from pydantic_ai.settings import ModelSettings

MOST_BYTES = 16 << 20  # of one answer
_SILENCE = 300.0  # seconds without a byte
_FINISH: dict[str, Finish] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "refused",
    "refusal": "refused",
    "tool_call": "tools",
}
_SECONDS = re.compile(r"\d+(\.\d+)?s\Z", re.ASCII)
_ODD = (ValueError, TypeError, LookupError, AttributeError, AssertionError)
_LIBRARIES = "pydantic|pydantic_ai|pydantic_core|openai|anthropic|google|mistralai|boto3|botocore"
for _module in (_LIBRARIES, re.escape(__name__)):  # they may quote what a provider sent, keys too
    warnings.filterwarnings("ignore", module=rf"({_module})(\.|$)")

Build = Callable[[str, httpx2.AsyncClient], "Model"]  # a model by its name
Faults = Mapping[type[Exception], str]  # errors of a vendor's own library: the reason of each


class Chat:
    """One provider; `build` makes its models, `faults` are what its library raises besides."""

    def __init__(self, build: Build, faults: Faults | None = None) -> None:
        self._build = build
        self._faults = faults or {}
        self._http = _client()
        self._models: dict[str, Model] = {}

    async def ask(
        self, request: Request, listen: Callable[[str], None], leaves: Callable[[], None]
    ) -> Answer:
        """One call."""
        heard = _Heard(listen)
        LEAVES.set(leaves)
        try:
            model = self._model(request.name)
            wanted = _wanted(request, model)
            async with model_request_stream(
                model,
                _conversation(request.messages),
                model_settings=_settings(request),
                model_request_parameters=wanted,
                instrument=False,
            ) as stream:
                async for event in stream:
                    heard.take(event)
                response = stream.get()
        except TooLarge as error:
            raise _too_large(str(error), heard.size) from error
        except faults.AgentRunError as error:
            raise _translated(error, request, heard.size) from error
        except faults.UserError as error:
            message = f"'{request.model}' cannot be asked this: {_short(error)}"
            raise CallError(message, reason="call_refused") from error
        except tuple(self._faults) as error:
            raise self._fault(error, request) from error
        except _ODD as error:  # what it sent is not what it should be
            raise _malformed(request, error, heard.size) from error
        return _answer(response, request, heard.size, wanted.output_mode)

    def _fault(self, error: Exception, request: Request) -> CallError:
        reason = next(why for kind, why in self._faults.items() if isinstance(error, kind))
        if reason == "credentials_missing":
            return CallError(f"there is no key for '{request.provider}': {error}", reason=reason)
        return CallError(f"'{request.provider}' cannot be asked: {error}", reason=reason)

    def _model(self, name: str) -> Model:
        if name not in self._models:
            self._models[name] = self._build(name, self._http)
        return self._models[name]

    async def close(self) -> None:
        """Close connections."""
        await self._http.aclose()


def _client() -> httpx2.AsyncClient:
    """Follows nobody, asks no proxy, and reads no answer without end."""
    return httpx2.AsyncClient(
        transport=Bounded(httpx2.AsyncHTTPTransport(verify=_certificates(), trust_env=False)),
        trust_env=False,
        follow_redirects=False,
        timeout=httpx2.Timeout(_SILENCE, connect=20.0),
    )


def _certificates() -> ssl.SSLContext | bool:
    """What the person's shell says about certificates holds, as for any other program."""
    named = os.environ.get("SSL_CERT_FILE")
    try:
        return ssl.create_default_context(cafile=named) if named else True
    except OSError as error:  # nothing was sent
        message = f"SSL_CERT_FILE names '{named}', which holds no certificates: {error}"
        raise CallError(message, reason="call_refused") from error


def _too_large(what: str, read: int) -> CallError:
    return CallError(
        f"the answer is {what} and was broken off", reason="answer_too_large", read=read
    )


def _conversation(messages: Sequence[Message]) -> list[parts.ModelMessage]:
    found: list[parts.ModelMessage] = []
    asked: list[parts.ModelRequestPart] = []
    for message in messages:
        if message.role == "assistant":
            found.append(parts.ModelRequest(parts=asked))
            asked = []
            said: list[parts.ModelResponsePart] = []
            if message.text:
                said.append(parts.TextPart(message.text))
            said += [parts.ToolCallPart(u.name, u.arguments, u.id) for u in message.uses]
            found.append(parts.ModelResponse(parts=said))
        elif message.role == "system":
            asked.append(parts.SystemPromptPart(message.text))
        elif message.role == "tool":
            asked.append(parts.ToolReturnPart(message.tool, message.text, message.answers))
        else:
            asked.append(parts.UserPromptPart(message.text))
    return [*found, parts.ModelRequest(parts=asked)]


def _settings(request: Request) -> ModelSettings:
    given: dict[str, object] = {**request.parameters, "max_retries": 0}
    if request.cap is not None:
        given["max_tokens"] = request.cap.tokens
    return cast("ModelSettings", given)


def _wanted(request: Request, model: Model) -> ModelRequestParameters:
    tools = [
        ToolDefinition(
            name=offer.name,
            description=offer.words,
            parameters_json_schema=cast("dict[str, object]", offer.schema),
        )
        for offer in request.offers
    ]
    if request.schema is None:
        return ModelRequestParameters(function_tools=tools)
    profile = cast("Mapping[str, object]", model.profile)
    mixes = profile.get("google_supports_tool_combination", True)
    shape = rooted(request.schema)
    fits = can_be_closed(cast("Json", shape)) or not profile.get(CLOSES_OBJECTS)
    if profile.get("supports_json_schema_output") and (mixes or not tools) and fits:
        mode: Literal["native", "prompted"] = "native"
    elif profile.get("supports_tools", True):
        last = ToolDefinition(
            name=_last(request),
            description="Give the answer.",
            parameters_json_schema=shape,
        )
        return ModelRequestParameters(function_tools=[*tools, last], allow_text_output=False)
    else:
        mode, shape = "prompted", cast("dict[str, object]", request.schema)
    return ModelRequestParameters(
        function_tools=tools,
        output_mode=mode,
        output_object=OutputObjectDefinition(json_schema=shape),
        allow_text_output=True,
    )


def _last(request: Request) -> str:
    """The name of the tool that takes a structured answer."""
    name = "answer"
    while any(offer.name == name for offer in request.offers):
        name += "_"
    return name


class _Heard:
    """The text as it comes, passed on; an answer without end is broken off."""

    def __init__(self, listen: Callable[[str], None]) -> None:
        self._listen = listen
        self.size = 0

    def take(self, event: object) -> None:
        text = ""
        if isinstance(event, parts.PartStartEvent):
            part = event.part
            text = part.content if isinstance(part, parts.TextPart) else ""
            self._count(part, "args", "content", "tool_name")
        elif isinstance(event, parts.PartDeltaEvent):
            delta = event.delta
            if isinstance(delta, parts.TextPartDelta):
                text = delta.content_delta
            self._count(delta, "args_delta", "content_delta", "tool_name_delta")
        if self.size > MOST_BYTES:
            raise _too_large(f"longer than {MOST_BYTES >> 20} MB", self.size)
        if text:
            self._listen(text)

    def _count(self, part: object, *names: str) -> None:
        """Whatever comes counts, also what a model thinks."""
        self.size += sum(len(str(getattr(part, name, "") or "")) for name in names)


def _answer(response: parts.ModelResponse, request: Request, read: int, mode: str) -> Answer:
    text = "".join(part.content for part in response.parts if isinstance(part, parts.TextPart))
    uses = tuple(
        ToolUse(part.tool_call_id, part.tool_name, _arguments(part))
        for part in response.parts
        if isinstance(part, parts.ToolCallPart)
    )
    finish = _finish(response, request, read)
    details = response.provider_details or {}
    if details.get("refusal"):
        text, finish = text or str(details["refusal"]), "refused"
    for piece in (text, *(use.arguments for use in uses)):
        try:
            piece.encode()
        except UnicodeEncodeError as error:
            raise _malformed(request, error, len(text)) from error
    last = _structured(request, uses)
    if last is not None and finish != "length":
        text, uses, finish = last, (), "stop"
    elif mode == "native" and finish == "stop" and not uses:
        text = unrooted(text, request.schema)
    if uses and finish == "stop":  # some do not tell the two ends apart
        finish = "tools"
    usage = response.usage
    is_counted = usage.input_tokens or usage.output_tokens
    if not (text or uses or is_counted) and finish in {"stop", "other"}:
        message = f"'{request.model}' gave an empty answer, and counted nothing"
        raise CallError(message, reason="malformed", again=True, read=0)
    tokens = Usage(
        usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens
    )
    cut = request.cap.words if request.cap is not None and finish == "length" else ""
    return Answer(text, uses, finish, tokens, response.provider_response_id or "", cut)


def _finish(response: parts.ModelResponse, request: Request, read: int) -> Finish:
    """Why the answer ended; CallError if it did not come to an end."""
    raw = str((response.provider_details or {}).get("finish_reason") or "")
    if response.finish_reason is None and not raw:  # without a word of farewell: it was cut
        message = f"'{request.model}' broke off its answer"
        raise CallError(message, reason="cut_off", again=True, read=read)
    if response.finish_reason == "error":
        message = f"'{request.model}' could not end its answer ({raw.lower()})"
        raise CallError(message, reason="malformed", again=True, read=read)
    return _FINISH.get(response.finish_reason or raw, "other")


def _structured(request: Request, uses: Sequence[ToolUse]) -> str | None:
    """What was given to the tool that takes a structured answer; None if it was not used."""
    if request.schema is None:
        return None
    last = _last(request)
    given = next((use.arguments for use in uses if use.name == last), None)
    return None if given is None else unrooted(given, request.schema)


def _arguments(part: parts.ToolCallPart) -> str:
    """The arguments as the model wrote them, whatever they are."""
    return part.args if isinstance(part.args, str) else part.args_as_json_str()


def _malformed(request: Request, error: Exception, read: int) -> CallError:
    return CallError(
        f"what '{request.model}' answered cannot be read: {_short(error)}",
        reason="malformed",
        again=True,
        read=read,
    )


def _translated(error: faults.AgentRunError, request: Request, read: int) -> CallError:
    """An error of the library in our words, with what can be done about it."""
    if (large := _cause(error, TooLarge)) is not None:
        return _too_large(str(large), read)
    name, provider = request.model, request.provider
    after = _after(error)
    if _is_redirect(error):
        return CallError(
            f"'{provider}' sends the call on to another address, and its key goes only to yours",
            reason="call_refused",
            hint=f"if that is right, name the other one: base_url of [providers.{provider}]",
        )
    if isinstance(error, faults.ModelAuthenticationError):
        return CallError(
            f"'{provider}' refused the key",
            reason="credentials_missing",
            hint=f"holdfast auth set {provider}, or set its variable",
        )
    if isinstance(error, faults.ModelQuotaExceededError):
        return CallError(f"'{provider}' says that its quota is used up", reason="call_refused")
    if isinstance(error, faults.ModelRateLimitError):
        return CallError(
            f"'{provider}' wants to be asked less often",
            reason="rate_limited",
            again=True,
            after=after,
        )
    if isinstance(error, faults.ModelUnavailableError | faults.ModelServerError):
        return CallError(
            f"'{provider}' could not answer: {_short(error)}",
            reason="provider_error",
            again=True,
            after=after,
            read=read or None,
        )
    if isinstance(error, faults.ModelConnectionError):
        sent = error.phase in {"read", "write", None}
        if read:
            return CallError(
                f"'{name}' broke off its answer", reason="cut_off", again=True, read=read
            )
        what = "broke off before it answered" if sent else "cannot be reached"
        return CallError(
            f"'{provider}' {what}: {_short(error)}",
            reason="unreachable",
            again=True,
            read=0 if sent else None,
        )
    if isinstance(error, faults.ModelNotFoundError):
        return CallError(f"'{provider}' has no model '{name}'", reason="call_refused")
    if isinstance(error, faults.ModelContextWindowExceededError):
        return CallError(f"the prompt is too long for '{name}'", reason="call_refused")
    if isinstance(error, faults.ContentFilterError):
        return CallError(f"'{name}' refused to answer", reason="model_refused", read=read)
    if isinstance(error, faults.ModelHTTPError) and not error.in_stream:
        return CallError(
            f"'{provider}' refused the call ({error.status_code}): {_short(error)}",
            reason="call_refused",
        )
    if read:
        return CallError(f"'{name}' broke off its answer", reason="cut_off", again=True, read=read)
    return _malformed(request, error, read)


def _cause(error: BaseException | None, kind: type[Exception]) -> BaseException | None:
    while error is not None and not isinstance(error, kind):
        error = error.__cause__ or error.__context__
    return error


def _is_redirect(error: Exception) -> bool:
    status = getattr(error, "status_code", None) or getattr(error.__cause__, "status_code", None)
    return isinstance(status, int) and 300 <= status < 400  # noqa: PLR2004 - as HTTP has it


def _after(error: faults.AgentRunError) -> float | None:
    """How many seconds the provider wants to be left alone; Google says it in the body."""
    if (found := getattr(error, "retry_after", None)) is not None:
        return float(found)
    body = getattr(error, "body", None)
    told = body.get("error", body) if isinstance(body, dict) else None
    for detail in told.get("details") or () if isinstance(told, dict) else ():
        wait = detail.get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(wait, str) and _SECONDS.match(wait):
            return float(wait[:-1])
    return None


def _short(error: Exception) -> str:
    """What the provider says is wrong; whoever tells it cuts it short, once no secret is in it."""
    body = getattr(error, "body", None)
    if isinstance(body, str):
        with suppress(ValueError):
            body = json.loads(body)
    if isinstance(body, dict):
        inner = body.get("error") or body.get("Error")
        told = inner if isinstance(inner, dict) else body
        body = told.get("message") or told.get("Message") or inner or json.dumps(body, default=str)
    return " ".join(str(body or error).split())
