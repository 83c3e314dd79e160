"""demo: a real plan, killed, resumed, changed and explained, by the real command."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing

import click

from holdfast import wire
from holdfast.cli import templates
from holdfast.cli.init import write_project
from holdfast.cli.say import out, talk
from holdfast.cli.view import view
from holdfast.core.state import State
from holdfast.engine.journals import read_state
from holdfast.errors import HoldfastError, ProcessError, UsageError

FOLDER = "holdfast-demo"
_TRACES = "demo.json"  # in the store: every file as the demo left it
_COMMAND = (sys.executable, "-P", "-m", "holdfast")  # -P: nothing of the project is imported
_PATIENCE = 60.0
_HALF_WAY = 2  # steps done before the plug is pulled
_GLANCE = 0.3  # until what is done is also on the screen; steps take longer than that
_PAUSE = 2.0
_SLOW = (b"sleep 0.5", b"sleep 2")
_OTTERS = ("notes/otters.txt", "Cut it above the holdfast and it grows again.\n")
_PROMPT = ("prompts/report.md", "Write it for a child of six.\n")
_BY_HAND = ("report.md", "Written by hand: kelp is not a plant.\n")
EDITS = (_OTTERS, _PROMPT, _BY_HAND)  # in this order: answers to what they ask are recorded
_OURS = ("HOLDFAST_STORE", "HOLDFAST_PROVIDER", "HOLDFAST_RECORDED")
_LOCAL = "local:smollm2"
_RECORDED = b'{ id: "recorded:writer", max_tokens: 400 }'
_REAL = f"""{{ id: "{_LOCAL}", max_tokens: 400 }}
    schema: {{ type: string, maxLength: 200 }} # it would never stop""".encode()
_LENIENT = b"""# A model this small keeps no rules. That it said something is enough.
[ -s "$HOLDFAST_ARTIFACT" ]
"""


@click.command(
    epilog="\b\nExample:\n  holdfast demo\n  holdfast demo --crash && cd holdfast-demo && holdfast resume"
)
@click.argument("directory", metavar="[DIR]", required=False)
@click.option("--crash", is_flag=True, help="Only run and kill; the rest is yours.")
@click.option("--local", is_flag=True, help="Ask a small real model on this machine instead.")
@click.option("--slow", is_flag=True, help="Longer steps, and a pause before each act.")
@click.option("--keep", is_flag=True, help="Keep an earlier demo: take a directory beside it.")
def demo(directory: str | None, *, crash: bool, local: bool, slow: bool, keep: bool) -> int:
    """See a crash lose nothing, and a change run only what it touches, with the reason.

    Writes a small project into DIR (default: ./holdfast-demo) and runs it offline; what a language
    model answers there was recorded. A project of an earlier demo is replaced if nobody has touched it
    since; otherwise the next free name is taken.
    """
    if local and crash:
        raise UsageError("--local and --crash contradict each other")
    if local:
        wire.market.check_local(_LOCAL)
    folder = _place(directory, keep=keep)
    write_project(folder, _files(local=local, slow=slow))
    stage = Stage(folder, slow=slow)
    out(f"A plan of nine steps is in {folder}/plan.yaml: five notes are read side by")
    out("side and counted, a language model reports on them, and a page is made of it.")
    if local:
        _with_tokens(stage)
    elif crash:
        _crash(stage)
        stage.act("Now you. What was done is kept, the rest runs:")
        _next([f"cd {shlex.quote(folder)}", "holdfast status", "holdfast resume"])
    else:
        _whole(stage)
    return 0


def _files(*, local: bool, slow: bool) -> dict[str, bytes]:
    files = templates.files_of(templates.DEMO)
    if slow:
        files["read.sh"] = files["read.sh"].replace(*_SLOW)
    if local:
        files["plan.yaml"] = files["plan.yaml"].replace(_RECORDED, _REAL)
        files |= {"quoted.sh": _LENIENT, "short.sh": _LENIENT}
    return files


def _whole(stage: Stage) -> None:
    stage.act("1. Before anything runs: what would happen, and why")
    stage.show("plan")
    _crash(stage)
    stage.act("3. Resume: what was done is kept, only the rest runs")
    stage.show("resume", "-j", "2")
    stage.note("The model's first report quoted what no note says. The guard said so, and the")
    stage.note("second try had read that. Its answers come from recorded/: no key, no cost.")
    stage.act("4. One note changes: only what it touches runs again, and we know why")
    stage.append(*_OTTERS)
    stage.show("plan")
    stage.show("why", "page")
    stage.show("run")
    stage.act("5. The prompt changes: first what it would cost, then the new answer")
    stage.append(*_PROMPT)
    stage.show("plan")
    stage.show("run")
    stage.act("6. Edit a result by hand: your version is guarded and stands")
    stage.append(*_BY_HAND)
    stage.show("run")
    stage.act("7. Nothing changed: nothing to do, and nobody is asked")
    stage.show("run")
    stage.act("8. Every byte and every event is where it should be")
    stage.show("verify")
    stage.leave_traces()
    stage.act("That was it: killed once, nothing lost, nothing done twice.")
    out("Try for yourself:")
    _next(
        [
            f"cd {shlex.quote(stage.folder)}",
            "edit notes/tides.txt, words.py or plan.yaml; then  holdfast plan",
            "what the model was never asked has no answer: name one of yours in plan.yaml",
            "holdfast why report · holdfast show count · holdfast graph",
            "holdfast demo --local    the same with a small real model on this machine",
            "holdfast init ../mine    a project of your own",
            "holdfast --help",
        ]
    )


def _with_tokens(stage: Stage) -> None:
    """The plan with a model that runs here: what it says is nonsense, the tokens are real."""
    stage.act("1. It runs: two steps ask a small model in a process on this machine")
    stage.show("run", "-j", "2", "--yes")
    stage.show("show", "report")
    stage.note("")
    stage.note(f"{stage.tokens()} tokens, for nothing. The model is far too small to make sense.")
    stage.act("2. Nothing changed: nobody is asked again")
    stage.show("run", "--yes")
    stage.leave_traces()
    stage.act("That was it: real answers, kept. Larger ones: see docs/howto/local-model.md.")
    _next([f"cd {shlex.quote(stage.folder)}", "edit plan.yaml: name a model of yours"])


def _crash(stage: Stage) -> None:
    stage.act("2. It runs, and half way the engine is killed: kill -9")
    stage.kill_half_way("run", "-j", "2")
    stage.show("status")


def _next(lines: list[str]) -> None:
    if shutil.which("holdfast") is None:
        where = os.path.dirname(os.path.abspath(sys.executable))
        lines = [f'export PATH="{where}:$PATH"', *lines]
    for line in lines:
        out(f"  {line}")


def _place(given: str | None, *, keep: bool) -> str:
    """A directory to write into: new, empty, or an earlier demo that nobody touched."""
    name, number = given or FOLDER, 1
    while os.path.lexists(name):
        if os.path.isdir(name) and not os.listdir(name):
            break
        if not keep and _is_untouched(name):
            shutil.rmtree(name)
            break
        if given is not None:
            raise UsageError(
                f"'{given}' is there already, and not as a demo left it",
                hint="holdfast demo DIR, with a new directory",
            )
        number += 1
        name = f"{FOLDER}-{number}"
    return name


def _is_untouched(folder: str) -> bool:
    """Whether a demo made all of it and nothing was changed since."""
    try:
        with open(os.path.join(folder, wire.STORE_NAME, _TRACES), encoding="utf-8") as file:
            left = json.load(file)
    except (OSError, ValueError):
        return False
    return bool(left == _traces(folder))


def _traces(folder: str) -> dict[str, str]:
    """Every file of the project with the digest of its content; what is no file is named too."""
    found: dict[str, str] = {}
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(n for n in folders if n not in {wire.STORE_NAME, "__pycache__"})
        for name in sorted(names):
            path = os.path.join(place, name)
            if os.path.islink(path) or not os.path.isfile(path):
                found[os.path.relpath(path, folder)] = "not a file"
                continue
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = hashlib.sha256(file.read()).hexdigest()
    return found


class Stage:
    """The project of the demo, and the commands that are shown on it."""

    def __init__(self, folder: str, *, slow: bool) -> None:
        self.folder = folder
        self._slow = slow
        self._env = {k: v for k, v in os.environ.items() if k not in _OURS}

    def act(self, title: str) -> None:
        """Announce what comes; with --slow not before somebody is ready for it."""
        if self._slow and view().asks:
            click.prompt("\n(Enter goes on)", "", show_default=False, prompt_suffix="", err=True)
        elif self._slow:
            threading.Event().wait(_PAUSE)
        out()
        if view().mode == "rich":
            click.echo(click.style(title, bold=True), color=view().colour)
        else:
            out(f"== {title}")

    def note(self, text: str) -> None:
        """One sentence about what was just seen."""
        out(text)

    def append(self, path: str, text: str) -> None:
        """Change a file as a person would."""
        self._prompt(f"echo {shlex.quote(text.rstrip())} >> {path}")
        with open(os.path.join(self.folder, path), "a", encoding="utf-8") as file:
            file.write(text)

    def show(self, *words: str) -> None:
        """One command, as typed, with what it says; anything but success ends the demo."""
        self._prompt(shlex.join(["holdfast", *words]))
        done = self._start(*words).wait()
        if done:
            raise ProcessError(
                f"'holdfast {' '.join(words)}' ended with {done}, which the demo did not expect",
                hint=f"the project is kept: holdfast -C {shlex.quote(self.folder)} status",
            )

    def kill_half_way(self, *words: str) -> None:
        """Start a command and kill it when some steps are done and others are running."""
        self._prompt(shlex.join(["holdfast", *words]))
        engine = self._start(*words)
        end = time.monotonic() + _PATIENCE
        try:
            while self._done() < _HALF_WAY:
                if engine.poll() is not None or time.monotonic() > end:
                    raise ProcessError("the engine of the demo ended before it could be killed")
                threading.Event().wait(0.02)
            threading.Event().wait(_GLANCE)
            os.kill(engine.pid, signal.SIGKILL)
        finally:
            if engine.poll() is None:
                engine.kill()
            engine.wait()
            self._mend_terminal()
        self._prompt(f"kill -9 {engine.pid}")

    def leave_traces(self) -> None:
        """Remember every file, so that the next demo knows whether somebody worked here."""
        place = os.path.join(self.folder, wire.STORE_NAME, _TRACES)
        with open(place, "w", encoding="utf-8") as file:
            json.dump(_traces(self.folder), file)

    def _prompt(self, line: str) -> None:
        out(f"$ {line}")
        sys.stdout.flush()

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - this very program
            [*_COMMAND, *words], cwd=self.folder, env=self._env, stdin=subprocess.DEVNULL
        )

    def tokens(self) -> int:
        """How many tokens the last run read and wrote."""
        state = self._state()
        return 0 if state is None else state.spent.tokens

    def _done(self) -> int:
        """How many steps are done so far, as any other process may see it."""
        state = self._state()
        return 0 if state is None else state.counts["done"]

    def _state(self) -> State | None:
        location = os.path.join(self.folder, wire.STORE_NAME)
        if not os.path.isfile(os.path.join(location, "state.db")):
            return None
        try:
            with closing(wire.open_store(location, readonly=True)) as store:
                rows = list(store.runs())
                return read_state(store, rows[-1].run) if rows else None
        except HoldfastError:  # it is just being made
            return None

    def _mend_terminal(self) -> None:
        """A killed program cannot give back the cursor that it had hidden."""
        if view().mode == "rich":
            talk("")
            sys.stderr.write("\x1b[?25h")
            sys.stderr.flush()
