"""Which format a file has that was not written for this program, and what it says in words of a plan file.

Each format is translated into the tree of a plan file whose every node stands where the foreign file says
it. From there on it is read like any plan: one grammar, one set of checks, places that are true. What such
a file may lack here (a model that is configured, something to run) is no error but a warning: the plan can
be looked at and written down, and the step that lacks it cannot run.
"""

from __future__ import annotations

from holdfast.errors import Problem
from holdfast.formats.atomicguard import ATOMICGUARD, is_workflow, workflow_words
from holdfast.formats.contracts import Contracts
from holdfast.formats.foreignnodes import Translated
from holdfast.formats.graph import GRAPH
from holdfast.formats.nodes import Mapping
from holdfast.formats.planspec import PLANSPEC, is_planspec, planspec_words
from holdfast.formats.problems import Place, Problems
from holdfast.formats.reading import Reading
from holdfast.formats.sunwell import SUNWELL, is_sunwell, sunwell_words
from holdfast.formats.tasks import TASKS, is_tasks, tasks_words

FORMATS = (GRAPH, ATOMICGUARD, SUNWELL, TASKS, PLANSPEC)
_LACKING = {"P042": "P912", "P068": "P913", "P069": "P913"}
EXCUSED = frozenset(_LACKING)
_NO_MODEL = "has no model"
_RUNS = "import it with -o and add what it runs"
_ASKS = "import it with -o and say which model: defaults: {model: …}"


def translated(reading: Reading, tree: Mapping, contracts: Contracts) -> Translated | None:
    """A foreign file in words of a plan; None if it is none."""
    if is_sunwell(tree):
        return sunwell_words(reading, tree)
    if is_workflow(tree):
        return workflow_words(reading, tree)
    if is_planspec(tree):
        return planspec_words(reading, tree, contracts)
    if is_tasks(tree):
        return tasks_words(reading, tree)
    return None


def excuse(problems: Problems) -> None:
    """What a foreign file may lack here is warned about, once for all steps that lack the same model."""
    idle = {(item.line, item.column) for item in problems.aside if item.code == "P042"}
    alike: dict[str, list[Problem]] = {}
    for item in problems.aside:
        if item.code == "P042":
            place = Place(item.line, item.column)
            problems.warn(_LACKING[item.code], place, item.message, _RUNS)
        elif (item.line, item.column) not in idle:
            what = _NO_MODEL if item.message.endswith(_NO_MODEL) else item.message
            alike.setdefault(what, []).append(item)
    for what, items in alike.items():
        first, more = items[0], len(items) - 1
        message = first.message + (f", and {more:,} more like it" if more else "")
        hint = _ASKS if what == _NO_MODEL else first.hint
        problems.warn(_LACKING[first.code], Place(first.line, first.column), message, hint)
