"""Give every case to every engine and say what became of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bench.edits.disturb import Case
from bench.edits.engines import Answer, Engine

SCHEMA = "holdfast.bench.edits/1"
VERDICTS = ("exact", "damaged", "partial", "wrong", "refused")


def verdict(case: Case, answer: Answer) -> str:
    """What an answer is worth.

    exact: to the byte. damaged: only blanks, blank lines or line endings are not as they should be. partial:
    it says that it failed, and left a changed file. refused: it says that it failed, or did nothing. Where
    only a refusal is right, everything else is wrong.
    """
    if answer.after == case.target:
        return "refused"
    if case.truth is None:
        return "wrong"
    if not answer.done:
        return "partial"
    if answer.after == case.truth:
        return "exact"
    return "damaged" if _words(answer.after) == _words(case.truth) else "wrong"


def _words(content: bytes) -> list[str]:
    """The lines without what nobody sees."""
    text = content.decode("utf-8-sig", "replace")
    return ["".join(line.split()) for line in text.splitlines() if line.strip()]


@dataclass(slots=True)
class Row:
    """One engine: verdicts by disturbance, of cases with one right answer and of those with none."""

    engine: str
    answered: dict[str, dict[str, int]] = field(default_factory=dict)
    refused: dict[str, dict[str, int]] = field(default_factory=dict)
    p95_ms: float = 0.0
    p95_cpu_ms: float = 0.0
    missing: str = ""

    def share(self, name: str) -> float:
        """Percent of the cases with one right answer."""
        total = sum(sum(counts.values()) for counts in self.answered.values())
        return 100 * sum(counts.get(name, 0) for counts in self.answered.values()) / max(total, 1)

    def wrong_where_refused(self) -> float:
        """Percent of the cases that must be refused and were not."""
        total = sum(sum(counts.values()) for counts in self.refused.values())
        return 100 * sum(counts.get("wrong", 0) for counts in self.refused.values()) / max(total, 1)


@dataclass(slots=True)
class Contest:
    environment: dict[str, str] = field(default_factory=dict)
    repositories: dict[str, int] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    cases: int = 0
    must_refuse: int = 0
    rows: list[Row] = field(default_factory=list)

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        said = {"schema": SCHEMA, **asdict(self)}
        path.write_text(json.dumps(said, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read(path: Path) -> Contest:
    """Results of an earlier run."""
    said = json.loads(path.read_text(encoding="utf-8"))
    if said.pop("schema") != SCHEMA:
        raise ValueError(f"'{path}' is not in the form {SCHEMA}")
    rows = [Row(**row) for row in said.pop("rows")]
    return Contest(rows=rows, **said)


def measure(name: str, engine: Engine, cases: Sequence[Case]) -> Row:
    """All cases, one after the other."""
    row, answers = Row(name), []
    for case in cases:
        answer = engine(case)
        answers.append(answer)
        part = row.refused if case.truth is None else row.answered
        counts = Counter(part.get(case.kind, {}))
        counts[verdict(case, answer)] += 1
        part[case.kind] = dict(counts)
    row.p95_ms = 1e3 * _p95(answer.seconds for answer in answers)
    row.p95_cpu_ms = 1e3 * _p95(answer.cpu for answer in answers)
    return row


def _p95(seconds: Iterable[float]) -> float:
    ordered = sorted(seconds)
    return ordered[int(0.95 * (len(ordered) - 1))] if ordered else 0.0
