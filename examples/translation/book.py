"""Puts the translated pages into one folder, under the names of the originals."""

import json
import os
import shutil
from pathlib import Path


def main() -> None:
    """Write manual-de/ anew from what the steps above made."""
    given = Path(os.environ["HOLDFAST_INPUTS"], "translate")
    target = Path("manual-de")
    shutil.rmtree(target, ignore_errors=True)  # a page that is gone must not stay
    target.mkdir()
    for page in json.loads((given / "index.json").read_text(encoding="utf-8")):
        text = (given / page["file"]).read_text(encoding="utf-8")
        (target / Path(page["key"]).name).write_text(text.rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
