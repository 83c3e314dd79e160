"""Records the answers that the template 'goal' ships: `python tools/goal_answers.py`.

The page on goals is played against a scripted server of the OpenAI language with `--record`. Run it again
whenever the words change that planners or makers of artifacts are asked with.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from holdfast.cli import templates
from holdfast.testing.server import Asked, ModelServer, Say

FOLDER = Path(templates.__file__).parent / "goal"
COMMAND = (sys.executable, "-P", "-m", "holdfast")


def _artifact(name: str, description: str, contract: str, **more: object) -> dict[str, object]:
    return {"id": name, "description": description, "contract": contract, "requires": [], **more}


OUTLINE = _artifact(
    "Outline", "the headings of the guide, in their order", "three headings, one on each line"
)
GUIDE = _artifact(
    "Guide",
    "the guide itself",
    "one sentence under each heading of the outline",
    requires=["Outline"],
    produces_file="guide.md",
    domain_type="document",
)
INDEX = _artifact(
    "Index",
    "the animals that the guide names",
    "one animal on each line, in the order of the alphabet",
    requires=["Guide"],
    produces_file="animals.txt",
)
WRONG = {**GUIDE, "requires": ["Outline", "Facts"]}
MADE = {
    "Outline": "Kelp\nUrchins\nOtters\n",
    "Guide": "# Kelp\nKelp never lets go.\n\n# Urchins\nUrchins eat kelp.\n\n# Otters\nOtters eat urchins.\n",
    "Index": "otter\nurchin\n",
}


def answer(asked: Asked) -> Say:
    """What a model might say: a plan that lacks something, the right one, a larger one, the artifacts."""
    if "Find the artifacts" not in asked.last:
        name = next(name for name in MADE if f"Write the artifact '{name}'" in asked.last)
        return Say(MADE[name], input=160, output=40)
    if "EARLIER PLAN" in asked.last:
        found = [OUTLINE, GUIDE, INDEX]
    else:
        found = [OUTLINE, GUIDE if "Facts" in asked.last else WRONG]
    return Say(json.dumps({"artifacts": found}), input=400, output=120)


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch, ModelServer(answer) as server:
        root = Path(scratch) / "kelp"
        root.mkdir()
        shutil.copy(FOLDER / "holdfast.toml", root)
        env = {
            **os.environ,
            "HOME": scratch,
            "OPENAI_BASE_URL": server.url,
            "OPENAI_API_KEY": "none",
        }

        def holdfast(*words: str) -> str:
            words = (*words, "--yes", "--record", "recorded")
            return subprocess.run(
                [*COMMAND, *words], cwd=root, env=env, check=True, stdout=subprocess.PIPE, text=True
            ).stdout

        for more in ((), ("--replan",)):
            seen = json.loads(holdfast("plan", templates.GOAL, *more, "--json"))
            holdfast("run", templates.GOAL, "--trust", seen["plan"]["digest"][:12])
        shutil.rmtree(FOLDER / "recorded", ignore_errors=True)
        shutil.copytree(root / "recorded", FOLDER / "recorded")


if __name__ == "__main__":
    main()
