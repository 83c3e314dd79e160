"""What the model of a cycle is told of its tools: names, words, and the schemas of their arguments."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.model.call import Offer
from holdfast.model.digest import Json

_TEXT: Mapping[str, Json] = {"type": "string"}
_WHOLE: Mapping[str, Json] = {"type": "integer"}
_YES: Mapping[str, Json] = {"type": "boolean"}
_TEXTS: Mapping[str, Json] = {"type": "array", "items": _TEXT}


def _offer(name: str, words: str, /, *required: str, **properties: Mapping[str, Json]) -> Offer:
    return Offer(
        name,
        words,
        {
            "type": "object",
            "properties": properties,
            "required": [*required],
            "additionalProperties": False,
        },
    )


_NODE: Mapping[str, Json] = {
    "type": "object",
    "properties": {
        "id": _TEXT,
        "title": _TEXT,
        "parent": _TEXT,
        "deps": _TEXTS,
        "acceptance": _TEXTS,
        "met": _TEXTS,
        "notes": _TEXT,
        "finished": _YES,
    },
    "required": ["id"],
    "additionalProperties": False,
}
_REFLECTION: Mapping[str, Json] = {
    "type": "object",
    "properties": {"type": _TEXT, "message": _TEXT},
    "required": ["type", "message"],
    "additionalProperties": False,
}

OFFERS = (
    _offer(
        "search",
        "Find lines by a regular expression. `globs` and `types` (languages) narrow it, `context` shows lines"
        " around each hit.",
        "pattern",
        pattern=_TEXT,
        globs=_TEXTS,
        types=_TEXTS,
        context=_WHOLE,
        ignore_case=_YES,
        fixed=_YES,
    ),
    _offer(
        "read",
        "Show a file, or the lines from `first` to `last` of it. Read a file before you edit it.",
        "path",
        path=_TEXT,
        first=_WHOLE,
        last=_WHOLE,
    ),
    _offer(
        "symbols",
        "Where classes, functions and the like are defined: by name, or all of a file.",
        name=_TEXT,
        file=_TEXT,
    ),
    _offer(
        "impact",
        "Which files a change of these files or symbols touches: what imports them, their tests.",
        "things",
        things=_TEXTS,
    ),
    _offer(
        "edit",
        "Change files, all of them or none. `edit` is search/replace blocks, a unified diff, a V4A patch,"
        " whole files, or JSON that can also move and delete. A search/replace block is the path on a line"
        " of its own, then <<<<<<< SEARCH, the lines as they stand, =======, the lines as they shall be,"
        " >>>>>>> REPLACE; an empty SEARCH part makes a new file. What does not fit is refused with the"
        " nearest lines.",
        "edit",
        edit=_TEXT,
    ),
    _offer(
        "run",
        "Run a shell command in the worktree, in a sandbox without network, and show its exit code and"
        " output. Git can be read there and not written: `commit` says what becomes a commit. What git"
        " ignores may be gone before the next command, and one that is cut short is run again: let it build"
        " what it needs, and do nothing outside of the worktree that may not be done twice.",
        "command",
        command=_TEXT,
        seconds=_WHOLE,
    ),
    _offer("status", "Which files differ from the last commit."),
    _offer("diff", "How files differ from the last commit, all or one of them.", path=_TEXT),
    _offer(
        "tree",
        "Add or change nodes of the task tree: a part of the work with its title, parent, deps, acceptance"
        " and notes. `met` are those of its acceptance that hold now, `finished` says that the node is done.",
        "nodes",
        nodes={"type": "array", "items": _NODE},
    ),
    _offer(
        "plan",
        "Show the plan of this ticket; with `steps`, put another one in its place: short lines, what you"
        " are going to do. `done` says how many of them are done.",
        steps=_TEXTS,
        done=_WHOLE,
    ),
    _offer(
        "commit",
        "The files as they are now are one logical step: they become a commit of its own if the checks pass"
        " at the end of the cycle. `nodes` are the nodes of the task tree that it works on.",
        "message",
        message=_TEXT,
        nodes=_TEXTS,
    ),
    _offer(
        "ask",
        "Ask a person, if only a person can know. The cycle ends, and the next one has the answer.",
        "question",
        question=_TEXT,
    ),
    _offer(
        "finish",
        "End the cycle: the checks are run, and what passes is committed. `ready` says that the whole ticket"
        " is done; otherwise another cycle follows. `message` is the commit message of what is not committed"
        " yet, `nodes` what it works on, `eoi` what the next cycle should look at.",
        "summary",
        "ready",
        summary=_TEXT,
        ready=_YES,
        message=_TEXT,
        nodes=_TEXTS,
        eoi=_TEXT,
        reflections={"type": "array", "items": _REFLECTION},
        handoff={"type": "object"},
    ),
)
CHANGING = frozenset({"edit", "run"})
