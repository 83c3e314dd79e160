"""The door: who may ask the page, and from where. Everything here is raw HTTP against a real server."""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.testing import FakeClock
from holdfast.web.door import Keys
from tests.cli.project import Project, until
from tests.web.described import addresses
from tests.web.site import Site

# From the page's own table, so that a new route cannot be forgotten; what is in braces, anything will do for.
ROUTES = (*addresses("GET", run="r-1", digest="0" * 64, file="page.css"), "/nothing")
CHANGES = addresses("POST", run="r-1")
UPGRADE = [
    ("Upgrade", "websocket"),
    ("Connection", "Upgrade"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ("Sec-WebSocket-Version", "13"),
]


@pytest.fixture
def waiting(project: Project, site: Callable[..., Site]) -> Site:
    """A page over a run in which a step waits for an approval."""
    project.plan({"out": {"shell": project.sh(), "approve": "always"}})
    assert project.run().code == 3
    found = site()
    found.enter()
    return found


def _is_unchanged(site: Site) -> bool:
    asked = site.project.ok("approvals", "--json").json["approvals"]
    return [one["state"] for one in asked] == ["open"]


def _question(site: Site) -> dict[str, str]:
    asked = site.project.ok("approvals", "--json").json["approvals"][0]
    return {
        "run": asked["run"],
        "approval": asked["approval"],
        "subject": asked["subject"],
        "answer": "yes",
        "scope": "once",
    }


@pytest.mark.req("D26")
def test_only_the_own_name_with_the_own_port_is_answered(waiting: Site) -> None:
    for path in (*ROUTES, *CHANGES):
        _refuses_other_names(waiting, path)


def _refuses_other_names(waiting: Site, path: str) -> None:
    port = waiting.port
    strangers = [
        f"evil.test:{port}",
        f"localhost.evil.test:{port}",
        f"127.0.0.1.nip.io:{port}",
        f"127.0.0.1:{port + 1}",
        "127.0.0.1",
        f"127.0.0.1:{port}.",
        f"[::1]:{port}",
        f"LOCALHOST:{port}x",
        "",
    ]
    for host in strangers:
        for method in ("GET", "POST"):
            found = waiting.ask(path, method, host=host)
            assert found.status in {403, 421}, (host, found)
            assert found.body == b"", (host, found)
    found = waiting.ask(path, headers=UPGRADE, host=f"evil.test:{port}")
    assert (found.status, found.body) == (421, b""), found
    own = f"Host: {waiting.host}\r\nCookie: {waiting.cookie}\r\n"
    for request in (
        f"GET {path} HTTP/1.1\r\n\r\n",
        f"GET {path} HTTP/1.0\r\n\r\n",
        f"GET {path} HTTP/1.1\r\n{own}Host: evil.test\r\n\r\n",
        f"GET {path} HTTP/1.1\r\nHost: evil.test\r\n{own}\r\n",
        f"GET http://evil.test{path} HTTP/1.1\r\n{own}\r\n",
        f"GET http://evil.test:{port}{path} HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        f"GET {path} HTTP/1.1\r\n{own}X: \x00\r\n\r\n",
        f"{path}\r\n\r\n",
    ):
        found = waiting.raw(request.encode())
        assert found.status in {403, 421}, (request, found)
        assert found.body == b"", (request, found)


@pytest.mark.req("D27")
def test_no_other_origin_reads_anything(waiting: Site) -> None:
    for path in ROUTES:
        _refuses_other_origins(waiting, path)


def _refuses_other_origins(waiting: Site, path: str) -> None:
    port = waiting.port
    for origin in (
        "http://evil.test",
        "null",
        f"http://localhost.evil.test:{port}",
        f"http://127.0.0.1:{port + 1}",
        f"https://127.0.0.1:{port}",
        f"http://localhost:{port}",  # ours too, but not the one that was asked
        f"http://127.0.0.1:{port}/",
        "",
    ):
        for more in ([], UPGRADE):
            found = waiting.ask(path, headers=[("Origin", origin), *more])
            assert (found.status, found.body) == (403, b""), (origin, found)
            assert not [name for name in found.headers if name.startswith("access-control")]
    for place in ("cross-site", "same-site", "strange"):
        found = waiting.ask(path, headers=[("Sec-Fetch-Site", place)])
        assert (found.status, found.body) == (403, b""), (place, found)
    options = waiting.ask(path, "OPTIONS", headers=[("Origin", "http://evil.test")])
    assert (options.status, options.body) == (403, b"")


@pytest.mark.req("D27", "D28")
def test_no_other_origin_changes_anything(waiting: Site) -> None:
    question, port = _question(waiting), waiting.port
    for path in CHANGES:
        for origin in (
            "http://evil.test",
            "null",
            f"http://localhost.evil.test:{port}",
            f"http://127.0.0.1:{port + 1}",
            f"https://127.0.0.1:{port}",
        ):
            found = waiting.post(path, question, ("Origin", origin))
            assert (found.status, found.body) == (403, b"")
            headers = [
                ("Origin", origin),
                ("Content-Type", "application/json"),
                ("X-Holdfast-Token", waiting.token),
            ]
            found = waiting.ask(path, "POST", headers, json.dumps(question).encode())
            assert (found.status, found.body) == (403, b"")
            assert not [name for name in found.headers if name.startswith("access-control")]
    assert _is_unchanged(waiting)


@pytest.mark.req("D26", "D27")
def test_a_websocket_is_not_opened(waiting: Site) -> None:
    """Not even to the page itself; and to nobody without the cookie anything is said."""
    for path in ROUTES:
        for origin in (waiting.base, "http://evil.test"):
            found = waiting.ask(path, headers=[*UPGRADE, ("Origin", origin)], session=False)
            assert (found.status, found.body) == (403, b"") or path == "/door/open", (path, found)
        found = waiting.ask(path, headers=[*UPGRADE, ("Origin", waiting.base)])
        assert found.status != 101, path
        assert "upgrade" not in found.headers, path


@pytest.mark.req("D28")
def test_a_change_needs_the_cookie_the_token_and_json(waiting: Site) -> None:
    question = _question(waiting)
    body, form = json.dumps(question).encode(), b"answer=yes"
    own = ("Origin", waiting.base)
    as_json, token = ("Content-Type", "application/json"), ("X-Holdfast-Token", waiting.token)
    other = ("X-Holdfast-Token", waiting.token[:-1] + ("A" if waiting.token[-1] != "A" else "B"))
    path = "/approvals/decide"
    tries = [
        (path, "POST", [own, as_json], body),
        (path, "POST", [own, as_json, ("X-Holdfast-Token", "")], body),
        (path, "POST", [own, as_json, ("X-Holdfast-Token", waiting.token[:20])], body),
        (path, "POST", [own, as_json, other], body),
        (path, "POST", [own, as_json, token, token], body),
        (path, "POST", [own, token, ("Content-Type", "text/plain")], body),
        (path, "POST", [own, token, ("Content-Type", "application/x-www-form-urlencoded")], form),
        (path, "POST", [own, token], body),
        (f"{path}?token={waiting.token}", "POST", [own, as_json], body),
        (path, "PUT", [own, as_json, token], body),
        (path, "DELETE", [own, as_json, token], b""),
    ]
    for where, method, headers, content in tries:
        found = waiting.ask(where, method, headers, content)
        assert (found.status, found.body) == (403, b""), (where, method, headers, found)
    for where in CHANGES:
        assert waiting.ask(where).status in {403, 404, 405}
    without = waiting.ask(path, "POST", [own, as_json, token], body, session=False)
    assert (without.status, without.body) == (403, b"")
    assert _is_unchanged(waiting)
    for wrong in (b"[]", b"{", b'{"run": 1}', b"\xff"):
        assert waiting.ask(path, "POST", [own, as_json, token], wrong).status == 400
    assert _is_unchanged(waiting)
    assert waiting.post(path, question).status == 200
    assert not _is_unchanged(waiting)


@pytest.mark.req("D28")
def test_the_code_works_once_and_the_key_is_only_in_a_file_of_its_user(
    project: Project, site: Callable[..., Site]
) -> None:
    project.plan({"a": {"shell": project.sh()}})
    project.run()
    found = site()
    for path in ROUTES:
        bare = found.ask(path, session=False)
        assert bare.status == 403
        assert bare.body == b"" or path == "/door/open"
    found.enter()
    again = found.ask(f"/door/open?{found.code}", session=False)
    assert again.status == 403
    assert "set-cookie" not in again.headers
    file = project.store / "ui.json"
    assert file.stat().st_mode & 0o777 == 0o600
    key = json.loads(file.read_text())["key"]
    run = project.status().id
    for path in ("/", f"/runs/{run}", f"/runs/{run}?step=a", "/static/page.js", "/approvals"):
        page = found.ask(path).text
        assert key not in page
        assert found.token not in page
        assert found.cookie.partition("=")[2] not in page
    assert found.ask("/door/code", "POST", [("X-Holdfast-Key", key[:-1])]).status == 403
    second = project.ok("ui", "--no-browser").out.strip()
    assert second.startswith(f"{found.base}/door/open?code=")
    other = Site(project, found.process, second)
    other.enter()
    assert other.cookie != found.cookie
    found.process.send_signal(signal.SIGTERM)
    _, err = found.process.communicate(timeout=60)
    said = err.decode()
    assert key not in said
    assert found.token not in said
    assert not file.exists(), "the key is gone with the server"


@pytest.mark.req("D28")
def test_a_code_is_over_after_a_minute() -> None:
    clock = FakeClock(1000)
    keys = Keys(clock)
    late, early = keys.new_code(), keys.new_code()
    clock.advance(59_999)
    assert keys.exchange(early) is not None
    assert keys.exchange(early) is None
    clock.advance(1)
    assert keys.exchange(late) is None
    assert keys.exchange("") is None


@pytest.mark.req("D28")
def test_every_answer_forbids_what_a_page_does_not_need(waiting: Site) -> None:
    for path in ROUTES:
        policy = waiting.ask(path).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert waiting.ask(path).headers["x-content-type-options"] == "nosniff"


def test_contents_are_given_as_text_to_save_and_only_by_digest(waiting: Site) -> None:
    project = waiting.project
    project.plan({"web": {"shell": "echo '<script>alert(1)</script>'"}}, name="other")
    digest = project.run("--plan-id", "other").digests["web"]
    found = waiting.ask(f"/content/{digest}")
    assert found.status == 200
    assert found.headers["content-type"].startswith("text/plain")
    assert found.headers["content-disposition"].startswith("attachment")
    for wrong in ("../../etc/passwd", "..%2f..%2fetc%2fpasswd", "0" * 63, "g" * 64, "%00"):
        assert waiting.ask(f"/content/{wrong}").status == 404


def test_no_other_machine_can_be_let_in(project: Project) -> None:
    project.plan({"a": {"shell": "true"}})
    for host in ("0.0.0.0", "::", "192.168.0.1", "example.org"):
        said = project.refused(2, "ui", "--no-browser", "--host", host)
        assert "this machine alone" in said
        assert "ssh -L" in said


def test_a_page_that_only_shows_decides_nothing(
    project: Project, site: Callable[..., Site]
) -> None:
    project.plan({"out": {"shell": project.sh(), "approve": "always"}})
    project.run()
    found = site("--read-only")
    found.enter()
    answer = found.post("/approvals/decide", _question(found))
    assert answer.status == 409
    assert "only shows" in answer.text
    assert _is_unchanged(found)


def test_a_page_inside_a_step_decides_nothing(project: Project, tmp_path: Path) -> None:
    """A step may start the page, but whoever answers there is no person."""
    script = tmp_path / "ask.py"
    script.write_text(
        "import json, re, subprocess, sys, urllib.request as u\n"
        "ui = [sys.executable, '-m', 'holdfast', 'ui', '--no-browser', '--store', sys.argv[1]]\n"
        "p = subprocess.Popen(ui, stdout=subprocess.PIPE)\n"
        "a = p.stdout.readline().decode().strip(); b = a.split('/door')[0]\n"
        "o = u.build_opener(u.HTTPCookieProcessor()); o.open(a)\n"
        "t = json.load(o.open(b + '/door/token'))['token']\n"
        "page = o.open(b + '/approvals').read().decode()\n"
        'take = lambda n: re.search(f\'name="{n}" value="([^"]+)"\', page)[1]\n'
        "body = {n: take(n) for n in ('run', 'approval', 'subject')} | {'answer': 'yes', 'scope': 'once'}\n"
        "r = u.Request(b + '/approvals/decide', json.dumps(body).encode(),"
        " {'Content-Type': 'application/json', 'X-Holdfast-Token': t, 'Origin': b})\n"
        "try: print(o.open(r).status)\n"
        "except u.HTTPError as e: print(e.code, e.read().decode())\n"
        "p.terminate()\n"
    )
    project.plan({"out": {"shell": project.sh(), "approve": "always"}})
    assert project.run().code == 3
    project.plan(
        {"sly": {"shell": f"{sys.executable} {script} {project.store}"}},
        file="sly.yaml",
        name="sly",
    )
    project.run("sly.yaml", "--no-sandbox", env={"PYTHONPATH": os.pathsep.join(sys.path)})
    asked = project.ok("approvals", "--json").json["approvals"]
    assert [one["state"] for one in asked] == ["open"]
    said = project.call("logs", "sly", "--file", "sly.yaml").out
    said += project.call("show", "sly", "-f", "sly.yaml").out
    assert "only a person decides" in said, said


def test_a_store_that_cannot_be_written_is_shown_all_the_same(
    project: Project, site: Callable[..., Site]
) -> None:
    project.plan({"a": {"shell": project.sh()}})
    project.run()
    (project.store / "ui.json").mkdir()  # nobody may write it, not even a superuser
    first, second = site(), site()
    for one in (first, second):
        one.enter()
        assert one.ask("/").status == 200
    assert first.port != second.port
    assert [path.name for path in project.store.glob("ui.json*")] == ["ui.json"]


def test_who_typed_an_address_without_the_cookie_is_told_how_to_come_in(
    project: Project, site: Callable[..., Site]
) -> None:
    project.plan({"a": {"shell": project.sh()}})
    project.run()
    found = site()
    typed = [("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Site", "none")]
    said = found.ask("/runs/r-1", headers=typed)
    assert (said.status, "Type 'holdfast ui'" in said.text) == (403, True)
    found.enter()
    assert found.cookie.partition("=")[2] not in said.text
    for method, headers in (
        ("GET", []),
        ("GET", [("Sec-Fetch-Mode", "cors"), ("Sec-Fetch-Site", "same-origin")]),
        ("GET", [("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Site", "cross-site")]),
        ("POST", typed),
    ):
        refused = found.ask("/", method, headers, session=False)
        assert (refused.status, refused.body) == (403, b""), (method, headers)


@pytest.mark.req("D28")
def test_an_old_page_of_the_store_does_not_stand_in_the_way(
    project: Project, site: Callable[..., Site]
) -> None:
    project.plan({"a": {"shell": project.sh()}})
    project.run()
    first = site()
    first.enter()
    first.process.kill()
    first.process.communicate()
    second = site()
    assert second.address != first.address
    old = first.cookie.partition("=")[2]
    second.cookie, second.token = f"holdfast-{second.port}={old}", first.token
    assert (second.ask("/").status, second.post("/approvals/decide", {}).status) == (403, 403)
    second.enter()
    now, second.token = second.token, first.token
    assert second.post("/approvals/decide", {}).status == 403, "what was a token once is none now"
    second.token = now
    assert second.post("/approvals/decide", {}).status == 409
    until(lambda: second.ask("/").status == 200, "the second page answers")
