"""Every code that can be met: of errors, of problems in a plan, of reasons, of guards, and of exits."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from holdfast import errors
from holdfast.core.reasons import SENTENCES, sentence
from holdfast.errors import HoldfastError
from holdfast.formats.problems import CODES as PROBLEMS
from holdfast.model.digest import EncodingError
from holdfast.model.event import Reason

GUARDS: Mapping[str, str] = {
    "command": "a program judges the candidate",
    "python": "a function judges the candidate",
    "json-schema": "the artifact is valid JSON under a schema",
    "regex": "the text matches a pattern, or does not",
    "syntax": "the artifact parses",
    "file": "a file is there and has a size",
    "outputs": "the artifact has the keys it promises",
    "all": "every guard inside accepts",
    "any": "one guard inside accepts",
    "majority": "more than half of the guards inside accept",
    "human": "a person accepts",
    "judge": "a model gives the artifact a score by a rubric",
    "cites": "every quote is found in its source",
}
GROUPS = ("reasons", "plan-file", "errors", "guards", "exit-codes")
EXITS: Mapping[int, str] = {
    0: "done, or nothing to do",
    1: "a step failed",
    2: "wrong usage or plan",
    3: "waiting for a person",
    4: "credentials missing",
    5: "a limit was reached",
    6: "stale preview",
    7: "another engine holds this line",
    8: "escalated",
    9: "the store contradicts itself",
    10: "plan --detailed-exitcode: work to do",
    70: "a bug",
    74: "disk or database failed",
    130: "interrupted, can be resumed",
    141: "nobody read the result to its end",
}
_TEXTS = os.path.join(os.path.dirname(__file__), "catalogue.toml")


@dataclass(frozen=True, slots=True)
class Entry:
    """A code with its short sentence, and its long text if there is one."""

    code: str
    group: str
    title: str
    means: str = ""
    why: str = ""
    do: str = ""
    example: str = ""
    exit_code: int | None = None


def entries() -> dict[str, Entry]:
    """All codes in the order of their groups. A reason that is also an error is told as the reason."""
    with open(_TEXTS, "rb") as file:
        texts = tomllib.load(file)
    found: dict[str, Entry] = {}
    for code, group, title, leaves in _codes():
        text = texts.get(code, {})
        if code not in found:
            found[code] = Entry(
                code,
                group,
                title or str(text.get("means", code)),
                means=str(text.get("means", title)),
                why=str(text.get("why", "")),
                do=str(text.get("do", "")),
                example=str(text.get("example", "")),
                exit_code=leaves,
            )
    return found


def _codes() -> Iterator[tuple[str, str, str, int | None]]:
    for code in SENTENCES:
        yield code, "reasons", sentence(Reason(code)), None
    for code, title in sorted(PROBLEMS.items()):
        yield code, "plan-file", title, None if code.startswith("P9") else 2
    for kind in error_kinds():
        yield kind.code, "errors", "", kind.exit_code
    yield "interrupted", "errors", "", 130
    for name, title in GUARDS.items():
        yield f"guard:{name}", "guards", title, None
    for number, title in EXITS.items():
        yield f"exit:{number}", "exit-codes", title, number


def error_kinds() -> list[type[HoldfastError]]:
    """The classes of the one tree of errors that have a code of their own."""
    kinds = [
        found
        for found in vars(errors).values()
        if isinstance(found, type) and issubclass(found, HoldfastError) and "code" in vars(found)
    ]
    return [*kinds, EncodingError]


def find(entries_: Mapping[str, Entry], given: str) -> Entry | None:
    """An entry by its code in any case; a number is an exit code, a bare kind of guard that guard."""
    wanted = given.strip().removeprefix("error[").removesuffix("]")
    for code in (wanted, wanted.lower(), wanted.upper(), f"exit:{wanted}", f"guard:{wanted}"):
        if code in entries_:
            return entries_[code]
    return None
