"""What coding agents say of themselves at their end, each in its own form: last words, tokens, dollars.

Whatever cannot be read is not told: a number that nobody gave is no number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import cast

from holdfast.model.call import MICRO
from holdfast.model.cliagent import Tells
from holdfast.model.digest import Json
from holdfast.model.fixed import fixed

_AIDER = re.compile(
    r"^Tokens: ([\d.,]+[kM]?) sent,(?: [\d.,]+[kM]? cache (?:write|hit),)* ([\d.,]+[kM]?) received\."
    r"(?: Cost: \$([\d.]+) message)?",
    re.MULTILINE,
)
_SCALES = {"k": 1_000, "M": 1_000_000}


@fixed
class Used:
    """Tokens in and out, and micro-dollars, as the agent itself tells; None if it does not."""

    input: int | None = None
    output: int | None = None
    cost: int | None = None

    @property
    def words(self) -> str:
        """In words; empty if nothing was told."""
        parts = []
        if self.input is not None or self.output is not None:
            parts.append(f"{self.input or 0} tokens in, {self.output or 0} out")
        if self.cost is not None:
            parts.append(f"${self.cost / MICRO:.6f}".rstrip("0").rstrip("."))
        return ", ".join(parts)


@fixed
class Told:
    """What an agent said; `flaw` if it says itself that it failed."""

    said: str = ""
    used: Used = Used()
    flaw: str = ""


def read_report(tells: Tells, stdout: bytes, report: bytes) -> Told:
    """What an agent told in its form, on stdout or in the file that it was given for it."""
    reader = _READERS.get(tells)
    if reader is None:
        return Told()
    try:
        return reader(stdout.decode("utf-8", "replace"), report.decode("utf-8", "replace"))
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError, InvalidOperation):
        return Told()  # another form than the one we know


def _claude(stdout: str, _: str) -> Told:
    data = _object(stdout)
    usage = _map(data.get("usage"))
    read = sum(
        _whole(usage.get(key)) or 0
        for key in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    )
    used = Used(
        read if usage else None,
        _whole(usage.get("output_tokens")),
        _micro(data.get("total_cost_usd")),
    )
    flaw = f"it says that it failed: {data.get('subtype')}" if data.get("is_error") else ""
    return Told(str(data.get("result") or ""), used, flaw)


def _codex(stdout: str, _: str) -> Told:
    said, read, written, flaw = "", 0, 0, ""
    for event in _lines(stdout):
        item, usage = _map(event.get("item")), _map(event.get("usage"))
        if event.get("type") == "item.completed" and item.get("type") == "agent_message":
            said = str(item.get("text") or "")
        elif event.get("type") == "turn.completed":
            read += _whole(usage.get("input_tokens")) or 0
            written += _whole(usage.get("output_tokens")) or 0
        elif event.get("type") == "turn.failed":
            flaw = f"it says that it failed: {_map(event.get('error')).get('message')}"
    return Told(said, _counted(read, written), flaw)


def _gemini(stdout: str, _: str) -> Told:
    data = _object(stdout)
    models = _map(_map(data.get("stats")).get("models"))
    tokens = [_map(_map(model).get("tokens")) for model in models.values()]
    read = sum(_whole(one.get("prompt")) or 0 for one in tokens)
    written = sum(
        (_whole(one.get("candidates")) or 0) + (_whole(one.get("thoughts")) or 0) for one in tokens
    )
    wrong = _map(data.get("error"))
    flaw = f"it says that it failed: {wrong.get('message')}" if wrong else ""
    return Told(str(data.get("response") or ""), _counted(read, written), flaw)


def _aider(stdout: str, _: str) -> Told:
    found = _AIDER.findall(stdout)
    if not found:
        return Told()
    costs = [_micro(cost) for _, _, cost in found if cost]
    return Told(
        used=Used(
            sum(_short(sent) for sent, _, _ in found),
            sum(_short(received) for _, received, _ in found),
            sum(cost for cost in costs if cost is not None) if costs else None,
        )
    )


def _opencode(stdout: str, _: str) -> Told:
    said, read, written, costs = "", 0, 0, []
    for event in _lines(stdout):
        part = _map(event.get("part"))
        if event.get("type") == "text":
            said = str(part.get("text") or said)
        elif event.get("type") == "step_finish":
            tokens = _map(part.get("tokens"))
            read += _whole(tokens.get("input")) or 0
            written += _whole(tokens.get("output")) or 0
            costs.append(_micro(part.get("cost")) or 0)
    used = _counted(read, written)
    return Told(said, Used(used.input, used.output, sum(costs) if costs else None))


def _mini(_: str, report: str) -> Told:
    info = _map(_object(report).get("info"))
    stats = _map(info.get("model_stats"))
    status = str(info.get("exit_status") or "")
    flaw = "" if status in {"", "Submitted"} else f"it says that it ended as {status}"
    return Told(
        str(info.get("submission") or ""), Used(cost=_micro(stats.get("instance_cost"))), flaw
    )


_READERS: Mapping[str, Callable[[str, str], Told]] = {
    "claude": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "aider": _aider,
    "opencode": _opencode,
    "mini": _mini,
}


def _object(text: str) -> Mapping[str, Json]:
    """The object in a text, which other lines may stand before."""
    at = text.find("{")
    return _map(json.JSONDecoder().raw_decode(text, at)[0]) if at >= 0 else {}


def _lines(text: str) -> Iterator[Mapping[str, Json]]:
    for line in text.splitlines():
        if line.startswith("{"):
            yield _map(json.loads(line))


def _map(value: object) -> Mapping[str, Json]:
    return cast("Mapping[str, Json]", value) if isinstance(value, Mapping) else {}


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _counted(read: int, written: int) -> Used:
    return Used(read, written) if read or written else Used()


def _micro(value: object) -> int | None:
    """Micro-dollars of a number of dollars."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    found = Decimal(str(value))
    return int(found * MICRO) if found.is_finite() and found >= 0 else None


def _short(text: str) -> int:
    """A number of tokens as people write it: 1.2k."""
    scale = _SCALES.get(text[-1:], 1)
    return int(Decimal(text.rstrip("kM").replace(",", "")) * scale)
