"""Tries mutants: the tests stand loaded in one process, and each mutant lives in a fork of it.

Three facts keep the counting honest. Each test passes alone, in a fork of its own, before it may kill.
All tests pass once more with every function compiled anew but unchanged, and with every module loaded
anew but unchanged. A fork that ends without a word, or not by its clock, is broken, never killed.
"""

from __future__ import annotations

import ast
import gc
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import resource
import select
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import _lru_cache_wrapper
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, Final, TextIO, TypeAlias

import pytest

from tools.mutants.mutate import Mutant, mutated

CORE: Final = Path("src/holdfast/core").resolve()
PACKAGE: Final = "holdfast.core"
GRACE, PATIENCE = 2.0, 10.0  # seconds of processor, and times its usual, that a test may take
WALL: Final = 120.0  # seconds without a word
TRACED: Final = 1.5  # seconds of processor under watch; a slower test is not asked
MEMORY: Final = 3 << 30
OPTIONS: Final = (
    *("-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # this process has loaded plugins before
)

Answer = dict[str, Any]
Work = Callable[[], Answer]
Out = TextIO
Caches: TypeAlias = "list[_lru_cache_wrapper[Any]]"


@dataclass(slots=True)
class Known:
    """What is known of one test: how long it takes, and which lines of which modules it reaches."""

    seconds: float
    lines: dict[str, list[int]]


@dataclass(slots=True)
class Fork:
    """A process of our own and what it says."""

    pid: int
    end: int
    began: float
    said: bytearray = field(default_factory=bytearray)


def source_of(module: str) -> str:
    return (CORE / f"{module}.py").read_text(encoding="utf-8")


def fork(work: Callable[[], Answer]) -> Fork:
    end, start = os.pipe()
    pid = os.fork()
    if pid:
        os.close(start)
        return Fork(pid, end, time.monotonic())
    code = 1
    try:
        os.setpgid(0, 0)
        os.close(end)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nowhere, number)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        answer = json.dumps(work()).encode()
        with os.fdopen(start, "wb") as out:
            out.write(answer)
        code = 0
    finally:
        os._exit(code)


def ended(forks: Sequence[Fork], wall: float = WALL) -> Iterator[tuple[Fork, Answer]]:
    """Wait until at least one said all, died or was silent too long."""
    by_end = {one.end: one for one in forks}
    oldest = min(one.began for one in forks)
    ready, _, _ = select.select(list(by_end), [], [], max(0.0, oldest + wall - time.monotonic()))
    for end in ready:
        one = by_end[end]
        if part := os.read(end, 1 << 20):
            one.said += part
            continue
        yield one, _answer(one)
    for one in forks:
        if one.end not in ready and time.monotonic() - one.began > wall:
            os.killpg(one.pid, signal.SIGKILL)
            _answer(one)
            yield one, {"verdict": "timeout"}


def _answer(one: Fork) -> Answer:
    os.close(one.end)
    _, status = os.waitpid(one.pid, 0)
    with suppress(ProcessLookupError):
        os.killpg(one.pid, signal.SIGKILL)  # what a test left running
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF:
        return {"verdict": "timeout"}
    try:
        return dict(json.loads(one.said))
    except ValueError:
        return {"verdict": "broken", "why": f"ended with {status} and without a word"}


def told(work: Work, wall: float = WALL) -> Answer:
    one = fork(work)
    while True:
        for _, answer in ended([one], wall):
            return answer


# Inside a fork.


class _Reports:
    """What pytest says of each test; the first failure ends the trial of a mutant."""

    def __init__(self) -> None:
        self.failed: dict[str, str] = {}
        self.ran: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.setdefault(report.nodeid, _reason(report))
        if report.when == "call" and report.passed:
            self.ran.add(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.setdefault(f"loading {report.nodeid}", _reason(report))


class _Only:
    """Runs these tests of their files, in this order, with those that a change gave another name."""

    def __init__(self, names: Iterable[str], known: Collection[str]) -> None:
        self._place = {name: number for number, name in enumerate(names)}
        self._renamed = {_function(name): at for name, at in reversed(self._place.items())}
        self._known = known

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        places = [self._place_of(one.nodeid) for one in items]
        chosen = [(at, number) for number, at in enumerate(places) if at is not None]
        items[:] = [items[number] for _, number in sorted(chosen)]

    def _place_of(self, name: str) -> int | None:
        if name in self._known:
            return self._place.get(name)
        return self._renamed.get(_function(name))


def _function(name: str) -> str:
    """The name of a test without its parameters."""
    return name.partition("[")[0]


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(crash.message if crash else report.longrepr)
    return " ".join(text.split())[-200:]


def run(
    items: Sequence[pytest.Item], seconds: Callable[[str], float], *, whole: bool = False
) -> tuple[_Reports, dict[str, float]]:
    """Run these tests here, until one fails; each has its own time of the processor."""
    reports, took = _Reports(), {}
    manager = items[0].config.pluginmanager
    manager.unregister(name="terminalreporter")
    manager.register(reports)
    for index, item in enumerate(items):
        after = items[index + 1] if index + 1 < len(items) else None
        signal.setitimer(signal.ITIMER_PROF, GRACE + PATIENCE * seconds(item.nodeid))
        began = time.process_time()
        item.ihook.pytest_runtest_protocol(item=item, nextitem=after)
        took[item.nodeid] = time.process_time() - began
        if reports.failed and not whole:
            break
    signal.setitimer(signal.ITIMER_PROF, 0)
    return reports, took


def reach(item: pytest.Item) -> Answer:
    """One test alone, with the lines of the core that it comes to."""
    seen: dict[CodeType, set[int]] = defaultdict(set)
    whole: dict[CodeType, int] = {}
    core = f"{CORE}{os.sep}"

    def local(frame: FrameType, event: str, _: object) -> Any:  # noqa: ANN401  # as sys.settrace asks
        if event == "line":
            seen[frame.f_code].add(frame.f_lineno)
        return local

    def call(frame: FrameType, _event: str, _: object) -> Any:  # noqa: ANN401
        code = frame.f_code
        if not code.co_filename.startswith(core):
            return None
        if code not in whole:
            whole[code] = len({line for _, _, line in code.co_lines() if line}) - 1
        return local if len(seen[code]) < whole[code] else None

    threading.settrace(call)
    sys.settrace(call)
    reports, took = run([item], lambda _: TRACED / PATIENCE)
    sys.settrace(None)
    lines: dict[str, set[int]] = defaultdict(set)
    for code, numbers in seen.items():
        lines[Path(code.co_filename).stem] |= numbers
    return {
        "failed": list(reports.failed.values()),
        "ran": len(reports.ran),
        "seconds": sum(took.values()),
        "lines": {name: sorted(numbers) for name, numbers in lines.items()},
    }


def _objects() -> list[object]:
    """All that lives here; what was frozen is not listed."""
    gc.unfreeze()
    return gc.get_objects()


def functions() -> dict[tuple[str, str], list[FunctionType]]:
    """Every function of the core that lives in this process, by module and name."""
    found: dict[tuple[str, str], list[FunctionType]] = defaultdict(list)
    for one in _objects():
        if isinstance(one, FunctionType):
            place = Path(one.__code__.co_filename)
            if place.parent == CORE:
                found[place.stem, one.__code__.co_qualname].append(one)
    return found


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Functions that are defined once, when the module is loaded; not those inside other functions."""
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield one
            if not one.co_flags & 0x1:  # CO_OPTIMIZED: a class body is not
                yield from _codes(one)


def exchange(
    module: str, tree: ast.Module, live: dict[tuple[str, str], list[FunctionType]], only: str = ""
) -> int:
    """Give the living functions of a module the code of this tree; how many were exchanged."""
    count = 0
    compiled = compile(tree, str(CORE / f"{module}.py"), "exec")
    for code in _codes(compiled):
        if (only and code.co_qualname != only) or code.co_name.startswith("<"):
            continue
        for one in live.get((module, code.co_qualname), ()):
            if one.__code__.co_firstlineno == code.co_firstlineno:
                one.__code__ = code
                count += 1
    return count


def caches() -> Caches:
    return [one for one in _objects() if isinstance(one, _lru_cache_wrapper)]


def forget(known: Caches) -> None:
    """What was computed before the change: loading the tests may have filled caches."""
    for one in known:
        one.cache_clear()


class _Loader(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads modules of the core from these trees."""

    def __init__(self, trees: dict[str, ast.Module]) -> None:
        self._trees = trees

    def find_spec(
        self, name: str, path: object, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        stem = name.removeprefix(f"{PACKAGE}.")
        if stem == name or stem not in self._trees:
            return None
        return importlib.util.spec_from_file_location(name, CORE / f"{stem}.py", loader=self)

    def exec_module(self, module: ModuleType) -> None:
        stem = module.__name__.removeprefix(f"{PACKAGE}.")
        exec(compile(self._trees[stem], str(CORE / f"{stem}.py"), "exec"), vars(module))  # noqa: S102


def load_and_run(
    trees: dict[str, ast.Module], names: Sequence[str], known: Collection[str], limit: float
) -> _Reports:
    """Forget the package and the tests, load them with these modules, and run."""
    for name in list(sys.modules):
        if name.partition(".")[0] in {"holdfast", "tests"}:
            del sys.modules[name]
    sys.meta_path.insert(0, _Loader(trees))
    reports = _Reports()
    files = dict.fromkeys(name.partition("::")[0] for name in names)
    signal.setitimer(signal.ITIMER_PROF, limit)
    code = pytest.main([*OPTIONS, "-x", *files], plugins=[reports, _Only(names, known)])
    signal.setitimer(signal.ITIMER_PROF, 0)
    if code == pytest.ExitCode.USAGE_ERROR:  # a conftest.py could not be loaded
        reports.failed["loading the tests"] = "no test could begin"
    return reports


def _judged(reports: _Reports) -> Answer:
    for name, why in reports.failed.items():
        return {"verdict": "killed", "by": name, "why": why, "ran": len(reports.ran)}
    if not reports.ran:
        return {"verdict": "broken", "why": "no test ran"}
    return {"verdict": "survived", "ran": len(reports.ran)}


def try_code(
    mutant: Mutant,
    items: Sequence[pytest.Item],
    seconds: Callable[[str], float],
    live: dict[tuple[str, str], list[FunctionType]],
    known: Caches,
) -> Answer:
    tree = mutated(source_of(mutant.module), mutant, alone=True)
    if not exchange(mutant.module, tree, live, mutant.function):
        return {"verdict": "broken", "why": f'no living function "{mutant.function}"'}
    forget(known)
    return _judged(run(items, seconds)[0])


def try_module(
    mutant: Mutant, names: Sequence[str], known: Collection[str], limit: float
) -> Answer:
    tree = mutated(source_of(mutant.module), mutant)
    reports = load_and_run({mutant.module: tree}, names, known, limit)
    if not reports.ran and not reports.failed:  # they are parameters that went with it: no kill
        return {"verdict": "survived", "ran": 0}
    return _judged(reports)
