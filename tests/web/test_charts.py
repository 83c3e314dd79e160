"""Graph, timeline, log, cost, ledger, compare and plan in a real browser."""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from holdfast.model.digest import Json
from holdfast.testing.server import Say
from holdfast.web.timeline import Stretch, labelled
from tests.cli.market import asking, market
from tests.cli.project import Project
from tests.cli.test_ledger_words import handoff
from tests.web.big import large_run
from tests.web.conftest import Visit
from tests.web.site import Site, serve

GRAVE = {"serious", "critical"}
HOSTILE = (
    '<img src=x onerror="alert(1)">',
    "</script><svg onload=alert(2)>",
    "{{7*7}}",
    "![x](http://127.0.0.1:9/?q=1)",
)
OBEYED = r"printf '\033[2Jred\007 \342\200\256gnp\n' >&2"  # by a terminal
Serve = Callable[..., Site]


def accessible(page: Page) -> None:
    """No serious fault for somebody who does not see or does not use a mouse."""
    found = Axe().run(page).response["violations"]
    grave = [one for one in found if one["impact"] in GRAVE]
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in grave] == []


def enter(visit: Visit, site: Site, path: str) -> Page:
    """Come in by another code than the first visitor's, then go to a path."""
    address = site.project.ok("ui", "--no-browser").out.strip()
    visit.page.goto(address)
    visit.page.goto(site.base + path)
    return visit.page


def places(page: Page) -> dict[str, tuple[str, str]]:
    """Where each box stands, by its name."""
    found = page.locator("svg.graph a.box").evaluate_all(
        "all => all.map(a => [a.getAttribute('aria-label').split(':')[0],"
        " a.querySelector('.frame').getAttribute('x'), a.querySelector('.frame').getAttribute('y')])"
    )
    return {name: (x, y) for name, x, y in found}


@pytest.fixture(scope="module")
def brief(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A run with items, a second attempt, a failure with what is skipped below it, and an approval.

    Nobody changes it: it is served once for all who look at it.
    """
    project = Project(tmp_path_factory.mktemp("brief"))
    project.plan(
        {
            "search": {"shell": project.sh("echo hits")},
            "extract": {
                "for_each": ["nl", "de", "fr"],
                "with": {"v": "${{ item }}"},
                "shell": project.sh("cat $HOLDFAST_WITH/v; echo said $HOLDFAST_STEP >&2"),
                "needs": ["search"],
            },
            "check": {
                "shell": project.sh(
                    "test -e tried && echo ok; test -e tried || echo bad; touch tried"
                ),
                "needs": ["extract"],
                "retries": 2,
                "guards": [{"regex": {"pattern": "ok"}}],
            },
            "broken": {"shell": project.sh("echo oops >&2; exit 3"), "needs": ["search"]},
            "after": {"shell": project.sh("echo never"), "needs": ["broken"]},
            "publish": {"run": ["echo", "out"], "needs": ["check"], "approve": "always"},
        }
    )
    assert project.run().code == 3
    yield serve(project)
    project.end()


@pytest.mark.req("R183")
def test_the_graph_opens_level_by_level_and_shares_the_selection(brief: Site, visit: Visit) -> None:
    found, run = brief, brief.project.status().id
    page = enter(visit, found, f"/runs/{run}/graph")
    expect(page.get_by_role("link", name="extract ×3: 3 done, after search; opens")).to_be_visible()
    expect(page.get_by_role("link", name="after: skipped, after broken")).to_be_visible()
    expect(page.get_by_role("link", name="publish: waiting, after check")).to_be_visible()
    accessible(page)
    page.get_by_role("link", name="check: done, after extract ×3").click()
    expect(page.locator("#drawer")).to_contain_text("check")
    assert "step=check" in page.url
    expect(page.locator("svg.graph a[aria-current]")).to_have_attribute("data-step", "check")
    page.reload()
    expect(page.locator("#drawer")).to_contain_text("check")
    expect(page.locator("svg.graph a[aria-current]")).to_have_attribute("data-step", "check")
    page.get_by_label("levels up").fill("1")
    page.get_by_role("button", name="Focus").click()
    expect(page.locator("svg.graph a.box")).to_have_count(3)
    page.goto(f"{found.base}/runs/{run}/graph")
    box = page.get_by_role("link", name=re.compile("^extract ×3"))
    box.focus()
    page.keyboard.press("Enter")
    expect(page.locator("svg.graph a.box")).to_have_count(4)
    expect(page.get_by_role("link", name="extract[de]: done")).to_be_visible()
    expect(page.get_by_role("navigation", name="Levels")).to_contain_text("extract ×3")
    page.get_by_label("Find").fill("de")
    page.keyboard.press("Enter")
    expect(page.locator("svg.graph a.box:not(.dim)")).to_have_count(1)
    visit.clean(found)


def test_a_picture_is_moved_and_resized_by_keys(brief: Site, visit: Visit) -> None:
    page = enter(visit, found := brief, f"/runs/{brief.project.status().id}/graph")
    canvas = page.locator("[data-canvas]")
    svg = canvas.locator("svg")
    width = float(svg.get_attribute("width") or 0)
    canvas.focus()
    for _ in range(4):
        page.keyboard.press("+")
    expect(svg).not_to_have_attribute("width", str(int(width)))
    assert float(svg.get_attribute("width") or 0) > 2 * width
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.querySelector('[data-canvas]').scrollLeft > 0")
    page.keyboard.press("0")
    assert float(svg.get_attribute("width") or 0) <= width
    visit.clean(found)


def test_states_change_in_the_graph_and_nothing_moves(
    project: Project, site: Serve, visit: Visit
) -> None:
    project.plan(
        {
            "first": {"shell": project.sh(project.gate("first"))},
            "left": {"shell": project.sh("echo l"), "needs": ["first"]},
            "right": {"shell": project.sh(project.gate("right")), "needs": ["first"]},
        }
    )
    project.begun_by("run", step="first")
    page = visit.open(found := site(), f"/runs/{project.status().id}/graph")
    expect(page.get_by_role("link", name="first: running")).to_be_visible()
    before = places(page)
    project.open("first")
    expect(page.get_by_role("link", name="first: done")).to_be_visible()
    expect(page.get_by_role("link", name="right: running")).to_be_visible()
    assert places(page) == before
    page.goto(f"{found.base}/runs/{project.status().id}/timeline")
    expect(page.locator("svg.timeline rect.bar.running")).to_have_count(1)
    project.open("right")
    expect(page.locator("svg.timeline rect.bar.running")).to_have_count(0)
    expect(page.locator("svg.timeline rect.bar.accepted")).to_have_count(3)
    visit.clean(found)


@pytest.mark.req("R183")
def test_the_timeline_shows_attempts_waits_and_what_decided(brief: Site, visit: Visit) -> None:
    run = brief.project.status().id
    page = enter(visit, found := brief, f"/runs/{run}/timeline")
    row = page.locator("svg.timeline a.row[data-step=check]")
    expect(row.locator("rect.bar")).to_have_count(2)
    expect(row.locator("rect.bar.rejected")).to_have_count(1)
    assert "attempt 1 rejected" in (row.get_attribute("aria-label") or "")
    assert "decided how long it took" in (row.get_attribute("aria-label") or "")
    expect(page.locator("a.row[data-step=publish] rect.bar.waiting")).to_have_count(1)
    accessible(page)
    expect(page.get_by_text("1 step without an attempt")).to_be_visible()
    page.get_by_label("Show", exact=True).select_option("failed")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("svg.timeline a.row")).to_have_count(1)
    page.goto(f"{found.base}/runs/{run}/timeline?show=all")
    expect(page.locator("svg.timeline a.row")).to_have_count(6)
    page.get_by_role("link", name="open extract, 3 inside").click()
    expect(page.locator("svg.timeline a.row")).to_have_count(9)
    page.locator("a.row[data-step=check]").click()
    expect(page.locator("#drawer")).to_contain_text("check")
    visit.clean(found)


def test_a_drag_over_the_axis_shows_only_that_time(brief: Site, visit: Visit) -> None:
    run = brief.project.status().id
    page = enter(visit, brief, f"/runs/{run}/timeline")
    page.locator("[data-axis]").scroll_into_view_if_needed()
    box = page.locator("[data-axis]").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 2, box["y"] + 4)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 4, box["y"] + 6, steps=3)
    page.mouse.up()
    page.wait_for_url(re.compile(r"from=0\.\d+&to=\d"))
    expect(page.get_by_role("link", name="all of its time")).to_be_visible()
    expect(page.locator("a.row[data-step=search] rect.bar")).to_have_count(1)
    page.get_by_role("link", name="all of its time").click()
    expect(page.get_by_role("link", name="all of its time")).to_have_count(0)
    visit.clean(brief)


def test_every_screen_suits_the_dark_and_a_phone(brief: Site, browser: Browser) -> None:
    context = browser.new_context(
        viewport={"width": 390, "height": 800}, color_scheme="dark", reduced_motion="reduce"
    )
    visit = Visit(context)
    run = brief.project.status().id
    screens = ("graph?step=check", "timeline?open=extract", "log", "cost")
    paths = [f"/runs/{run}/{screen}" for screen in screens]
    for path in (*paths, "/plan", "/compare", "/ledger", "/cost"):
        page = enter(visit, brief, path)
        accessible(page)
        assert page.evaluate("document.documentElement.scrollWidth") == 390, path
    visit.clean(brief)
    context.close()


@pytest.mark.req("R183")
def test_the_log_is_read_in_order_and_per_attempt(brief: Site, visit: Visit) -> None:
    run = brief.project.status().id
    page = enter(visit, found := brief, f"/runs/{run}/log")
    expect(page.get_by_text("attempts 1 to 8 of 8")).to_be_visible()
    expect(page.locator("article", has_text="broken")).to_contain_text("oops")
    expect(page.locator("article", has_text="check").first).to_contain_text("rejected by regex")
    accessible(page)
    page.locator("article", has_text="check").first.get_by_role("link").click()
    expect(page.locator("article")).to_have_count(2)
    page.goto(f"{found.base}/runs/{run}/log?of=broken&attempt=1")
    expect(page.locator("pre.whole")).to_contain_text("oops")
    accessible(page)
    page.goto(f"{found.base}/runs/{run}/cost")
    expect(page.get_by_text("no model was asked")).to_be_visible()
    visit.clean(found)


def test_a_running_attempt_is_followed_in_the_log(
    project: Project, site: Serve, visit: Visit
) -> None:
    project.plan(
        {"one": {"shell": project.sh(f"echo words so far; {project.gate('one')}; echo end")}}
    )
    project.begun_by("run", step="one")
    page = visit.open(found := site(), f"/runs/{project.status().id}/log")
    expect(page.locator("article")).to_contain_text("running")
    project.open("one")
    expect(page.locator("article")).to_contain_text("accepted")
    visit.clean(found)


@pytest.mark.req("R166", "R183")
def test_the_page_has_the_figures_of_the_command(
    project: Project, site: Serve, visit: Visit
) -> None:
    with market(project, lambda _: Say("good", input=10, output=100)):
        project.plan({"a": asking("say a", most=1000), "b": asking("say b", most=1000)})
        for _ in range(2):
            assert project.run("--yes", "--force").code == 0
        run = project.status().id
        lines = [
            line for line in project.ok("cost", "--by", "run").out.splitlines() if " spent" in line
        ]
        page = visit.open(found := site(), "/cost?by=run")
        expect(page.locator("main")).to_contain_text(lines[0])
        expect(page.locator("tbody tr")).to_have_count(2)
        page.goto(f"{found.base}/runs/{run}/cost")
        expect(page.locator("tbody tr")).to_have_count(2)
        expect(page.get_by_text(re.compile("^expected .*, cost "))).to_be_visible()
        accessible(page)
        page.get_by_role("link", name="by model").click()
        expect(page.locator("tbody th")).to_have_text("fake:m")
    visit.clean(found)


@pytest.mark.req("R183")
def test_two_runs_are_compared_and_what_is_equal_is_hidden(
    project: Project, site: Serve, visit: Visit
) -> None:
    steps = {"a": {"run": ["echo", "one"]}, "b": {"run": ["echo", "same"]}}
    project.plan(steps)
    assert project.run().code == 0
    project.plan({**steps, "a": {"run": ["echo", "two"]}, "c": {"run": ["echo", "new"]}})
    assert project.run().code == 0
    page = visit.open(found := site(), "/")
    for box in page.locator("table.runs input[type=checkbox]").all():
        box.check()
    page.get_by_role("button", name="Compare two ticked runs").click()
    expect(page.locator("dl.facts")).to_contain_text("1 added, 1 changed")
    expect(page.locator("dl.facts")).to_contain_text("1 of 2 differ")
    expect(page.locator("article")).to_have_count(2)
    expect(page.locator("article", has_text="~ a").locator(".plus").last).to_have_text("+two")
    accessible(page)
    page.get_by_role("link", name="show 1 step that is equal").click()
    expect(page.locator("article")).to_have_count(3)
    page.goto(found.base + "/plan")
    page.get_by_role("link", name="1 added, 1 changed").click()
    expect(page.locator("h1")).to_contain_text("plan ")
    expect(page.locator("article")).to_have_count(2)
    page.goto(found.base + "/compare?a=/etc/passwd&b=@")
    expect(page.get_by_role("alert")).to_contain_text("two runs or two versions")
    page.goto(found.base + "/compare")
    accessible(page)
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("article")).to_have_count(2)
    visit.faults.clear()  # the page of a wrong address is a 404
    visit.clean(found)


@pytest.mark.req("R183")
def test_the_plan_is_shown_with_what_is_wrong_with_it(
    project: Project, site: Serve, visit: Visit
) -> None:
    project.write("plan.yaml", "name: mine\nsteps:\n  a: {run: [echo, hi]}\n")
    assert project.run().code == 0
    page = visit.open(found := site(), "/plan")
    expect(page.get_by_text("1 step in 1 wave, nothing wrong")).to_be_visible()
    expect(page.locator(".source li")).to_have_count(3)
    accessible(page)
    project.write("plan.yaml", "name: mine\nsteps:\n  a: {run: [echo, hi], wrong: 1}\n")
    page.reload()
    expect(page.get_by_text("1 problem")).to_be_visible()
    expect(page.locator(".problems li")).to_contain_text("'wrong' is not a key")
    page.get_by_role("link", name="line 3").click()
    expect(page.locator("#line-3")).to_have_class("marked")
    visit.clean(found)


@pytest.fixture
def harbour(project: Project) -> Project:
    """A run that learned something, in words that no page may obey."""
    finding: Json = {
        "finding": f"12 ships {HOSTILE[0]}",
        "source": "register.csv",
        "supports": ["H1"],
    }
    gap: Json = {"item": HOSTILE[2], "reason": HOSTILE[3]}
    answer: Json = {"finding": "11 answer", "source": "look"}
    project.write("look.json", handoff(finding, attempted=HOSTILE[1], not_done=[gap]))
    project.write("ping.json", handoff(answer))
    project.write(
        "plan.yaml",
        "name: harbour\nhypotheses:\n  H1: {statement: the ferry answers}\nsteps:\n"
        "  look: {shell: cp look.json $HOLDFAST_HANDOFF; echo 12}\n"
        "  ping: {shell: cp ping.json $HOLDFAST_HANDOFF; echo 11, needs: [look]}\n",
    )
    assert project.run().code == 0
    return project


@pytest.mark.req("R183")
def test_contesting_shows_what_falls_before_it_is_said(
    harbour: Project, site: Serve, visit: Visit
) -> None:
    page = visit.open(found := site(), "/ledger")
    expect(page.get_by_role("region", name="Evidence")).to_contain_text(HOSTILE[0])
    expect(page.get_by_role("region", name="Handoffs")).to_contain_text(HOSTILE[1])
    expect(page.get_by_role("region", name="Gaps")).to_contain_text(HOSTILE[2])
    expect(page.get_by_role("region", name="Hypotheses")).to_contain_text("H1: supported")
    accessible(page)
    page.get_by_role("link", name=re.compile("contest e-")).first.click()
    page.get_by_label("why").fill("counted twice")
    page.get_by_role("button", name="Show what falls").click()
    fall = page.locator("#fall")
    expect(fall).to_contain_text("would be contested")
    expect(fall).to_contain_text("a run would check again (2 steps of 2)")
    said = harbour.ok("ledger", "--json").json["said"]
    assert said == [], "nothing is said before somebody confirms it"
    accessible(page)
    page.get_by_role("button", name="Contest it").click()
    expect(fall.locator(".said")).to_contain_text("contested: 12 ships")
    (word,) = harbour.ok("ledger", "--json").json["said"]
    assert (word["word"], word["text"]) == ("contest", "counted twice")
    page.goto(found.base + "/ledger?part=evidence")
    expect(page.get_by_role("region", name="Evidence").locator("li")).to_have_count(2)
    expect(page.get_by_role("region", name="Stale steps")).to_contain_text("ping")
    page.get_by_role("link", name=re.compile("stand again")).first.click()
    page.get_by_label("why").fill("it was right")
    page.get_by_role("button", name="Let it stand").click()
    expect(fall).to_contain_text("stands again")
    assert not any(one["stale"] for one in harbour.ok("ledger", "--json").json["evidence"])
    page.goto(found.base + "/ledger?q=answer")
    expect(page.locator(".entries li")).to_have_count(1)
    visit.clean(found)


def test_a_page_that_only_shows_contests_nothing(harbour: Project, site: Serve) -> None:
    found = site("--read-only")
    found.enter()
    entry = harbour.ok("ledger", "--json").json["evidence"][0]["id"]
    said = found.post("/ledger/contest", {"entry": entry, "because": "no", "line": "harbour"})
    assert said.status == 409
    assert harbour.ok("ledger", "--json").json["said"] == []


@pytest.mark.req("R183")
def test_hostile_words_are_only_words_on_every_screen(
    project: Project, site: Serve, visit: Visit
) -> None:
    project.plan(
        {
            "each": {
                "for_each": list(HOSTILE),
                "with": {"v": "${{ item }}"},
                "shell": project.sh(
                    "cat $HOLDFAST_WITH/v; cat $HOLDFAST_WITH/v >&2; " + OBEYED + "; exit 1"
                ),
                "description": HOSTILE[0],
            }
        },
        name=HOSTILE[1],
    )
    assert project.run().code == 8, "a whole wave failed"
    run = project.status().id
    found = site()
    page = visit.open(found)
    for path in (
        f"/runs/{run}/graph?at=each&depth=1",
        f"/runs/{run}/graph?at=each&depth=1&find={HOSTILE[2]}&step=each",
        f"/runs/{run}/timeline?open=each",
        f"/runs/{run}/log",
        f"/runs/{run}/cost",
        "/plan",
        "/ledger",
        "/compare",
        "/cost",
    ):
        page.goto(found.base + path)
        expect(page.locator("main")).to_be_visible()
        assert "\x1b" not in page.content(), path
        assert "\u202e" not in page.content(), path
    page.goto(f"{found.base}/runs/{run}/log")
    expect(page.locator("article", has_text="onerror").first).to_be_visible()
    expect(page.locator("article").first).to_contain_text(r"\u{1b}[2Jred")
    visit.clean(found)


@pytest.fixture
def large(project: Project) -> str:
    with ThreadPoolExecutor(1) as aside:  # the browser has the loop of this thread
        return aside.submit(large_run, project.store, 10_000).result()


@pytest.mark.req("R183")
def test_ten_thousand_steps_are_drawn_on_few_boxes_and_pages(
    project: Project, site: Serve, visit: Visit, large: str, tmp_path: Path
) -> None:
    found = site()
    page = visit.open(found, f"/runs/{large}/graph")
    boxes = page.locator("svg.graph a.box")
    assert 2 <= boxes.count() <= 300
    accessible(page)
    page.get_by_role("link", name=re.compile("1 failed, 99 skipped")).click()
    expect(page.get_by_role("link", name=re.compile("^s00007: failed"))).to_be_visible()
    assert boxes.count() <= 300
    page.get_by_role("link", name=re.compile("^s00007: failed")).click()
    expect(page.locator("#drawer")).to_contain_text("s00007")
    page.goto(f"{found.base}/runs/{large}/timeline")
    expect(page.locator("svg.timeline a.row")).to_have_count(200)
    page.get_by_role("link", name="later").click()
    expect(page.get_by_text("page 2 of 50")).to_be_visible()
    expect(page.locator("svg.timeline a.row")).to_have_count(200)
    page.goto(f"{found.base}/runs/{large}/log")
    expect(page.locator("article")).to_have_count(50)
    page.get_by_role("link", name="earlier").click()
    expect(page.locator("article")).to_have_count(50)
    visit.clean(found)
    target = tmp_path / "run.html"
    project.ok("ui", "--export", str(target), large)
    assert target.stat().st_size < 2_000_000


def test_labels_of_near_cuts_do_not_run_into_each_other() -> None:
    cuts = [Stretch(at, 10, "2 h 10 min nobody worked") for at in (300, 320, 550, 900, 910, 1200)]
    assert [cut.label != "" for cut in labelled(cuts)] == [True, False, True, True, False, True]
