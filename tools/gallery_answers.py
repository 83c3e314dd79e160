"""Records the answers of the models in examples/: `python -m tools.gallery_answers`.

Each example is played against a scripted server of the OpenAI language, act by act, with `--record`. Run it
again whenever a file of an example changes that reaches a prompt. What is answered stands in
tools/gallery_answers.toml.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from holdfast.testing.server import Asked, ModelServer, Say

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SAID = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
COMMAND = (sys.executable, "-P", "-m", "holdfast")


@dataclass(frozen=True)
class Example:
    """A folder with a plan that asks `recorded:MODEL`, and what happens between its runs."""

    folder: str
    model: str
    answer: Callable[[str], str]
    acts: tuple[str, ...]  # shell lines; a run follows each


def translated(asked: str) -> str:
    """A page in German: at first as somebody says it who does not know the glossary."""
    page = next(name for name in SAID["translation"] if f"\n{SAID['heading'][name]}\n" in asked)
    answers = SAID["translation"][page]
    if "Alarmschwelle" in asked:
        return str(answers["renamed"])
    changed = "_changed" if "every month" in asked else ""
    return str(answers[f"second{changed}" if "# HISTORY" in asked else f"first{changed}"])


def grouped(asked: str) -> str:
    """Commits in sections: at first one is forgotten and one is named twice."""
    answers = SAID["release-notes"]
    if "after midnight" in asked:
        return str(answers["more"])
    return str(answers["second" if "# HISTORY" in asked else "first"])


GALLERY = (
    Example(
        "translation",
        "translator",
        translated,
        (
            "true",
            "cp later/alarms.md manual/alarms.md",
            "sed -i s/Meldeschwelle/Alarmschwelle/ glossary.csv",
        ),
    ),
    Example("release-notes", "editor", grouped, ("sh history.sh", "sh history.sh more")),
)


def play(example: Example, place: Path) -> int:
    """Play the acts in a copy, and take over what was recorded."""

    def answer(asked: Asked) -> Say:
        said = example.answer("\n".join(asked.texts))
        return Say(said, input=sum(map(len, asked.texts)) // 4, output=len(said) // 4)

    folder, new = place / "project", place / "recorded"
    shutil.copytree(EXAMPLES / example.folder, folder, ignore=shutil.ignore_patterns("recorded"))
    plan = folder / "plan.yaml"
    asked = f"scripted:{example.model}"
    plan.write_text(plan.read_text().replace(f"recorded:{example.model}", asked))
    with ModelServer(answer) as server:
        settings = place / "config" / "holdfast" / "config.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text(
            f'[providers.scripted]\nkind = "openai"\nbase_url = "{server.url}"\n'
            f'[prices."{asked}"]\ninput = 0\noutput = 0\n'
        )
        env = {**os.environ, "XDG_CONFIG_HOME": str(place / "config"), "HOME": str(place)}
        run = [*COMMAND, "run", "--yes", "--record", str(new)]
        for act in example.acts:
            subprocess.run(["sh", "-c", act], cwd=folder, env=env, check=True)
            code = subprocess.run(run, cwd=folder, env=env, check=False).returncode
            if code not in {0, 3}:  # done, or all that is left waits for a person
                raise SystemExit(f"'{example.folder}' ended with {code} after: {act}")
    target = EXAMPLES / example.folder / "recorded"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    for file in sorted(new.iterdir()):
        text = file.read_text(encoding="utf-8")
        (target / file.name).write_text(text, encoding="utf-8")
    return len(list(target.iterdir()))


def main() -> None:
    for example in GALLERY:
        with tempfile.TemporaryDirectory() as place:
            count = play(example, Path(place))
        print(f"{count} recordings in examples/{example.folder}/recorded")


if __name__ == "__main__":
    main()
