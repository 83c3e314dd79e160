"""Rows of steps that change files that they read, beside steps that only read, and what people do meanwhile.

A sequence is a row of steps, each after the one before, and doings of a person between its runs. The model
knows nothing of keys and results: it knows what each command makes of files that lie there. Commands are
such that once is as good as twice, and none reads what a later one changes.
"""

import fnmatch
import hashlib
import random
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from tests.cli.project import Project, Run
from tests.gitrepo.repository import git, repository

TEXTS = ("a.txt", "b.txt", "d/c.txt")
LINES = "".join(f"k{number}=0\n" for number in range(4)) + "end\n"
BEGUN = {**dict.fromkeys(TEXTS, LINES), "x.log": "log\n", ".gitignore": "plan.yaml\n"}
IGNORED = ("plan.yaml\n", "plan.yaml\n*.log\n", "plan.yaml\n# nothing more\n")
GUARDS = ("true", "test -d .", "test 1")
Files = dict[str, str]


@dataclass(frozen=True)
class Made:
    """A step of the row: what it does to which file, and how it says what it reads."""

    name: str
    does: str  # set, add, make, drop, copy; look, pay
    path: str
    reads: str  # word, name, glob, all
    where: str = ""
    value: int = 1
    guard: int = -1
    after: str = "sequence"

    @property
    def changes(self) -> bool:
        return self.does not in {"look", "pay"}

    @property
    def own(self) -> str:
        """The file that is its own, if it has one."""
        return f"{self.does}-{self.name}.txt" if self.does in {"make", "drop", "copy"} else ""

    @property
    def globs(self) -> list[str]:
        mine = [self.own] if self.own else []
        match self.reads:
            case "word":
                return []
            case "name":
                return [self.path, *mine]
            case "glob":
                return ["*.txt", *(["d/*.txt"] if "/" in self.path else [])]
            case _:
                return ["**"]

    def is_read(self, path: str, ignored: str) -> bool:
        """Whether a file decides the step."""
        if self.reads == "word":
            named = {"drop": {self.own}, "copy": {self.own, self.path}}
            return path in named.get(self.does, {self.path})
        if self.reads == "name":
            return path in self.globs
        if path.endswith(".log") and "*.log" in ignored:
            return False
        if self.reads == "all":
            return path != "plan.yaml"
        return any(is_match(path, glob) for glob in self.globs)

    @property
    def line(self) -> str:
        return f"{self.name}={self.value}"

    def command(self) -> str:
        place, said = self.path, self.name[1:]
        one, own = (place, self.own) if self.reads in {"word", "name"} else ("$p", "$o")
        match self.does:
            case "set":
                body = f"if [ -e {one} ]; then sed -i s/^k{said}=.*/k{said}={self.value}/ {one}; fi"
            case "add":
                body = f"grep -qsx {self.line} {one} || echo {self.line} >> {one}"
                body = f"mkdir -p d; {body}" if "/" in place else body
            case "make":
                body = f"echo {self.line} > {own}"
            case "drop":
                body = f"rm -f {own}; true {self.value}"
            case "copy":
                body = f"if [ -e {one} ]; then cp {one} {own}; echo {self.line} >> {own}; fi"
            case _:
                words = {"word": place, "name": place, "glob": " ".join(self.globs)}
                files = words.get(self.reads, "*.txt d/*.txt *.log")
                body = f"cat {files} 2> /dev/null; echo {self.line}"
        letters = f"p={place}; o={self.own}; " if "$" in body else ""
        return f"{letters}{body}"

    def shape(self, project: Project, needs: Sequence[str]) -> dict[str, Any]:
        found: dict[str, Any] = {"shell": project.sh(self.command())}
        if self.globs:
            found["inputs"] = [{"glob": glob, "optional": True} for glob in self.globs]
        if needs:
            found["needs"] = [{"step": step, "type": self.after} for step in needs]
        if self.guard >= 0:
            found["guards"] = [{"command": GUARDS[self.guard]}]
        if self.does == "pay":
            found["effects"] = "external"
        elif self.changes:
            found |= {"effects": "workspace", "workspace": self.where}
        return found

    def shows(self, files: Files) -> Iterator[str]:
        """The files that a step prints which only reads."""
        globs = [self.path] if self.reads in {"word", "name"} else self.globs
        for glob in ["*.txt", "d/*.txt", "*.log"] if self.reads == "all" else globs:
            yield from (path for path in sorted(files) if is_match(path, glob))

    def makes(self, files: Files) -> None:
        """What its command makes of files that lie there."""
        text, said = files.get(self.path), self.name[1:]
        match self.does:
            case "set" if text is not None:
                files[self.path] = re.sub(rf"(?m)^k{said}=.*", f"k{said}={self.value}", text)
            case "add" if self.line not in (text or "").splitlines():
                files[self.path] = f"{text or ''}{self.line}\n"
            case "make":
                files[self.own] = f"{self.line}\n"
            case "drop":
                files.pop(self.own, None)
            case "copy" if text is not None:
                files[self.own] = f"{text}{self.line}\n"
            case _:
                pass


class Doing(NamedTuple):
    """What a person does; `what` is a path, a step or a number."""

    kind: str
    what: str = ""
    number: int = 0


@dataclass(frozen=True)
class Sequel:
    """A whole sequence."""

    row: tuple[Made, ...]
    doings: tuple[Doing, ...]

    def __str__(self) -> str:
        return "\n".join(["row:", *map(repr, self.row), "doings:", *map(repr, self.doings)])


def sequel(seed: int) -> Sequel:
    """A sequence of chance."""
    chance = random.Random(seed)
    row: list[Made] = []
    for number in range(chance.randint(2, 4)):
        does = chance.choice(("set", "set", "add", "add", "make", "drop", "copy", "look", "pay"))
        path = chance.choice(("a.txt", "a.txt", "b.txt", "d/c.txt"))
        reads = chance.choice(("word", "name", "glob", "all"))
        where = chance.choice(("scratch", "worktree"))
        after = chance.choice(("sequence", "sequence", "data"))
        reads = "name" if does == "make" and reads == "word" else reads
        row.append(Made(f"s{number}", does, path, reads, where, after=after))
    changed = [{one.path} if one.does in {"set", "add"} else set[str]() for one in row]
    for number, one in enumerate(row):  # what a copy is of is not changed later
        if one.does == "copy" and any(one.path in later for later in changed[number:]):
            row[number] = replace(one, does="make", reads="name")
    doings: list[Doing] = [Doing("run")]
    files = [*TEXTS, "x.log", *(one.own for one in row if one.own)]
    names = [one.name for one in row]
    kinds = {"edit": 5, "value": 5, "delete": 2, "older": 4, "ignore": 1, "guard": 2, "undo": 2}
    kinds |= {"gc": 1, "force": 2, "back": 3, "commit": 1, "run": 2, "again": 1}
    for _ in range(chance.randint(3, 9)):
        (kind,) = chance.choices([*kinds], [*kinds.values()])
        what = ""
        if kind in {"edit", "delete", "older"}:
            what = chance.choice(files)
        elif kind in {"value", "guard", "undo", "force"}:
            what = chance.choice(names)
        doings.append(Doing(kind, what, chance.randint(0, 5)))
        if chance.random() < 0.7 and kind not in {"run", "force", "again"}:
            doings.append(Doing("run"))
    return Sequel(tuple(row), (*doings, Doing("run")))


@dataclass
class Kept:
    """How things were when a run was completed."""

    row: tuple[Made, ...]
    files: Files


@dataclass
class Bed:
    """A project in which a sequence is played."""

    project: Project
    row: tuple[Made, ...]
    ends: list[Kept] = field(default_factory=list)  # of completed runs
    places: list[Kept] = field(default_factory=list)  # those to which a person may go back
    steady: list[Kept] = field(default_factory=list)  # those that nothing was withdrawn from since
    theirs: set[str] = field(default_factory=set)  # what a person wrote, whole files
    past: dict[str, list[str]] = field(default_factory=dict)  # what ever lay at a path
    free: set[str] = field(default_factory=set)  # steps that may run for other reasons
    withdrawn: set[str] = field(default_factory=set)
    went_back: bool = False
    spoilt: bool = False  # a run was not completed
    notes: int = 0
    runs: int = 0
    made: int = 0
    wrong: list[str] = field(default_factory=list)
    trace: list[str] = field(default_factory=list)

    def begin(self) -> None:
        repository(self.project.root, BEGUN)
        self.plan()

    def plan(self) -> None:
        names = [one.name for one in self.row]
        self.project.plan(
            {
                one.name: one.shape(self.project, names[max(0, place - 1) : place])
                for place, one in enumerate(self.row)
            }
        )

    def files(self) -> Files:
        root = self.project.root
        found = {
            str(place.relative_to(root)): place.read_text()
            for place in sorted(root.rglob("*"))
            if place.is_file() and place.relative_to(root).parts[0] not in {".git", ".holdfast"}
        }
        found.pop("plan.yaml", None)
        return found

    def fail(self, law: str, words: str) -> None:
        self.wrong.append(f"{law}: {words}")

    # --- what people do ---------------------------------------------------------------------------

    def do(self, doing: Doing) -> None:
        root, what = self.project.root, doing.what
        self.trace.append(f"{doing}")
        self.went_back |= doing.kind in {"back", "older"}
        match doing.kind:
            case "run":
                self.run()
            case "again":
                self.run()
                self.run()
            case "force":
                self.free.add(what)
                self.run("--force-node", what)
            case "edit":
                self.notes += 1
                text = self.files().get(what, "")
                note = f"note {self.notes}\n"
                text = (f"{text}{note}", f"{note}{text}", f"{note}{LINES}")[doing.number % 3]
                self.write(what, text)
            case "delete":
                (root / what).unlink(missing_ok=True)
            case "older":
                texts = self.past.get(what, [])
                if texts:
                    self.write(what, texts[doing.number % len(texts)])
            case "ignore":
                self.write(".gitignore", IGNORED[doing.number % len(IGNORED)])
            case "value" | "guard":
                self.row = tuple(self.other(one, doing) for one in self.row)
                self.plan()
            case "undo":
                self.undo(what)
            case "gc":
                self.project.ok("gc", "--keep", "0s", "--yes")
                self.steady.clear()
            case "back" if self.places:
                self.back(self.places[doing.number % len(self.places)])
            case "commit":
                git(root, "add", "-A")
                git(root, "commit", "-q", "--allow-empty", "-m", "more")
            case _:
                pass
        self.note()

    def other(self, one: Made, doing: Doing) -> Made:
        if one.name != doing.what:
            return one
        if doing.kind == "guard":
            return replace(one, guard=doing.number % 4 - 1)
        return replace(one, value=1 + doing.number % 3)

    def write(self, path: str, text: str) -> None:
        self.theirs.add(text)
        self.project.write(path, text)

    def back(self, then: Kept) -> None:
        """The whole directory as it was at the end of a run, the plan with it."""
        for path in self.files():
            (self.project.root / path).unlink()
        for path, text in then.files.items():
            self.project.write(path, text)
        self.row = then.row
        self.plan()

    def undo(self, step: str) -> None:
        before = self.files()
        answer = self.project.call("undo", step)
        if answer.code not in {0, 2}:
            self.fail("undo", f"{answer.code} {answer.err}")
        if answer.code == 0:
            self.withdrawn.add(step)
            self.past.clear()  # nobody puts back by hand what was withdrawn
            self.places.clear()
            self.steady.clear()
            self.check_kept(before)

    def note(self) -> None:
        for path, text in self.files().items():
            texts = self.past.setdefault(path, [])
            if text not in texts:
                texts.append(text)

    # --- what is always so ------------------------------------------------------------------------

    def run(self, *words: str) -> None:
        self.runs += 1
        project, before = self.project, self.files()
        answer = project.call("plan", "--json", *words)
        told = answer.json if answer.code == 0 else None
        assert project.ran() == []
        if self.files() != before:
            self.fail("preview", "it changed files")
        answer = project.call("run", "--yes", "--json", *words)
        data = answer.json if answer.out else {}
        ran = project.ran()
        after = self.files()
        self.made += len(ran)
        self.trace.append(f"  ran {ran}; changed {differing(before, after)}")
        self.note()
        self.check_kept(before)
        if answer.code != 0 or told is None:
            self.fail("completed", f"{answer.code} {answer.err[-600:]}")
            self.spoilt = True
            return
        self.check_preview(told, ran, before, after)
        self.check_causes(Run(answer.code, data, answer.err), ran, before, after)
        self.check_files(ran, before, after)
        self.check_idle(after)
        self.free.clear()
        self.spoilt = False
        self.ends.append(Kept(self.row, after))
        self.places.append(self.ends[-1])
        self.steady.append(self.ends[-1])

    def check_preview(
        self, told: Mapping[str, Any], ran: Sequence[str], before: Files, after: Files
    ) -> None:
        said = {step: one["decision"] for step, one in told["steps"].items()}
        for step, decision in said.items():
            if decision == "wait" or (decision, step in ran) in {("run", False), ("reuse", True)}:
                self.fail("preview", f"{step}: {told['steps'][step]}, ran {ran}")
        if not ran and set(said.values()) == {"reuse"}:
            put = {p for one in told["details"].values() for p in (*one["writes"], *one["removes"])}
            if put != set(differing(before, after)):
                self.fail("preview", f"writes {put}, not {differing(before, after)}")

    def check_causes(self, run: Run, ran: Sequence[str], before: Files, after: Files) -> None:
        if len(ran) != len(set(ran)):
            self.fail("once", f"ran {ran}")
        if self.spoilt:
            return
        last = self.ends[-1] if self.ends else None
        moved = differing(before, after)
        edited = differing(last.files, before) if last else []
        ignored = before.get(".gitignore", "") + (last.files.get(".gitignore", "") if last else "")
        for place, one in enumerate(self.row):
            then = last.row[place] if last else None
            same = then is not None and replace(then, guard=one.guard) == one
            read = [path for path in edited if one.is_read(path, "")]
            above = [other.name for other in self.row[:place] if other.name in ran]
            if one.does == "pay" and one.after == "sequence":
                above = above if any(one.is_read(path, "") for path in moved) else []
            causes = [not same, one.name in self.free, self.withdrawn, read, above, not self.ends]
            if last and one.guard != last.row[place].guard:
                causes.append(self.went_back)  # the newest result may be of another branch
            if last and place and one.after == "data":
                causes.append(self.row[place - 1].guard != last.row[place - 1].guard)
            if one.name in ran and not any(causes):
                self.fail("cause", f"{one.name} ran: {run.codes.get(one.name)}")
            written = [path for path in read if before.get(path) in self.fresh(path)]
            written = [path for path in written if one.is_read(path, ignored) and path not in moved]
            if written and one.name not in ran:
                self.fail("stale", f"{one.name} did not run, though {written} changed")
        as_then = any(kept.files == before and kept.row == self.row for kept in self.steady)
        if as_then and not self.free and ran:
            self.fail("branch", f"ran {ran} where all was as at the end of a run")

    def fresh(self, path: str) -> set[str]:
        """What a person wrote there that never lay there at the end of a run."""
        return self.theirs - {kept.files.get(path, "") for kept in self.ends} - {*BEGUN.values()}

    def check_files(self, ran: Sequence[str], before: Files, after: Files) -> None:
        want = dict(before)
        for one in self.row:
            one.makes(want)
        for path in differing(want, after):
            words = (
                f"{path}: {after.get(path)!r}, not {want.get(path)!r}, from {before.get(path)!r}"
            )
            self.fail("files", words)
        last = self.row[-1]
        if not last.changes and not self.wrong:
            shown = self.project.shown(last.name).decode()
            paths, ignored = [*last.shows(after)], after.get(".gitignore", "")
            said = "".join(after[path] for path in paths) + f"{last.line}\n"
            decides = all(last.is_read(path, ignored) for path in paths)
            if decides and shown != said:
                self.fail("read", f"{last.name} has {shown!r}, not {said!r}")

    def check_idle(self, files: Files) -> None:
        run = self.project.run("--yes")
        ran = self.project.ran()
        if run.code != 0 or ran or self.files() != files:
            now = differing(files, self.files())
            self.fail("idle", f"{run.code}, ran {ran}: {run.codes}, changed {now}")

    def check_kept(self, before: Files) -> None:
        """What lay there still does, or is stored."""
        for text in {*before.values()} - {*self.files().values()}:
            digest = hashlib.sha256(text.encode()).hexdigest()
            if self.project.call("show", digest).code != 0:
                self.fail("kept", f"{text!r} is lost")


def is_match(path: str, glob: str) -> bool:
    return fnmatch.fnmatch(path, glob) and glob.count("/") == path.count("/")


def differing(one: Files, other: Files) -> list[str]:
    return sorted(path for path in {*one, *other} if one.get(path) != other.get(path))


def play(folder: Path, whole: Sequel) -> Bed:
    """Play a sequence until something is wrong."""
    folder.mkdir(parents=True)
    project = Project(folder)
    bed = Bed(project, whole.row)
    try:
        bed.begin()
        for doing in whole.doings:
            bed.do(doing)
            if bed.wrong:
                break
    finally:
        project.end()
        shutil.rmtree(folder)
    return bed


def shortest(folder: Path, whole: Sequel, law: str) -> tuple[Sequel, Bed]:
    """The same with fewer doings and steps, as long as the same law is broken."""
    found = play(folder / "whole", whole)
    tried = 0
    smaller = True
    while smaller:
        smaller = False
        for less in fewer(whole):
            tried += 1
            bed = play(folder / str(tried), less)
            if any(words.startswith(law) for words in bed.wrong):
                whole, found, smaller = less, bed, True
                break
    return whole, found


def fewer(whole: Sequel) -> Iterator[Sequel]:
    for place in reversed(range(len(whole.doings))):
        yield replace(whole, doings=whole.doings[:place] + whole.doings[place + 1 :])
    for place, one in enumerate(whole.row):
        left = tuple(doing for doing in whole.doings if doing.what != one.name)
        if len(whole.row) > 1:
            yield Sequel(whole.row[:place] + whole.row[place + 1 :], left)
    for place, one in enumerate(whole.row):
        for other in (
            replace(one, reads="name"),
            replace(one, where="scratch"),
            replace(one, after="sequence"),
        ):
            if other != one:
                yield replace(whole, row=(*whole.row[:place], other, *whole.row[place + 1 :]))
