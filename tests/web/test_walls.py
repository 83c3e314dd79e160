"""The walls of the page: a body that is too large, and more connections than it takes."""

import socket
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from tests.cli.project import Project, until
from tests.cli.test_walls import own
from tests.web.site import DEADLINE, Site

pytestmark = pytest.mark.req("I16")


def opened(site: Site, stack: ExitStack, request: bytes = b"") -> socket.socket:
    wire = socket.create_connection(("127.0.0.1", site.port), timeout=DEADLINE)
    stack.callback(wire.close)
    wire.sendall(request)
    return wire


def listening(site: Site) -> bytes:
    """A request whose answer never ends: a page that somebody looks at."""
    lines = ["GET /live/runs HTTP/1.1", f"Host: {site.host}", f"Cookie: {site.cookie}", "", ""]
    return "\r\n".join(lines).encode()


def page(project: Project, site: Callable[..., Site], **walls: int | str) -> Site:
    project.plan({"a": {"run": ["echo", "x"]}})
    assert project.run().code == 0
    own(project, **walls)
    found = site()
    found.enter()
    return found


def test_a_body_beyond_the_wall_is_refused_with_its_key(
    project: Project, site: Callable[..., Site]
) -> None:
    here = page(project, site, body=1_000)
    large = here.post("/runs/start", {"words": "x" * 2_000})
    assert (large.status, b"'limits.body'" in large.body) == (413, True), large
    assert here.post("/runs/start", {"words": "x"}).status != 413
    headers = [("X-Holdfast-Token", here.token), ("Content-Type", "application/json")]
    assert here.ask("/runs/start", "POST", [*headers, ("Expect", "nothing")], b"{}").status != 413
    assert here.ask("/").status == 200


def test_idle_connections_make_room_and_busy_ones_keep_theirs(
    project: Project, site: Callable[..., Site]
) -> None:
    """Whoever only opens connections keeps nobody out; past as many as look, the next one is told why."""
    here = page(project, site, connections=4)
    with ExitStack() as stack:
        idle = [opened(here, stack) for _ in range(12)]
        assert here.ask("/").status == 200
        assert any(wire.recv(1) == b"" for wire in idle[:1])  # the oldest of them ended
        busy = [opened(here, stack, listening(here)) for _ in range(4)]
        assert all(wire.recv(12).startswith(b"HTTP/1.1 200") for wire in busy)
        refused = here.ask("/")
        assert (refused.status, b"'limits.connections'" in refused.body) == (503, True), refused
    assert until(lambda: here.ask("/").status == 200)
