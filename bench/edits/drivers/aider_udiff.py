"""aider's unified diffs, through the coder that applies what a model answers."""

from __future__ import annotations

import os
import sys

from aider.coders.udiff_coder import UnifiedDiffCoder, find_diffs
from aider.io import InputOutput

from bench.edits.drivers.talk import serve


def edit(path: str, text: str) -> None:
    coder = UnifiedDiffCoder.__new__(UnifiedDiffCoder)
    coder.io = InputOutput(pretty=False, yes=True, fancy_input=False, output=sys.stderr)
    coder.root = os.getcwd()
    coder.abs_root_path_cache = {}
    coder.apply_edits([(path, hunk) for _, hunk in find_diffs(f"```diff\n{text}```\n")])


if __name__ == "__main__":
    serve(edit)
