"""Records the answers that the demo ships: `python tools/demo_answers.py`.

The demo is played against a scripted server of the OpenAI language, act by act, with `--record`. Run it
again whenever a file of the template changes that reaches a prompt.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from holdfast.cli import demo, templates
from holdfast.cli.init import write_project
from holdfast.testing.server import Asked, ModelServer, Say

RECORDED = Path(templates.__file__).parent / templates.DEMO / "recorded"
COMMAND = (sys.executable, "-P", "-m", "holdfast")
ASKED, REAL = "recorded:writer", "scripted:writer"

WRONG = (
    "Kelp is a forest under water. Storms tear it off the rock, otters sleep in it, and as an old "
    'sailor put it: "Kelp is the grass of the sea." The notes have {words} words.\n'
)
RIGHT = (
    "Kelp is a forest under water that can outgrow any tree. It clings to the rock, and what holds "
    'it there is no root: "it feeds nothing, it only never lets go." The notes have {words} words.\n'
)
OTTERS = (
    "Kelp is a forest under water, and otters use it as a blanket. Harvest it with care: "
    '"Cut it above the holdfast and it grows again." The notes have {words} words.\n'
)
CHILDREN = (
    "Imagine a forest that sways under the sea! Otters tuck themselves in there: "
    '"Sea otters wrap themselves in kelp before they fall asleep." '
    "Five little notes told us so, in {words} words.\n"
)


def answer(asked: Asked) -> Say:
    """What a model might say to a prompt of the demo."""
    text = asked.last
    if "A title of three to six words" in text:
        said = _title(text)
    else:
        words = text.partition('"total": ')[2].partition("}")[0].partition(",")[0]
        said = _report(text).format(words=words)
    return Say(said, input=sum(map(len, asked.texts)) // 4, output=len(said) // 4)


def _report(text: str) -> str:
    if "a child" in text:
        return CHILDREN
    if "Cut it above" in text:
        return OTTERS
    return RIGHT if "# HISTORY" in text else WRONG


def _title(text: str) -> str:
    if "by hand" in text:
        return "Kelp, Otters and a Correction"
    if "Imagine" in text:
        return "The Blanket of the Sea Otters"
    return "A Forest That Grows Again" if "Cut it above" in text else "The Forest That Holds Fast"


def main() -> None:
    """Play every act that asks, and take over what was recorded."""
    with tempfile.TemporaryDirectory() as place, ModelServer(answer) as server:
        folder, new = os.path.join(place, "project"), os.path.join(place, "recorded")
        settings = Path(place, "config", "holdfast", "config.toml")
        settings.parent.mkdir(parents=True)
        settings.write_text(
            f'[providers.scripted]\nkind = "openai"\nbase_url = "{server.url}"\n'
            '[prices."scripted:writer"]\ninput = 0\noutput = 0\n'
        )
        files = templates.files_of(templates.DEMO)
        files["plan.yaml"] = files["plan.yaml"].replace(ASKED.encode(), REAL.encode())
        files["read.sh"] = files["read.sh"].replace(b"sleep 0.5\n", b"")
        write_project(folder, files)
        env = {**os.environ, "XDG_CONFIG_HOME": str(settings.parents[1]), "HOME": place}
        words = [*COMMAND, "run", "--yes", "--quiet", "--record", new]
        for path, text in (("", ""), *demo.EDITS):
            if path:
                with open(os.path.join(folder, path), "a", encoding="utf-8") as file:
                    file.write(text)
            subprocess.run(words, cwd=folder, env=env, check=True)
        shutil.rmtree(RECORDED, ignore_errors=True)
        shutil.copytree(new, RECORDED)
    print(f"{len(list(RECORDED.iterdir()))} recordings in {RECORDED}")


if __name__ == "__main__":
    main()
