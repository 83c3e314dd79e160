"""The languages of every vendor of models, spoken by the scripted server as the vendor's own servers do.

Each writes answers (`events`, `failure`) and reads requests (`schema`, `offered`, `told`). What a script says
in OpenAI's words (`Say.finish`, `Fail.status`) is said in the vendor's.
"""

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from zlib import crc32

from holdfast.testing import server
from holdfast.testing.server import Asked, Fail, Language, Say, pieces

SSE = {"content-type": "text/event-stream"}


class Spoken(Language, Protocol):
    """A language whose requests can be read, too."""

    def id(self, asked: Asked) -> str:
        """How the vendor names its answer."""

    def schema(self, asked: Asked) -> object:
        """The schema that the answer must fit, where the vendor has a place for it."""

    def offered(self, asked: Asked) -> list[str]:
        """The names of the tools that may be used."""

    def told(self, asked: Asked) -> list[str]:
        """What tools answered."""


@dataclass(frozen=True)
class Vendor:
    """A kind of provider: its language, two models, and where its key stands.

    `model` takes a schema; `plain` does not, so that one has to be brought to it in another way.
    """

    kind: str
    language: Spoken
    model: str
    plain: str = ""
    module: str = ""  # the library that speaks to it
    key: Mapping[str, str] = field(default_factory=dict)
    settings: str = ""
    sent: tuple[str, str] = ("authorization", "Bearer the-key")  # how the key comes

    @property
    def extra(self) -> str:
        """What has to be installed for it."""
        return self.kind if self.module else "llm"


def _data(value: object) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


def _uses(reply: Say) -> list[tuple[str, str, str]]:
    """The id, name and arguments of every tool that is to be used."""
    return [(f"use{n:06}", name, json.dumps(given)) for n, (name, given) in enumerate(reply.tools)]


class OpenAI(server.OpenAI):
    def id(self, asked: Asked) -> str:
        return f"answer-{asked.number}"

    def schema(self, asked: Asked) -> object:
        wanted: Any = asked.body.get("response_format") or {}
        return wanted.get("json_schema", {}).get("schema")

    def offered(self, asked: Asked) -> list[str]:
        tools: Any = asked.body.get("tools") or []
        return [tool["function"]["name"] for tool in tools]

    def told(self, asked: Asked) -> list[str]:
        messages: Any = asked.body["messages"]
        return [message["content"] for message in messages if message["role"] == "tool"]


class Mistral(OpenAI):
    """As OpenAI's, but for errors, counters, tool uses in one piece, and no place for a schema."""

    root = ""

    def refusal(self, asked: Asked) -> None:
        """Nothing is known."""

    def failure(self, reply: Fail) -> tuple[int, bytes, Mapping[str, str]]:
        error = {"object": "error", "message": reply.message, "type": "error", "code": "1300"}
        return reply.status, json.dumps(error).encode(), reply.headers

    def whole(self, asked: Asked, reply: Say) -> None:
        assert asked.path == "/v1/chat/completions"

    def events(self, asked: Asked, reply: Say) -> Iterator[bytes]:
        head = {
            "id": self.id(asked),
            "object": "chat.completion.chunk",
            "created": 1_700_000_000,
            "model": asked.body["model"],
        }

        def event(delta: object, finish: str | None = None, **more: object) -> bytes:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            return _data({**head, "choices": [choice], **more})

        yield event({"role": "assistant", "content": ""})
        for piece in pieces(reply.text):
            yield event({"content": piece})
        uses = [
            {"id": ref, "index": n, "function": {"name": name, "arguments": given}}
            for n, (ref, name, given) in enumerate(_uses(reply))
        ]
        usage = {
            "prompt_tokens": reply.input,
            "completion_tokens": reply.output,
            "total_tokens": reply.input + reply.output,
            "prompt_tokens_details": {"cached_tokens": reply.cached},
        }
        if uses:
            yield event({"content": "", "tool_calls": uses}, "tool_calls", usage=usage)
        else:
            yield event({"content": ""}, reply.finish, usage=usage)
        yield b"data: [DONE]\n\n"


def _closed(schema: object) -> Fail | None:
    """Anthropic takes no object that may have more than it names."""
    found = json.dumps(schema)
    if found.count('"type": "object"') == found.count('"additionalProperties": false'):
        return None
    return Fail(400, "For 'object' type, 'additionalProperties' must be explicitly set to false")


class Anthropic:
    root = ""
    _STOPS: Mapping[str, str] = {
        "stop": "end_turn",
        "length": "max_tokens",
        "content_filter": "refusal",
    }
    _ERRORS: Mapping[int, str] = {
        400: "invalid_request_error",
        401: "authentication_error",
        404: "not_found_error",
        429: "rate_limit_error",
        500: "api_error",
    }

    def refusal(self, asked: Asked) -> Fail | None:
        return _closed(self.schema(asked))

    def failure(self, reply: Fail) -> tuple[int, bytes, Mapping[str, str]]:
        error = {"type": self._ERRORS[reply.status], "message": reply.message}
        body = {"type": "error", "error": error, "request_id": "req_1"}
        return reply.status, json.dumps(body).encode(), reply.headers

    def whole(self, asked: Asked, reply: Say) -> None:
        assert asked.path.partition("?")[0] == "/v1/messages"
        assert asked.body["stream"] is True

    def head(self, asked: Asked) -> Mapping[str, str]:
        return {**SSE, "request-id": f"req_{asked.number}"}

    def events(self, asked: Asked, reply: Say) -> Iterator[bytes]:
        def event(kind: str, **more: object) -> bytes:
            return f"event: {kind}\n".encode() + _data({"type": kind, **more})

        usage = {
            "input_tokens": reply.input - reply.cached,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": reply.cached,
            "output_tokens": 1,
        }
        message = {
            "id": self.id(asked),
            "type": "message",
            "role": "assistant",
            "model": asked.body["model"],
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        }
        yield event("message_start", message=message)
        text: object = {"type": "text", "text": ""}
        yield event("content_block_start", index=0, content_block=text)
        yield event("ping")
        for piece in pieces(reply.text):
            said = {"type": "text_delta", "text": piece}
            yield event("content_block_delta", index=0, delta=said)
        yield event("content_block_stop", index=0)
        for number, (ref, name, given) in enumerate(_uses(reply), start=1):
            use = {"type": "tool_use", "id": ref, "name": name, "input": {}}
            yield event("content_block_start", index=number, content_block=use)
            for piece in pieces(given):
                part = {"type": "input_json_delta", "partial_json": piece}
                yield event("content_block_delta", index=number, delta=part)
            yield event("content_block_stop", index=number)
        stop = "tool_use" if reply.tools else self._STOPS[reply.finish]
        end = {"stop_reason": stop, "stop_sequence": None}
        yield event("message_delta", delta=end, usage={"output_tokens": reply.output})
        yield event("message_stop")

    def id(self, asked: Asked) -> str:
        return f"msg_{asked.number}"

    def schema(self, asked: Asked) -> object:
        wanted: Any = asked.body.get("output_config") or {}
        return wanted.get("format", {}).get("schema")

    def offered(self, asked: Asked) -> list[str]:
        tools: Any = asked.body.get("tools") or []
        return [tool["name"] for tool in tools]

    def told(self, asked: Asked) -> list[str]:
        messages: Any = asked.body["messages"]
        blocks = [block for message in messages for block in _blocks(message["content"])]
        return [_joined(block["content"]) for block in blocks if block.get("type") == "tool_result"]


class Google:
    root = ""
    _STOPS: Mapping[str, str] = {
        "stop": "STOP",
        "length": "MAX_TOKENS",
        "content_filter": "SAFETY",
        "error": "MALFORMED_FUNCTION_CALL",
    }
    _ERRORS: Mapping[int, str] = {
        400: "INVALID_ARGUMENT",
        401: "UNAUTHENTICATED",
        404: "NOT_FOUND",
        429: "RESOURCE_EXHAUSTED",
        500: "INTERNAL",
    }

    def refusal(self, asked: Asked) -> None:
        """Nothing is known."""

    def failure(self, reply: Fail) -> tuple[int, bytes, Mapping[str, str]]:
        error: dict[str, object] = {
            "code": reply.status,
            "message": reply.message,
            "status": self._ERRORS[reply.status],
        }
        wait = reply.headers.get("retry-after")
        if wait:  # there is no header for it
            kind = "type.googleapis.com/google.rpc.RetryInfo"
            error["details"] = [{"@type": kind, "retryDelay": f"{wait}s"}]
        return reply.status, json.dumps({"error": error}).encode(), {}

    def whole(self, asked: Asked, reply: Say) -> None:
        assert asked.path.endswith(":streamGenerateContent?alt=sse")

    def head(self, asked: Asked) -> Mapping[str, str]:
        return SSE

    def events(self, asked: Asked, reply: Say) -> Iterator[bytes]:
        def event(parts: Sequence[object], **more: object) -> bytes:
            candidate = {"content": {"role": "model", "parts": parts}, "index": 0, **more}
            usage = {
                "promptTokenCount": reply.input,
                "cachedContentTokenCount": reply.cached,
                "candidatesTokenCount": reply.output,
                "totalTokenCount": reply.input + reply.output,
            }
            return _data(
                {
                    "candidates": [candidate],
                    "usageMetadata": usage,
                    "modelVersion": "gemini",
                    "responseId": self.id(asked),
                }
            )

        for piece in pieces(reply.text):
            yield event([{"text": piece}])
        for _, name, given in _uses(reply):
            yield event([{"functionCall": {"name": name, "args": json.loads(given)}}])
        yield event([{"text": ""}], finishReason=self._STOPS[reply.finish])

    def id(self, asked: Asked) -> str:
        return f"response-{asked.number}"

    def schema(self, asked: Asked) -> object:
        wanted: Any = asked.body.get("generationConfig") or {}
        return wanted.get("responseJsonSchema") or wanted.get("responseSchema")

    def offered(self, asked: Asked) -> list[str]:
        tools: Any = asked.body.get("tools") or []
        return [one["name"] for tool in tools for one in tool["functionDeclarations"]]

    def told(self, asked: Asked) -> list[str]:
        contents: Any = asked.body["contents"]
        said = [part.get("functionResponse") for each in contents for part in each["parts"]]
        return [str(one["response"]["return_value"]) for one in said if one]


class Bedrock:
    """Frames of an AWS event stream: lengths and a checksum, headers, content, a checksum."""

    root = ""
    _STOPS: Mapping[str, str] = {
        "stop": "end_turn",
        "length": "max_tokens",
        "content_filter": "guardrail_intervened",
        "error": "malformed_model_output",
    }
    _ERRORS: Mapping[int, tuple[int, str]] = {
        400: (400, "ValidationException"),
        401: (403, "UnrecognizedClientException"),
        404: (404, "ResourceNotFoundException"),
        429: (429, "ThrottlingException"),
        500: (500, "InternalServerException"),
    }

    def refusal(self, asked: Asked) -> Fail | None:
        return _closed(self.schema(asked))

    def failure(self, reply: Fail) -> tuple[int, bytes, Mapping[str, str]]:
        status, kind = self._ERRORS[reply.status]
        body = json.dumps({"message": reply.message}).encode()
        return status, body, {**reply.headers, "x-amzn-ErrorType": kind}

    def whole(self, asked: Asked, reply: Say) -> None:
        assert asked.path.endswith("/converse-stream")

    def head(self, asked: Asked) -> Mapping[str, str]:
        return {
            "content-type": "application/vnd.amazon.eventstream",
            "x-amzn-RequestId": self.id(asked),
        }

    def events(self, asked: Asked, reply: Say) -> Iterator[bytes]:
        yield _frame("messageStart", {"role": "assistant"})
        for piece in pieces(reply.text):
            yield _frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": piece}})
        yield _frame("contentBlockStop", {"contentBlockIndex": 0})
        for number, (ref, name, given) in enumerate(_uses(reply), start=1):
            at = {"contentBlockIndex": number}
            start = {"toolUse": {"toolUseId": ref, "name": name}}
            yield _frame("contentBlockStart", {**at, "start": start})
            for piece in pieces(given):
                yield _frame("contentBlockDelta", {**at, "delta": {"toolUse": {"input": piece}}})
            yield _frame("contentBlockStop", at)
        stop = "tool_use" if reply.tools else self._STOPS[reply.finish]
        yield _frame("messageStop", {"stopReason": stop})
        usage = {
            "inputTokens": reply.input - reply.cached,
            "outputTokens": reply.output,
            "totalTokens": reply.input + reply.output,
            "cacheReadInputTokens": reply.cached,
        }
        yield _frame("metadata", {"usage": usage, "metrics": {"latencyMs": 1}})

    def id(self, asked: Asked) -> str:
        return f"request-{asked.number}"

    def schema(self, asked: Asked) -> object:
        wanted: Any = asked.body.get("outputConfig") or {}
        found = wanted.get("textFormat", {}).get("structure", {}).get("jsonSchema", {})
        return json.loads(found["schema"]) if found else None

    def offered(self, asked: Asked) -> list[str]:
        config: Any = asked.body.get("toolConfig") or {"tools": []}
        return [tool["toolSpec"]["name"] for tool in config["tools"]]

    def told(self, asked: Asked) -> list[str]:
        messages: Any = asked.body["messages"]
        blocks = [block for message in messages for block in message["content"]]
        return [
            _joined(block["toolResult"]["content"]) for block in blocks if "toolResult" in block
        ]


def _blocks(content: Any) -> list[Any]:
    return content if isinstance(content, list) else []


def _joined(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def _frame(kind: str, content: object) -> bytes:
    given = {
        ":event-type": kind,
        ":content-type": "application/json",
        ":message-type": "event",
    }
    headers = b"".join(
        struct.pack("!B", len(name))
        + name.encode()
        + struct.pack("!BH", 7, len(value))
        + value.encode()
        for name, value in given.items()
    )
    body = json.dumps(content).encode()
    prelude = struct.pack("!II", 16 + len(headers) + len(body), len(headers))
    prelude += struct.pack("!I", crc32(prelude))
    whole = prelude + headers + body
    return whole + struct.pack("!I", crc32(whole))


_NAMED = 'api_key_env = "THE_KEY"'
_KEY = {"THE_KEY": "the-key"}
_REGION = {"AWS_REGION": "us-east-1"}
_CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"

VENDORS = {
    "openai": Vendor("openai", OpenAI(), "gpt-5", key=_KEY, settings=_NAMED),
    "ollama": Vendor("ollama", OpenAI(), "qwen3", sent=("authorization", "Bearer none")),
    "anthropic": Vendor(
        "anthropic",
        Anthropic(),
        "claude-sonnet-4-5",
        "claude-3-haiku-20240307",
        "anthropic",
        _KEY,
        _NAMED,
    ),
    "google": Vendor(
        "google",
        Google(),
        "gemini-2.5-flash",
        module="google.genai",
        key=_KEY,
        settings=_NAMED,
        sent=("x-goog-api-key", "the-key"),
    ),
    "mistral": Vendor("mistral", Mistral(), "", "mistral-small-latest", "mistralai", _KEY, _NAMED),
    "bedrock": Vendor(
        "bedrock",
        Bedrock(),
        _CLAUDE,
        "amazon.nova-lite-v1:0",
        "boto3",
        {**_KEY, **_REGION},
        _NAMED,
    ),
}
