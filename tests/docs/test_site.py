"""The site as a reader has it: every link leads somewhere, nothing comes from elsewhere, it fits a phone."""

import threading
from collections.abc import Callable, Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

from tests.docs.session import TOP
from tools.site import in_order, write

FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)
LOOKED_AT = (
    "index.html",
    "gallery.html",
    "howto/models.html",
    "terms.html",
    "reference/guards.html",
)

LISTENED_TO = ("gallery.html", "reference/guards.html")  # long pages take axe minutes


class Seen(HTMLParser):
    """Ids and links of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for key, value in attrs:
            if key == "id":
                self.ids.append(str(value))
            if key in {"href", "src"}:
                self.links.append((tag, str(value)))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    docs, place = TOP / "docs", tmp_path_factory.mktemp("docs") / "site"
    write(docs, in_order(docs), place)
    return place


@pytest.fixture(scope="module")
def seen(site: Path) -> dict[str, Seen]:
    return {
        file.relative_to(site).as_posix(): Seen(file.read_text(encoding="utf-8"))
        for file in site.rglob("*.html")
    }


def test_every_link_leads_to_a_file_and_to_a_place_in_it(site: Path, seen: dict[str, Seen]) -> None:
    lost = []
    for name, page in seen.items():
        for _, link in page.links:
            if link.startswith(("https://", "http://", "mailto:", "data:,")):
                continue
            path, _, fragment = unquote(link).partition("#")
            target = (site / name).parent / path if path else site / name
            place = target.resolve()
            if not place.is_file():
                lost.append((name, link))
                continue
            known = seen.get(place.relative_to(site.resolve()).as_posix())
            if fragment and known is not None and fragment not in known.ids:
                lost.append((name, link))
    assert not lost


def test_ids_are_unique_and_nothing_is_loaded_from_elsewhere(seen: dict[str, Seen]) -> None:
    for name, page in seen.items():
        assert len(page.ids) == len(set(page.ids)), name
        loaded = [link for tag, link in page.links if tag != "a"]
        assert not [link for link in loaded if "//" in link], name


def test_every_page_is_in_the_menu_the_contents_and_the_reading_order(
    site: Path, seen: dict[str, Seen]
) -> None:
    pages = set(seen) - {"contents.html", "terms.html"}
    assert pages <= {link for _, link in seen["contents.html"].links}
    assert pages <= {link for _, link in seen["index.html"].links}
    read, name = ["index.html"], "index.html"
    while True:
        text = (site / name).read_text(encoding="utf-8")
        before, found, _ = text.partition(' rel="next"')
        if not found:
            break
        link = before.rpartition('href="')[2].rstrip('"')
        name = ((site / name).parent / link).resolve().relative_to(site.resolve()).as_posix()
        read.append(name)
    assert sorted(read) == sorted(pages)


def test_commands_keys_reasons_and_words_are_in_the_index(site: Path) -> None:
    text = (site / "terms.html").read_text(encoding="utf-8")
    for term in (
        "holdfast run",
        "for_each",
        "never_ran",
        "guard:regex",
        "early cutoff",
        "exit code 3",
    ):
        assert f"<dt>{term}</dt>" in text, term


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def browser(require_part: Callable[[str], str]) -> Iterator[Browser]:
    program = require_part("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        yield browser
        browser.close()


def test_a_browser_shows_it_on_a_phone_and_in_the_dark(browser: Browser, address: str) -> None:
    asked: list[str] = []
    for width, scheme in ((375, "light"), (1400, "dark")):
        context = browser.new_context(viewport={"width": width, "height": 800})
        page = context.new_page()
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        page.on("request", lambda request: asked.append(request.url))
        for name in LOOKED_AT:
            page.goto(f"{address}/{name}")
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, name
            if name in LISTENED_TO:
                serious = _serious(page)
                assert not serious, (name, width, serious)
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
        context.close()
    assert all(url.startswith((address, "data:,")) for url in asked), asked


def _serious(page: Page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [one["id"] for one in found if one["impact"] in {"serious", "critical"}]


def test_a_session_is_copied_as_what_is_typed(browser: Browser, address: str) -> None:
    context = browser.new_context(viewport={"width": 1200, "height": 800})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{address}/gallery.html")
    button = page.locator(".block:has(.session) .copy").first
    button.click()
    page.wait_for_function(
        "document.querySelector('.block:has(.session) .copy').textContent == 'Copied'"
    )
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.splitlines()[-1] == "holdfast run"
    assert not [line for line in copied.splitlines() if line.startswith(("$", "…"))]
    context.close()
