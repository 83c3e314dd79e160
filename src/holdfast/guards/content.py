"""Guards that only look at the bytes: `syntax`, `file`, and the keys of `outputs`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping

import yaml

from holdfast.errors import GuardBroken
from holdfast.guards.apart import judged_apart
from holdfast.guards.candidate import accept, json_of, parse_json, reject
from holdfast.model.artifact import Verdict
from holdfast.model.digest import Json
from holdfast.model.plan import Guard
from holdfast.ports import Candidate, Job

MAX_DEPTH = 1000
_QUICK = 1 << 20  # bytes
# Their parsers' time can grow with the square, and nothing interrupts them.
_QUICK_OF = {"python": 32 << 10, "yaml": 64 << 10}


class SyntaxGuard:
    """Parses, never runs: `python`, `json` or `yaml`.

    Of several files it reads those with a suffix of the language, and there must be one.
    """

    def identity(self, guard: Guard, root: str) -> Mapping[str, Json]:
        return {}

    async def judge(self, guard: Guard, candidate: Candidate, job: Job) -> Verdict:
        quick = _QUICK_OF.get(str(guard.config), _QUICK)
        if _size(candidate) > quick:
            return await judged_apart("syntax", guard, candidate, job)
        return parse_all(guard, candidate)


def parse_all(guard: Guard, candidate: Candidate) -> Verdict:
    """The verdict of a syntax guard, whatever time it takes."""
    language = str(guard.config)
    if language not in _PARSERS:
        known = ", ".join(sorted(_PARSERS))
        raise GuardBroken(f"'{language}' is no language of a syntax guard", hint=f"one of {known}")
    suffixes, parse = _PARSERS[language]
    if candidate.form != "tree":
        problem = parse(candidate.content)
        return reject(guard, problem) if problem else accept(guard)
    files = [file for file in candidate.files if file.path.endswith(suffixes)]
    if not files:
        return reject(guard, f"no file of the artifact ends in {' or '.join(suffixes)}")
    found = ((file.path, parse(file.content)) for file in files)
    problems = [f"{path}: {problem}" for path, problem in found if problem]
    return reject(guard, "\n".join(problems)) if problems else accept(guard)


class FileGuard:
    """One file (`path`) is there, or the whole artifact; of `min_bytes` to `max_bytes` size."""

    def identity(self, guard: Guard, root: str) -> Mapping[str, Json]:
        return {}

    async def judge(self, guard: Guard, candidate: Candidate, job: Job) -> Verdict:
        config = guard.config if isinstance(guard.config, Mapping) else {"path": guard.config}
        path = config.get("path")
        size = _size(candidate) if path is None else _size_at(str(path), candidate, job)
        subject = "the artifact" if path is None else f"'{path}'"
        if size is None:
            return reject(guard, f"the artifact has no file at {subject}")
        least, most = _bound(config, "min_bytes"), _bound(config, "max_bytes")
        if least is not None and size < least:
            return reject(guard, f"{subject} has {size} bytes; at least {least} are wanted")
        if most is not None and size > most:
            return reject(guard, f"{subject} has {size} bytes; at most {most} are allowed")
        return accept(guard)


class OutputsGuard:
    """The artifact is a JSON object that has these keys."""

    def identity(self, guard: Guard, root: str) -> Mapping[str, Json]:
        return {}

    async def judge(self, guard: Guard, candidate: Candidate, job: Job) -> Verdict:
        keys = [str(key) for key in guard.config] if isinstance(guard.config, list | tuple) else []
        try:
            value = json_of(candidate)
        except ValueError as error:
            return reject(guard, str(error))
        if not isinstance(value, Mapping):
            return reject(guard, "the artifact is JSON, but not an object")
        missing = [key for key in keys if key not in value]
        if missing:
            return reject(guard, "keys are missing: " + ", ".join(f"'{key}'" for key in missing))
        return accept(guard)


def _size(candidate: Candidate) -> int:
    if candidate.form == "tree":
        return sum(len(file.content) for file in candidate.files)
    return len(candidate.content)


def _size_at(path: str, candidate: Candidate, job: Job) -> int | None:
    plain = os.path.normpath(path)
    if candidate.form == "tree":
        return next((len(file.content) for file in candidate.files if file.path == plain), None)
    made = [os.path.normpath(place) for place in job.step.produces]
    return len(candidate.content) if made == [plain] else None


def _bound(config: Mapping[str, Json], key: str) -> int | None:
    value = config.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise GuardBroken(f"'{key}' of a file guard must be a whole number")
    return value


def _python(content: bytes) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(content, "<artifact>", "exec", dont_inherit=True)
    except SyntaxError as error:
        place = f"line {error.lineno}: " if error.lineno else ""
        return f"not Python: {place}{error.msg}"
    except (RecursionError, MemoryError):
        return "not Python: nested too deeply"
    except ValueError as error:
        return f"not Python: {error}"
    return ""


def _json(content: bytes) -> str:
    try:
        parse_json(content)
    except ValueError as error:
        return str(error)
    return ""


def _yaml(content: bytes) -> str:
    """Read the events only: no tag is resolved and no alias expanded.

    The depth is bounded because the parser's time grows with its square.
    """
    anchors: set[str] = set()
    depth = 0
    try:
        for event in yaml.parse(content, Loader=yaml.CSafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                return "not YAML: nested too deeply"
            if isinstance(event, yaml.DocumentStartEvent):
                anchors.clear()
            elif isinstance(event, yaml.AliasEvent):
                if event.anchor not in anchors:
                    return f"not YAML: the alias '*{event.anchor}' has no anchor"
            elif isinstance(event, yaml.NodeEvent) and event.anchor:
                anchors.add(event.anchor)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        return f"not YAML: {error}"
    return ""


_PARSERS: dict[str, tuple[tuple[str, ...], Callable[[bytes], str]]] = {
    "python": ((".py", ".pyi"), _python),
    "json": ((".json",), _json),
    "yaml": ((".yaml", ".yml"), _yaml),
}
