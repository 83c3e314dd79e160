"""What can be wrong with a plan file: the catalogue of codes, and the collector of findings."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple, Protocol

from holdfast.errors import PlanError, Problem

CODES = {
    # P001 to P005 are also found by the constructor of a plan.
    "P001": "the plan has no steps",
    "P002": "a step id is not legal",
    "P003": "a step needs a step that is not there",
    "P004": "a step needs another one twice",
    "P005": "the schema of the plan file is not one this version reads",
    # Bytes, YAML and JSON.
    "P010": "the file cannot be read",
    "P011": "a limit of the reader is passed: bytes, steps or time",
    "P013": "the file is not UTF-8 text",
    "P014": "a character is not allowed in a plan",
    "P015": "the file is not YAML, or not JSON",
    "P016": "a key stands twice in one mapping",
    "P017": "tags are not allowed",
    "P018": "an anchor or alias is not allowed: too many, too large, or a loop",
    "P019": "the nesting is too deep",
    "P020": "a plan file holds exactly one document",
    "P021": "merge keys are not allowed",
    "P022": "a key of a mapping is not text",
    "P023": "a number cannot be kept: too long, not finite",
    # Keys and values.
    "P030": "a key is not known here",
    "P031": "a part of the grammar is not available in this version",
    "P032": "a value has the wrong type",
    "P033": "a key is missing",
    "P034": "a word is not one of the list",
    "P035": "two keys exclude each other",
    "P036": "a duration is not legal",
    "P037": "a number is out of its range",
    "P038": "an item stands twice",
    "P039": "an expression stands where nothing is ever filled in",
    # Params and expressions.
    "P060": "an expression cannot be read",
    "P061": "an expression reads a param that is not declared",
    "P062": "a param has no default and was not given",
    # Parts of a step.
    "P040": "a command cannot be split into words, or has none",
    "P041": "a function is not named as module:function",
    "P042": "a step has nothing to run",
    "P043": "a path or glob does not stay inside the project",
    "P044": "two paths of one step overlap",
    "P045": "a file that the plan names is not there or cannot be used",
    "P046": "a name is not legal",
    "P047": "a guard is not written as one kind with its value",
    "P048": "a step asks for sharing that is not possible",
    "P049": "a guard can never judge: its pattern or schema is not one",
    # The graph.
    "P012": "a step reads a key that the needed step does not give",
    "P050": "two step ids differ only in case or in the form of their letters",
    "P051": "a step needs itself",
    "P052": "steps need each other in a circle",
    "P053": "two steps that may run in parallel produce the same path",
    "P054": "a step reads what another one produces without needing it",
    "P055": "too many globs and paths to compare",
    "P056": "'escalate' names what is not above the step",
    "P057": "a step takes more of a resource than there is",
    "P058": "a step that is to be added has the id of one that is there",
    "P059": "a step cannot be added to this run",
    # Models.
    "P064": "a prompt says nothing, or leaves out what guards say",
    "P065": "a function cannot be a tool of a model",
    "P066": "nothing but a model judges what has effects outside",
    "P067": "'cites' looks for quotes where nothing is",
    "P068": "nobody said which model a step asks",
    "P069": "a model is not one of a provider that is known",
    # Contracts of agents.
    "P070": "a step names an agent that no registry knows",
    "P071": "a step asks an agent for an action that is not in its contract",
    "P072": "a step does not give its agent what the contract requires",
    "P073": "a step does not promise an output that the contract requires",
    "P074": "a step may take longer than the contract of its agent allows",
    "P075": "a step wants another version of a contract than there is",
    # Graph documents.
    "P080": "an edge leads to or from a node that is not there",
    "P081": "dependencies and edges of a graph disagree",
    "P082": "two edges between the same nodes cannot both be kept",
    "P083": "batches or waves are not those that the dependencies give",
    # Files of other programs.
    "P085": "a foreign file has a version that is not known",
    "P086": "a file is known and holds no plan",
    "P087": "a specification is somewhere that is not read from",
    "P088": "a hash is not one",
    # Items.
    "P090": "the items of a step are no list",
    "P091": "an item has no key of its own, or lacks what its step reads",
    "P092": "a step has too many items",
    "P093": "a key cannot stand beside 'for_each'",
    # Conditions.
    "P094": "a condition is not written as comparisons of what steps made",
    # Sub-plans.
    "P095": "a step that stands for a plan, or gathers, says what it cannot say",
    "P096": "plan files use each other in a circle, or too deep",
    # Plans in Python.
    "P099": "a Python file cannot be imported, or its plan not be made",
    # PlanSpec; its own names of these codes are in the note of a problem.
    "P100": "a PlanSpec has no steps (EMPTY_PLAN)",
    "P101": "steps of a PlanSpec depend on each other in a circle (CYCLE_DETECTED)",
    "P102": "a step names a step that is not there (INVALID_STEP_REFERENCE)",
    "P103": "a step names a hypothesis that is not there (INVALID_HYPOTHESIS_REFERENCE)",
    "P104": "a step names a requirement that is not there (INVALID_REQUIREMENT_REFERENCE)",
    "P105": "a step names an executor that is not known (INVALID_EXECUTOR_REFERENCE)",
    "P106": "an executor does not do steps of this type (EXECUTOR_CANNOT_HANDLE_STEP)",
    "P107": "a confirmatory experiment commits to nothing (MISSING_PREREGISTERED_COMMITMENTS)",
    "P108": "an evaluative synthesis has nothing to judge by (MISSING_EVALUATE_AGAINST)",
    "P109": "two steps of a PlanSpec have one id (DUPLICATE_STEP_ID)",
    "P110": "two hypotheses have one id (DUPLICATE_HYPOTHESIS_ID)",
    "P111": "two requirements have one id (DUPLICATE_REQUIREMENT_ID)",
    # Plans that take the place of one that no longer holds.
    "P112": "the plan that is to take the place of this one cannot be used",
    "P113": "plans take each other's place in a circle, or too often",
    # Warnings.
    "P901": "a command has words that only a shell would understand",
    "P902": "a step reads what it produces itself",
    "P903": "a key has no effect here",
    "P904": "a guard could not be checked",
    "P905": "nobody holds the name of an approver",
    "P906": "an effect outside may be done again: it is not idempotent",
    "P909": "what a step changes in its worktree is not taken over",
    "P910": "a step breaks the contract of its agent",
    "P911": "a key of a foreign file means nothing here and is only kept",
    "P912": "a step of a foreign file has nothing to run",
    "P913": "the model of a step of a foreign file is not known here",
    "P914": "a generator or guard of a foreign file is not known here; another takes its place",
    "P915": "a foreign file claims results that it does not hold",
    "P916": "a step that sees secrets is for a queue, whose workers are given none",
}

BEGIN = "begin with 'steps:' and one entry for each step"  # what a file lacks that is no mapping

MOST_PROBLEMS = 1000
MOST_SUGGESTIONS = 50
MOST_CANDIDATES = 2000
_SHORT = 4  # letters: two that changed places make a short word look quite different


class Placed(Protocol):
    """Anything with a place in the file; lines and columns count from 1."""

    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int: ...


class Place(NamedTuple):
    line: int
    column: int


class Spot(NamedTuple):
    """A place that knows how many columns it has."""

    line: int
    column: int
    width: int


NOWHERE = Place(0, 0)


class Problems:
    """Everything found wrong in one load; stops the load by itself when there is far too much.

    Problems with a code of `excused` stop nothing: they are put aside, for who excuses them.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.found: list[Problem] = []
        self.excused: frozenset[str] = frozenset()
        self.aside: list[Problem] = []
        self.warnings: list[Problem] = []
        self._suggestions = 0

    def add(
        self,
        code: str,
        at: Placed,
        message: str,
        hint: str = "",
        *,
        mark: str = "",
        note: str = "",
    ) -> None:
        width = at.width if isinstance(at, Spot) else 0
        found = Problem(message, self.file, at.line, at.column, hint, code, width, mark, note)
        if code in self.excused:
            self.aside.append(found)
            return
        self.found.append(found)
        if len(self.found) >= MOST_PROBLEMS:
            self.stop()

    def warn(self, code: str, at: Placed, message: str, hint: str = "") -> None:
        if len(self.warnings) < MOST_PROBLEMS:
            self.warnings.append(Problem(message, self.file, at.line, at.column, hint, code))

    def fatal(self, code: str, at: Placed, message: str, hint: str = "") -> PlanError:
        """Add the last problem; the caller raises what comes back."""
        self.found.append(Problem(message, self.file, at.line, at.column, hint, code))
        return self.error()

    def error(self) -> PlanError:
        return PlanError(in_order(self.found))

    def stop(self) -> None:
        """End the load here if anything was found."""
        if self.found:
            raise self.error()

    def did_you_mean(self, word: str, candidates: Iterable[str]) -> str:
        """A hint, or nothing."""
        near = self.nearest(word, candidates)
        return f"did you mean '{near}'?" if near else ""

    def nearest(self, word: str, candidates: Iterable[str]) -> str:
        """What may be meant, or nothing; spends from a budget, as nobody reads hundreds of hints."""
        self._suggestions += 1
        return _nearest(word, candidates) if self._suggestions <= MOST_SUGGESTIONS else ""


def in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """As they stand in the file."""
    return tuple(sorted(problems, key=lambda item: (item.line, item.column)))


def folded(text: str) -> str:
    """One spelling for all spellings that a person or a file system may take for the same."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def quoted(text: str, most: int = 60) -> str:
    """A value from the file, short and on one line, in quotes."""
    short = text if len(text) <= most else text[: most - 1] + "…"
    return "'" + "".join(shown(char) for char in short) + "'"


def shown(char: str) -> str:
    """A character as it may stand on a terminal."""
    return char if char.isprintable() else f"\\u{{{ord(char):x}}}"


def _nearest(word: str, candidates: Iterable[str]) -> str:
    if len(word) > 128:  # noqa: PLR2004 - the longest id; anything longer is no slip of the finger
        return ""
    size = len(word)
    near = (item for item in candidates if abs(len(item) - size) <= 3)  # noqa: PLR2004 - a few letters
    plain = {_bare(item): item for item in islice(near, MOST_CANDIDATES)}
    cutoff = 0.6 if size <= _SHORT else 0.7
    close = difflib.get_close_matches(_bare(word), plain, n=1, cutoff=cutoff)
    return plain[close[0]] if close else ""


def _bare(word: str) -> str:
    return folded(word).replace("-", "_")
