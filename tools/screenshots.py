"""Pictures of the page for the documentation: a small project is run, its page served, a browser looks.

`python -m tools.screenshots` writes docs/images. It needs Chromium, as the tests of the page do.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, ViewportSize, sync_playwright

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
SIZE: ViewportSize = {"width": 1120, "height": 640}
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run")
PLAN = """\
name: market-brief
goal: Is the market growing, and by how much?
hypotheses:
  growing: {statement: the market grows}
steps:
  search:
    shell: cp search.json $HOLDFAST_HANDOFF; echo 24 pages found
  extract:
    needs: [search]
    for_each: [nl-2026, de-2025, fr-2026, es-2025, it-2026, pl-2026]
    with: {page: "${{ item }}"}
    shell: sleep 0.1; cat $HOLDFAST_WITH/page
  size:
    needs: [extract]
    shell: cp size.json $HOLDFAST_HANDOFF; sleep 0.3; echo 34 %
  quotes:
    needs: [extract]
    retries: 2
    shell: sleep 0.2; test -e corrected && echo all in the source; touch corrected; echo one is wrong
    guards: [{regex: {pattern: all in the source}}]
  brief:
    needs: [size, quotes]
    produces: brief.md
    shell: sleep 0.2; echo "The market grows by WORD." > brief.md
  maps:
    needs: [search]
    shell: echo no map server >&2; exit 3
  atlas:
    needs: [maps]
    shell: echo never
  publish:
    needs: [brief]
    run: [echo, published]
    approve: always
"""


def handoff(*observed: Mapping[str, object], **more: object) -> str:
    """What a step tells, as a file."""
    whole = {
        "attempted": "read what was found",
        "observed": list(observed),
        "changed": [],
        "not_done": [],
        "highest_impact_uncertainty": "",
        "next_agent_should_first": "",
        **more,
    }
    return json.dumps(whole)


def prepare(folder: Path) -> None:
    """A project with two runs: the second one has another sentence, a failure and an open approval."""
    found = {"finding": "sales rose by 24 % in a year", "source": "nl.md", "confidence": 0.8}
    doubt = "Do the figures of 2025 count returns?"
    (folder / "search.json").write_text(
        handoff({**found, "supports": ["growing"]}, highest_impact_uncertainty=doubt)
    )
    gap = {"item": "figures of Poland", "reason": "no source"}
    derived = {"finding": "34 % in two years", "source": "search", "supports": ["growing"]}
    (folder / "size.json").write_text(handoff(derived, not_done=[gap]))
    for word in ("a third", "34 %"):
        (folder / "corrected").unlink(missing_ok=True)
        (folder / "plan.yaml").write_text(PLAN.replace("WORD", word))
        argv = [program(), "run", "--yes", "--force"]
        subprocess.run(argv, cwd=folder, check=False, capture_output=True)


def program() -> str:
    return str(Path(sys.executable).parent / "holdfast")


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The page of a project; the address that opens it."""
    argv = [program(), "ui", "--no-browser", "-q"]
    serving = subprocess.Popen(argv, cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        assert serving.stdout is not None
        yield serving.stdout.readline().strip()
    finally:
        serving.terminate()
        serving.wait()


def _contest(page: Page) -> None:
    page.get_by_role("link", name="contest e-").first.click()
    page.get_by_label("why").fill("returns are counted twice")
    page.get_by_role("button", name="Show what falls").click()
    page.get_by_role("button", name="Contest it").wait_for()


def _nothing(page: Page) -> None:
    """Only look."""
    page.locator("main").wait_for()


SHOTS: dict[str, tuple[str, Callable[[Page], None]]] = {
    "runs": ("/", _nothing),
    "steps": ("RUN?open=extract", _nothing),
    "graph": ("RUN/graph", _nothing),
    "selected": ("RUN/graph?step=quotes&view=attempts", _nothing),
    "timeline": ("RUN/timeline?open=extract", _nothing),
    "approvals": ("/approvals", _nothing),
    "ledger": ("/ledger", _contest),
    "compare": ("/compare?a=@-1&b=@", _nothing),
}


def main() -> int:
    path = shutil.which("chromium")
    if path is None:
        print("error: there is no chromium here", file=sys.stderr)
        return 1
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="market-") as made:
        folder = Path(made) / "market"
        folder.mkdir()
        prepare(folder)
        with served(folder) as address, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
            page = browser.new_page(viewport=SIZE, reduced_motion="reduce")
            page.goto(address)
            run = str(page.locator("table.runs th a").first.get_attribute("href"))
            for name, (place, act) in SHOTS.items():
                page.goto(address.partition("/door")[0] + place.replace("RUN", run))
                act(page)
                page.locator(".place").evaluate("one => { one.textContent = '~/market'; }")
                page.screenshot(path=IMAGES / f"page-{name}.png")
                print(f"docs/images/page-{name}.png")
            browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
