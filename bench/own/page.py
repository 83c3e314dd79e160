"""How soon the page shows something useful and answers a click: a run of few steps beside one of many.

`page FOLDER FEW MANY REPEATS` makes both runs, serves each, and drives the browser of the system. First
useful paint is the moment at which the first content is drawn, counted from the begin of the navigation;
interaction is the time from a click on a step until its drawer is there. The least of all repeats counts, in
milliseconds.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

import holdfast

LENGTH = 10  # of a chain of steps
SCREENS = {"steps": "", "graph": "/graph", "timeline": "/timeline"}
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_PAINT = """async () => {
  const painted = () => performance.getEntriesByName("first-contentful-paint")[0];
  while (!painted() || !window.htmx) await new Promise(requestAnimationFrame);
  return painted().startTime;
}"""
_CLICK = """async (link) => {
  const drawer = document.getElementById("drawer");
  const begun = performance.now();
  link.dispatchEvent(new MouseEvent("click", {bubbles: true, cancelable: true, view: window}));
  while (!drawer.querySelector("*")) await new Promise(requestAnimationFrame);
  return performance.now() - begun;
}"""


def one(number: int) -> str:
    return str(number)


def make(folder: Path, steps: int) -> str:
    """A run of chains of ten steps side by side; its id."""
    plan = holdfast.Plan("page", root=str(folder))
    for number in range(steps):
        needs = [f"s{number - 1:05}"] if number % LENGTH else []
        plan.step(f"s{number:05}", one, needs=needs, values={"number": number}, inline=True)
    result = holdfast.run(plan)
    assert result.status == "completed"
    return str(result.state.run)


def measured(page: Page, base: str, run: str) -> dict[str, float]:
    """One visit to each screen."""
    found: dict[str, float] = {}
    for screen, path in SCREENS.items():
        page.goto(f"{base}/runs/{run}{path}")
        found[f"{screen}: first useful paint"] = page.evaluate(_PAINT)
        if screen == "graph":  # of many steps the boxes are opened first
            for _ in range(4):
                if page.locator("svg a[data-step]").count():
                    break
                page.goto(base + str(page.locator("svg a.several").first.get_attribute("href")))
        link = page.locator("svg a[data-step], .steps a[data-row]").first
        page.evaluate(_PAINT)
        found[f"{screen}: a click on a step"] = link.evaluate(_CLICK)
    return found


def visit(folder: Path, run: str, repeats: int, browser_path: str) -> dict[str, float]:
    """The least of several visits to a page that is served by the command."""
    program = str(Path(sys.executable).parent / "holdfast")
    argv = [program, "ui", "--no-browser"]
    serving = subprocess.Popen(argv, cwd=folder, stdout=subprocess.PIPE, text=True)
    least: dict[str, float] = {}
    try:
        assert serving.stdout is not None
        address = serving.stdout.readline().strip()
        base = address.partition("/door")[0]
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=browser_path, args=list(FLAGS))
            page = browser.new_page()
            page.goto(address)
            for _ in range(repeats):
                for name, took in measured(page, base, run).items():
                    least[name] = min(took, least.get(name, took))
            browser.close()
    finally:
        serving.terminate()
        serving.wait()
    return least


def main() -> None:
    folder, sizes, repeats = Path(sys.argv[1]).absolute(), sys.argv[2:4], int(sys.argv[4])
    path = shutil.which("chromium")
    said: dict[str, float] = {}
    for steps in sizes if path is not None else ():
        place = folder / steps
        place.mkdir(parents=True, exist_ok=True)
        for name, took in visit(place, make(place, int(steps)), repeats, str(path)).items():
            said[f"{steps} {name}"] = took
    print(json.dumps(said))


if __name__ == "__main__":
    main()
