"""Asks the questions of one repository, each of the index of its parent commit."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bench.relevance.questions import questions
from bench.relevance.rankers import RANKERS
from holdfast.codebase.index import Index

AT = (1, 5, 10)


@dataclass
class Counts:
    """How many questions were answered: one of the files among the first so many, all among ten."""

    hit: dict[int, int] = field(default_factory=lambda: dict.fromkeys(AT, 0))
    whole: int = 0

    def add(self, answer: frozenset[str], given: list[str]) -> None:
        for many in AT:
            self.hit[many] += not answer.isdisjoint(given[:many])
        self.whole += answer.issubset(given[:10])


@dataclass
class Measured:
    """One repository: its name, its size at the last question, the counts of each ranker."""

    name: str
    questions: int
    files: int
    rows: dict[str, Counts]

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def read(path: Path) -> list[Measured]:
    """What `as_json` wrote."""
    return [
        Measured(
            one["name"],
            one["questions"],
            one["files"],
            {
                name: Counts({int(k): v for k, v in row["hit"].items()}, row["whole"])
                for name, row in one["rows"].items()
            },
        )
        for one in json.loads(path.read_text(encoding="utf-8"))
    ]


def measured(folder: str, many: int, among: int, half: str = "all") -> Measured:
    """The index moves from parent to parent, oldest first, so that no ranker sees what comes later."""
    asked = questions(folder, many, among)
    middle = len(asked) // 2
    asked = {"all": asked, "older": asked[:middle], "newer": asked[middle:]}[half]
    rows = {name: Counts() for name in RANKERS}
    files = 0
    index: Index | None = None
    for one in asked:
        if index is None:
            index = Index.of_commit(folder, one.parent)
        index.move_to(one.parent)
        files = index.update().files
        for name, rank in RANKERS.items():
            rows[name].add(one.answer, rank(index, one.text))
    if index is not None:
        index.close()
    return Measured(name_of(folder), len(asked), files, rows)


def name_of(folder: str) -> str:
    """A repository as people call it, from where its git directory lies."""
    parts = [part for part in folder.rstrip("/").split("/") if part not in {".git", "repo"}]
    return parts[-1].removesuffix(".git").replace("+", "/")
