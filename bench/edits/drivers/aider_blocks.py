"""aider's search/replace blocks, through the coder that applies what a model answers."""

from __future__ import annotations

import os
import sys

from aider.coders.editblock_coder import EditBlockCoder, find_original_update_blocks
from aider.io import InputOutput

from bench.edits.drivers.talk import serve


def edit(path: str, text: str) -> None:
    coder = EditBlockCoder.__new__(EditBlockCoder)
    coder.io = InputOutput(pretty=False, yes=True, fancy_input=False, output=sys.stderr)
    coder.root = os.getcwd()
    coder.abs_root_path_cache = {}
    coder.abs_fnames = {os.path.abspath(path)}
    coder.fence = ("```", "```")
    coder.apply_edits(list(find_original_update_blocks(text, coder.fence, [path])))


if __name__ == "__main__":
    serve(edit)
