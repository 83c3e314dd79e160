"""Projects of Python files, imported as a program would import them."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType


@contextmanager
def imported(folder: Path, name: str) -> Iterator[ModuleType]:
    """A module of a folder; forgotten afterwards, so that another test may have one of its name."""
    before, known = list(sys.path), set(sys.modules)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield importlib.import_module(name)
    finally:
        sys.path[:] = before
        for module in set(sys.modules) - known:
            place = getattr(sys.modules[module], "__file__", None) or ""
            if place.startswith(str(folder)):
                del sys.modules[module]


FLOW = '''
from dataclasses import dataclass
from pathlib import Path

from holdfast import Guarded, guard, plan, step


@dataclass
class Count:
    total: int
    words: list[str]


@guard
def long_enough(out: Count, text: str, least: int = 2) -> Guarded:
    if text and out.total < least:
        return Guarded.reject(f"only {out.total} of {least} words")
    return Guarded.ok()


@step
def fetch(topic: str) -> str:
    """Get the text."""
    return f"tide rock {topic}"


@step(guards=[long_enough], timeout="1m")
def count(text: str) -> Count:
    return Count(len(text.split()), text.split())


@step(produces="report.md", effects="workspace")
def report(counted: Count, title: str) -> Path:
    Path("report.md").write_text(f"# {title}\\n{counted.total} words, first {counted.words[0]}\\n")
    return Path("report.md")


@step
def size(written: Path) -> int:
    return len(written.read_text())


@plan(goal="Know the shore")
def shore(topic: str = "kelp", loud: bool = False) -> int:
    """Count the words of a shore."""
    found = count(fetch(topic))
    title = f"{found.total} words of {found.words[0]}"
    return size(report(found, title.upper() if loud else title))
'''

AS_YAML = """
name: shore
goal: Know the shore
description: Count the words of a shore.
params:
  topic: {type: string, default: kelp}
  loud: {type: bool, default: false}
steps:
  fetch:
    uses: python
    run: flow:fetch
    description: Get the text.
    with: {topic: "${{ params.topic }}"}
  count:
    uses: python
    run: flow:count
    timeout: 1m
    schema:
      type: object
      properties: {total: {type: integer}, words: {type: array, items: {type: string}}}
      required: [total, words]
      additionalProperties: false
    guards: [{python: flow:long_enough, name: long_enough}]
    with: {text: "${{ steps.fetch.output }}"}
  report:
    uses: python
    run: flow:report
    produces: report.md
    effects: workspace
    with:
      counted: "${{ steps.count.output }}"
      title: "${{ steps.count.output.total }} words of ${{ steps.count.output.words.0 }}"
  size:
    uses: python
    run: flow:size
    needs: [report]
    with: {written: HOLDFAST_INPUTS/report}
"""
