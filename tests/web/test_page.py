"""The page in a real browser: a run watched to its end, an approval given, a retry started, keys, voices."""

import re
from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, expect

from tests.cli.project import Project, until
from tests.web.conftest import Visit
from tests.web.site import Site, finished

GRAVE = {"serious", "critical"}


def accessible(page: Page, part: str | None = None) -> None:
    """No serious fault for somebody who does not see or does not use a mouse."""
    found = Axe().run(page, part).response["violations"]
    grave = [one for one in found if one["impact"] in GRAVE]
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in grave] == []


def _row(page: Page, step: str) -> Locator:
    return page.locator(".steps li", has=page.locator(f"[data-step='{step}']"))


def _press(inside: Page | Locator, name: str) -> None:
    """Press a button whose name begins so; those that copy a command begin otherwise."""
    inside.get_by_role("button", name=re.compile(f"^{name}")).click()


def test_a_run_is_watched_to_its_end(
    project: Project, site: Callable[..., Site], visit: Visit
) -> None:
    project.plan(
        {
            "first": {"shell": project.sh(project.gate("first"))},
            "second": {"shell": project.sh(project.gate("second")), "needs": ["first"]},
            "each": {
                "for_each": ["x", "y z"],
                "with": {"v": "${{ item }}"},
                "shell": project.sh("cat $HOLDFAST_WITH/v"),
                "needs": ["second"],
            },
        }
    )
    project.begun_by("run", step="first")
    found = site()
    visit.page.clock.install()
    page = visit.open(found)
    row = page.locator("table.runs tbody tr")
    expect(row.locator(".state")).to_have_text("running")
    accessible(page)
    row.locator("[data-row]").click()
    first, second, group = (_row(page, name) for name in ("first", "second", "each"))
    expect(first.locator(".state")).to_contain_text("running")
    clocks = (first.locator("[data-ran]"), page.locator("#strip [data-ran]"))
    for clock in clocks:
        expect(clock).to_have_text(re.compile(r"^\d+ s$"))
    page.clock.fast_forward("02:03:00")
    for clock in clocks:
        expect(clock).to_contain_text("2 h 3 min")
    expect(second.locator(".state")).to_contain_text("pending")
    project.open("first")
    expect(first.locator(".state")).to_contain_text("done")
    expect(second.locator(".state")).to_contain_text("running")
    expect(page.locator("#strip .state")).to_have_text("running")
    project.open("second")
    expect(page.locator("#strip .state")).to_have_text("completed")
    expect(page.locator("#strip progress").first).to_have_attribute("value", "5")
    expect(page.locator("#told")).to_contain_text("completed")
    expect(group).to_contain_text("2 done")
    group.locator(".fold").click()
    expect(page.locator(".steps li")).to_have_count(5)
    expect(page.locator(".steps")).to_contain_text("y z")
    accessible(page)
    visit.clean(found)


def test_a_run_that_begins_or_dies_shows_without_reloading(
    project: Project, site: Callable[..., Site], visit: Visit
) -> None:
    project.plan({"slow": {"shell": project.sh(project.gate("go"))}})
    found = site()
    page = visit.open(found)
    expect(page.locator("main")).to_contain_text("There is no run yet")
    engine = project.begun_by("run", step="slow")
    expect(page.locator("table.runs tbody tr .state")).to_have_text("running")
    page.locator("[data-row]").click()
    expect(page.locator("#strip .state")).to_have_text("running")
    engine.kill()
    engine.communicate()
    expect(page.locator("#strip .state")).to_have_text("interrupted")
    visit.clean(found)


def test_events_go_on_where_a_browser_left_off(project: Project, site: Callable[..., Site]) -> None:
    project.plan({"a": {"shell": project.sh()}, "b": {"shell": "false", "needs": ["a"]}})
    run = project.run().id
    found = site()
    found.enter()
    whole = _first_event(found, f"/live/runs/{run}?after=0")
    assert re.search(r"^id: (\d+)", whole, re.MULTILINE)
    last = re.search(r"^id: (\d+)", whole, re.MULTILINE)
    assert last is not None
    assert all(f">{word}<" in whole or word in whole for word in ("done", "failed"))
    before = int(last[1]) - 1
    some = _first_event(found, f"/live/runs/{run}", ("Last-Event-ID", str(before)))
    assert f"id: {last[1]}" in some
    assert "-now" not in some, "no step changed since"
    assert "strip" in some


def test_another_plan_files_run_is_tried_again_by_its_own_plan(
    project: Project, site: Callable[..., Site]
) -> None:
    project.plan({"shop": {"shell": project.sh()}, "top": {"shell": project.sh("echo SHOP")}})
    project.plan({"top": {"shell": project.sh("echo OTHER")}}, file="other.yaml", name="other")
    run = project.run("other.yaml").id
    project.ran()
    found = site()
    found.enter()
    assert "holdfast plan other.yaml" in found.ask(f"/runs/{run}").text
    shown = found.ask(f"/runs/{run}/act?do=retry&step=top").text
    assert "holdfast retry -f other.yaml top --yes" in shown
    assert "shop" not in shown
    digest = re.search(r'name="digest" value="(\w+)"', shown)
    assert digest is not None
    done = found.post(
        f"/runs/{run}/do", {"do": "retry", "step": "top", "digest": digest[1], "because": ""}
    )
    assert done.status == 200, done.text
    until(lambda: project.status("-f", "other.yaml").data["status"] == "completed", "it ends")
    assert project.ran() == ["top"]
    assert project.ok("show", "-f", "other.yaml", "top").out == "OTHER\n"


def _first_event(site: Site, path: str, *headers: tuple[str, str]) -> str:
    import socket

    lines = [f"GET {path} HTTP/1.1", f"Host: {site.host}", f"Cookie: {site.cookie}"]
    lines += [f"{name}: {value}" for name, value in headers]
    with socket.create_connection(("127.0.0.1", site.port), timeout=30) as wire:
        wire.sendall("\r\n".join([*lines, "", ""]).encode())
        data = b""
        while b"event: news" not in data or not data.rstrip(b"\r\n0").endswith(b"}"):
            data += wire.recv(65536)
    return data.decode()


@pytest.mark.req("R173")
def test_an_approval_is_given_by_a_key_and_the_run_goes_on(
    project: Project, site: Callable[..., Site], visit: Visit
) -> None:
    project.plan(
        {
            "build": {"shell": project.sh("echo new > out.txt"), "produces": "out.txt"},
            "ship": {
                "shell": project.sh("cat out.txt"),
                "approve": "always",
                "effects": "external",
                "needs": ["build"],
            },
        }
    )
    assert project.run("--yes").code == 3
    found = site()
    page = visit.open(found)
    expect(page.locator("nav .badge")).to_contain_text("1")
    page.get_by_role("link", name=re.compile("Approvals")).click()
    card = page.locator("[data-card]")
    expect(card).to_contain_text("ship waits for an approval")
    expect(card).to_contain_text("cat out.txt")
    expect(card).to_contain_text("external")
    expect(card).to_contain_text("$0")
    accessible(page)
    other = visit.context.new_page()
    other.goto(found.base + "/approvals")
    expect(other.locator("[data-card]")).to_have_count(1)
    page.keyboard.press("y")
    expect(card).to_contain_text("ship: approved")
    expect(card).not_to_contain_text("waits for an approval")
    expect(other.locator("[data-card]")).to_have_count(0)
    expect(other.locator("nav .badge")).to_be_empty()
    other.goto(found.base + f"/runs/{project.status().id}")
    expect(other.locator(".next")).to_contain_text("holdfast resume")
    expect(other.locator(".next")).not_to_contain_text("approve")
    expect(_row(other, "ship")).to_contain_text("approved: it goes on with holdfast resume")
    other.close()
    _press(page, "Resume")
    expect(page.locator(".preview")).to_contain_text("1 of 2 steps are kept")
    accessible(page, ".preview")
    assert project.status().data["status"] == "waiting", "a preview does nothing"
    _press(page, "Do it")
    page.wait_for_url(re.compile("/runs/r-"))
    expect(page.locator("#strip .state")).to_have_text("completed")
    assert project.ran() == ["build", "ship"]
    decided = project.ok("approvals", "--all", "--json").json["approvals"][0]["decision"]
    assert (decided["yes"], decided["scope"], decided["terminal"]) == (True, "once", True)
    page.goto(found.base + "/approvals")
    expect(page.locator("main")).to_contain_text("Nothing waits for a person")
    expect(page.locator("table")).to_contain_text("used")
    visit.clean(found)


@pytest.mark.req("R173")
def test_a_no_needs_a_reason_and_a_yes_can_be_taken_back(
    project: Project, site: Callable[..., Site], visit: Visit
) -> None:
    project.plan(
        {
            "one": {"shell": project.sh(), "approve": "on_change"},
            "two": {"shell": project.sh(), "approve": "on_change"},
        }
    )
    assert project.run().code == 3
    found = site()
    project.plan(
        {"late": {"shell": project.sh(), "approve": "always"}}, file="late.yaml", name="late"
    )
    page = visit.open(found, "/approvals")
    expect(page.locator("[data-card]")).to_have_count(2)
    assert project.run("late.yaml").code == 3
    expect(page.locator("[data-card]")).to_have_count(3)
    one, two = (page.locator("[data-card]", has_text=f"{name} waits") for name in ("one", "two"))
    one.locator("select").select_option("content")
    _press(one, "Approve")
    expect(page.locator("[data-card]", has_text="one: approved")).to_be_visible()
    _press(two, "Reject")
    expect(two.locator("[data-no]")).to_be_focused()
    two.locator("[data-no]").fill("the release is frozen")
    _press(two, "Reject")
    expect(page.locator("[data-card]", has_text="two: rejected")).to_be_visible()
    page.reload()
    row = page.locator("tr", has_text="one")
    expect(row).to_contain_text("approved")
    expect(page.locator("tr", has_text="two")).to_contain_text("the release is frozen")
    _press(row, "take back")
    expect(row).to_contain_text("one: revoked")
    states = [one["state"] for one in project.ok("approvals", "--all", "--json").json["approvals"]]
    assert sorted(states) == ["rejected", "revoked"], states
    visit.clean(found)


def test_a_person_gives_content_on_the_page(
    project: Project, site: Callable[..., Site], visit: Visit
) -> None:
    project.plan({"ask": {"uses": "human", "prompt": "What is the name?"}})
    assert project.run().code == 3
    found = site()
    page = visit.open(found, "/approvals")
    expect(page.locator("[data-card]")).to_contain_text("What is the name?")
    page.locator("textarea").fill("Ada <b>Lovelace</b>")
    _press(page, "Give it")
    expect(page.locator("[data-card]")).to_contain_text("ask: answered")
    assert project.resume().code == 0
    assert project.shown("ask") == b"Ada <b>Lovelace</b>"
    visit.clean(found)


@pytest.mark.req("R174")
def test_a_failed_step_is_looked_at_and_tried_again(
    project: Project, site: Callable[..., Site], visit: Visit
) -> None:
    check = "echo it says $(cat $HOLDFAST_ARTIFACT); grep -q good $HOLDFAST_ARTIFACT"
    guard = {"command": ["sh", "-c", check], "name": "is-good"}
    body = f"[ -e {project.gates / 'mended'} ] && echo good || echo bad"
    project.plan(
        {
            "make": {"shell": project.sh(body), "guards": [guard], "retries": 1},
            "after": {"shell": project.sh(), "needs": ["make"]},
        }
    )
    assert project.run().code == 1
    found = site()
    page = visit.open(found)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.locator(".steps [data-step=make]").click()
    drawer = page.locator("#drawer")
    expect(drawer).to_contain_text("attempt 2")
    expect(drawer).to_contain_text("is-good: rejected")
    expect(drawer).to_contain_text("it says bad")
    for view in ("Result", "Diff", "Why", "Logs", "Evidence", "Attempts"):
        drawer.get_by_role("link", name=view, exact=True).click()
        expect(drawer.locator("[aria-current=page]").first).to_have_text(view)
        accessible(page, "#drawer")
    drawer.get_by_role("link", name="Why", exact=True).click()
    said = project.ok("why", "make", "--run", "@").out
    expect(drawer.locator("pre.why")).to_contain_text(said.splitlines()[0])
    assert "step=make" in page.url
    _press(drawer, "retry")
    expect(drawer.locator(".preview")).to_contain_text("tried again")
    project.retry("make")
    _press(drawer, "Do it")
    expect(drawer.locator(".preview [role=alert]")).to_contain_text("something changed since this")
    visit.faults.clear()  # a browser notes that it was refused
    project.open("mended")
    expect(drawer.locator(".preview")).to_contain_text("tried again")
    expect(drawer.locator(".preview")).to_contain_text("holdfast retry make --yes")
    _press(drawer, "Do it")
    expect(page.locator("#strip .state")).to_have_text("completed")
    until(lambda: project.status().data["status"] == "completed", "the retry ends")
    assert project.status().states == {"make": "done", "after": "done"}
    visit.clean(found)


@pytest.mark.req("R174", "R175")
def test_a_run_is_stopped_a_step_skipped_and_a_result_accepted(
    project: Project, site: Callable[..., Site], visit: Visit
) -> None:
    steps: dict[str, dict[str, object]] = {
        "slow": {"shell": project.sh(project.gate("go"))},
        "bad": {"shell": project.sh("false"), "needs": ["slow"]},
        "end": {"shell": project.sh(), "needs": ["bad"]},
    }
    project.plan(steps)
    engine = project.begun_by("run", step="slow")
    found = site()
    page = visit.open(found)
    page.locator("[data-row]").click()
    _press(page, "Stop")
    expect(page.locator("#run-act")).to_contain_text("what runs is let end: slow")
    _press(page, "Do it")
    expect(page.locator("#run-act")).to_contain_text("stop after its running steps")
    assert engine.stderr is not None
    assert any(b"asked to stop" in line for line in engine.stderr)
    project.open("go")
    expect(page.locator("#strip .state")).to_have_text("paused")
    _press(page, "Resume")
    _press(page, "Do it")
    expect(page.locator("#strip .state")).to_have_text("failed")
    page.locator(".steps [data-step=bad]").click()
    _press(page, "skip")
    expect(page.locator(".preview")).to_contain_text("--yes --because '…'")
    page.get_by_label("Why; kept with the decision").fill("checked by hand")
    _press(page, "Do it")
    expect(page.locator("#strip .state")).to_have_text("completed")
    finished(project, "completed")
    assert project.status().states == {"slow": "done", "bad": "skipped", "end": "done"}
    page.goto(re.sub(r"\?.*", "", page.url) + "?step=slow")
    _press(page, "accept")
    expect(page.locator(".preview")).to_contain_text("--because '…'")
    page.get_by_label("Why; kept with the decision").fill("still good")
    _press(page, "Do it")
    expect(page.locator("#drawer")).to_contain_text("stands")
    visit.clean(found)


def test_what_changed_since_a_preview_is_shown_again_before_anything_is_done(
    project: Project, site: Callable[..., Site]
) -> None:
    project.plan({"a": {"shell": project.sh("false")}})
    run = project.run().id
    found = site()
    found.enter()
    page = found.ask(f"/runs/{run}/act?do=retry&step=a").text
    digest = re.search(r'name="digest" value="([0-9a-f]{64})"', page)
    assert digest is not None
    project.retry("a")
    assert project.ran() == ["a", "a"]
    body = {"do": "retry", "step": "a", "digest": digest[1]}
    answer = found.post(f"/runs/{run}/do", body)
    assert answer.status == 412
    assert "something changed since this was shown; this is how it is now" in answer.text
    fresh = re.search(r'name="digest" value="([0-9a-f]{64})"', answer.text)
    assert fresh is not None
    assert fresh[1] != digest[1]
    project.plan({"a": {"shell": project.sh()}})
    project.run()
    project.ran()
    late = found.post(f"/runs/{run}/do", {**body, "digest": fresh[1]})
    assert late.status == 409
    assert "something changed since this was shown: r-" in late.text
    assert "is not the last run of its line" in late.text
    assert project.ran() == []


def test_the_selected_step_is_kept_up_with_and_stays_selected(
    project: Project, site: Callable[..., Site], visit: Visit
) -> None:
    project.plan(
        {
            "talks": {"shell": project.sh(f"echo early >&2; {project.gate('go')}; echo late >&2")},
            "then": {"shell": project.sh(), "needs": ["talks"]},
        }
    )
    project.begun_by("run", step="talks")
    found = site()
    page = visit.open(found)
    page.locator("[data-row]").click()
    page.locator(".steps [data-step=talks]").click()
    drawer = page.locator("#drawer")
    expect(_row(page, "talks")).to_have_attribute("aria-current", "true")
    expect(drawer.locator("h2")).to_contain_text("running")
    drawer.get_by_role("link", name="Logs", exact=True).click()
    expect(drawer.locator("pre.log")).to_contain_text("early")
    project.open("go")
    expect(drawer.locator("h2")).to_contain_text("done")
    expect(drawer.locator("pre.log")).to_contain_text("late")
    assert "step=talks" in page.url
    assert "step=talks" in (page.locator("[data-tab]").first.get_attribute("href") or "")
    page.reload()
    expect(drawer.locator("pre.log")).to_contain_text("late")
    drawer.get_by_role("link", name="close").click()
    expect(drawer).to_be_hidden()
    expect(page.locator(".steps [data-step=talks]")).to_be_focused()
    assert "step=" not in page.url
    visit.clean(found)


def test_filters_sums_and_bytes_are_said_as_they_are(
    project: Project, site: Callable[..., Site]
) -> None:
    project.plan({"s": {"shell": "printf '\\0bytes'"}})
    run = project.run().id
    project.plan({f"more-{n}": {"shell": "true"} for n in range(101)})
    project.run("-s", "more-1")
    found = site()
    found.enter()
    wrong = found.ask("/?q=state:nonsense")
    assert wrong.status == 404
    assert "&#39;nonsense&#39; is no state of a run" in wrong.text
    assert "running, interrupted, failed, waiting" in wrong.text
    assert "&#39;stat:&#39; means nothing here" in found.ask("/?q=stat:failed").text
    assert run[:10] in found.ask("/?q=state:completed+line:demo").text
    assert "No run fits" in found.ask("/?q=state:interrupted").text
    compared = found.ask("/compare?a=@-1&b=@").text
    assert "1 to 100 of 102 shown" in compared
    assert "nothing to compare: no step has one on both sides" in compared
    assert "not shown: it is no text" in found.ask(f"/runs/{run}/step?step=s").text


def test_a_run_offers_what_it_needs_and_a_step_what_differs(
    project: Project, site: Callable[..., Site]
) -> None:
    steps: dict[str, dict[str, object]] = {
        "made": {"shell": "echo one"},
        "bad": {"shell": "false"},
        "ask": {"shell": "cat", "needs": ["made"], "approve": "always"},
    }
    project.plan(steps)
    project.run()
    project.plan({**steps, "made": {"shell": "echo two"}})
    run = project.run("--yes").id
    found = site()
    found.enter()
    page = found.ask(f"/runs/{run}").text
    assert f'href="/ledger?run={run}"' in page
    assert "Approve 1</a>" in page
    assert "Retry 1 failed …</button>" in page
    diff = found.ask(f"/runs/{run}/step?step=made&view=diff").text
    assert all(f">{line}</li>" in diff for line in ("-one", "+two")), diff
    assert "nothing to compare" in found.ask(f"/runs/{run}/step?step=bad&view=diff").text
    card = found.ask("/approvals").text
    assert "what it is given by made" in card
    assert '<pre tabindex="0">two' in card


def test_two_ticked_runs_can_be_compared_and_runs_filtered(
    project: Project, site: Callable[..., Site], visit: Visit
) -> None:
    project.plan({"a": {"shell": project.sh()}})
    project.run()
    project.plan({"a": {"shell": "false"}})
    project.run()
    found = site()
    page = visit.open(found)
    compare = page.get_by_role("button", name="Compare")
    expect(compare).to_be_disabled()
    for key in ("j", "x", "j", "x"):
        page.keyboard.press(key)
    expect(compare).to_be_enabled()
    page.keyboard.press("/")
    page.keyboard.type("state:failed")
    page.keyboard.press("Enter")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody tr")).to_contain_text("its command failed")
    visit.clean(found)


def test_the_page_fits_a_phone_keeps_still_and_goes_dark(
    project: Project, site: Callable[..., Site], browser: Browser
) -> None:
    project.plan({"build-everything-with-a-long-name": {"shell": "false"}, "b": {"shell": "true"}})
    run = project.run().id
    found = site()
    context = browser.new_context(
        viewport={"width": 360, "height": 640}, color_scheme="dark", reduced_motion="reduce"
    )
    try:
        visit = Visit(context)
        visit.open(found)
        for path in ("/", f"/runs/{run}", f"/runs/{run}?step=b", "/approvals"):
            page = visit.page
            page.goto(found.base + path)
            width = page.evaluate("document.documentElement.scrollWidth")
            assert width <= 360, (path, width)
            accessible(page)
            assert (
                page.evaluate("getComputedStyle(document.body).backgroundColor")
                == "rgb(20, 25, 23)"
            )
            assert page.evaluate("document.getAnimations().length") == 0
        visit.clean(found)
    finally:
        context.close()


def test_everything_works_without_scripts_to_look_at(
    project: Project, site: Callable[..., Site], browser: Browser
) -> None:
    project.plan({"a": {"shell": "echo one"}})
    project.run()
    found = site()
    context = browser.new_context(java_script_enabled=False)
    try:
        page = context.new_page()
        page.goto(found.address)
        page.locator("[data-row]").click()
        page.locator(".steps .step").click()
        expect(page.locator("#drawer")).to_contain_text("one")
        page.get_by_role("link", name="Why", exact=True).click()
        expect(page.locator("#drawer pre.why")).to_contain_text("a ran in")
        project.plan({"asks": {"shell": "true", "approve": "always"}}, file="b.yaml", name="b")
        assert project.run("b.yaml").code == 3
        page.goto(found.base + "/approvals")
        expect(page.locator(".unscripted")).to_contain_text("to act, type the commands")
        expect(page.get_by_role("button", name="Approve")).to_be_hidden()
        expect(page.locator("[data-card]")).to_contain_text("holdfast approve")
    finally:
        context.close()
