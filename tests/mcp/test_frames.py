"""What a hostile or broken client sends: one answer or one typed error for each frame, and bounded memory."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.mcp.frames import MOST_DEPTH, Refused, read_frame
from holdfast.model.walls import WALLS
from tests.cli.project import Project
from tests.cli.test_walls import own
from tests.mcp.bare import Bare

ROOM = 100 << 20
CALL = {"jsonrpc": "2.0", "id": 7, "method": "tools/call"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bare]:
    """One server for all of them: it must still be well after each."""
    project = Project(tmp_path_factory.mktemp("frames"))
    project.plan({"a": {"shell": "echo 1"}})
    with Bare(project) as client:
        client.shake_hands()
        client.ok("plan_preview")
        yield client
    project.end()


def _called(tool: str, arguments: Any) -> bytes:
    return json.dumps({**CALL, "params": {"name": tool, "arguments": arguments}}).encode()


FRAMES = {
    "no JSON": (b"hello", -32700, None),
    "half a frame": (b'{"jsonrpc": "2.0", "id": 7', -32700, None),
    "not UTF-8": (b'{"jsonrpc": "2.0", "id": 7, "method": "\xff"}', -32700, None),
    "no number": (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":NaN}}', -32700, None),
    "a number beyond all": (
        b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":[-1e999]}}',
        -32700,
        None,
    ),
    "half a character": (b'{"jsonrpc":"2.0","id":7,"method":"\\ud800"}', -32700, None),
    "a text": (b'"hello"', -32600, None),
    "another version": (b'{"jsonrpc": "1.0", "id": 7, "method": "ping"}', -32600, 7),
    "no method": (b'{"jsonrpc": "2.0", "id": 7}', -32600, 7),
    "a method that is a number": (b'{"jsonrpc": "2.0", "id": 7, "method": 1}', -32600, 7),
    "an id that is null": (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600, None),
    "an id that is a list": (b'{"jsonrpc": "2.0", "id": [], "method": "ping"}', -32600, None),
    "a long id": (json.dumps({**CALL, "id": "x" * 5000}).encode(), -32600, None),
    "an extra field": (json.dumps({**CALL, "extra": 1}).encode(), -32600, 7),
    "a key twice": (b'{"jsonrpc":"2.0","id":7,"method":"ping","id":8}', -32600, None),
    "an argument twice": (
        _called("why", {"step": "a"}).replace(b'"step"', b'"step": "b", "step"'),
        -32600,
        None,
    ),
    "a call without params": (json.dumps(CALL).encode(), -32602, 7),
    "a list of params": (json.dumps({**CALL, "params": []}).encode(), -32602, 7),
    "both answers": (b'{"jsonrpc":"2.0","id":7,"result":{},"error":{}}', -32600, 7),
    "an unknown method": (b'{"jsonrpc": "2.0", "id": 7, "method": "no/such"}', -32601, 7),
    "an unknown tool": (_called("no_such_tool", {}), -32602, 7),
    "an extra argument": (_called("plan_preview", {"force": True}), -32602, 7),
    "a wrong type": (_called("run_status", {"wait_s": "long"}), -32602, 7),
    "too long a wait": (_called("run_status", {"wait_s": 51}), -32602, 7),
    "a missing argument": (_called("run_start", {"max_cost_usd": 1}), -32602, 7),
    "money below nothing": (
        _called("run_start", {"plan_hash": "a", "max_cost_usd": -1}),
        -32602,
        7,
    ),
    "more money than there is": (
        _called("run_start", {"plan_hash": "a", "max_cost_usd": 1e300}),
        -32602,
        7,
    ),
    "whole dollars without end": (
        _called("run_start", {"plan_hash": "a", "max_cost_usd": 10**400}),
        -32602,
        7,
    ),
    "money without end": (
        _called("run_start", {"plan_hash": "a", "max_cost_usd": float("inf")}).replace(
            b"Infinity", b"1e999"
        ),
        -32700,
        None,
    ),
    "arguments that are a text": (_called("why", "a"), -32602, 7),
    "a long argument": (_called("why", {"step": "x" * 9_000_000}), -32602, 7),
    "a batch": (json.dumps([{**CALL, "id": n} for n in range(10_000)]).encode(), -32600, None),
    "an empty batch": (b"[]", -32600, None),
    "deep": (
        b'{"jsonrpc":"2.0","id":7,"method":"ping","params":' + b'{"a":' * 100_000,
        -32600,
        None,
    ),
    "wide": (b'{"jsonrpc":"2.0","params":[' + b"[]," * 3_000_000 + b"[]]}", -32600, None),
    "many texts": (b'"\\"' * 3_000_000, -32600, None),
    "100 MB": (b'{"a": "' + b"x" * (100 << 20) + b'"}', -32600, None),
}


@pytest.mark.req("D31")
@pytest.mark.parametrize("name", FRAMES)
def test_each_bad_frame_gets_one_typed_error_and_the_next_one_its_answer(
    server: Bare, name: str
) -> None:
    frame, code, number = FRAMES[name]
    before = server.peak()
    server.write(frame)
    answer = server.read()
    assert (answer["error"]["code"], answer["id"]) == (code, number)
    assert answer["jsonrpc"] == "2.0"
    assert len(answer["error"]["message"]) < 500
    assert server.request("ping")["result"] == {}
    assert server.peak() - before <= ROOM


def test_who_calls_before_it_has_begun_is_told_what_comes_first(project: Project) -> None:
    project.plan({"a": {"shell": "true"}})
    with Bare(project) as server:
        server.write(json.dumps({**CALL, "params": {"name": "why"}}).encode())
        assert "send 'initialize' first" in server.read()["error"]["message"]
        server.shake_hands()
        server.write(b'{"jsonrpc":"2.0","id":7,"method":"tools/call"}')
        assert server.read()["error"]["message"].startswith(
            "'tools/call' needs 'params' with 'name'"
        )
        server.write(b'{"jsonrpc":"2.0","id":7,"id":8,"method":"ping"}')
        assert server.read()["error"]["message"] == 'a frame has the key "id" twice'


@pytest.mark.req("D31")
def test_an_id_that_is_open_is_not_taken_again(project: Project) -> None:
    project.plan({"slow": {"shell": project.gate("go")}})
    with Bare(project) as server:
        server.shake_hands()
        digest = server.ok("plan_preview")["plan_hash"]
        begun = server.ok("run_start", plan_hash=digest, max_cost_usd=0)
        project.watch(begun["pid"])
        waits = {"run_id": begun["run_id"], "wait_s": 50}
        for _ in range(2):
            server.send("tools/call", {"name": "run_status", "arguments": waits}, id="x")
        refused = server.read()  # the other one waits for the step
        assert (refused["id"], refused["error"]["code"]) == (None, -32600)
        project.open("go")
        answer = server.read()
        assert answer["id"] == "x"
        assert answer["result"]["structuredContent"]["status"] == "completed"
        assert server.request("ping")["result"] == {}


@pytest.mark.req("D31")
def test_floods_are_answered_one_by_one_or_refused_and_bounded(server: Bare) -> None:
    before = server.peak()
    for number in range(10_000):
        server.send("notifications/unheard", {"number": number})
    for number in range(1_000):
        server.send("notifications/progress", {"progressToken": "no", "progress": number})
    many = [f"flood-{number}" for number in range(150)]
    for name in many:
        server.send("tools/call", {"name": "plan_preview", "arguments": {}}, id=name)
    answers = [server.read() for _ in many]
    assert sorted(one["id"] for one in answers) == sorted(many)
    refused = {one["error"]["code"] for one in answers if "error" in one}
    assert refused <= {-32000}
    assert server.request("ping")["result"] == {}
    assert server.peak() - before <= ROOM


@pytest.mark.req("D31")
def test_nothing_but_frames_is_written_between_frames(project: Project) -> None:
    """A plan in Python that writes to file 1 while it is loaded."""
    project.write(
        "plan.py",
        "import os\nfrom holdfast import plan, step\nos.write(1, b'noise\\n')\n\n\n@step\ndef a() -> str:\n"
        "    return 'x'\n\n\n@plan\ndef demo():\n    return a()\n",
    )
    with Bare(project, "-f", "plan.py") as client:
        client.shake_hands()
        client.tool("plan_preview")
        assert client.request("ping")["result"] == {}


def test_a_frame_of_the_largest_size_is_read_and_one_byte_more_is_not() -> None:
    head, tail = b'{"jsonrpc":"2.0","method":"x","params":{"a":"', b'"}}'
    whole = head + b"x" * (WALLS.frame - len(head) - len(tail)) + tail
    assert read_frame(whole)["method"] == "x"
    with pytest.raises(Refused, match="bytes"):
        read_frame(whole + b" ")


def test_a_frame_beyond_the_wall_of_a_person_is_refused_with_its_key(project: Project) -> None:
    project.plan({"a": {"shell": "echo 1"}})
    own(project, frame="2 KB")
    with Bare(project) as client:
        client.shake_hands()
        client.send("ping", {"_meta": {"x": "x" * 2_000}}, id=7)
        said = client.read()["error"]
        assert (said["code"], "'limits.frame'" in said["message"]) == (-32600, True), said
        assert client.request("ping")["result"] == {}


@pytest.mark.parametrize(("depth", "is_read"), [(MOST_DEPTH, True), (MOST_DEPTH + 1, False)])
def test_depth_is_counted_outside_of_texts(depth: int, is_read: bool) -> None:
    nested = b"[" * (depth - 2) + b'"[[[[{{{{\\""' + b"]" * (depth - 2)
    frame = b'{"jsonrpc":"2.0","method":"x","params":{"a":' + nested + b"}}"
    try:
        read_frame(frame)
    except Refused:
        assert not is_read
    else:
        assert is_read


def test_help_does_not_load_the_protocol(project: Project, tmp_path: Path) -> None:
    script = tmp_path / "loaded.py"
    script.write_text(
        "import sys\nfrom holdfast.cli.main import cli\n"
        "cli.main(['--help'], standalone_mode=False)\n"
        "print(sorted({'mcp', 'pydantic', 'anyio', 'jsonschema'} & set(sys.modules)))\n"
    )
    ended = subprocess.run(
        [sys.executable, str(script)],
        env=project.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.splitlines()[-1] == "[]"
