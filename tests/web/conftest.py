"""One browser for all tests of a process; each test has a profile of its own in it."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.cli.project import Project
from tests.web.site import Site, serve

expect.set_options(timeout=60_000)  # a deadline on a busy machine, not a promise

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP rebind.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)

REPORTS = """document.addEventListener("securitypolicyviolation", (one) =>
  console.error("refused by the policy: " + one.violatedDirective + " " + one.blockedURI));"""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path)
    yield made
    made.end()


@pytest.fixture
def site(project: Project) -> Callable[..., Site]:
    """Serve the project's page; ended with the project."""
    return lambda *words: serve(project, *words)


@pytest.fixture(scope="module")  # as long as it lives, no other event loop can run in this process
def browser() -> Iterator[Browser]:
    """The browser of the system."""
    path = shutil.which("chromium")
    if path is None:
        if os.environ.get("HOLDFAST_REQUIRE_PARTS") == "1":
            pytest.fail('required part "chromium" was not found')
        pytest.skip('part "chromium" was not found')
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield found
        found.close()


class Visit:
    """A person's browser window, and everything in it that should not have happened."""

    def __init__(self, context: BrowserContext) -> None:
        self.context = context
        context.add_init_script(REPORTS)
        self.page: Page = context.new_page()
        self.faults: list[str] = []
        self.asked: list[str] = []
        self.page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: self._dialog(dialog.message))
        self.page.on("console", lambda said: self._console(said.type, said.text))
        self.page.on("request", lambda one: self.asked.append(one.url))

    def _dialog(self, message: str) -> None:
        self.faults.append(f"dialog: {message}")

    def _console(self, kind: str, text: str) -> None:
        if kind == "error":
            self.faults.append(f"console: {text}")

    def open(self, site: Site, path: str = "") -> Page:
        """Come in by the printed address, then go to a path."""
        self.page.goto(site.address)
        if path:
            self.page.goto(site.base + path)
        return self.page

    def clean(self, site: Site) -> None:
        """Nothing broke, nothing popped up, and no request left the page's own server."""
        assert self.faults == []
        assert [url for url in self.asked if not url.startswith(site.base)] == []


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    yield Visit(context)
    context.close()
