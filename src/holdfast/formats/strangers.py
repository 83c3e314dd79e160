"""Files of other programs that are known by what is in them, and are no plans: refused by their name."""

from __future__ import annotations

from collections.abc import Callable, Collection

from holdfast.formats.foreignnodes import few
from holdfast.formats.nodes import Listing, Mapping, Node, Scalar
from holdfast.formats.problems import Problems, quoted

_PROMPT = frozenset(
    {"role", "constraints", "task", "feedback_wrapper", "escalation_feedback_wrapper"}
)
_SENTENCE = 3  # blanks that make a sentence
_ANYWHERE = frozenset(
    {"name", "goal", "description", "project", "schema"}
)  # says nothing of a plan


def refuse_stranger(problems: Problems, tree: Mapping) -> None:
    """Raise PlanError if the file is known and holds no plan."""
    for is_one, what, hint in _STRANGERS:
        if is_one(tree):
            raise problems.fatal("P086", tree, f"this is {what}, not a plan", hint)
    if found := collection(tree):
        message = f"this is a collection of {len(found)} workflows: {few(map(quoted, found))}"
        raise problems.fatal("P086", tree, message, "put the one that you want into a file")


def refuse_unknown(problems: Problems, tree: Mapping, known: Collection[str]) -> None:
    """Raise PlanError if a file has nothing of a plan: neither `steps` nor any other key of one."""
    telling = {*known} - _ANYWHERE
    if tree.pairs.keys() & telling or not tree.pairs.keys() - _ANYWHERE:
        return
    if any(problems.nearest(name, telling) for name in tree.pairs):
        return
    message = f"this is no plan and no file that is known: it has {few(map(quoted, tree.pairs))}"
    raise problems.fatal("P001", tree, message, "a plan has 'steps'; see holdfast import --help")


def collection(tree: Mapping) -> list[str]:
    """The names of several workflows that one file holds."""
    inner = value(tree, "workflows")
    node = inner if isinstance(inner, Mapping) else tree
    names = [name for name, (_, one) in node.pairs.items() if _has(one, "action_pairs")]
    return names if names and len(names) == len(node.pairs) and len(names) > 1 else []


def value(node: Node, key: str) -> Node | None:
    """What a mapping has under a key; None if it has nothing there, or is none."""
    return node.pairs[key][1] if isinstance(node, Mapping) and key in node.pairs else None


def _has(node: Node | None, *keys: str) -> bool:
    return isinstance(node, Mapping) and all(key in node.pairs for key in keys)


def is_prompts(tree: Mapping) -> bool:
    """Whether a file holds the prompts of a workflow."""
    entries = [node for _, node in tree.pairs.values()]
    return bool(entries) and all(
        isinstance(node, Mapping) and node.pairs and node.pairs.keys() <= _PROMPT
        for node in entries
    )


def _are_pairs(tree: Mapping) -> bool:
    entries = [node for _, node in tree.pairs.values()]
    return bool(entries) and all(
        _has(node, "guard") and {"requires", "generator", "guards"} & node.pairs.keys()  # type: ignore[union-attr]  # it has
        for node in entries
    )


def _are_texts(tree: Mapping) -> bool:
    """Whether a file holds nothing but sentences by name."""
    texts = [node.value for _, node in tree.pairs.values() if isinstance(node, Scalar)]
    return len(texts) == len(tree.pairs) and all(
        isinstance(text, str) and text.count(" ") >= _SENTENCE for text in texts
    )


def _is_task_tree(tree: Mapping) -> bool:
    nodes = value(tree, "nodes")
    first = nodes.items[0] if isinstance(nodes, Listing) and nodes.items else None
    return _has(first, "title") and not _has(first, "agent")


def _is_schema(tree: Mapping) -> bool:
    return _has(tree, "$schema") and any(
        _has(tree, key) for key in ("properties", "$defs", "definitions", "oneOf")
    )


def _is_phases(tree: Mapping) -> bool:
    phases = value(tree, "phases")
    inner = phases.pairs.values() if isinstance(phases, Mapping) else ()
    return bool(inner) and all(_has(node, "generator", "guard") for _, node in inner)


def _is_run_record(tree: Mapping) -> bool:
    return _has(tree, "artifacts", "success", "failed_step")


_AS_PLAN = "name the workflow.json that it belongs to"
_STRANGERS: tuple[tuple[Callable[[Mapping], bool], str, str], ...] = (
    (_is_schema, "a JSON Schema", "name a file that it describes"),
    (
        lambda tree: _has(tree, "artifacts", "action_pairs"),
        "the index of a repository of artifacts",
        _AS_PLAN,
    ),
    (
        lambda tree: _has(tree, "artifact_id", "action_pair_id", "content"),
        "one artifact of a workflow, the result of one attempt",
        _AS_PLAN,
    ),
    (
        lambda tree: _has(tree, "amendment_id", "amendment_type"),
        "a person's amendment to a workflow",
        _AS_PLAN,
    ),
    (
        lambda tree: _has(tree, "checkpoint_id", "workflow_id"),
        "the checkpoint of a workflow",
        _AS_PLAN,
    ),
    (
        lambda tree: _has(tree, "checkpoint_id"),
        "the checkpoint of an execution graph",
        "holdfast checkpoint --show FILE",
    ),
    (_is_run_record, "the record of a run that is over", _AS_PLAN),
    (is_prompts, "the prompts of a workflow", "name the workflow.json beside it"),
    (
        _are_pairs,
        "a list of action pairs without their workflow",
        'put them into one: {"name": …, "action_pairs": {…}}',
    ),
    (
        lambda tree: _has(tree, "plan_id", "artifacts", "reason"),
        "one version of a saved plan, which names artifacts and does not say what they are",
        "name the saved plan itself: plans/ID.json",
    ),
    (
        lambda tree: _has(tree, "goal_hash", "run_id", "artifacts"),
        "what a run left to recover from",
        "name the saved plan of that goal: plans/ID.json",
    ),
    (
        lambda tree: _has(tree, "task_id", "specification"),
        "the description of one task",
        "put its specification into a workflow.json",
    ),
    (_is_task_tree, "a task tree, which tells of work and does none", ""),
    (
        lambda tree: _has(tree, "initial_state", "goal_state", "steps"),
        "a catalogue entry with states, preconditions and effects",
        "write its steps as action_pairs of a workflow.json",
    ),
    (
        _is_phases,
        "a list of phases with retry budgets",
        "write its phases as action_pairs of a workflow.json",
    ),
    (
        _are_texts,
        "a list of texts by name",
        'write prompts as {"STEP": {"task": "…"}}, and name the workflow.json beside them',
    ),
)
