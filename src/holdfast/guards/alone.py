"""The process in which one candidate is judged: reads the question, prints the verdict, ends.

The question is a line of JSON (kind, config, form, files [[path, size]]) and the contents one behind the
other; the answer is [call, feedback, hint], where the call is that of a verdict or `broken`.
"""

from __future__ import annotations

import importlib
import json
import sys

from holdfast.errors import GuardBroken
from holdfast.model.plan import Guard
from holdfast.ports import Candidate, File

_JUDGES = {  # found by name: only one of them is needed, and its libraries take a while
    "regex": ("holdfast.guards.pattern", "look_for"),
    "json-schema": ("holdfast.guards.schema", "compare"),
    "syntax": ("holdfast.guards.content", "parse_all"),
}


def main() -> None:
    """Answer the one question on standard input."""
    asked = json.loads(sys.stdin.buffer.readline())
    files = tuple(File(path, sys.stdin.buffer.read(size)) for path, size in asked["files"])
    is_tree = asked["form"] == "tree"
    made = Candidate(asked["form"], b"" if is_tree else files[0].content, files if is_tree else ())
    module, name = _JUDGES[asked["kind"]]
    try:
        judge = getattr(importlib.import_module(module), name)
        verdict = judge(Guard(asked["kind"], asked["config"]), made)
        answer = [verdict.call, verdict.feedback, None]
    except GuardBroken as error:
        answer = ["broken", error.message, error.hint]
    sys.stdout.write(json.dumps(answer))
