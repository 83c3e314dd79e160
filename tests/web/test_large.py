"""A run with ten thousand steps: opened, searched, turned page by page, selected, as one with ten."""

from collections.abc import Callable, Iterator
from pathlib import Path

from playwright.sync_api import expect

from holdfast.cli.place import Place
from holdfast.model.event import Recorded
from holdfast.model.plan import RunId
from holdfast.ports import Store
from holdfast.web.look import Look
from holdfast.web.steps import listing
from holdfast.web.tries import tries_of
from tests.cli.project import Project
from tests.web.big import large_run
from tests.web.conftest import Visit
from tests.web.site import Site

MANY = 10_000


def test_ten_thousand_steps_are_pages_of_two_hundred(
    project: Project, site: Callable[..., Site], visit: Visit
) -> None:
    run = large_run(project.store, MANY)
    found = site()
    page = visit.open(found)
    expect(page.locator("tbody tr")).to_contain_text("9900/10000")
    page.locator("[data-row]").click()
    expect(page.locator(".steps li")).to_have_count(200)
    expect(page.locator(".pages")).to_contain_text("page 1 of 50")
    assert page.evaluate("document.getElementsByTagName('*').length") < 3000
    page.get_by_role("link", name="later").click()
    expect(page.locator(".steps li").first).to_contain_text("s00200")
    page.locator("#q").fill("state:failed")
    page.keyboard.press("Enter")
    expect(page.locator(".steps li")).to_have_count(1)
    page.locator(".steps .step").click()
    expect(page.locator("#drawer")).to_contain_text("its command failed")
    page.goto(f"{found.base}/runs/{run}?q=s00107%2B")
    expect(page.locator(".steps li").first).to_contain_text("skipped")
    expect(page.locator(".known")).to_contain_text("99 shown of 10000 steps")
    visit.clean(found)


def test_a_large_graph_begins_where_there_is_something_to_see(
    project: Project, site: Callable[..., Site], visit: Visit
) -> None:
    run = large_run(project.store, 2_000)
    found = site()
    page = visit.open(found, f"/runs/{run}/graph")
    expect(page.locator("svg a.box").first).to_be_in_viewport()
    page.goto(f"{found.base}/runs/{run}/graph?find=s01999")
    expect(page.locator("svg a.box:not(.dim)").first).to_be_in_viewport()
    page.goto(f"{found.base}/runs/{run}/graph?focus=s01999&up=1&step=s01999")
    expect(page.locator("svg a[aria-current]")).to_be_in_viewport()
    page.goto(f"{found.base}/runs/{run}/graph")
    page.get_by_role("button", name="fit").click()
    canvas = "document.querySelector('[data-canvas]')"
    for side in ("Width", "Height"):
        assert page.evaluate(f"{canvas}.scroll{side} <= {canvas}.client{side}"), side
    visit.clean(found)


def test_a_run_is_folded_once_and_then_kept_up_with(tmp_path: Path) -> None:
    """Counted, not timed: asked again, not one event is read; after a new one, only that."""
    run = RunId(large_run(tmp_path / ".holdfast", 300))
    look = Look(Place(None, str(tmp_path), str(tmp_path / ".holdfast"), None))
    counting = Counting(look.store)
    look._store = counting  # type: ignore[assignment] # it has all that a store has
    state = look.state(run)
    assert state is not None
    assert counting.events == state.seq
    for _ in range(3):
        assert look.state(run) is state
        listing(look, state, page=2)
    assert counting.events == state.seq
    tries_of(look, state)
    tries_of(look, state)
    assert counting.events == 2 * state.seq
    look.close()


class Counting:
    """A store that counts the events which are read from it."""

    def __init__(self, store: Store) -> None:
        self._inner = store
        self.events = 0

    def read(self, journal: str, after: int = 0) -> Iterator[Recorded]:
        for recorded in self._inner.read(journal, after):
            self.events += 1
            yield recorded

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)
