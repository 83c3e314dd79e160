"""What the README, the tutorial and the how-to pages show really works, line by line."""

import re
from pathlib import Path

import pytest

from holdfast.core.waves import graph_of
from holdfast.formats.planfile import load_plan
from tests.docs.servers import clone, no_servers, team_servers
from tests.docs.session import TOP, Command, Page, missing, play, read_page

PAGES = [
    "README.md",
    "docs/index.md",
    "docs/tutorial.md",
    "docs/gallery.md",
    "docs/plan-file.md",
    *sorted(str(p.relative_to(TOP)) for p in (TOP / "docs" / "howto").glob("*.md")),
    *sorted(str(p.relative_to(TOP)) for p in (TOP / "examples").glob("*/README.md")),
]


SERVERS = {  # what the reader of a page has besides Holdfast
    "docs/howto/team.md": team_servers,
    "docs/gallery.md": clone,
}


def page(name: str) -> Page:
    return read_page((TOP / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", PAGES)
def test_every_command_of_the_page_does_what_the_page_says(name: str, tmp_path: Path) -> None:
    found = page(name)
    assert found.commands, "a page shows at least one command"
    with SERVERS.get(name, no_servers)() as given:
        around = (TOP / name).parent if name.startswith("examples/") else None
        answers = play(found, tmp_path, given, around)
    for number, doing in enumerate(found.doings):
        if not isinstance(doing, Command) or not doing.is_run:
            continue
        where = f"{name}:{doing.line}: {doing.text}"
        assert number in answers, f"{where}: never came to it"
        code, output = answers[number]
        assert code == doing.code, f"{where}: exit {code}\n{output}"
        lost = missing(doing, output)
        assert lost is None, f"{where}: no line\n  {lost}\nin\n{output}"


@pytest.mark.parametrize("name", PAGES)
def test_every_plan_on_the_page_is_a_legal_one(name: str, tmp_path: Path) -> None:
    for line, text in page(name).plans:
        whole = text if re.search(r"(?m)^steps:", text) else _wrapped(text)
        file = tmp_path / "plan.yaml"
        file.write_text(whole, encoding="utf-8")
        loaded = load_plan(str(file), find=lambda _, glob: [glob])
        assert graph_of(loaded.plan).order, f"{name}:{line}"


def _wrapped(steps: str) -> str:
    return "steps:\n" + "".join(f"  {line}\n" for line in steps.splitlines())


def test_every_target_of_make_that_a_page_names_is_there() -> None:
    targets = set(re.findall(r"^([a-z]+):", (TOP / "Makefile").read_text(), re.MULTILINE))
    for name in (*PAGES, "CONTRIBUTING.md", "AGENTS.md"):
        text = (TOP / name).read_text(encoding="utf-8")
        for target in re.findall(r"(?m)(?:^|\$ |`)make ([a-z]+)", text):
            assert target in targets, (name, target)
