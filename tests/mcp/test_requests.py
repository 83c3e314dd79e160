"""Whatever an agent sends: one answer or one typed error, no decision of a person, and bounded memory."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import apsw
import pytest

from tests.cli.project import DEADLINE, Project
from tests.crash.report import Report
from tests.mcp.asking import Frame, decided, frames, known, operations, swept
from tests.mcp.bare import VERSION, Bare
from tests.mcp.listening import Door, listening, peak

SAMPLE, WHOLE = 3, 500
ROOM = 100 << 20
ALL = operations()


class Talk:
    """A client that says yes to whatever the server asks, and a look at what that changed."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.values = known(project)
        self.count = [0]
        self.eye = apsw.Connection(str(project.store / "state.db"), flags=apsw.SQLITE_OPEN_READONLY)

    def stand(self) -> Any:
        return self.eye.execute("SELECT name, last, hash FROM journal ORDER BY name").fetchall()


class Piped(Talk):
    """Over standard input and output."""

    def __init__(self, project: Project, bare: Bare) -> None:
        super().__init__(project)
        self.bare = bare
        about = {"name": "eager", "version": "1"}
        able: dict[str, Any] = {"elicitation": {}}
        bare.request(
            "initialize", {"protocolVersion": VERSION, "capabilities": able, "clientInfo": about}
        )
        bare.send("notifications/initialized")

    def ask(self, frame: Frame) -> Any:
        """The one answer to it; for news, whatever came before the answer to something else."""
        self.bare.write(frame.words)
        if not frame.waits:
            answer = self.bare.request("ping")
            return None if answer.get("result") == {} else answer
        return self.bare.read(agree=True)


class Posted(Talk):
    """Over HTTP."""

    def __init__(self, project: Project, door: Door) -> None:
        super().__init__(project)
        self.door = door

    def ask(self, frame: Frame) -> Any:
        status, body, headers = self.door.post(frame.words)
        assert not any(name.startswith("access-control") for name in headers)
        assert status < 500, (status, body)
        if not frame.waits:
            return None if not body else json.loads(body)
        if headers.get("content-type", "").startswith("text/event-stream"):
            data = [one[6:] for one in body.decode().split("\n") if one.startswith("data: ")]
            answers = [one for one in map(json.loads, filter(None, data)) if "method" not in one]
            assert len(answers) == 1, body
            return answers[0]
        return json.loads(body)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    project = Project(tmp_path_factory.mktemp("asked"))
    project.plan(
        {
            "made": {"shell": "echo '# text' > out.md", "produces": "out.md"},
            "bad": {"shell": "echo no >&2; exit 1"},
            "ship": {"shell": "echo x", "approve": "always", "needs": ["made"]},
            "tell": {"uses": "human", "prompt": "what?"},
        }
    )
    project.run()
    yield project
    project.end()


@pytest.fixture(scope="module")
def piped(place: Project) -> Iterator[Piped]:
    with Bare(place) as bare:
        talk = Piped(place, bare)
        yield talk
        assert bare.request("ping")["result"] == {}
        bare.close()
        assert b"Traceback" not in bare.said


@pytest.fixture(scope="module")
def posted(place: Project) -> Iterator[Posted]:
    with listening(place) as door:
        yield Posted(place, door)
    assert not any("Traceback" in line for line in door.said)


def _memory(talk: Piped | Posted) -> int:
    return talk.bare.peak() if isinstance(talk, Piped) else peak(talk.door.pid)


def _swept(talk: Piped | Posted, operation: str, count: int, number: int, report: Report) -> None:
    before, room = decided(talk.eye), _memory(talk)
    swept(talk.ask, frames(operation, talk.values, talk.count), count, number, report)
    if decided(talk.eye) != before:
        report.violations.append(f"{operation}: a person's decision was recorded")
    if _memory(talk) - room > ROOM:
        report.violations.append(f"{operation}: {_memory(talk) - room:,} bytes more")


@pytest.mark.req("D31", "R173", "R183")
@pytest.mark.parametrize("way", ["piped", "posted"])
def test_every_frame_has_one_answer_and_none_decides(
    way: str, request: pytest.FixtureRequest
) -> None:
    talk, report = request.getfixturevalue(way), Report(f"mcp {way}", "http")
    for number, operation in enumerate(ALL):
        _swept(talk, operation, SAMPLE, number, report)
    print(report.line())
    assert report.violations == []
    assert report.fired
    assert report.work


@pytest.mark.soak("http")
@pytest.mark.req("D31", "R173", "R183")
@pytest.mark.parametrize("number", range(len(ALL)), ids=[one or "nothing" for one in ALL])
@pytest.mark.parametrize("way", ["piped", "posted"])
def test_five_hundred_frames_of_each_kind(
    way: str,
    number: int,
    request: pytest.FixtureRequest,
    sweep: Callable[[Report], None],
) -> None:
    report = Report(f"mcp {way} {ALL[number]}", "http")
    _swept(request.getfixturevalue(way), ALL[number], WHOLE, number, report)
    sweep(report)
    assert report.violations == []
    assert report.fired
    assert report.tried >= WHOLE


@pytest.mark.req("D31")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("diff", {"a": "made@²"}),
        ("diff", {"a": f"made@{'9' * 4000}"}),
        ("step_read", {"ref": "made@²", "part": "result"}),
        ("step_read", {"ref": "made", "part": "result", "cursor": "²"}),
        ("run_status", {"run_id": "@-²"}),
        ("run_status", {"run_id": f"@-{'9' * 4000}"}),
    ],
)
def test_a_sign_that_is_no_digit_is_no_number(
    piped: Piped, tool: str, arguments: dict[str, Any]
) -> None:
    error = piped.bare.refused(tool, **arguments)
    assert error["code"] != "bug", error


@pytest.mark.req("D31", "R173")
def test_a_client_that_says_yes_to_everything_decides_nothing(piped: Piped) -> None:
    before = decided(piped.eye)
    for number, approval in enumerate(piped.values["approval_id"]):
        params = {"name": "approval_request_human", "arguments": {"approval_id": approval}}
        frame = {"jsonrpc": "2.0", "id": f"yes-{number}", "method": "tools/call", "params": params}
        asked = len(piped.bare.asked)
        answer = piped.ask(Frame(json.dumps(frame).encode(), f"yes-{number}"))
        told = answer["result"]["structuredContent"]
        assert (told["state"], told["shown_to_person"]) == ("open", "accept")
        assert len(piped.bare.asked) == asked + 1
    assert decided(piped.eye) == before


@pytest.mark.req("D31")
@pytest.mark.parametrize("uri", ["step://{}/a", "run://{}", "{}"])
def test_an_error_does_not_send_back_all_that_was_asked(piped: Piped, uri: str) -> None:
    answer = piped.bare.request("resources/read", {"uri": uri.format("x" * 1_000_000)})
    assert answer["error"]["code"] == -32602
    assert len(answer["error"]["message"]) <= 500


STRANGERS = {
    "no token": {"Authorization": ""},
    "short token": {"Authorization": "Bearer 0123"},
    "token in the address": {"Authorization": "", "path": "/mcp?token={}"},
    "token as cookie": {"Authorization": "", "Cookie": "token={}"},
    "other name": {"Host": "rebind.test:1"},
    "other site": {"Origin": "http://evil.test"},
    "a form": {"Content_Type": "text/plain"},
    "a session": {"Mcp_Session_Id": "4f1c"},
    "by GET": {"method": "GET"},
    "elsewhere": {"path": "/"},
}


@pytest.mark.req("D28", "D31")
def test_nothing_changes_without_the_token(posted: Posted) -> None:
    call = {"name": "ledger_add", "arguments": {"kind": "gap", "text": "nobody said this"}}
    frame = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    before = posted.stand()
    for who, given in STRANGERS.items():
        headers = {name: value.format(posted.door.token) for name, value in given.items()}
        status, body, _ = posted.door.post(frame, **headers)
        assert 400 <= status < 500, who
        assert b"gap" not in body, who
        assert posted.stand() == before, who
    assert posted.door.post(frame)[0] == 200
    assert posted.stand() != before


@pytest.mark.req("D31")
@pytest.mark.parametrize("is_known", [True, False])
def test_a_body_without_end_takes_no_memory(posted: Posted, is_known: bool) -> None:
    door, before = posted.door, peak(posted.door.pid)
    token = door.token if is_known else "x"
    head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{door.port}\r\nAuthorization: Bearer {token}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {ROOM}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", door.port), timeout=DEADLINE) as connection:
        with suppress(ConnectionError):  # it has heard enough
            connection.sendall(head.encode())
            for _ in range(ROOM >> 20):
                connection.sendall(b"x" * (1 << 20))
        with suppress(ConnectionError):
            assert connection.recv(12) in {b"HTTP/1.1 400", b"HTTP/1.1 401", b""}
    assert door.post()[0] == 200
    assert peak(door.pid) - before <= ROOM
