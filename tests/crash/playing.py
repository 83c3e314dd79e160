"""Plays are broken in any of their commands, taken up where they broke, and brought to their end."""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import psycopg

from holdfast import wire
from holdfast.engine.audit import audit
from holdfast.store.postgres import make_store
from holdfast.testing.server import ModelServer, Say
from holdfast.wire.shared import shared_home
from tests.cli.models import LOADED
from tests.crash.faults import Answer, Case, Journal, Reference, Report, Scene, Shim
from tests.crash.plays import APPROVE, BRANCH, RESUME, WAITS, Act, Play
from tests.gitrepo.repository import git
from tests.postgres import Server, new_schema

POSTGRES = ("holdfast.store.postgres", "holdfast.wire.shared")
SCHEMA = "&schema=held"
READ = "SELECT name, kind, body FROM event JOIN journal ON journal.id = place >> 40 ORDER BY place"


class SharedScene(Scene):
    """A project whose store is a database of its own; a copy of the project has a copy of the database."""

    def __init__(self, folder: Path, server: Server, database: str) -> None:
        super().__init__(folder)
        self.server, self.database = server, database
        self.env = {"HOLDFAST_STORE": self.url}
        self.loaded = POSTGRES

    @property
    def url(self) -> str:
        return self.server.url().replace("/postgres?", f"/{self.database}?") + SCHEMA

    def make(self) -> None:
        """An empty store."""
        self._order(f"CREATE DATABASE {self.database}")
        make_store(self.url)

    def at(self, folder: Path) -> "SharedScene":
        made = SharedScene(folder, self.server, new_schema())
        made._order(f"CREATE DATABASE {made.database} TEMPLATE {self.database}")
        return made

    def remove(self) -> None:
        super().remove()
        self.drop()

    def drop(self) -> None:
        self._order(f"DROP DATABASE {self.database} WITH (FORCE)")

    def _order(self, statement: str) -> None:
        with psycopg.connect(self.server.url(), autocommit=True) as connection:
            connection.execute(statement.encode())

    def rows(self, query: str) -> list[tuple[object, ...]]:
        base, _, schema = self.url.partition("&schema=")
        with psycopg.connect(base, options=f"-csearch_path={schema}") as connection:
            return connection.execute(query.encode()).fetchall()

    def journal(self) -> Journal:
        runs = tuple(str(row[0]) for row in self.rows("SELECT id FROM run ORDER BY number"))
        facts: dict[str, list[tuple[str, dict[str, object]]]] = {}
        for name, kind, body in self.rows(READ):
            facts.setdefault(str(name), []).append((str(kind), json.loads(str(body))))
        return Journal(runs, facts)


class PlayCase(Case):
    """One fault in one command of a play, and what a person does then."""

    def __init__(
        self, play: Play, scene: Scene, wanted: "Wanted", report: Report, name: str
    ) -> None:
        super().__init__(scene, wanted.reference, report, name)
        self.play = play
        self._wanted = wanted
        self._approved: set[str] = set()

    def verified(self) -> None:
        if not isinstance(self.scene, SharedScene):
            super().verified()
            return
        home = shared_home(str(self.scene.root), self.scene.url)
        store = wire.open_store(home, readonly=True)
        try:
            for problem in audit(store).problems:
                self.violated(f"right after: {problem}")
        finally:
            store.close()

    def broken(self, answer: Answer) -> Journal:
        journal = super().broken(answer)
        self._approved |= approved_by(answer)
        if lost := self._approved - decided(journal):
            self.violated(f"told as approved, but not in the journal: {sorted(lost)}")
        return journal

    def go_on(self, place: int, *, anew: bool = False) -> None:
        """Give the command that broke again, in the way that its state asks for, and those after it."""
        for number, act in enumerate(self.play.acts[place:]):
            words = self.words(act, anew=anew and not number)
            if words is None:
                if not number:
                    self._tidied()
                continue
            is_decided = bool(decided(self.scene.journal()))
            answer = self._said(words)
            if answer.code == WAITS != act.code and self._is_used_up():
                self.ended("approved again")
                self._said(APPROVE)
                answer = self._said(RESUME)
            if answer.code == 0 and act.code == WAITS and is_decided:
                self.ended("approved before")
            elif answer.code != act.code:
                self.violated(f"{words[0]} ended with {answer.code}: {answer.err[-1500:]}")
        self.finished(Answer(0, "", ""))

    def _tidied(self) -> None:
        """It died when all was done: whoever comes next clears up, and does nothing else."""
        journal = self.scene.journal()
        runs = plan_runs(journal)
        if runs and journal.ended(runs[-1]) == "completed":
            answer = self._said(self.play.acts[0].words)
            if answer.code:
                self.violated(f"a run of what stands ended with {answer.code}: {answer.err[-800:]}")

    def _said(self, words: Sequence[str]) -> Answer:
        answer = self.scene.call(*words)
        self.broken(answer)
        return answer

    def _is_used_up(self) -> bool:
        """Whether an attempt that was killed used the yes, which is for one attempt."""
        kinds = [k for facts in self.scene.journal().facts.values() for k, _ in facts]
        return kinds.count("approval_used") == kinds.count("approval_decided")

    def words(self, act: Act, *, anew: bool = False) -> tuple[str, ...] | None:
        """What a person says; None if that is done."""
        if act.name == "work":
            return act.words
        journal = self.scene.journal()
        states = [journal.ended(run) for run in plan_runs(journal)]
        if states and states[-1] == "completed":
            return None
        if act.name == "approve":
            return None if decided(journal) else act.words
        return act.words if anew or not states or states[-1] else RESUME

    def results(self, journal: Journal) -> dict[str, str]:
        return ending(self.play, self.scene, journal)

    def at_rest(self) -> None:
        self.asked_aloud()
        if not isinstance(self.scene, SharedScene):
            super().at_rest()
        elif held := self.scene.rows("SELECT engine FROM holder"):
            self.violated(f"the line is still held: {held}")
        if (found := state_hash(self.play, self.scene)) != self._wanted.hash:
            self.violated(f"another state: {found}")


class Wanted(NamedTuple):
    """What an undisturbed play leaves."""

    reference: Reference
    hash: str


def plan_runs(journal: Journal) -> list[str]:
    """The runs of the plan file, in order; tickets have lines of their own."""
    tickets = {
        str(body["run"])
        for name, facts in journal.facts.items()
        for kind, body in facts
        if name.startswith("line:ticket-") and kind == "run_opened"
    }
    return [run for run in journal.runs if run not in tickets]


def here(scene: Scene) -> str:
    """The project and the person's home: not what is loaded, and not what is told."""
    return f"{scene.root}:{scene.folder / 'home'}"


def decided(journal: Journal) -> set[str]:
    return {
        str(body["approval"])
        for facts in journal.facts.values()
        for kind, body in facts
        if kind == "approval_decided"
    }


def approved_by(answer: Answer) -> set[str]:
    """The approvals that somebody was told of, in whole lines."""
    lines = answer.out.splitlines(keepends=True)
    return {
        line.rpartition("(")[2].removesuffix(")\n")
        for line in lines
        if ": approved (" in line and line.endswith(")\n")
    }


def ending(play: Play, scene: Scene, journal: Journal) -> dict[str, str]:
    """What each step made in the last run of its line. Commits have times, so a ticket's are not compared."""
    found: dict[str, str] = {}
    for name, facts in journal.facts.items():
        runs = [str(body["run"]) for kind, body in facts if kind == "run_opened"]
        if runs:
            made = replace(journal, runs=(runs[-1],)).results()
            is_ticket = name.startswith("line:ticket-")
            found |= {step: "made" if is_ticket else made[step] for step in made}
    if play.ticket:
        found["branch"] = branch_of(scene)
    return found


def branch_of(scene: Scene) -> str:
    """What the person's repository holds of the ticket, and that nothing else of it moved."""
    root = scene.root
    if BRANCH not in git(root, "branch", "--list", BRANCH):
        return "there is none"
    files = git(root, "ls-tree", "-r", BRANCH, "--", "notes.txt")
    words = git(root, "log", "--format=%s", f"main..{BRANCH}")
    git(root, "fsck", "--connectivity-only")
    return f"{files}{words}{git(root, 'branch', '--list')}"


def state_hash(play: Play, scene: Scene) -> str:
    """One digest of all that a play comes to: how runs ended, artifacts, files, branch, decisions."""
    journal = scene.journal()
    ended = sorted(str(journal.ended(run)) for run in journal.runs[-1:])
    parts = [ended, ending(play, scene, journal), scene.files(), len(decided(journal)) > 0]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


class Stage:
    """A play as it stands before each of its commands, the calls of each, and what it comes to."""

    def __init__(self, play: Play, shim: Shim, bases: Sequence[Scene]) -> None:
        self.play = play
        self.shim = shim
        self.bases = bases
        self.calls: list[list[str]] = []
        self.wanted: Wanted
        self.ended: Scene

    def points(self) -> list[tuple[int, int]]:
        """Every call of every command: which command, which call."""
        return [
            (place, number + 1)
            for place, calls in enumerate(self.calls)
            for number in range(len(calls))
        ]

    def case(self, place: int, report: Report, name: str) -> PlayCase:
        """The play before one of its commands, to be broken there."""
        act = self.play.acts[place]
        scene = self.bases[place].copied(name)
        case = PlayCase(self.play, scene, self.wanted, report, f"{act.name} {name}")
        if place:
            case.broken(scene.said(self.play.acts[place - 1].code))
        return case

    def close(self) -> None:
        for base in self.bases:
            if isinstance(base, SharedScene):
                base.drop()


@contextmanager
def staged(
    play: Play,
    folder: Path,
    shim: Shim,
    server: Callable[[], Server],
    count: Callable[[Shim, Scene, Act], list[str]] | None = None,
) -> Iterator[Stage]:
    """Play it once undisturbed, and keep how it stood before each command."""
    with ModelServer(lambda _: Say("a spring tide")) as models:
        scene = Scene(folder / play.name)
        if play.shared:
            scene = SharedScene(scene.folder, server(), new_schema())
            scene.make()
        play.lay(scene.folder, models.url)
        if play.models:
            scene.loaded = LOADED
        stage = Stage(play, shim, [])
        bases: list[Scene] = []
        for place, act in enumerate(play.acts):
            bases.append(scene.copied(f"before-{place}"))
            stage.calls.append((count or counted)(shim, scene, act))
        stage.bases, stage.ended = bases, scene
        journal = scene.journal()
        assert journal.steps
        begun = scene.begun()
        reference = Reference(scene.files(), ending(play, scene, journal), begun)
        stage.wanted = Wanted(reference, state_hash(play, scene))
        try:
            yield stage
        finally:
            stage.close()
            if isinstance(scene, SharedScene):
                scene.drop()


def counted(shim: Shim, scene: Scene, act: Act) -> list[str]:
    """The calls of one command that nothing disturbs."""
    return shim.count(scene, *act.words, code=act.code)
