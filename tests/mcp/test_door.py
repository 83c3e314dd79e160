"""The HTTP door: who may come in, and that nobody else learns or changes anything."""

import asyncio
import json
import stat
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from holdfast.mcp.door import token_in
from tests.cli.project import DEADLINE, Project
from tests.mcp.listening import Door, listening


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    project = Project(tmp_path_factory.mktemp("door"))
    project.plan({"a": {"shell": "echo 1"}})
    with listening(project) as found:
        yield found
    project.end()


@pytest.mark.req("R183")
def test_the_official_client_comes_in_with_the_token(door: Door) -> None:
    async def drive() -> list[str]:
        headers = {"Authorization": f"Bearer {door.token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=DEADLINE) as carrier,
            Client(
                streamable_http_client(f"http://127.0.0.1:{door.port}/mcp", http_client=carrier)
            ) as client,
        ):
            result = await client.call_tool("plan_preview", {})
            assert result.structured_content is not None
            return [one["step"] for one in result.structured_content["steps"]]

    assert asyncio.run(drive()) == ["a"]


@pytest.mark.req("D28", "D31")
def test_the_token_is_a_secret_of_its_owner(door: Door) -> None:
    file = door.project.store / "mcp.token"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(door.token) == 64
    assert not any(door.token in line for line in door.said)
    for wrong in ("", door.token[:-1], door.token + "0", "0" * 64):
        status, body, headers = door.post(Authorization=f"Bearer {wrong}" if wrong else "")
        assert (status, json.loads(body)["error"]["code"]) == (401, -32001)
        assert headers["www-authenticate"] == "Bearer"
    assert door.post(Authorization=door.token)[0] == 401
    assert door.post(path=f"/mcp?token={door.token}", Authorization="")[0] == 401
    twice = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{door.port}\r\nAuthorization: Bearer x\r\n"
    twice += f"Authorization: Bearer {door.token}\r\nContent-Length: 0\r\n\r\n"
    assert b" 401 " in door.raw(twice.encode())


@pytest.mark.req("D26")
@pytest.mark.parametrize("path", ["/mcp", "/", "/no/such"])
@pytest.mark.parametrize(
    "host",
    ["evil.test:{}", "localhost.evil.test:{}", "127.0.0.1.nip.io:{}", "127.0.0.1", "[::1]:{}"],
)
def test_another_name_for_this_machine_is_refused_without_a_word(
    door: Door, host: str, path: str
) -> None:
    status, body, headers = door.post(path=path, Host=host.format(door.port))
    assert (status, body) == (421, b"")
    assert not any(name.startswith("access-control") for name in headers)


@pytest.mark.req("D26")
def test_no_host_two_hosts_another_port_and_an_absolute_address_are_refused(door: Door) -> None:
    good = f"Host: 127.0.0.1:{door.port}\r\n"
    rest = f"Authorization: Bearer {door.token}\r\nContent-Length: 0\r\n\r\n"

    def status(line: str, hosts: str) -> int:
        return int(door.raw(f"{line} HTTP/1.1\r\n{hosts}{rest}".encode()).split()[1])

    assert status("POST /mcp", "") in {400, 421}
    assert status("POST /mcp", good + good) in {400, 421}
    assert status("POST /mcp", f"{good}Host: evil.test\r\n") in {400, 421}
    assert status(f"POST http://evil.test:{door.port}/mcp", good) == 421
    assert status("POST /mcp", f"Host: 127.0.0.1:{door.port + 1}\r\n") == 421


@pytest.mark.req("D27")
@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.test",
        "null",
        "http://localhost.evil.test:{}",
        "http://127.0.0.1:1",
        "https://127.0.0.1:{}",
    ],
)
def test_a_page_of_another_site_is_refused_without_a_word(door: Door, origin: str) -> None:
    for method in ("POST", "GET", "OPTIONS"):
        status, body, headers = door.post(method=method, Origin=origin.format(door.port))
        assert (status, body) == (403, b"")
        assert not any(name.startswith("access-control") for name in headers)


@pytest.mark.req("D28", "D31")
def test_only_frames_come_in_and_sessions_of_others_are_unknown(door: Door) -> None:
    forms = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "")
    for kind in forms:
        assert door.post(Content_Type=kind)[0] == 400
    for method in ("GET", "PUT", "DELETE", "HEAD"):
        assert door.post(method=method)[0] == 400
    status, body, _ = door.post(Mcp_Session_Id="4f1c")
    assert (status, "sessions" in json.loads(body)["error"]["message"]) == (400, True)
    for frame in (b"[]", b"{", b"[" * 100_000, b'{"a": "' + b"x" * (11 << 20) + b'"}'):
        status, body, _ = door.post(frame)
        assert (status, json.loads(body)["error"]["code"]) in {(400, -32600), (400, -32700)}
    assert door.post()[0] == 200
    assert door.post(Origin=f"http://127.0.0.1:{door.port}")[0] == 200


@pytest.mark.req("D28")
def test_a_token_that_others_could_read_or_that_is_old_does_not_stand(
    door: Door, tmp_path: Path
) -> None:
    file = tmp_path / "store" / "mcp.token"
    first = token_in(str(file))
    assert token_in(str(file)) == first
    second = token_in(str(file), fresh=True)
    assert second != first
    file.chmod(0o644)
    third = token_in(str(file))
    assert third not in {first, second}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.unlink()
    file.symlink_to(door.project.store / "mcp.token")
    assert token_in(str(file)) != door.token
    assert not file.is_symlink()
