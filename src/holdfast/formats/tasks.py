"""Read the checkpoint of an agent's session: a goal, a list of tasks, and which of them are complete.

A task is a step that a model does. What it depends on, what it needs of others by name (`requires`, given by
their `produces`) and its subtasks come first. A command that verifies it is its guard. Which tasks are
complete is a claim: the file does not hold what they made, so a run makes it here.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as Table
from typing import NamedTuple

from holdfast.formats.foreignnodes import (
    ANYTHING,
    FREE,
    Said,
    Translated,
    items_of,
    known_part,
    named,
    plain,
    prompt_words,
    said_text,
    text_of,
    words,
)
from holdfast.formats.nodes import Listing, Mapping, Node, Scalar
from holdfast.formats.problems import quoted
from holdfast.formats.reading import Reading
from holdfast.formats.records import Key
from holdfast.formats.shapes import LINE, word

TASKS = "tasks"
MODES = ("self_improve", "generate", "modify", "execute", "research", "composite")
STATUSES = ("pending", "ready", "in_progress", "blocked", "completed", "failed", "skipped")
_CHECKPOINT = dict.fromkeys(
    (
        *("goal", "started_at", "checkpoint_at", "tasks", "completed_ids", "artifacts"),
        *("working_directory", "context", "execution_config", "parallel_config"),
        *("phase", "phase_summary", "user_decisions", "spawned_specialists"),
        "memory_snapshot_path",
    ),
    ANYTHING,
)
_TASK: dict[str, Key] = {
    **dict.fromkeys(
        (
            *("tools", "subtasks", "depends_on", "produces", "requires", "modifies", "details"),
            *("parallel_group", "is_contract", "task_type", "integrations", "verification_checks"),
            *("category", "priority", "estimated_effort", "risk_level", "result", "error"),
            *("working_directory", "is_effective", "result_text"),
        ),
        ANYTHING,
    ),
    "id": Key(LINE),
    "description": FREE,
    "mode": Key(word(*MODES)),
    "target_path": Key(LINE),
    "contract": FREE,
    "status": Key(word(*STATUSES)),
    "verification": FREE,
    "verification_command": FREE,
}


class _Task(NamedTuple):
    id: str
    node: Mapping
    given: Table[str, object]
    above: dict[str, Node]

    @property
    def place(self) -> Node:
        return self.node.pairs["id"][1]


def is_tasks(tree: Mapping) -> bool:
    """Whether a file is the checkpoint of an agent's session."""
    return "tasks" in tree.pairs and "completed_ids" in tree.pairs


def tasks_words(reading: Reading, tree: Mapping) -> Translated:
    """The tasks in words of a plan file; problems say what keeps them from being one."""
    given = known_part(reading, "session checkpoint", tree, _CHECKPOINT, ("goal", "tasks"))
    tasks: dict[str, _Task] = {}
    for task in _tasks(reading, given.get("tasks")):
        if task.id in tasks:
            message = f"the task {quoted(task.id)} stands twice"
            reading.problems.add("P038", task.place, message)
        tasks[task.id] = task
    _add_named(reading, tasks)
    _check_claims(reading, given.get("completed_ids"), tasks)
    made: dict[str, tuple[Scalar, Node]] = {}
    for task in tasks.values():
        place = Scalar(task.id, task.place.line, task.place.column)
        made[task.id] = (place, _step(task))
    at = tree.pairs["tasks"][1]
    said: dict[str, Said] = {"steps": Mapping(made, at.line, at.column)}
    if "goal" in given and text_of(tree.pairs["goal"][1]):
        said["goal"] = tree.pairs["goal"][1]
    return Translated(TASKS, words(tree, said), plain(tree))


def _tasks(reading: Reading, node: object) -> Iterator[_Task]:
    """Every task after its subtasks."""
    for item in items_of(reading, "tasks", node):
        given = known_part(reading, "task", item, _TASK, ("id", "description"))
        if not isinstance(item, Mapping) or not {"id", "description"} <= given.keys():
            continue
        inner = [*_tasks(reading, given.get("subtasks"))]
        yield from inner
        above = {task.id: task.place for task in inner}
        above.update(named(reading, "depends_on", given.get("depends_on")))
        yield _Task(str(given["id"]), item, given, above)


def _add_named(reading: Reading, tasks: Table[str, _Task]) -> None:
    """What a task requires by name comes from the task that produces it."""
    makers = {
        name: task.id
        for task in tasks.values()
        for name in named(reading, "produces", task.given.get("produces"))
    }
    for task in tasks.values():
        for name, place in named(reading, "requires", task.given.get("requires")).items():
            maker = makers.get(name)
            if maker is not None and maker != task.id:
                task.above.setdefault(maker, Scalar(maker, place.line, place.column))


def _check_claims(reading: Reading, node: object, tasks: Table[str, _Task]) -> None:
    claimed = named(reading, "completed_ids", node)
    for name, place in claimed.items():
        if name not in tasks:
            message = f"the file tells of {quoted(name)}, which is none of its tasks"
            hint = reading.problems.did_you_mean(name, tasks)
            reading.problems.add("P003", place, message, hint)
    if claimed:
        size = "1 task is" if len(claimed) == 1 else f"{len(claimed)} tasks are"
        message = f"{size} said to be complete; the file does not hold what they made"
        place = next(iter(claimed.values()))
        reading.problems.warn("P915", place, message, "a run makes it here")


def _step(task: _Task) -> Mapping:
    pairs = task.node.pairs
    said: dict[str, Said] = {
        "uses": "llm",
        "prompt": prompt_words(task.place, task=said_text(task.given["description"], task.id)),
        "description": pairs["description"][1],
    }
    if task.given.get("contract"):
        said["contract"] = pairs["contract"][1]
    if "target_path" in task.given and task.given.get("mode", "generate") != "execute":
        said["produces"] = pairs["target_path"][1]
    if task.above:
        said["needs"] = Listing([*task.above.values()], task.place.line, task.place.column)
    if task.given.get("verification_command"):
        at = pairs["verification_command"][1]
        said["guards"] = Listing([words(at, {"command": at})], at.line, at.column)
    return words(task.place, said)
