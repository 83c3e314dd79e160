"""codex-apply-patch: the V4A patches of Codex."""

from __future__ import annotations

import codex_apply_patch

from bench.edits.drivers.talk import serve


def edit(_path: str, text: str) -> None:
    said = codex_apply_patch.apply_patch(text)
    if not said:
        raise RuntimeError("it returned nothing")


if __name__ == "__main__":
    serve(edit)
