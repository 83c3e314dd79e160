"""Pages as sessions: what a page tells the reader to write and type is written and typed, in order.

In a fenced block
- ```console: each line after `$ ` is a command (lines after `> ` continue it); the other lines must be
  in its output in that order, where `…` stands for anything. A command must succeed unless its line
  ends with `# exit N`.
- after a paragraph that is nothing but `PATH`: (with the colon) is a file that the reader saves.
- ```yaml without such a name is a plan, or the steps of one, and must be a legal one.
Commands of other programs that set things up (`make`, `git`, `pip`) are not run; targets of `make` must
be there. Nor are exports of what only the reader knows, like the address of a server: whoever plays the
page gives that. Exports of Holdfast's own variables are run.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from markdown_it import MarkdownIt

from tests.cli.models import LOADED
from tests.cli.project import LIBRARY
from tests.forge import forge, is_started

TOP = Path(__file__).resolve().parents[2]
CLIENT = Path(__file__).with_name("client.py")
NOT_RUN = ("make", "git", "pip", "export")
_MARK = "\x1e"
_BESIDE = re.compile(
    r"&(?!&|\d)|\bkill\b|\bPYTHON|\bLD_|\bLANG=|\bLC_"
)  # only a process of its own hears


@dataclass
class Command:
    """A command of a page, and what the page says it prints."""

    text: str
    line: int
    expected: list[str] = field(default_factory=list)

    @property
    def code(self) -> int:
        found = re.search(r"# exit (\d+)$", self.text)
        return int(found[1]) if found else 0

    @property
    def is_run(self) -> bool:
        is_key = self.text.startswith("export ") and "_API_KEY=sk-…" in self.text
        is_ours = self.text.startswith("export HOLDFAST_")
        return is_key or is_ours or self.text.split()[0] not in NOT_RUN


@dataclass(frozen=True)
class File:
    path: str
    content: str


@dataclass(frozen=True)
class Page:
    """The commands and files of a page in order, and the plans that stand there as examples."""

    doings: tuple[Command | File, ...]
    plans: tuple[tuple[int, str], ...]

    @property
    def commands(self) -> list[Command]:
        return [doing for doing in self.doings if isinstance(doing, Command)]


def read_page(text: str) -> Page:
    doings: list[Command | File] = []
    plans: list[tuple[int, str]] = []
    before = ""
    for token in MarkdownIt("commonmark").parse(text):
        if token.type in {"inline", "heading_open"}:
            before = token.content
        if token.type != "fence" or token.map is None:
            continue
        named, before = re.fullmatch(r"`([^`]+)`:", before), ""
        if named:
            doings.append(File(named[1], token.content))
        elif token.info == "console":
            doings += commands_of(token.content, token.map[0] + 2)
        elif token.info == "yaml":
            plans.append((token.map[0] + 1, token.content))
    return Page(tuple(doings), tuple(plans))


def commands_of(block: str, first: int) -> list[Command]:
    found: list[Command] = []
    for number, line in enumerate(block.splitlines(), first):
        if line.startswith("$ "):
            found.append(Command(line[2:], number))
        elif line.startswith("> "):
            found[-1].text += f"\n{line[2:]}"
        elif line.strip():
            found[-1].expected.append(line)
    return found


def script(page: Page) -> str:
    """One shell for the whole page, as the reader has."""
    lines = []
    for number, doing in enumerate(page.doings):
        if isinstance(doing, File):
            folder = os.path.dirname(doing.path) or "."
            lines.append(f"mkdir -p {folder} && cat > {doing.path} <<'END OF FILE'")
            lines.append(f"{doing.content.rstrip()}\nEND OF FILE")
        elif doing.is_run:
            lines.append(f"{{ {doing.text}\n}}\nprintf '\\n{_MARK}{number} %d\\n' $?")
    return "\n".join(lines) + "\n"


def programs(page: Page, asking: int) -> dict[str, str]:
    """Programs that the reader has, as shell; most of the commands are forked, some really started.

    Started are those that a step starts, and all of a page with one that is signalled or left running.
    """
    text = "\n".join(command.text for command in page.commands if command.is_run)
    started = f'exec {sys.executable} -P -m holdfast "$@"'
    forked = f'exec {sys.executable} -I -S {CLIENT} {asking} "$@"'
    is_forked = not _BESIDE.search(text) and not is_started(text)
    asks = f'[ -n "$HOLDFAST_STEP" ] || {forked}\n{started}'
    return {
        "holdfast": asks if is_forked else started,
        "python": f'exec {sys.executable} "$@"',
    }


def play(
    page: Page, folder: Path, given: Mapping[str, str], around: Path | None = None
) -> dict[int, tuple[int, str]]:
    """Do all that the page says; exit code and output of each command by its number.

    `given` are variables that the reader has set, and programs that are there (PATH). The reader stands in
    a copy of the folder `around`, or in an empty one.
    """
    home, bin_folder, work = folder / "home", folder / "bin", folder / "work"
    for place in (home, bin_folder, work):
        place.mkdir()
    if around is not None:
        made = (around / ".gitignore").read_text(encoding="utf-8").replace("/", "").split()
        left = shutil.ignore_patterns("__pycache__", *made)
        shutil.copytree(around, work, ignore=left, dirs_exist_ok=True)
    asking = forge("", LIBRARY, LOADED).fileno()
    for name, words in programs(page, asking).items():
        shim = bin_folder / name
        shim.write_text(f"#!/bin/sh\n{words}\n")
        shim.chmod(0o755)
    done = subprocess.run(
        ["bash", "-c", script(page)],
        cwd=work,
        env={
            **given,
            "PATH": f"{bin_folder}:{given.get('PATH', os.environ['PATH'])}",
            "HOME": str(home),
            "LANG": "C.UTF-8",
            **LIBRARY,
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=[asking],
        timeout=240,
        check=False,
    )
    said = done.stdout.decode()
    answers: dict[int, tuple[int, str]] = {}
    start = 0
    for found in re.finditer(rf"\n{_MARK}(\d+) (\d+)\n", said):
        answers[int(found[1])] = (int(found[2]), said[start : found.start()])
        start = found.end()
    return answers


def missing(command: Command, output: str) -> str | None:
    """The first line that the page promises and the output does not have in its place."""
    lines = iter([" ".join(line.split()) for line in output.splitlines()])
    for wanted in command.expected:
        parts = [re.escape(part.strip()) for part in " ".join(wanted.split()).split("…")]
        pattern = re.compile(r"\s?.*?\s?".join(parts))
        if wanted.strip() != "…" and not any(pattern.fullmatch(line) for line in lines):
            return wanted
    return None
