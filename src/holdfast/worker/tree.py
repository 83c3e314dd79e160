"""`task_tree.yaml`: what a ticket is made of, and which commits did it. A guide; nothing is held to it.

    id, title    of the ticket
    nodes[]      id, title, deps, status, coverage_pct, acceptance, evidence, notes, children

Titles, deps, acceptance and notes are the agent's and people's. Whatever people wrote, in which order, with
their comments and keys of their own, stays. The rest is computed from what was delivered, and written over:

    evidence     the commits that name the node, the files they change, and the acceptance that was called met
                 in any cycle whose checks passed
    status       unchanged: no commit names it; done: it was called finished in a cycle whose checks passed;
                 partial: anything between
    coverage_pct 100 if done, 0 if unchanged; else the share of its acceptance that was met, or 50 if it has
                 none. Of a node with children: their mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from holdfast.edits.beneath import read_beneath, write_beneath
from holdfast.errors import EditError, UsageError
from holdfast.model.digest import Json
from holdfast.model.text import one_line
from holdfast.worker.ticket import Ticket
from holdfast.worker.written import empty, read_kept

TREE = "tickets/{}/task_tree.yaml"
_HALF = 50
_DEEPEST = 50
_KINDS = {"deps": list, "acceptance": list, "children": list, "evidence": dict, "notes": str}
Node = MutableMapping[str, Any]  # as the YAML library keeps it, with comments


@dataclass(slots=True)
class Evidence:
    """What was delivered for one node."""

    commits: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    finished: bool = False
    met: list[str] = field(default_factory=list)


def told_tree(folder: str, ticket: Ticket) -> str:
    """The tree as it is in a worktree, as text; empty if there is none.

    UsageError if nobody could go on with it: that is said before anybody works.
    """
    text = tree_text(folder, ticket)
    load_or_create(text, ticket)
    return text


def read_tree(folder: str, ticket: Ticket) -> Node:
    """The tree in a worktree, or a new one; UsageError if what lies there is none."""
    return load_or_create(tree_text(folder, ticket), ticket)


def tree_text(folder: str, ticket: Ticket) -> str:
    """The text of the tree in a worktree, whatever it says; empty if there is none."""
    path = TREE.format(ticket.id)
    try:
        seen = read_beneath(folder, path)
    except EditError as error:
        raise UsageError(
            f"the task tree '{path}' cannot be read: {error.message}", hint="mend it by hand"
        ) from error
    try:
        return "" if seen is None else seen.content.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"the task tree '{path}' is no UTF-8", hint="mend it by hand") from error


def load_or_create(text: str, ticket: Ticket) -> Node:
    """The tree in a text, or a new one for the ticket; UsageError if it is none."""
    if not text.strip():
        fresh = empty()
        root: Json = {
            "id": "n-1",
            "title": ticket.title,
            "deps": [],
            "acceptance": list(ticket.acceptance),
        }
        fresh.update(
            {"id": ticket.id, "title": ticket.title, "nodes": [_shaped(cast("Node", root))]}
        )
        return fresh
    found = read_kept(text, "'task_tree.yaml'")
    if not isinstance(found, MutableMapping) or not isinstance(found.get("nodes") or [], list):
        raise UsageError("'task_tree.yaml' is no task tree", hint="it has id, title and nodes")
    _check(found, "nodes", 0)
    return found


def _check(node: Node, key: str, depth: int) -> None:
    """See that every node has the shape of one; what is left empty may be."""
    for one in node.get(key) or []:
        if not isinstance(one, MutableMapping) or not isinstance(one.get("id"), str | int):
            raise UsageError("a node of 'task_tree.yaml' has no id", hint="mend it by hand")
        for part, kind in _KINDS.items():
            if not isinstance(one.get(part) or kind(), kind):
                message = f"'{part}' of node '{one['id']}' in 'task_tree.yaml' cannot be used"
                raise UsageError(message, hint="mend it by hand")
        if depth == _DEEPEST:
            raise UsageError("'task_tree.yaml' is nested too deep, or contains itself")
        _check(one, "children", depth + 1)


def tell(tree: Node, said: Iterable[Mapping[str, Json]]) -> None:
    """Take over what the agent says of nodes: new ones are added, under their parent if they name one."""
    for one in said:
        name = one_line(str(one["id"]))
        node = find(tree, name)
        if node is None:
            node = _shaped({"id": name, "title": one_line(str(one.get("title") or name))})
            parent = find(tree, str(one.get("parent") or ""))
            (tree if parent is None else parent).setdefault(
                "nodes" if parent is None else "children", []
            ).append(node)
        elif one.get("title"):
            node["title"] = one_line(str(one["title"]))
        for key in ("deps", "acceptance"):
            known = _shaped(node)[key]
            fresh = cast("Sequence[str]", one.get(key) or ())
            known.extend(one_line(item) for item in fresh if item not in known)
        if one.get("notes"):
            node["notes"] = str(one["notes"])


def attribute(tree: Node, found: Mapping[str, Evidence]) -> None:
    """Write what was delivered: evidence, status and coverage of every node."""
    for node in _inside(tree, "nodes"):
        _attribute(node, found)


def find(tree: Node, name: str) -> Node | None:
    """A node by its id, wherever it is."""
    return next((node for node in walk(tree) if str(node.get("id")) == name), None)


def walk(tree: Node) -> Iterator[Node]:
    """All nodes, parents first."""
    pending = _inside(tree, "nodes")
    while pending:
        node = pending.pop(0)
        yield node
        pending[:0] = _inside(node, "children")


def _inside(node: Node, key: str) -> list[Node]:
    return [one for one in node.get(key) or [] if isinstance(one, MutableMapping)]


def write_tree(folder: str, ticket: Ticket, text: str) -> None:
    """Put the tree into a worktree of ours; EditError if a link, or something else, stands in the way."""
    path = TREE.format(ticket.id)
    before = read_beneath(folder, path)
    plain = text.replace("\r\n", "\n")
    if before is not None and b"\r\n" in before.content:  # as people wrote it
        plain = plain.replace("\n", "\r\n")
    write_beneath(folder, path, plain.encode())


def _attribute(node: Node, found: Mapping[str, Evidence]) -> None:
    children = _inside(node, "children")
    for child in children:
        _attribute(child, found)
    here = found.get(str(node.get("id")), Evidence())
    shape = _shaped(node)
    shape["evidence"] = _merged(shape.get("evidence"), here)
    status, coverage = _standing(shape, here)
    if children:
        shares = [int(child.get("coverage_pct") or 0) for child in children]
        coverage = sum(shares) // len(shares) if not here.finished else coverage
        if status == "unchanged" and any(child.get("status") != "unchanged" for child in children):
            status = "partial"
        if all(child.get("status") == "done" for child in children):
            status, coverage = "done", 100
    shape["status"], shape["coverage_pct"] = status, coverage


def _standing(node: Node, here: Evidence) -> tuple[str, int]:
    if not node["evidence"]["commits"]:
        return "unchanged", 0
    if here.finished or node.get("status") == "done":
        return "done", 100
    wanted = node.get("acceptance") or []
    if not wanted:
        return "partial", _HALF
    met = sum(1 for item in wanted if item in node["evidence"].get("met", ()))
    return "partial", 100 * met // len(wanted)


def _merged(known: object, here: Evidence) -> dict[str, list[str]]:
    before = known if isinstance(known, Mapping) else {}
    merged = {
        key: list(dict.fromkeys([*(before.get(key) or []), *fresh]))
        for key, fresh in (("commits", here.commits), ("files", here.files), ("met", here.met))
    }
    return merged if merged["met"] else {key: merged[key] for key in ("commits", "files")}


def _shaped(node: Node) -> Node:
    """A node with every key of the document; what is there stays."""
    usual: dict[str, object] = {
        "title": "",
        "deps": [],
        "status": "unchanged",
        "coverage_pct": 0,
        "acceptance": [],
        "evidence": {"commits": [], "files": []},
        "notes": "",
        "children": [],
    }
    for key, value in usual.items():
        if node.get(key) is None:
            node[key] = value
    return node
