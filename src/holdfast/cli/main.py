"""The entry of the command: groups, global options, errors turned into exit codes."""

from __future__ import annotations

import importlib
import os
import resource
import sys
from typing import NoReturn

import click

from holdfast.cli.options import choose, share, shared_options
from holdfast.cli.said import keep_words
from holdfast.cli.view import view
from holdfast.errors import HoldfastError, PlanError
from holdfast.model.version import VERSION

COMMANDS = {
    "init": "holdfast.cli.init:init",
    "demo": "holdfast.cli.demo:demo",
    "check": "holdfast.cli.check:check",
    "plan": "holdfast.cli.preview:plan",
    "run": "holdfast.cli.run:run",
    "resume": "holdfast.cli.resuming:resume",
    "retry": "holdfast.cli.resuming:retry",
    "add": "holdfast.cli.add:add",
    "replay": "holdfast.cli.onward:replay",
    "skip": "holdfast.cli.onward:skip",
    "fork": "holdfast.cli.onward:fork",
    "stop": "holdfast.cli.stop:stop",
    "approve": "holdfast.cli.approve:approve",
    "reject": "holdfast.cli.approve:reject",
    "revoke": "holdfast.cli.approve:revoke",
    "answer": "holdfast.cli.approve:answer",
    "resolve": "holdfast.cli.resolve:resolve",
    "approvals": "holdfast.cli.approvals:approvals",
    "amend": "holdfast.cli.amend:amend",
    "attach": "holdfast.cli.attach:attach",
    "accept": "holdfast.cli.accept:accept",
    "undo": "holdfast.cli.undo:undo_command",
    "guard": "holdfast.cli.guard:guard",
    "diff": "holdfast.cli.diff:diff",
    "status": "holdfast.cli.show:status",
    "why": "holdfast.cli.why:why",
    "explain": "holdfast.cli.explain:explain",
    "show": "holdfast.cli.show:show",
    "logs": "holdfast.cli.show:logs",
    "trace": "holdfast.cli.show:trace",
    "history": "holdfast.cli.history:history",
    "plans": "holdfast.cli.plans:plans",
    "cost": "holdfast.cli.cost:cost",
    "ledger": "holdfast.cli.ledger:ledger",
    "ls": "holdfast.cli.listing:ls",
    "checkpoint": "holdfast.cli.checkpoint:checkpoint",
    "conflicts": "holdfast.cli.conflicts:conflicts",
    "agents": "holdfast.cli.agents:agents",
    "ui": "holdfast.web.command:ui",
    "export": "holdfast.cli.archive:export",
    "import": "holdfast.cli.archive:import_",
    "ci": "holdfast.cli.ci:ci",
    "push": "holdfast.cli.push:push",
    "pull": "holdfast.cli.push:pull",
    "gc": "holdfast.cli.gc:gc",
    "pin": "holdfast.cli.pin:pin",
    "purge": "holdfast.cli.pin:purge",
    "auth": "holdfast.cli.auth:auth",
    "doctor": "holdfast.cli.doctor:doctor",
    "completion": "holdfast.cli.completion:completion",
    "graph": "holdfast.cli.graph:graph",
    "impact": "holdfast.cli.impact:impact",
    "code": "holdfast.cli.code:code",
    "store": "holdfast.cli.store:store",
    "worker": "holdfast.cli.worker:worker",
    "attest": "holdfast.cli.attest:attest",
    "verify": "holdfast.cli.maintain:verify",
    "rebuild": "holdfast.cli.maintain:rebuild",
    "repair": "holdfast.cli.repair:repair",
    "schema": "holdfast.cli.schema:schema",
    "mcp": "holdfast.mcp.command:mcp",
    "edit": "holdfast.cli.edit:edit",
    "work": "holdfast.cli.work:work",
    "tickets": "holdfast.cli.tickets:tickets",
    "bench": "holdfast.cli.bench:bench",
}
PANELS = {
    "Start": (
        "init",
        "demo",
        "check",
    ),
    "Run": (
        "plan",
        "run",
        "resume",
        "retry",
        "replay",
        "add",
        "skip",
        "fork",
        "attach",
        "worker",
        "stop",
        "approve",
        "reject",
        "revoke",
        "resolve",
        "answer",
        "amend",
        "accept",
        "undo",
    ),
    "Understand": (
        "status",
        "approvals",
        "why",
        "show",
        "logs",
        "diff",
        "guard",
        "trace",
        "history",
        "plans",
        "cost",
        "ledger",
        "ls",
        "graph",
        "impact",
        "conflicts",
        "agents",
    ),
    "Hands": ("work", "tickets", "edit", "code", "bench"),
    "Connect": (
        "ui",
        "mcp",
        "export",
        "import",
        "push",
        "pull",
        "ci",
        "attest",
        "checkpoint",
    ),
    "Maintain": (
        "gc",
        "pin",
        "purge",
        "auth",
        "doctor",
        "store",
        "verify",
        "rebuild",
        "repair",
        "explain",
        "completion",
        "schema",
    ),
}
SHORT = {
    "init": "Write a project that runs as it is.",
    "demo": "See a crash lose nothing and a change run only what it touches.",
    "impact": "Show which steps a change of a step or a file would touch.",
    "code": "Find one's way in a code base: search, symbols, impact, map.",
    "graph": "Draw the plan: text, Mermaid, DOT, SVG or JSON.",
    "check": "Check a plan file and say everything that is wrong with it.",
    "plan": "Show what a run would do, and why, without doing it.",
    "run": "Run a plan: reuse what stands, run what changed.",
    "resume": "Continue a run that was stopped, failed, or killed.",
    "retry": "Try a failed or held step again, or make a done one anew.",
    "replay": "Try everything that failed again, with what was skipped.",
    "add": "Add steps to a run, also while it goes on.",
    "skip": "Go on without a step; that leaves a gap.",
    "fork": "Make a step and all below it again in a run of its own.",
    "stop": "Ask a running engine to stop after its running steps, or now.",
    "approve": "Say yes to what a step waits for.",
    "reject": "Say no to what a step waits for, and why.",
    "revoke": "Take an approval back.",
    "answer": "Give the content of a step that only a person can do.",
    "resolve": "Settle a conflict: say whose version stands.",
    "approvals": "Show what waits for a person.",
    "accept": "Let an earlier result of a step stand, on purpose.",
    "undo": "Put files back as they were before a step or a run.",
    "guard": "Run only the guards of a step, and record nothing.",
    "diff": "Compare runs, plans, outputs or attempts.",
    "amend": "Put your own version in the place of a step's artifact.",
    "attach": "Look on while a run goes on elsewhere.",
    "status": "Show where a run stands.",
    "why": "Say why a step runs or is reused, with what changed.",
    "explain": "Say what a code means and what to do about it.",
    "show": "Print an artifact, an attempt or a run.",
    "logs": "Print the log of a step's attempt.",
    "trace": "Print the journal of a run, one event a line.",
    "history": "Show the runs of the line, newest first.",
    "plans": "Show, compare and forget the plans that are kept.",
    "ledger": "Show what a run has learned, and from which step.",
    "cost": "Show what models were paid, what was in vain, what reuse saved.",
    "ls": "List the names of steps, their paths, or runs.",
    "conflicts": "Show what could not all stand, and how it was settled.",
    "agents": "Show the agents that are known, with their contracts.",
    "checkpoint": "Write down where a run stands, list what was written.",
    "ui": "Show runs, steps and approvals in a browser, and act on them.",
    "mcp": "Serve agents over MCP: preview, run, wait, explain.",
    "export": "Write a run, or the whole store, into one file.",
    "import": "Add an exported run, restore a back-up, take in a plan.",
    "ci": "Tell a CI of a run: summary, annotations, JUnit; its cache key.",
    "push": "Bring ended runs into another store, to be reused there.",
    "pull": "Bring ended runs of another store here, to be reused.",
    "gc": "Remove old runs that nothing stands on, and what nothing names.",
    "pin": "Keep a run, an artifact or a content whatever its age.",
    "purge": "Remove a content for good, leaving a tombstone.",
    "auth": "Keep the keys of providers in the keyring of the system.",
    "doctor": "Check this machine, the store and the plan; say how to fix.",
    "completion": "Print the completion script of a shell.",
    "attest": "Say where an artifact comes from: an in-toto statement.",
    "verify": "Check the whole store: chain, digests, state, index.",
    "rebuild": "Make the index of artifacts again from the journals.",
    "repair": "Move what is damaged to quarantine; say what a run makes anew.",
    "worker": "Take steps of a queue and carry them out on this machine.",
    "store": "Make a store that many machines share, and look after it.",
    "schema": "Print the JSON Schema of plan files, or of what --json prints.",
    "work": "Do a ticket: work, check, commit on a branch of its own.",
    "tickets": "Show the tickets of this repository, clear up after them.",
    "edit": "Make an edit of files, all or nothing; preview it, take it back.",
    "bench": "Measure the engine here, or who works on tickets.",
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
        if "_HOLDFAST_COMPLETE" in os.environ:
            from holdfast.cli.completion import equip

            equip(found)
        return share(found)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the words as they were said: a run in the background is begun with them again."""
        keep_words(ctx, args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; what is wrong with a plan is shown as wide as things are shown."""
        try:
            return super().invoke(ctx)
        except HoldfastError as error:
            from holdfast.cli.again import mend

            mend(error)
            if isinstance(error, PlanError):
                error.width = view().width
            raise

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
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Make for agent work: run a plan of guarded steps, lose nothing, repeat nothing, say why."""
    choose(ctx)


shared_options(cli)


def main() -> NoReturn:
    """Run the command; every error ends in one message and one exit code."""
    _leave_no_core()
    arguments, result = sys.argv[1:], sys.stdout  # click puts another in its place if nobody reads
    failed: Exception | None = None
    code: object = 0
    try:
        code = cli.main(arguments, prog_name="holdfast", standalone_mode=False)
    except click.exceptions.Exit as leave:
        code = leave.exit_code
    except BrokenPipeError:
        code = _nobody_reads()
    except KeyboardInterrupt:
        code = 130
    except SystemExit:
        if sys.stdout is result:
            raise
        code = _nobody_reads()
    except Exception as error:  # the last boundary: whatever happened becomes a message and a code
        if "--debug" in arguments and not isinstance(error, click.ClickException | click.Abort):
            raise
        failed = error
    if (unwritten := _unwritten()) is not None:
        code = cannot_write(unwritten)
    elif failed is not None:
        from holdfast.cli.report import report

        code = report(failed, arguments, tuple(COMMANDS))
        if (left := _unwritten()) is not None:
            code = cannot_write(left)
    sys.exit(code if isinstance(code, int) else 0)


def _leave_no_core() -> None:
    """A crash writes down no memory, as secrets are in it.

    One byte is too little for a core file, and tells the kernel to hand nothing to a program either.
    """
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (0 if hard == 0 else 1, hard))


def _unwritten() -> OSError | None:
    """What keeps the result from being written, if anything does."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        return error
    return None


def cannot_write(error: OSError) -> int:
    """Say why the result cannot be written, unless nobody reads it; gives the exit code."""
    code = _nobody_reads()
    if isinstance(error, BrokenPipeError):
        return code
    from holdfast.cli.say import UNWRITTEN, talk

    talk(f"error[store]: {UNWRITTEN}: {error.strerror}")
    return 74


def _nobody_reads() -> int:
    """Nobody reads the result any more: end as quietly as if the signal for it had ended us."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 141
