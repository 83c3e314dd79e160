"""Requests of all kinds at a page that is really served, and what must hold of every answer.

Schemathesis makes what is asked from the description of the page; who asks, with which headers and by
which method, is drawn beside it. After each request the store is looked at: only a POST with the cookie
and the token of one session, as JSON, from the page itself, may have changed anything.
"""

import hashlib
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode

from holdfast.web.door import HEADERS
from tests.cli.project import Project, finish
from tests.crash.report import Report
from tests.web.described import FILES, Operation, description
from tests.web.site import Said, Site, serve

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "get", "FOO")
REFUSALS = frozenset({400, 403, 404, 405, 409, 412, 421})
HOSTILE = ("../../etc/passwd", "%2e%2e/", "\x00", "'\"><script>", "٣", "9" * 30, "\u202e")
_LONG = 64 * 1024  # bytes that fit into the pipe of a connection
BODIES = {  # what no generator of JSON makes
    "nothing": b"",
    "deep": b"[" * 200_000,
    "deep objects": b'{"run":' * 100_000,
    "half letters": b'{"run": "\\ud800", "step": "\\udfff", "do": "stop", "line": "\\ud800"}',
    "half a reason": b'{"approval": "\\ud800", "because": "\\ud800", "entry": "\\ud800"}',
    "long": b'{"run": "' + b"x" * 900_000 + b'"}',
    "too long": b'{"run": "' + b"x" * 1_100_000 + b'"}',
    "long number": b'{"run": ' + b"9" * 5000 + b"}",
    "no number": b'{"run": "a", "run": NaN}',
    "marked": b"\xef\xbb\xbf{}",
    "wide letters": b"\xff\xfe{\x00}\x00",
}


@dataclass(repr=False)
class Scene:
    """A store with runs, approvals, artifacts and a ledger; its page; two people who are let in."""

    project: Project
    site: Site
    other: Site
    known: Mapping[str, list[str]]
    eye: apsw.Connection
    schema: Any = field(init=False)

    def __post_init__(self) -> None:
        self.schema = schemathesis.openapi.from_dict(description(self.known))

    def stand(self) -> str:
        """Everything that a request could change: each journal to its last event, and every file."""
        found = hashlib.sha256()
        rows = self.eye.execute("SELECT name, last, hash FROM journal ORDER BY name").fetchall()
        version = self.eye.execute("PRAGMA data_version").fetchall()
        found.update(repr([rows, version]).encode())
        for folder, _, names in sorted(os.walk(self.project.root)):
            for name in sorted(names):
                if not name.startswith("state.db"):
                    path = Path(folder, name)
                    found.update(f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}".encode())
        return found.hexdigest()


@contextmanager
def scene(folder: Path) -> Iterator[Scene]:
    """One to be asked."""
    project = Project(folder)
    project.plan(
        {
            "made": {"shell": project.sh("echo '# text' > out.md"), "produces": "out.md"},
            "each": {"for_each": ["a", "b"], "with": {"v": "${{ item }}"}, "shell": "echo x"},
            "bad": {"shell": "echo no >&2; exit 1"},
            "ship": {"shell": project.sh(), "approve": "always", "needs": ["made"]},
            "tell": {"uses": "human", "prompt": "what?"},
        }
    )
    project.run("-s", "made")
    project.run()
    project.ok("ledger", "add", "evidence", "it is so", "--because", "seen")
    try:
        site = serve(project)
        site.enter()
        other = Site(project, site.process, project.ok("ui", "--no-browser").out.strip())
        other.enter()
        eye = apsw.Connection(str(project.store / "state.db"), flags=apsw.SQLITE_OPEN_READONLY)
        yield Scene(project, site, other, _known(project), eye)
        eye.close()
        site.process.send_signal(signal.SIGTERM)
        err = finish(site.process).err
        assert "Traceback" not in err, err
    finally:
        project.end()


def _known(project: Project) -> dict[str, list[str]]:
    """Values that lead somewhere in this store."""
    runs = [row["run"] for row in project.ok("history", "--json").json["runs"]]
    asked = project.ok("approvals", "--json").json["approvals"]
    status = project.status("@").data["steps"]
    digests = [step["digest"] for step in status.values() if step["digest"]]
    ledger = project.ok("ledger", "--json").json
    entries = [one["id"] for one in ledger["evidence"]]
    assert runs
    assert asked
    assert digests
    assert entries
    steps = [*status, *HOSTILE]
    return {
        "run": [*runs, runs[0][:9], ""],
        "a": [*runs, "x"],
        "b": [*runs, ""],
        "step": steps,
        "focus": steps,
        "find": steps,
        "of": steps,
        "open": ["each", "each\nmade", "no"],
        "digest": [*digests, "0" * 64, "../../etc/passwd"],
        "file": [*FILES, "no.css", "../server.py", "%2e%2e/server.py"],
        "view": ["result", "attempts", "why", "logs", "evidence", "no"],
        "do": ["stop", "resume", "retry", "skip", "accept", "fly"],
        "approval": [one["approval"] for one in asked],
        "subject": [one["subject"] for one in asked],
        "answer": ["yes", "no"],
        "scope": ["once", "run", "content", "for ever"],
        "because": ["it is so", "\u202e\x1b[2J"],
        "content": ["text", "\x00"],
        "entry": [*entries, "no"],
        "line": ["demo"],
        "part": ["evidence", "gaps", "no"],
        "contest": [*entries, "no"],
        "back": ["1", "0"],
        "by": ["model", "step", "no"],
        "all": ["1", "0"],
        "show": ["waits", "no"],
        "word": ["running", "done", "\u202e"],
        "q": ["made", *HOSTILE],
        "code": ["", "x" * 32],
        "hx-request-type": ["partial", "full"],
        "last-event-id": ["0", "3", "99999", "-1", "x"],
    }


# --- who asks --------------------------------------------------------------------------------------------

Given = list[tuple[str, str]]


def _person(scene: Scene, **instead: str) -> Given:
    """The headers of the page's own script, with others in their place; an empty one is left out."""
    usual = {
        "Host": scene.site.host,
        "Cookie": scene.site.cookie,
        "Origin": scene.site.base,
        "X-Holdfast-Token": scene.site.token,
        "Content-Type": "application/json",
    }
    given = {**usual, **{name.replace("_", "-"): value for name, value in instead.items()}}
    return [(name, value) for name, value in given.items() if value]


def _near(token: str) -> str:
    return token[:-1] + ("A" if token[-1] != "A" else "B")


STRANGERS: Mapping[str, Callable[[Scene], Given]] = {
    "nobody": lambda s: _person(s, Cookie="", X_Holdfast_Token=""),
    "no token": lambda s: _person(s, X_Holdfast_Token=""),
    "no cookie": lambda s: _person(s, Cookie=""),
    "near token": lambda s: _person(s, X_Holdfast_Token=_near(s.site.token)),
    "short token": lambda s: _person(s, X_Holdfast_Token=s.site.token[:20]),
    "another's token": lambda s: _person(s, X_Holdfast_Token=s.other.token),
    "another's cookie": lambda s: _person(s, Cookie=s.other.cookie),
    "two tokens": lambda s: [*_person(s), ("X-Holdfast-Token", s.site.token)],
    "cookie as token": lambda s: _person(s, X_Holdfast_Token=s.site.cookie.partition("=")[2]),
    "bad cookie": lambda s: _person(s, Cookie=f"a=\x07; {s.site.cookie}x"),
    "plain text": lambda s: _person(s, Content_Type="text/plain"),
    "form": lambda s: _person(s, Content_Type="application/x-www-form-urlencoded"),
    "no type": lambda s: _person(s, Content_Type=""),
    "two types": lambda s: [*_person(s), ("Content-Type", "text/plain")],
    "other site": lambda s: _person(s, Origin="http://evil.test"),
    "no site": lambda s: _person(s, Origin="null"),
    "other port": lambda s: _person(s, Origin=f"http://127.0.0.1:{s.site.port + 1}"),
    "cross-site": lambda s: _person(s, Sec_Fetch_Site="cross-site"),
    "other name": lambda s: _person(s, Host=f"rebind.test:{s.site.port}"),
    "no name": lambda s: _person(s, Host=""),
}
PEOPLE: Mapping[str, Callable[[Scene], Given]] = {
    "person": _person,
    "charset": lambda s: _person(s, Content_Type="application/json; charset=latin-1"),
    "typed": lambda s: _person(s, Origin="", Sec_Fetch_Site="none", Sec_Fetch_Mode="navigate"),
}
WHO = {**STRANGERS, **PEOPLE}


@dataclass(frozen=True)
class Ask:
    """One request as it goes over the wire."""

    method: str
    path: str
    headers: Given
    body: bytes
    who: str

    def wire(self) -> bytes:
        framed = [*self.headers, ("Content-Length", str(len(self.body))), ("Connection", "close")]
        lines = [
            f"{self.method} {self.path} HTTP/1.1",
            *(f"{name}: {value}" for name, value in framed),
        ]
        return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + self.body

    def line(self) -> str:
        return f"{self.who}: {self.method} {self.path[:200]!r} {self.body[:100]!r}"

    @property
    def may_change(self) -> bool:
        return self.who in PEOPLE and self.method == "POST"


def ask_of(scene: Scene, case: Case[Any], method: str, who: str, body: str) -> Ask:
    """What Schemathesis made, asked by somebody; a method or a body may be another than the described."""
    kept = ("method", "url", "headers", "params", "json", "data", "cookies", "files")
    made = case.as_transport_kwargs(base_url=scene.site.base)
    prepared = requests.Request(**{key: made[key] for key in kept if key in made}).prepare()
    ours = {"host", "content-length", "content-type", "connection", "cookie", "transfer-encoding"}
    ours |= {"user-agent", "accept-encoding", "x-schemathesis-testcaseid"}
    more = [(name, str(v)) for name, v in prepared.headers.items() if name.lower() not in ours]
    found = prepared.body or b""
    content = (
        found.encode() if isinstance(found, str) else found if isinstance(found, bytes) else b""
    )
    return Ask(
        method or prepared.method or "GET",
        prepared.path_url,
        [*WHO[who](scene), *more],
        BODIES[body] if body else content,
        who,
    )


def strategy(scene: Scene, operation: Operation) -> st.SearchStrategy[Ask]:
    """Requests for one operation: half of them as it is described, half as it is not."""
    found = scene.schema[operation.path][operation.method]
    cases = st.one_of(*(found.as_strategy(generation_mode=mode) for mode in GenerationMode))
    often = st.sampled_from([operation.method] * 3 * len(METHODS) + list(METHODS))
    who = st.sampled_from([*STRANGERS, *list(PEOPLE) * len(STRANGERS)])
    others = list(BODIES) if operation.method == "POST" else []
    bodies = st.sampled_from([""] * (2 * len(others) or 1) + others)
    return st.builds(partial(ask_of, scene), cases, often, who, bodies)


# --- what must hold ---------------------------------------------------------------------------------------


def faults(ask: Ask, said: Said, before: str, after: str) -> Iterator[str]:
    """What is wrong with an answer."""
    if said.status >= 500 or said.status < 200:
        yield f"status {said.status}"
    if said.status >= 400 and said.status not in REFUSALS:
        yield f"refused with {said.status}"
    if b"Traceback" in said.body or b"the page broke" in said.body:
        yield "it shows how it is made"
    if ask.who in {"other name", "no name"} and (said.status, said.body) != (421, b""):
        yield f"{said.status} with {len(said.body)} bytes for another name"
    if ask.who in STRANGERS and ask.method == "POST" and said.status < 400:
        yield f"{said.status} for a stranger"
    if lost := [name for name, value in HEADERS.items() if said.headers.get(name.lower()) != value]:
        yield f"without {', '.join(lost)}"
    yield from (f"sends {name}" for name in said.headers if name.startswith("access-control"))
    if before != after and not ask.may_change:
        yield "something changed"


def swept(scene: Scene, operation: Operation, count: int, number: int, report: Report) -> None:
    """Ask one operation so often; what is wrong stands in the report, with the request."""

    @seed(number)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy(scene, operation))
    def asked(ask: Ask) -> None:
        before = scene.stand()
        said = _answer(scene.site, ask)
        after = scene.stand()
        report.tried += 1
        if said is None:
            report.outcomes["cut"] += 1
            return
        report.fired += said.status >= 400
        report.work += said.status < 400
        report.kept += before == after
        report.outcomes[str(said.status)] += 1
        report.outcomes["changed"] += before != after
        if wrong := "; ".join(faults(ask, said, before, after)):
            report.violations.append(f"{operation.name}: {wrong}: {ask.line()}")

    asked()


def _answer(site: Site, ask: Ask) -> Said | None:
    """What comes back; None if a long body was not wanted and the line was cut before all of it was sent."""
    try:
        return site.raw(ask.wire())
    except ConnectionError:
        if len(ask.body) < _LONG:
            raise
        return None
