"""Twelve planted secrets, and every byte that is left of runs that met them, killed ones too."""

import base64
import html
import json
import random
import secrets
import signal
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, quote_plus, unquote_to_bytes

import pytest

from holdfast import wire
from holdfast.testing.server import Asked, Fail, ModelServer, Reply, Say
from tests.cli.faces import answers, pages
from tests.cli.keyrings import give_keyring
from tests.cli.models import LOADED
from tests.cli.project import Answer, Project, finish, until
from tests.cli.served import verdict
from tests.crash.report import Report

WORK = '''
"""What steps do with what they know."""
import base64
import json
import os


def broken() -> str:
    """Fails the first time, and tells everything while it does."""
    word = os.environ["EXCEPTION_WORD"]
    print("with", word, base64.b64encode(b"x" + word.encode()).decode())
    if os.environ["HOLDFAST_ATTEMPT"] == "1":
        raise RuntimeError(f"cannot sign {os.environ['TOKEN']} with {word!r}")
    return "signed"


def leak(note: str) -> str:
    """Says what it should not."""
    word = os.environ["AMAZON"]
    hexed = word.encode().hex()
    return json.dumps({"note": note, "key": word, "hex": hexed, "more": f"aws:{word}"})
'''
LOUD = """env >&2
printf '%s\\n' "$DATABASE" "$PEM" "$TOKEN" >&2
printf %s "$PEM" | base64 >&2
printf %s "at $DATABASE" | base64 >&2
printf %s "$TOKEN" | od -An -v -tx1 | tr -d ' \\n' >&2
echo >&2
sh -c 'sleep 0.3; : waits-for-a-look'
cd "/no/such/$ARGUMENT" || echo fine"""
KILLED = 4  # requests of a model before which a run is killed


class Canaries(NamedTuple):
    """Twelve words that are in no dictionary, and the secrets that they are part of, by where they are."""

    words: tuple[str, ...]
    values: Mapping[str, str]


class Ended(NamedTuple):
    """How a run ended, perhaps after its first engine was killed."""

    code: int
    killed: bool = False


def planted() -> Canaries:
    words = tuple(f"Kanarie{number:02}{secrets.token_hex(9)}" for number in range(12))
    body = [f"MIIEvQ{secrets.token_hex(26)}+/", f"MC4CAQ{words[7]}/+{secrets.token_hex(13)}"]
    values = {
        "UNRELATED_TOKEN": words[0],
        ".env": f"PASSWORD={words[1]}\n",
        ".netrc": f"machine 127.0.0.1 login me password {words[2]}\n",
        ".git/config": f'[remote "origin"]\n\turl = https://me:{words[3]}@example.com/a.git\n',
        "FAKE_CREDS": f"sk-{words[4]}/+",
        "keyring": f"sk-ring-{words[5]}",
        "DATABASE": f'postgres://app:{words[6]}@db.example/x?a=1&b="2"',
        "PEM": "\n".join(["-----BEGIN PRIVATE KEY-----", *body, "-----END PRIVATE KEY-----"]),
        "TOKEN": f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.{words[8]}",
        "AMAZON": f"wJalrXUtnFEMI/K7MDENG+{words[9]}",
        "EXCEPTION_WORD": f"pass'word\\{words[10]}",
        "ARGUMENT": f"--token={words[11]}",
    }
    return Canaries(words, values)


def steps() -> dict[str, Any]:
    model = {"model": "fake:m", "retries": 2}
    return {
        "loud": {"shell": LOUD, "secrets": ["DATABASE", "PEM", "TOKEN", "ARGUMENT"]},
        "reads": {"shell": "echo read", "inputs": [".env", "work.py"]},
        "broken": {
            "uses": "python",
            "run": "work:broken",
            "secrets": ["EXCEPTION_WORD", "TOKEN"],
            "retries": 1,
        },
        "echo": {"prompt": "what did I send?", **model},
        "ring": {"prompt": "and whose key is that?", "model": "ring:m"},
        "use": {
            "uses": "agent",
            "prompt": "use the tool",
            "tools": ["work:leak"],
            "secrets": ["AMAZON"],
            **model,
        },
        "judged": {
            "prompt": "write one line",
            **model,
            "guards": [{"judge": {"rubric": "it is short", "model": "fake:m"}}],
        },
    }


class Scene:
    """A project, a person with secrets, and a provider that repeats whatever it hears."""

    def __init__(self, project: Project, canaries: Canaries) -> None:
        self.project = project
        self.canaries = canaries
        self.said: list[bytes] = []
        self.argv: set[bytes] = set()
        self.shown: list[tuple[str, bytes]] = []
        self._scores = cycle([0.1, 0.9])
        self._plant()

    def _plant(self) -> None:
        project, values = self.project, self.canaries.values
        project.plan(steps())
        project.write("work.py", WORK)
        for name in (".env", ".git/config"):
            project.write(name, values[name])
        (project.home / ".netrc").write_text(values[".netrc"])
        give_keyring(project)
        self.heard(project.ok("auth", "set", "openai", stdin=values["keyring"].encode()))

    @property
    def env(self) -> dict[str, str]:
        names = [name for name in self.canaries.values if name.isupper() or "_" in name]
        return {name: self.canaries.values[name] for name in names}

    def configure(self, url: str) -> None:
        self.project.loaded = LOADED
        text = (
            f'[providers.fake]\nkind = "openai"\nbase_url = "{url}"\napi_key_env = "FAKE_CREDS"\n'
            f'[providers.ring]\nkind = "openai"\nbase_url = "{url}"\napi_key_env = "NOT_SET"\n'
            '[prices."fake:m"]\ninput = 1\noutput = 2\n[prices."ring:m"]\ninput = 1\noutput = 2\n'
        )
        (self.project.home / ".config" / "holdfast").mkdir(parents=True, exist_ok=True)
        (self.project.home / ".config" / "holdfast" / "config.toml").write_text(text)
        key = self.canaries.values["keyring"].encode()
        self.heard(self.project.ok("auth", "set", "ring", stdin=key))

    def words(self, word: str, *more: str) -> list[str]:
        allowed = ["DATABASE", "PEM", "TOKEN", "ARGUMENT", "EXCEPTION_WORD", "AMAZON"]
        secret = [part for name in allowed for part in ("--secret", name)]
        return [word, "--yes", "--record", "recorded", *secret, *more]

    def heard(self, answer: Answer) -> Answer:
        self.said += [answer.out.encode(), answer.err.encode()]
        return answer

    def look(self) -> None:
        """Take note of the command line of every process."""
        for place in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                self.argv.add(place.read_bytes())

    def reply(self, asked: Asked) -> Reply:
        """What a careless or hostile provider says."""
        self.look()
        header = asked.headers.get("authorization", "").removeprefix("Bearer ")
        coded = base64.b64encode(f"you sent {header}".encode()).decode()
        first = asked.texts[0] if asked.texts else ""
        if first.startswith("You judge"):
            score = next(self._scores)
            return Say(verdict(score, f"it lacks {header}", header))
        if asked.body.get("tools") and not any("aws" in text for text in asked.texts):
            return Say(tools=[("leak", {"note": header})])
        if "what did I send" in asked.last and asked.number % 3 == 0:
            headers = {"retry-after": "0"}
            return Fail(500, f"no use for {header} {quote(header)}", headers)
        return Say(f"{asked.last} {header} {coded} {json.dumps(header)}")

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Look at command lines again and again meanwhile: those of steps come and go."""
        over = threading.Event()

        def watch() -> None:
            while not over.wait(0.02):
                self.look()

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def run(self, killed_at: int | None, more: int) -> Ended:
        """One run; its engine is killed at a request, if it makes that many, and the run resumed."""
        project = self.project
        with ModelServer(self.reply) as server, self.watched():
            self.configure(server.url)
            force = ["--force"] if more else []
            if killed_at is None:
                answer = self.heard(
                    project.call(*self.words("run", "--json", *force), env=self.env)
                )
                return Ended(answer.code)
            engine = project.start(*self.words("run", "-v", *force), env=self.env)
            until(lambda: len(server.requests) >= killed_at or engine.poll() is not None, "it asks")
            with suppress(ProcessLookupError):
                engine.kill()
            ended = self.heard(finish(engine)).code
            if ended != -signal.SIGKILL:
                return Ended(ended)
            resumed = self.heard(project.call(*self.words("resume"), env=self.env))
            if "there is no unfinished run" in resumed.err:  # killed when all was done
                return Ended(0)
            return Ended(resumed.code, killed=True)

    def look_around(self) -> None:
        """Everything that commands show of the last run."""
        call = self.project.call
        for words in (["status"], ["trace"], ["cost"], ["verify"], ["ls"], ["export", "out.zip"]):
            self.heard(call(*words, "--json"))
        for step in steps():
            for word in ("show", "why", "logs"):
                self.heard(call(word, step))
        run = self.project.status().id
        self.shown += [*pages(self.project, run), *answers(self.project, run)]

    def found(self) -> list[str]:
        """Where canaries are that nobody planted there."""
        forms = [(word, form) for word in self.canaries.words for form in forms_of(word)]
        return [
            f"{word} in {place}"
            for place, content in self.contents()
            for word, form in forms
            if any(form in text for text in texts_of(content))
        ]

    def contents(self) -> Iterator[tuple[str, bytes]]:
        project = self.project
        planted = {project.root / ".env", project.root / ".git/config", project.home / ".netrc"}
        for top in (project.root, project.home):
            for place in top.rglob("*"):
                if place.is_file() and place not in planted:
                    yield str(place), place.read_bytes()
                if place.suffix == ".zip":
                    with zipfile.ZipFile(place) as whole:
                        yield from (
                            (f"{place}: {name}", whole.read(name)) for name in whole.namelist()
                        )
        for number, text in enumerate(self.said):
            yield f"what command {number // 2} said", text
        yield from self.shown
        for argv in self.argv:
            yield f"command line {argv[:40]!r}", argv
        store = wire.open_store(str(project.store), readonly=True)
        try:
            for item in store.stored():
                yield f"content {item.digest}", store.get(item.digest)
        finally:
            store.close()
        database = project.database()
        tables = [row[0] for row in database.execute("select name from sqlite_master")]
        for table in tables:
            with suppress(Exception):  # an index has no rows of its own
                for row in database.execute(f'select * from "{table}"'):
                    yield f"table {table}", repr(row).encode()
        database.close()


def texts_of(content: bytes) -> tuple[bytes, ...]:
    """A content as it is, without breaks of lines, and as a page and an address spell it."""
    plain = b"".join(content.replace(b"\\n", b"").split())
    whole = html.unescape(unquote_to_bytes(plain).decode(errors="replace")).encode()
    return content, plain, whole, whole.replace(b"\\", b"")


def forms_of(word: str) -> set[bytes]:
    """A word as programs write it down; written apart from the code that strikes it out."""
    raw = word.encode()
    found = {raw, raw.hex().encode(), raw.hex().upper().encode(), quote(raw).encode()}
    found |= {quote_plus(raw).encode(), json.dumps(word)[1:-1].encode()}
    for before in (b"", b"\0", b"\0\0"):
        whole = base64.b64encode(before + raw + b"\0\0\0")
        inner = whole[4 if before else 0 : (len(before) + len(raw)) // 3 * 4]
        found |= {inner, base64.urlsafe_b64encode(base64.b64decode(inner))}
    return found


@pytest.mark.req("D39", "I13")
def test_planted_secrets_appear_nowhere(project: Project, sweep: Callable[[Report], None]) -> None:
    scene, report = Scene(project, planted()), Report("canaries", "other")
    play(scene, report, [None, KILLED])
    sweep(report)
    check_work(scene, report)
    assert report.fired == 1


@pytest.mark.soak("other")
@pytest.mark.req("D39", "I13")
def test_planted_secrets_appear_nowhere_in_fifty_runs(
    project: Project, sweep: Callable[[Report], None]
) -> None:
    scene, report = Scene(project, planted()), Report("canaries", "other", total=50)
    choose = random.Random(39)
    play(scene, report, [choose.choice([None, *range(1, 9)]) for _ in range(50)])
    sweep(report)
    check_work(scene, report)


def play(scene: Scene, report: Report, kills: list[int | None]) -> None:
    """Run again and again, and look after each."""
    for number, killed_at in enumerate(kills):
        ended = scene.run(killed_at, number)
        report.tried += 1
        report.fired += ended.killed
        report.outcomes[f"exit {ended.code}"] += 1
        if ended.code:
            report.violations.append(f"run {number} ended with {ended.code}")
        done = scene.project.status()
        states = done.states
        report.work += sum(state in {"done", "reused"} for state in states.values())
        if {states[name] for name in ("loud", "broken", "echo", "use")} != {"done"}:
            report.violations.append(f"run {number} did not do its work: {states}, {done.err}")
        if number + 1 == len(kills):
            scene.look_around()
        report.violations += [f"run {number}: {place}" for place in scene.found()]


def check_work(scene: Scene, report: Report) -> None:
    """Nothing was found, and there was something to be found."""
    assert not report.violations, "\n".join(report.violations[:20])
    said = scene.project.ok("logs", "loud").out
    assert said.count("[secret]") >= 5, said
    assert "UNRELATED_TOKEN" not in said, "a step sees a variable that it did not name"
    assert any(b"holdfast" in argv for argv in scene.argv)
    assert any(b"waits-for-a-look" in argv for argv in scene.argv), "no step was seen at work"
    faces = b"".join(text for _, text in scene.shown)
    assert faces.count(b"[secret]") >= 20, "the page and the answers show where something was"
    recorded = [place.read_text() for place in (scene.project.root / "recorded").iterdir()]
    assert any("[secret]" in text for text in recorded)
