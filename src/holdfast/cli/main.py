"""The entry of the command: groups, global options, errors turned into exit codes."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
from typing import NoReturn

import click

from holdfast.cli.view import MODES, choose_view
from holdfast.errors import HoldfastError, PlanError
from holdfast.model.version import VERSION

COMMANDS = {
    "init": "holdfast.cli.init:init",
    "demo": "holdfast.cli.demo:demo",
    "check": "holdfast.cli.check:check",
    "plan": "holdfast.cli.preview:plan",
    "run": "holdfast.cli.run:run",
    "resume": "holdfast.cli.run:resume",
    "retry": "holdfast.cli.run:retry",
    "stop": "holdfast.cli.run:stop",
    "amend": "holdfast.cli.amend:amend",
    "status": "holdfast.cli.show:status",
    "why": "holdfast.cli.why:why",
    "show": "holdfast.cli.show:show",
    "logs": "holdfast.cli.show:logs",
    "trace": "holdfast.cli.show:trace",
    "graph": "holdfast.cli.graph:graph",
    "verify": "holdfast.cli.maintain:verify",
    "rebuild": "holdfast.cli.maintain:rebuild",
}
PANELS = {
    "Start": ("init", "demo", "check"),
    "Run": ("plan", "run", "resume", "retry", "stop", "amend"),
    "Understand": ("status", "why", "show", "logs", "trace", "graph"),
    "Maintain": ("verify", "rebuild"),
}
SHORT = {
    "init": "Write a project that runs as it is.",
    "demo": "See a crash lose nothing and a change run only what it touches.",
    "graph": "Draw the plan: text, Mermaid, DOT, SVG or JSON.",
    "check": "Check a plan file and say everything that is wrong with it.",
    "plan": "Show what a run would do, and why, without doing it.",
    "run": "Run a plan: reuse what stands, run what changed.",
    "resume": "Continue a run that was stopped, failed, or killed.",
    "retry": "Try a failed or held step again.",
    "stop": "Ask a running engine to stop after its running steps, or now.",
    "amend": "Put your own version in the place of a step's artifact.",
    "status": "Show where a run stands.",
    "why": "Say why a step runs or is reused, with what changed.",
    "show": "Print an artifact, an attempt or a run.",
    "logs": "Print the log of a step's attempt.",
    "trace": "Print the journal of a run, one event a line.",
    "verify": "Check the whole store: chain, digests, state, index.",
    "rebuild": "Make the index of artifacts again from the journals.",
}
EXIT_CODES = """\b
Exit codes:
  0 done, or nothing to do      6 stale preview
  1 a step failed               7 another engine holds this line
  2 wrong usage or plan         8 escalated
  3 waiting for a person        9 the store contradicts itself
  4 credentials missing        10 plan --detailed-exitcode: work to do
  5 a limit was reached        70 a bug   74 disk or database failed
                              130 interrupted, can be resumed"""


class Commands(click.Group):
    """Loads a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, without loading anything."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one command."""
        del ctx
        target = COMMANDS.get(cmd_name)
        if target is None:
            return None
        module, _, name = target.partition(":")
        found = getattr(importlib.import_module(module), name)
        assert isinstance(found, click.Command)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The panels of the help page, from the table alone."""
        del ctx
        for title, names in PANELS.items():
            with formatter.section(title):
                formatter.write_dl([(name, SHORT[name]) for name in names])


@click.group(
    cls=Commands,
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(VERSION, "--version", prog_name="holdfast")
@click.option("-C", "folder", metavar="DIR", help="Work as if started in DIR.")
@click.option(
    "--output",
    type=click.Choice(MODES),
    default="auto",
    help="How to show things (default: rich on a terminal, plain elsewhere).",
)
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto")
@click.option("--no-input", is_flag=True, help="Never ask.")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@click.pass_context
def cli(
    ctx: click.Context,
    folder: str | None,
    output: str,
    color: str,
    *,
    no_input: bool,
    debug: bool,
) -> None:
    """Make for agent work: run a plan of guarded steps, lose nothing, repeat nothing, say why."""
    del debug  # read by main
    ctx.obj = choose_view(output, color, no_input=no_input)
    if folder is not None:
        try:
            os.chdir(folder)
        except OSError as error:
            raise click.UsageError(f"cannot work in '{folder}': {error.strerror}") from error


def main() -> NoReturn:
    """Run the command; every error ends in one message and one exit code."""
    arguments = sys.argv[1:]
    try:
        code = cli.main(arguments, prog_name="holdfast", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except click.exceptions.Exit as leave:
        code = leave.exit_code
    except click.Abort:
        code = 130
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except HoldfastError as error:
        if "--debug" in arguments:
            raise
        code = report(error, as_json="--json" in arguments)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141  # as if the signal of a broken pipe had ended it
    except Exception as error:  # the last boundary: whatever nobody foresaw
        if "--debug" in arguments:
            raise
        code = _unforeseen(error)
    sys.exit(code if isinstance(code, int) else 0)


def _unforeseen(error: Exception) -> int:
    """A bug: the story goes into a file, one line to the person."""
    import tempfile
    import traceback

    from holdfast.cli.say import talk

    with tempfile.NamedTemporaryFile(
        "w", prefix="holdfast-report-", suffix=".txt", delete=False, encoding="utf-8"
    ) as file:
        file.write(f"holdfast {VERSION}, python {sys.version}\n")
        file.writelines(traceback.format_exception(error))
    talk(f"error: {type(error).__name__}: {error} [this is a bug]")
    talk(f"hint: the whole story is in {file.name}; nothing accepted is lost")
    return 70


def report(error: HoldfastError, *, as_json: bool) -> int:
    """Say what happened: for people on stderr, for programs as one object on stdout."""
    from holdfast.cli.say import talk

    if as_json:
        body: dict[str, object] = {"code": error.code, "message": error.message, "hint": error.hint}
        if isinstance(error, PlanError):
            body["problems"] = [
                {
                    "code": p.code,
                    "message": p.message,
                    "hint": p.hint,
                    "where": {"file": p.file, "line": p.line, "column": p.column},
                }
                for p in error.problems
            ]
        sys.stdout.write(json.dumps({"error": body}, ensure_ascii=False) + "\n")
    for line in _words(error).splitlines():
        talk(line)
    return error.exit_code


def _words(error: HoldfastError) -> str:
    if isinstance(error, PlanError):
        from holdfast.formats.render import render

        source = b""
        with contextlib.suppress(OSError), open(error.problems[0].file, "rb") as file:
            source = file.read(64 * 2**20)
        return render(error.problems, source)
    return f"error: {error}"
