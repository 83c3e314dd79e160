"""A run as one file: whole without a server, without a script, and without anything from elsewhere."""

import re
import signal
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

from holdfast.errors import UsageError
from holdfast.web.screens import rendered
from tests.cli.project import Project
from tests.web.site import DEADLINE, serve

HOSTILE = ('<img src=x onerror="alert(1)">', "</style><script>alert(2)</script>", "{{7*7}}")


@pytest.fixture
def kept(project: Project) -> Project:
    """A run with hostile names, a failure, items, and output."""
    project.plan(
        {
            "each": {
                "for_each": list(HOSTILE),
                "with": {"v": "${{ item }}"},
                "shell": project.sh("cat $HOLDFAST_WITH/v; cat $HOLDFAST_WITH/v >&2"),
            },
            "broken": {"shell": project.sh("echo 'oops <b>' >&2; exit 3"), "needs": ["each"]},
            "after": {"run": ["echo", "never"], "needs": ["broken"]},
        },
        goal=HOSTILE[1],
    )
    assert project.run().code == 1
    return project


@pytest.mark.req("R183")
def test_an_exported_run_is_read_without_script_and_without_network(
    kept: Project, browser: Browser, tmp_path: Path
) -> None:
    target = tmp_path / "run.html"
    said = kept.ok("ui", "--export", str(target), "--json").json
    assert (said["file"], said["bytes"]) == (str(target), target.stat().st_size)
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda one: asked.append(one.url))
    page.goto(target.as_uri())
    assert asked == [target.as_uri()]
    expect(page.locator("svg.graph a.box")).to_have_count(3)
    expect(page.locator("svg.timeline a.row")).to_have_count(2)
    expect(page.get_by_label("What wants attention")).to_contain_text("oops <b>")
    expect(page.locator("#steps")).to_contain_text("skipped")
    page.locator("svg.graph a.box[data-step=broken]").click()
    assert re.search(r"#s-[0-9a-f]+$", page.url)
    context.close()


@pytest.mark.req("R183")
def test_nothing_in_an_exported_run_acts(kept: Project, browser: Browser, tmp_path: Path) -> None:
    target = tmp_path / "run.html"
    kept.ok("ui", "--export", str(target), "@")
    page = browser.new_page()
    faults: list[str] = []
    page.on("dialog", lambda dialog: faults.append(dialog.message))
    page.on("console", lambda said: faults.append(said.text))
    page.goto(target.as_uri())
    expect(page.locator("main")).to_contain_text(HOSTILE[0])
    assert faults == []
    assert "<script" not in target.read_text()
    found = Axe().run(page).response["violations"]
    assert [one["id"] for one in found if one["impact"] in {"serious", "critical"}] == []
    page.close()


@pytest.mark.req("R183")
def test_what_is_secret_here_is_not_in_the_file(project: Project, tmp_path: Path) -> None:
    secret = "Kanarie-in-an-export"
    env = {"WORD": secret}
    project.plan({"a": {"shell": "echo known $WORD >&2; exit 1", "secrets": ["WORD"]}})
    assert project.run("--secret", "WORD", env=env).code == 1
    target = tmp_path / "run.html"
    assert project.call("ui", "--export", str(target), env=env).code == 0
    text = target.read_text()
    assert "known" in text
    assert secret not in text


def test_what_is_found_to_be_secret_later_is_struck_out_as_well() -> None:
    """A value that became a secret after it was stored."""
    context = {"error": UsageError("the word is <Kanarie-later>"), "hint": ""}
    assert "&lt;Kanarie-later&gt;" in rendered("refused.html", context)
    assert "Kanarie-later" not in rendered("refused.html", context, secrets=["<Kanarie-later>"])


def test_a_file_of_somebody_else_is_never_overwritten(project: Project) -> None:
    project.plan({"a": {"run": ["echo", "hi"]}})
    assert project.call("ui", "--export", "run.html").code == 2
    assert project.run().code == 0
    project.write("mine.html", "mine")
    answer = project.call("ui", "--export", "mine.html")
    assert (answer.code, project.read("mine.html")) == (2, "mine")
    assert "is there, and is no exported run" in answer.err
    for _ in range(2):
        assert project.call("ui", "--export", "run.html").code == 0
    assert "run.html: r-" in project.ok("ui", "--export", "run.html", "@").out
    assert project.call("ui", "@").code == 2
    assert project.call("ui", "--export", "other.html", "@-7").code == 2
    assert not project.has("other.html")


@pytest.mark.req("R183")
def test_an_exported_run_of_somebody_else_is_looked_at_and_not_kept(
    kept: Project, tmp_path: Path
) -> None:
    archive, elsewhere, rooms = tmp_path / "run.zip", tmp_path / "elsewhere", tmp_path / "rooms"
    kept.ok("export", "@", str(archive))
    run = kept.status().id
    elsewhere.mkdir()
    rooms.mkdir()
    kept.root = elsewhere
    site = serve(kept, str(archive), env={"TMPDIR": str(rooms)})
    site.enter()
    assert run in site.ask("/").text
    assert "oops &lt;b&gt;" in site.ask(f"/runs/{run}?step=broken&view=logs").text
    assert len([*rooms.iterdir()]) == 1
    site.process.send_signal(signal.SIGTERM)
    site.process.wait(DEADLINE)
    assert [*elsewhere.iterdir(), *rooms.iterdir()] == []


def test_a_file_that_is_no_exported_run_is_refused(kept: Project, tmp_path: Path) -> None:
    other = tmp_path / "other.zip"
    other.write_text("no archive")
    for words in ((str(other),), ("--export", "run.html", str(other))):
        kept.refused(2, "ui", "--no-browser", *words)
    said = kept.refused(2, "ui", "--no-browser", "nowhere.zip")
    assert "there is no file 'nowhere.zip'" in said
