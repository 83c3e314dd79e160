"""bench: let somebody do tickets whose right answer is known, and count; measure the engine."""

from __future__ import annotations

import asyncio
import os
import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import click

from holdfast import wire
from holdfast.cli.ask import go_on
from holdfast.cli.benchengine import engine
from holdfast.cli.confined import sandbox_options
from holdfast.cli.money import exact
from holdfast.cli.place import json_option
from holdfast.cli.say import out, out_json, seconds, talk
from holdfast.cli.view import view
from holdfast.core.state import State
from holdfast.engine.journals import read_state, runs_of
from holdfast.errors import UsageError
from holdfast.model.digest import Json
from holdfast.model.text import one_line

if TYPE_CHECKING:
    from holdfast.worker.bench.case import Case, Hands
    from holdfast.worker.bench.history import Wanted
    from holdfast.worker.bench.results import Result
    from holdfast.worker.bench.trial import Ground

REFERENCE = "reference"
_MICRO = 1_000_000


@click.group(
    "bench",
    epilog="\b\nExample:\n  holdfast bench engine\n  holdfast bench worker --script reference\n"
    "  holdfast bench worker --model anthropic:claude-sonnet-5 --out results -j 4",
)
def bench() -> None:
    """Measure the engine on this machine, or who works on tickets: solved, cost, time."""


bench.add_command(engine)


@bench.command(
    "worker",
    epilog="\b\nExample:\n  holdfast bench worker --script reference -j 4\n"
    "  holdfast bench worker --history ~/src/click/.git --count 5 --list\n"
    "  holdfast bench worker --model openai:gpt-5 --out results --json",
)
@click.option("--model", metavar="MODEL", help="Who works: provider:name, a tier or an alias.")
@click.option(
    "--script", metavar="FILE", help=f"Play this script; '{REFERENCE}' plays each ticket's own."
)
@click.option("--agent", metavar="WORDS", help="A coding agent works: a preset, acp:…, a command.")
@click.option(
    "--secret", "secrets", multiple=True, metavar="NAME", help="A variable that the agent may see."
)
@click.option("--history", metavar="GIT_DIR", help="Take tickets from commits of this history.")
@click.option("--count", "wanted", type=click.IntRange(1), default=10, help="Of a history (10).")
@click.option("--tries", type=click.IntRange(1), default=50, help="Commits looked into (50).")
@click.option(
    "--test", metavar="COMMAND", help="Runs tests of a history; {files} stands for their paths."
)
@click.option("--check", metavar="COMMAND", help="What everybody may run; with --history.")
@click.option("--issues", metavar="FILE", help="JSON of issues by commit; with --history.")
@click.option("--ticket", "names", multiple=True, metavar="NAME", help="Only this; repeatable.")
@click.option("--list", "only_list", is_flag=True, help="Show the tickets, and do nothing.")
@click.option(
    "--out", "place", metavar="DIR", help="Keep results here; what is there is not done again."
)
@click.option("-j", "--jobs", type=click.IntRange(1, 64), default=1, help="Tickets at once (1).")
@click.option(
    "--seconds", type=click.FloatRange(1), default=600.0, help="That tests may take (600)."
)
@click.option("--yes", is_flag=True, help="Do not ask before it costs money.")
@sandbox_options
@json_option
def worker(
    model: str | None,
    script: str | None,
    agent: str | None,
    secrets: tuple[str, ...],
    history: str | None,
    wanted: int,
    tries: int,
    test: str | None,
    check: str | None,
    issues: str | None,
    names: tuple[str, ...],
    place: str | None,
    jobs: int,
    seconds: float,
    *,
    only_list: bool,
    yes: bool,
    network: bool,
    no_sandbox: bool,
    as_json: bool,
) -> int:
    """Let somebody do tickets, each in a fresh repository, and judge the result by hidden tests.

    Without --history these are ten small tickets over two repositories that come with Holdfast. With it, they
    are commits that change source and tests: it begins at their parent, their message is the ticket, their
    tests are hidden. A ticket is solved if the tests that nobody saw pass, and those that everybody saw still
    do. With --out, what was interrupted goes on where it was.
    """
    if history is None and (test or check or issues):
        raise UsageError("--test, --check and --issues are about a history", hint="--history DIR")
    hands = None if only_list else _hands(model, script, agent, secrets, yes=yes)
    with _place(place) as folder:
        wishes = wire.Wishes(network=network, sandbox=not no_sandbox, written_here=False)
        ground = _ground(folder, wishes, seconds)
        dropped: dict[str, str] = {}
        if history is None:
            cases = _chosen(_samples(folder), names)
        else:
            told = _wanted(history, test, check, issues)
            most = (len(names) or wanted, tries)
            cases, dropped = asyncio.run(_of_history(told, folder, names, most, ground))
        if hands is None:
            return _tell_cases(cases, dropped, as_json=as_json)
        results = asyncio.run(_all(cases, hands, folder, ground, jobs))
        return _tell(results, hands, dropped, as_json=as_json)


# --- what is worked on, and by whom -----------------------------------------------------------------


@contextmanager
def _place(given: str | None) -> Iterator[str]:
    """The folder of results; without one, a folder that is gone afterwards."""
    if given is not None:
        os.makedirs(given, exist_ok=True)
        yield os.path.realpath(given)
        return
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
        yield os.path.realpath(folder)


def _ground(folder: str, wishes: wire.Wishes, seconds: float) -> Ground:
    from holdfast.worker.bench.trial import Ground

    granted = {"--network": wishes.network, "--no-sandbox": not wishes.sandbox}
    terms = wire.terms_for(os.path.join(folder, ".holdfast"), wishes)
    return Ground(terms, seconds, _runs, tuple(word for word, said in granted.items() if said))


def _runs(folder: str, line: str) -> list[State]:
    """The runs of a line in the store of a repository, oldest first."""
    location = os.path.join(folder, wire.STORE_NAME)
    if not wire.has_store(location):
        return []
    store = wire.open_store(location, readonly=True)
    try:
        found = [read_state(store, row.run) for row in runs_of(store, "", line)]
        return [state for state in found if state is not None]
    finally:
        store.close()


def _samples(folder: str) -> list[Case]:
    from holdfast.worker.bench.samples import sample_cases

    return sample_cases(os.path.join(folder, "samples"))


def _chosen(cases: Sequence[Case], names: Sequence[str]) -> list[Case]:
    unknown = sorted(set(names) - {case.name for case in cases})
    if unknown:
        raise UsageError(f"there is no ticket '{one_line(unknown[0])}'", hint="--list shows them")
    return [case for case in cases if not names or case.name in names]


def _wanted(history: str, test: str | None, check: str | None, issues: str | None) -> Wanted:
    from holdfast.worker.bench.history import Wanted, git_dir_of, read_issues

    read = None if issues is None else read_issues(_text(issues, "issues"))
    return Wanted(git_dir_of(history), test or "", check or "", read)


async def _of_history(
    wanted: Wanted, folder: str, names: Sequence[str], most: tuple[int, int], ground: Ground
) -> tuple[list[Case], dict[str, str]]:
    """Cases of a history, and why others are none: at most so many cases, of so many commits."""
    from holdfast.worker.bench.history import history_cases

    cases: list[Case] = []
    dropped: dict[str, str] = {}
    looked = os.path.join(folder, "looked")
    os.makedirs(looked, exist_ok=True)
    async for name, found in history_cases(wanted, names, looked, ground):
        if isinstance(found, str):
            dropped[name] = found
            talk(f"– {name}: {found}")
        else:
            cases.append(found)
            talk(f"▸ {name}: fails before, passes after")
        if len(cases) == most[0] or len(cases) + len(dropped) == most[1]:
            break
    return cases, dropped


def _hands(
    model: str | None, script: str | None, agent: str | None, secrets: Sequence[str], *, yes: bool
) -> Hands:
    from holdfast.cli.hiring import agent_words
    from holdfast.worker.bench.case import Hands
    from holdfast.worker.script import read_script

    if sum(map(bool, (model, script, agent))) > 1:
        raise UsageError("--model, --script and --agent contradict each other")
    if agent:
        shown = [word for name in secrets for word in ("--secret", name)]
        return Hands(f"agent {agent}", ("--agent", shlex.join(agent_words(agent)), *shown))
    if script == REFERENCE:
        return Hands(REFERENCE, script=lambda case: case.reference)
    if script:
        text = _text(script, "script")
        read_script(text)
        return Hands(f"script {os.path.basename(script)}", script=lambda _: text)
    if not model:
        raise UsageError(
            "nobody said who works",
            hint=f"--model provider:name, --agent WORDS or --script {REFERENCE}",
        )
    known = wire.market.known_models(os.getcwd()).names.get(model, model)
    if ":" not in known:
        raise UsageError(
            f"'{one_line(model)}' is no model", hint="provider:name, a tier or an alias"
        )
    if not yes and wire.market.is_paid(os.getcwd(), known):
        if not view().asks:
            raise UsageError(f"'{known}' costs money, and nobody is there to ask", hint="say --yes")
        go_on(f"'{known}' costs money. Let it work on the tickets?", default=True)
    return Hands(known, ("--model", known))


def _text(path: str, what: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the {what} '{one_line(path)}': {error}") from error


async def _all(
    cases: Sequence[Case], hands: Hands, folder: str, ground: Ground, jobs: int
) -> list[Result]:
    """Every case, some at once; if one cannot be worked on, the others end where they are."""
    from holdfast.worker.bench.case import key_of
    from holdfast.worker.bench.trial import tried

    places = asyncio.Semaphore(jobs)

    async def one(case: Case) -> Result:
        place = os.path.join(folder, f"{case.name}-{key_of(case, hands)}")
        async with places:
            result = await tried(case, hands, place, ground)
        talk(_line(result))
        return result

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(case)) for case in cases]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from errors
    return [task.result() for task in tasks]


# --- telling ----------------------------------------------------------------------------------------


def _tell_cases(cases: Sequence[Case], dropped: Mapping[str, str], *, as_json: bool) -> int:
    from holdfast.worker.ticket import read_ticket

    rows = [(case.name, read_ticket(case.ticket, case.name).title) for case in cases]
    if as_json:
        told: list[Json] = [
            {"name": case.name, "title": title, "base": case.base, "checks": list(case.checks)}
            for case, (_, title) in zip(cases, rows, strict=True)
        ]
        gone: list[Json] = [{"name": name, "why": why} for name, why in dropped.items()]
        out_json({"schema": "holdfast.bench.tickets/1", "tickets": told, "dropped": gone})
        return 0
    for line in _columns(rows):
        out(line)
    return 0


def _line(result: Result) -> str:
    """One ticket while others go on."""
    if not result.counts:
        return f"– {result.name}: {result.why}"
    if result.solved:
        return f"✓ {result.name}: {seconds(round(result.seconds * 1000))}"
    return f"✗ {result.name}: {result.why}"


def _tell(
    results: Sequence[Result], hands: Hands, dropped: Mapping[str, str], *, as_json: bool
) -> int:
    from holdfast.worker.bench.results import report

    whole = report(results, hands.name, dropped)
    if as_json:
        out_json(whole)
        return 0
    head = ("ticket", "solved", "cost", "time", "cycles", "attempts", "commits", "lines")
    rows = [_row(one) for one in cast("list[Mapping[str, Json]]", whole["tickets"])]
    total = cast("Mapping[str, Json]", whole["total"])
    solved = f"{total['solved']} of {total['tickets']}"
    rows.append(_row({**total, "name": "all"}, solved))
    for line in _columns([head, *rows]):
        out(line)
    for one in results:
        if one.counts and not one.solved:
            out(f"{one.name}: {one.why}", raw=True)
    for gone in cast("list[Mapping[str, str]]", whole["dropped"]):
        out(f"{gone['name']} does not count: {gone['why']}", raw=True)
    return 0


def _row(one: Mapping[str, Json], solved: str = "") -> tuple[str, ...]:
    usd = cast("float | None", one["usd"])
    return (
        str(one["name"]),
        solved or ("yes" if one["solved"] else "no"),
        "?" if usd is None else f"${exact(round(usd * _MICRO))}",
        seconds(round(cast("float", one["seconds"]) * 1000)),
        *(str(one[name]) for name in ("cycles", "attempts", "commits")),
        f"+{one['added']} −{one['removed']}",
    )


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
