"""Whatever is sent to the page: each answer is typed, and nobody without the token changes anything."""

import json
from collections.abc import Callable, Iterator
from urllib.parse import quote

import pytest

from holdfast.web.door import HEADERS
from tests.crash.report import Report
from tests.web.asking import BODIES, STRANGERS, Ask, Scene, scene, swept
from tests.web.described import operations

SAMPLE, WHOLE = 3, 500
ALL = operations()
NAMES = [one.name for one in ALL]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with scene(tmp_path_factory.mktemp("asked")) as made:
        yield made


@pytest.mark.req("D26", "D27", "D28", "R180")
def test_no_request_breaks_the_page_or_changes_anything_unasked(asked: Scene) -> None:
    report = Report("requests", "http")
    for number, operation in enumerate(ALL):
        swept(asked, operation, SAMPLE, number, report)
    print(report.line())
    assert report.violations == []
    assert report.fired
    assert report.work


@pytest.mark.soak("http")
@pytest.mark.req("D26", "D27", "D28", "R180")
@pytest.mark.parametrize("number", range(len(ALL)), ids=NAMES)
def test_five_hundred_requests_of_each_kind(
    asked: Scene, number: int, sweep: Callable[[Report], None]
) -> None:
    report = Report(NAMES[number], "http")
    swept(asked, ALL[number], WHOLE, number, report)
    sweep(report)
    assert report.violations == []
    assert report.fired
    assert report.tried >= WHOLE


@pytest.mark.req("D28")
def test_one_who_is_let_in_changes_what_no_stranger_can(asked: Scene) -> None:
    """So that what the sweep looks at does change, if somebody may."""
    entry, because = asked.known["entry"][0], "it was not so"
    body = {"entry": entry, "line": "demo", "because": because}
    before = asked.stand()
    for who, headers in STRANGERS.items():
        ask = Ask("POST", "/ledger/contest", headers(asked), json.dumps(body).encode(), who)
        said = asked.site.raw(ask.wire())
        assert (who, said.status in {403, 421}, asked.stand()) == (who, True, before)
    assert asked.site.post("/ledger/contest", body).status == 200
    assert asked.stand() != before
    assert asked.site.post("/ledger/take-back", body).status == 200


@pytest.mark.parametrize("path", [one.path for one in ALL if one.method == "POST"])
def test_a_body_that_is_no_object_with_texts_is_refused(asked: Scene, path: str) -> None:
    if path.startswith("/door"):
        return
    headers = [("X-Holdfast-Token", asked.site.token), ("Content-Type", "application/json")]
    where = path.replace("{run}", asked.known["run"][0])
    for name in BODIES.keys() - {"too long", "long"}:
        said = asked.site.ask(where, "POST", headers, BODIES[name])
        assert (name, said.status) in {(name, 400), ("marked", 409), ("wide letters", 409)}


def test_every_screen_is_there_as_a_part_too(asked: Scene) -> None:
    """As htmx asks for one: only what stands between its head and its end."""
    for one in ALL:
        path = one.path.replace("{run}", asked.known["run"][0])
        if one.method != "GET" or "{" in path or path.startswith(("/door", "/live")):
            continue
        part = asked.site.ask(path, headers=[("HX-Request-Type", "partial")])
        whole = asked.site.ask(path)
        assert (path, part.status) == (path, whole.status)
        assert b"<html" not in part.body, path


def test_an_act_on_a_step_needs_a_step(asked: Scene) -> None:
    for do in ("retry", "skip", "accept"):
        for run in asked.known["run"][:2]:
            said = asked.site.ask(f"/runs/{run}/act?do={do}")
            assert (said.status, "is about a step" in said.text) == (409, True)


def test_what_is_no_request_is_answered_with_the_same_headers(asked: Scene) -> None:
    for request in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\r\n\r\n", b"GET\r\n\r\n"):
        said = asked.site.raw(request)
        assert (said.status, said.body) == (421, b"")
        assert {name: said.headers.get(name.lower()) for name in HEADERS} == HEADERS


@pytest.mark.req("D22")
def test_a_content_is_asked_for_by_its_whole_digest_and_nothing_else(asked: Scene) -> None:
    digest = asked.known["digest"][0]
    said = asked.site.ask(f"/content/{digest}")
    assert (said.status, said.headers["content-type"]) == (200, "text/plain; charset=utf-8")
    assert said.headers["content-disposition"].startswith("attachment")
    for wrong in (
        *("../../etc/passwd", "%2e%2e/%2e%2e/etc/passwd", "..%2f..%2fetc%2fpasswd", "/etc/passwd"),
        *("..\\..\\etc\\passwd", "....//etc/passwd", "%00", f"{digest}%00", f"{digest}%0a", "."),
        *(digest[:-1], f"{digest}0", digest.upper(), f"{digest}/..", f"%2f{digest}", "\u0660" * 64),
    ):
        for root in ("content", "artifact", "static"):
            path = quote(f"/{root}/{wrong}", safe="/%.\\")
            said = asked.site.ask(path)
            assert said.status == 404, path
            assert b"root:" not in said.body, path
