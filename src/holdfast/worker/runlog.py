"""`run.json`: what happened in one run of a ticket, as a view of its journal.

It is written anew whenever the journal grew, to a temporary name and then renamed, so whoever reads it reads
a whole one; `rebuild` writes the very same from the journal alone.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast

from holdfast.model.digest import Digest, Json
from holdfast.model.event import (
    AttemptAccepted,
    AttemptFailed,
    AttemptRejected,
    Recorded,
    RunEnded,
    RunRested,
    RunStarted,
    StepsReused,
    ToolUsed,
)
from holdfast.model.plan import RunId
from holdfast.worker.cycle import SCHEMA as CYCLE
from holdfast.worker.deliver import SCHEMA as DELIVERY
from holdfast.worker.ticket import Ticket

_FAILED = frozenset({"failed", "blocked", "escalated"})
_NOTED = frozenset({"validate", "push", "agent"})  # what is done without a model
_TOP = 2_000  # characters of what a command complains about


@dataclass(slots=True)
class RunLog:
    """The view, as far as its journal was read."""

    ticket: Ticket
    run: RunId
    get: Callable[[Digest], bytes]
    began: int = 0
    ended: int | None = None
    status: str = "in_progress"
    error: str | None = None
    eoi: Json = None
    commands: list[Json] = field(default_factory=list)
    commits: list[Json] = field(default_factory=list)
    checks: dict[str, Mapping[str, Json]] = field(default_factory=dict)
    nodes: dict[str, Json] = field(default_factory=dict)
    reflections: list[Json] = field(default_factory=list)
    steps: int = 0
    current: int = 0

    def read(self, events: Iterable[Recorded]) -> None:
        """Take in more of the journal."""
        for recorded in events:
            self._take(recorded)

    def read_push(self, events: Iterable[Recorded]) -> None:
        """Take in the journal of a push of what this run came to; what failed there failed."""
        for recorded in events:
            match recorded.event:
                case ToolUsed() as used:
                    self._used(used)
                case AttemptFailed(feedback=said) if said is not None:
                    self.error = self.get(said).decode("utf-8", "replace")[:_TOP]
                case RunRested(status=status) if status in _FAILED:
                    self.status = "failed"
                case _:
                    pass

    def _take(self, recorded: Recorded) -> None:
        match recorded.event:
            case RunStarted():
                self.began = recorded.at
                if self.ticket.eoi is not None:
                    self.eoi = {"label": self.ticket.eoi.label, "path": self.ticket.eoi.path}
            case ToolUsed() as used:
                self._used(used)
            case AttemptAccepted() as done:
                self._made(self.get(done.digest))
            case StepsReused(items=items):
                for kept in items:
                    self._made(self.get(kept.digest))
            case AttemptFailed() | AttemptRejected() as failed:
                words = b"" if failed.feedback is None else self.get(failed.feedback)
                self.error = f"{failed.step}: {words.decode('utf-8', 'replace')}"[:_TOP]
            case RunRested(status=status):
                self._over(recorded.at, status)
            case RunEnded(status=status):
                self._over(recorded.at, status)
            case _:
                pass

    def _over(self, at: int, status: str) -> None:
        """What it came to; a failure stays one."""
        if status == "completed" or status in _FAILED:
            self.ended = at
            if self.status != "failed":
                self.status = "completed" if status == "completed" else "failed"
        elif status != "superseded":
            self.error = status

    def _used(self, used: ToolUsed) -> None:
        given = cast("Mapping[str, Json]", json.loads(self.get(used.arguments) or b"{}"))
        said = self.get(used.answer).decode("utf-8", "replace")
        if used.name in _NOTED:
            record = cast("Mapping[str, Json]", json.loads(said))
            if used.name == "validate":
                self.checks[str(record["cmd"])] = record
            told = {key: record[key] for key in ("cmd", "exit_code", "top_stderr")}
            self.commands.append({**told, "duration_ms": used.took_ms})
        elif used.name == "run":
            self.commands.append(_command(str(given.get("command", "")), said, used))
        elif used.name == "plan" and given.get("steps"):
            self.steps = len(cast("list[str]", given["steps"]))
        if used.name == "plan":
            self.current = min(self.steps, cast("int", given.get("done") or self.current))

    def _made(self, content: bytes) -> None:
        data = cast("Mapping[str, Json]", json.loads(content)) if content[:1] == b"{" else {}
        if data.get("schema") == DELIVERY:
            self.commits += [
                one["oid"] for one in cast("list[Mapping[str, Json]]", data["commits"])
            ]
            for node in cast("list[Mapping[str, Json]]", data["nodes"]):
                self.nodes[str(node["id"])] = node
        elif data.get("schema") == CYCLE:
            self.reflections += cast("list[Json]", data["reflections"])
            if about := data.get("eoi"):
                self.eoi = {"label": about, "path": ""}

    def as_json(self) -> dict[str, Json]:
        """The documented fields, and no others."""
        return {
            "run_id": self.run,
            "task_id": self.ticket.id,
            "start_ts": _moment(self.began),
            "end_ts": None if self.ended is None else _moment(self.ended),
            "eoi": self.eoi,
            "commands": self.commands,
            "commits": self.commits,
            "validation": self._validation(),
            "affected_nodes": list(self.nodes.values()),
            "reflections": self.reflections,
            "status": self.status,
            "plan_steps": self.steps,
            "current_step": self.current,
            "error": self.error if self.status != "completed" else None,
        }

    def _validation(self) -> Json:
        if not self.checks:
            return None
        passed = all(record["exit_code"] == 0 for record in self.checks.values())
        counted = [record for record in self.checks.values() if record["tests"] is not None]
        compiled = passed or bool(counted)
        summary = "; ".join(_summary(record) for record in self.checks.values())
        return {"compiled": compiled, "tests": {"passed": passed, "summary": summary}}

    @property
    def name(self) -> str:
        """The name of its file."""
        began = time.gmtime(self.began / 1000)
        return f"{time.strftime('%H%M%S-%Y%m%d', began)}-{self.ticket.id}-{self.run}.json"

    def write(self, folder: str) -> str:
        """Put it into a folder, whole; where it is then."""
        os.makedirs(folder, 0o700, exist_ok=True)
        place = os.path.join(folder, self.name)
        fresh = f"{place}.new"
        with open(fresh, "w", encoding="utf-8") as file:
            json.dump(self.as_json(), file, ensure_ascii=False, indent=1)
            file.write("\n")
        os.replace(fresh, place)
        return place


def _command(command: str, said: str, used: ToolUsed) -> dict[str, Json]:
    lines = said.splitlines()
    exits = [line for line in lines[:3] if line.startswith("exit code ")]
    complaint = said.partition("\nstderr:\n")[2]
    return {
        "cmd": command,
        "exit_code": int(exits[0].removeprefix("exit code ")) if exits else -1,
        "top_stderr": complaint[:_TOP],
        "duration_ms": used.took_ms,
    }


def _summary(record: Mapping[str, Json]) -> str:
    counts = cast("Mapping[str, int] | None", record["tests"])
    if counts is None:
        return f"{record['cmd']}: exit code {record['exit_code']}"
    told = ", ".join(f"{number} {word}" for word, number in counts.items() if number)
    return f"{record['cmd']}: {told or 'no tests'}"


def _moment(at: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at / 1000))
