"""A project with a line of every kind on one store, and the commands that people and machines start in it."""

import hashlib
import json
import os
import subprocess
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from holdfast import wire
from holdfast.model.event import EffectStarted
from holdfast.ports import Store
from holdfast.testing.server import Asked, Reply, Say
from tests.crash.scene import COMMAND, LIBRARY, Answer

POLL, BEAT, LEASE, TIMEOUT = 0.2, 0.3, 3.0, 20
QUICK = ("--poll", str(POLL), "--beat", str(BEAT))
ENGINE = (*QUICK, "--lease", str(LEASE))
QUEUE = "far"
NAP = "sleep 0.1"
WORK = """
import os


def count(read):
    return {"words": len(read.split())}


def join(read, count):
    return read.strip() + " " + count
"""
ADDED = {
    "mid": {"shell": f"{NAP}; cat $HOLDFAST_INPUTS/scan", "needs": ["scan"]},
    "last": {"shell": f"{NAP}; cat $HOLDFAST_INPUTS/*", "needs": ["scan", "mid"]},
}


def plans(sink: Path = Path("sink")) -> dict[str, dict[str, Any]]:
    """Every line: what it reads is a file of its own, which decides all that it makes."""
    more = json.dumps({"steps": ADDED}).replace("'", "'\"'\"'")
    found: dict[str, dict[str, Any]] = {
        "fan": {f"s{n}": reading("fan") for n in range(6)},
        "python": {
            "read": reading("python"),
            "count": {"uses": "python", "run": "work:count", "needs": ["read"]},
            "join": {"uses": "python", "run": "work:join", "needs": ["read", "count"]},
        },
        "model": {
            "read": reading("model"),
            "say": {"prompt": "say it", "model": "fake:m", "needs": ["read"]},
            "again": {"prompt": "say it again", "model": "fake:m", "needs": ["say"]},
        },
        "gate": {
            "read": reading("gate"),
            "asks": {**below("read"), "approve": "always"},
            "after": below("asks"),
        },
        "effect": {
            "read": reading("effect"),
            "send": {
                **below("read"),
                "shell": f'{NAP}; echo "$HOLDFAST_EFFECT_KEY" >> {sink}; {NAP}; echo sent',
                "effects": "external",
            },
            "after": below("send"),
        },
        "items": {
            "list": {"shell": f"{NAP}; cat in/items.txt", "inputs": ["in/items.txt"]},
            "each": {
                "for_each": "${{ steps.list.output }}",
                "key": "${{ item }}",
                "with": {"word": "${{ item }}"},
                "shell": f"{NAP}; cat $HOLDFAST_WITH/word",
            },
            "sum": {"with": {"all": "${{ steps.each.output }}"}, "shell": "cat $HOLDFAST_WITH/all"},
        },
        "grow": {
            "scan": {
                "shell": f"{NAP}; cat in/grow.txt; printf '%s' '{more}' > $HOLDFAST_ADD/more.json",
                "inputs": ["in/grow.txt"],
            }
        },
        "edit": {
            "make": {
                "shell": f"{NAP}; mkdir -p made && cat in/edit.txt > made/a.txt && cp made/a.txt made/b.txt",
                "inputs": ["in/edit.txt"],
                "produces": ["made/a.txt", "made/b.txt"],
            },
            "after": {"shell": "cat made/a.txt made/b.txt", "needs": ["make"]},
        },
        "hand": {"note": reading("hand"), "after": below("note")},
        QUEUE: {
            "read": reading(QUEUE),
            "there": {**below("read"), "runs_on": QUEUE},
            "too": {**below("read"), "runs_on": QUEUE},
            "after": below("there"),
        },
        "watched": {"read": reading("watched"), "after": below("read")},
    }
    return {name: planned(name, steps) for name, steps in found.items()}


def planned(name: str, steps: dict[str, Any]) -> dict[str, Any]:
    defaults = {"workspace": "scratch", "timeout": f"{TIMEOUT}s", "retries": 1}
    if name == "effect":
        del defaults["retries"]
    return {"name": name, "project": "play", "defaults": defaults, "steps": steps}


def reading(name: str) -> dict[str, Any]:
    return {"shell": f"{NAP}; cat in/{name}.txt", "inputs": [f"in/{name}.txt"]}


def below(name: str) -> dict[str, Any]:
    return {"shell": f'{NAP}; cat "$HOLDFAST_INPUTS/{name}"; echo more', "needs": [name]}


LINES = tuple(plans())


def answered(asked: Asked) -> Reply:
    """What the model says to a prompt: always the same."""
    said = hashlib.sha256("\n".join(asked.texts).encode()).hexdigest()
    return Say(f"said {said}", delay=0.05)


class Told(NamedTuple):
    """What a command said to whoever started it."""

    line: str
    words: tuple[str, ...]
    answer: Answer


@dataclass
class World:
    """One project; `place` is the address of its store, or nothing if it lies in the project."""

    folder: Path
    model: str  # the address of the model
    place: str = ""
    disk: Path | None = None  # where the project lies, if not here
    told: list[Told] = field(default_factory=list)
    retries: Counter[str] = field(default_factory=Counter)  # by the key of the effect
    purged: set[str] = field(default_factory=set)
    edited: set[str] = field(
        default_factory=set
    )  # what a person wrote over a file that a step made
    started: list["subprocess.Popen[bytes]"] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    voices: int = 0

    @property
    def root(self) -> Path:
        return (self.disk or self.folder) / "project"

    @property
    def store(self) -> Path:
        return self.root / ".holdfast"

    @property
    def sink(self) -> Path:
        return self.folder / "sink.txt"

    def lay(self) -> None:
        """Write the plans, what they read, and the person's configuration."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for path in ("in", "made"):
            (self.root / path).mkdir(parents=True, exist_ok=True)
        (self.root / "work.py").write_text(WORK)
        for name, plan in plans(self.sink).items():
            (self.root / f"{name}.yaml").write_text(json.dumps(plan, indent=1))
            self.change(name, 0)
        config = self.folder / "home" / ".config" / "holdfast"
        config.mkdir(parents=True, exist_ok=True)
        (config / "config.toml").write_text(
            f'[providers.fake]\nkind = "openai"\nbase_url = "{self.model}"\n'
            '[prices."fake:m"]\ninput = 1\noutput = 2\n'
            '[sandbox]\nspare = "8 MB"\n'  # the disk is small
        )
        (self.folder / "said").mkdir(exist_ok=True)

    def change(self, name: str, number: int) -> None:
        """Somebody changes what a line reads, in one move; a full disk may refuse it."""
        text = f"{name} {number}\n"
        if name == "items":
            text = json.dumps([f"i{n}" for n in range(2 + number % 3)])
        place = self.root / "in" / f"{name}.txt"
        new = self.folder / f"{name}.new"
        new.write_text(text)
        with open(place, "a", encoding="utf-8"):
            pass
        place.write_text(new.read_text())

    def read(self, name: str) -> str:
        """What a line reads now."""
        return (self.root / "in" / f"{name}.txt").read_text()

    def environment(self) -> dict[str, str]:
        kept = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": str(self.folder / "home")}
        more = {"HOLDFAST_STORE": self.place} if self.place else {}
        return {
            **kept,
            "HOLDFAST_WRITABLE": str(self.folder),
            "PYTHONDONTWRITEBYTECODE": "1",
            **LIBRARY,
            **more,
        }

    def start(
        self, *words: str, before: Sequence[str] = ()
    ) -> tuple["subprocess.Popen[bytes]", Path]:
        """A command of its own session; what it says goes into files, which no kill can lose."""
        with self.lock:
            self.voices += 1
            said = self.folder / "said" / f"{self.voices:05}"
        with open(f"{said}.out", "wb") as out, open(f"{said}.err", "wb") as err:
            process = subprocess.Popen(
                [*before, *COMMAND, *words],
                cwd=self.root,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        with self.lock:
            self.started.append(process)
        return process, said

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self.started]

    def close(self) -> None:
        """End whatever still runs: a play that broke off leaves nothing."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.wait()

    def ended(self, line: str, words: Sequence[str], code: int, said: Path) -> Answer:
        """Keep what a command said, outside of the store."""
        out, err = (Path(f"{said}.{kind}").read_bytes() for kind in ("out", "err"))
        answer = Answer(code, out.decode(errors="replace"), err.decode(errors="replace"))
        with self.lock:
            self.told.append(Told(line, tuple(words), answer))
        return answer

    def asked_again(self, line: str, step: str) -> None:
        """A person is about to have an effect done again: the one that was begun last in the line."""
        store = self.opened()
        try:
            for row in reversed(store.runs(line)):
                events = [recorded.event for recorded in store.read(f"run:{row.run}")]
                begun = [one for one in events if isinstance(one, EffectStarted)]
                if keys := [one.key for one in begun if one.step == step]:
                    with self.lock:
                        self.retries[keys[-1]] += 1
                    return
        finally:
            store.close()

    def opened(self) -> Store:
        location = wire.store_location(str(self.root), self.place or str(self.store))
        return wire.open_store(location, create=False)
