"""A preview tells wave by wave who does each step, and what all of it takes."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.mix import models_words
from holdfast.core.mix import Mix
from holdfast.testing.server import Say
from tests.cli.market import Market, asking, market
from tests.cli.project import Project

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "models.md"
TIERS = """
[tiers]
small = "fake:m"
large = "other:unheard-of"
[aliases]
house = "fake:m"
"""


OTHER = '[providers.other]\nkind = "openai"\nbase_url = "http://127.0.0.1:9/v1"\n'


def with_tiers(shop: Market) -> None:
    shop.project.write("holdfast.toml", TIERS)
    own = shop.project.home / ".config" / "holdfast" / "config.toml"
    own.write_text(own.read_text() + OTHER)


def steps_of_all_kinds() -> dict[str, dict[str, Any]]:
    return {
        "facts": {**asking("list the figures"), "model": {"id": "small", "max_tokens": 5}},
        "names": asking("list the names", description="Every name, " + "and where it is, " * 9),
        "files": {"shell": "ls", "description": "The files\nof the \u202eproject"},
        "brief": {"prompt": "write it", "model": "large", "needs": ["facts", "names"]},
    }


@pytest.mark.req("R104", "R105")
def test_waves_are_told_with_who_does_each_step(project: Project) -> None:
    with market(project, lambda _: Say("good", input=10, output=5)) as shop:
        with_tiers(shop)
        project.plan(steps_of_all_kinds())
        lines = project.ok("plan", "--waves").out.splitlines()
        assert lines[1:12] == [
            "",
            "Wave 1 ⚡",
            " + [small] facts",
            " + [shell] files",
            r"      The files of the \u{202e}project",
            " + [m] names",
            "      Every name, and where it is, and where it is, and…",
            "",
            "Wave 2 →",
            " + [large] brief",
            "",
        ]
        block = dict(line.strip().split(": ", 1) for line in lines[13:20])
        assert lines[12] == "Estimates"
        assert block == {
            "Steps": "4 (4 run)",
            "Waves": "2",
            "Parallelization": "2.0x",
            "Models": "2 × fake:m (small), 1 × other:unheard-of (large)",
            "Tokens": block["Tokens"],
            "Cost": "$0.0010 typical, price unknown for 1 step; no history for 3 steps",
            "Time": "no history",
        }
        assert re.fullmatch(
            r"~1,\d{3} typical, 3,\d{3} high; no history for 3 steps", block["Tokens"]
        )
        assert "Changes" not in "\n".join(lines), "there is nothing to compare with"

        table = project.ok("plan").out
        assert "Models: 2 × fake:m (small), 1 × other:unheard-of (large)\n" in table
        data = project.ok("plan", "--json").json
        assert data["models"] == {
            "fake:m": {"tiers": ["small"], "steps": 2},
            "other:unheard-of": {"tiers": ["large"], "steps": 1},
        }
        told = {s: (step["model"], step["tier"]) for s, step in data["steps"].items()}
        assert told == {
            "facts": ("fake:m", "small"),
            "names": ("fake:m", None),
            "files": (None, None),
            "brief": ("other:unheard-of", "large"),
        }


@pytest.mark.req("R104")
def test_tokens_are_foreseen_from_history_else_from_the_prompt(project: Project) -> None:
    with market(project, lambda _: Say("good", input=70, output=30)):
        steps = {"a": asking("say a"), "b": asking("say b", needs=["a"]), "c": {"shell": "echo"}}
        project.plan(steps)
        before = project.ok("plan", "--json").json
        assert [before["steps"][s]["tokens"]["basis"] for s in "abc"] == ["size", "size", "none"]
        longer = {**steps, "a": asking("say a" + " and more" * 1000)}
        project.plan(longer)
        more = project.ok("plan", "--json").json
        assert (more["totals"]["tokens"]["p50"] - before["totals"]["tokens"]["p50"]) == 4500

        project.plan(steps)
        assert project.run("--yes").code == 0
        again = project.ok("plan", "--force", "--json").json
        assert again["steps"]["a"]["tokens"] == {"p50": 100, "p90": 100, "basis": "history"}
        assert again["steps"]["c"]["tokens"] == {"p50": 0, "p90": 0, "basis": "none"}
        assert again["totals"]["tokens"] == {"p50": 200, "p90": 200}
        assert "  Tokens: ~200 typical\n" in project.ok("plan", "--force", "--waves").out

        stands = project.ok("plan", "--json").json
        assert stands["models"] == {}
        assert stands["totals"]["tokens"] == {"p50": 0, "p90": 0}
        assert "Models" not in project.ok("plan").out
        assert "  Models: none\n  Tokens: 0\n  Cost: $0\n  Time: 0s\n" in (
            project.ok("plan", "--waves").out
        )


@pytest.mark.req("R104", "R105")
def test_the_plan_is_compared_with_the_one_before(project: Project) -> None:
    first: dict[str, Any] = {name: {"shell": f"echo {name}"} for name in ("a", "b", "c", "d", "e")}
    project.plan({**first, "f": {"shell": "echo f", "retries": 1}})
    assert project.run().code == 0
    del first["e"]
    changed = {
        **first,
        "b": {"shell": "echo b", "contract": "says b"},
        "c": {"shell": "echo c", "needs": ["a"]},
        "f": {"shell": "echo f", "retries": 2},
        "new": {"shell": "echo new"},
    }
    project.plan(changed)
    shown = project.ok("plan", "--waves").out
    block = shown[shown.index("Changes, compared with r-") :].split("\n\n")[0].splitlines()[1:]
    assert block == [
        "  Added: 1 (new)",
        "  Removed: 1 (e)",
        "  Contract changed: 1 (b)",
        "  Dependencies changed: 1 (c)",
        "  Changed otherwise: 1 (f)",
        "  Unchanged: 2",
    ]


@pytest.mark.req("R105")
def test_large_plans_are_told_in_part(project: Project) -> None:
    steps: dict[str, Any] = {f"page-{n:02}": {"shell": "echo 1"} for n in range(12)}
    for n in range(40):
        steps[f"link-{n:02}"] = {
            "shell": "echo 1",
            "needs": [f"link-{n - 1:02}" if n else "page-00"],
        }
    project.plan(steps)
    shown = project.ok("plan", "--waves").out
    assert " + [shell] page-09\n   … 2 more (list: -v)\n" in shown
    assert " + [shell] link-28\n\n… 11 more waves (list: -v)\n" in shown
    whole = project.ok("plan", "--waves", "-v").out
    assert "(list: -v)" not in whole
    assert whole.count("[shell]") == 52


@pytest.mark.req("R106")
def test_what_the_page_says_of_tiers_is_what_is_printed(project: Project) -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## Tiers")[2].partition("\n## ")[0]
    project.write("holdfast.toml", section.partition("```toml\n")[2].partition("```")[0])
    servers = PAGE.read_text(encoding="utf-8").partition("## Your own server")[2]
    own = project.home / ".config" / "holdfast" / "config.toml"
    own.parent.mkdir(parents=True)
    own.write_text(servers.partition("```toml\n")[2].partition("```")[0])
    rows = re.findall(r"^\| `([a-z]+: .+)` \| `(\[.+\])` \|$", section, re.MULTILINE)
    assert len(rows) == 6
    lines = ["name: page", "steps:"]
    for number, (said, _) in enumerate(rows):
        lines += [f"  s{number}:", f"    {said}"]
        lines += [] if said.startswith("shell") else ["    prompt: do it"]
    project.write("plan.yaml", "\n".join(lines) + "\n")
    shown = project.ok("plan", "--waves").out
    for number, (_, printed) in enumerate(rows):
        assert re.search(rf"^ [+⏸] {re.escape(printed)} s{number}$", shown, re.MULTILINE)

    tiers = tomllib.loads(project.read("holdfast.toml"))["tiers"]
    named = {printed.strip("[]") for said, printed in rows if printed.strip("[]") in tiers}
    models = project.ok("plan", "--json").json["models"]
    assert {tier: model for model, mix in models.items() for tier in mix["tiers"]} == {
        tier: tiers[tier] for tier in named
    }
    assert re.search(r"`(2 × [^`]+)`", section)[1] in shown  # type: ignore[index]  # the page has one


@pytest.mark.req("R105")
def test_for_a_voice_and_without_our_signs_waves_are_told_in_words(project: Project) -> None:
    project.plan(
        {"a": {"shell": "echo"}, "b": {"shell": "echo"}, "c": {"shell": "echo", "needs": ["a"]}}
    )
    spoken = project.ok("--output", "a11y", "plan", "--waves").out
    assert "Wave 1, 2 steps side by side\na, shell: runs for the first time\n" in spoken
    assert "Wave 2, 1 step\n" in spoken
    plain = project.call("plan", "--waves", env={"PYTHONIOENCODING": "ascii"}).out
    assert "Wave 1 ||\n" in plain
    assert "Wave 2 ->\n" in plain
    assert plain.isascii()


@pytest.mark.req("R104")
def test_as_many_models_are_named_as_have_room() -> None:
    models = {f"provider:model-{n}": Mix(3, ("small",) if n else ()) for n in range(5)}
    assert models_words(models).count("×") == 5
    for room in range(30, 200):
        words = models_words(models, room)
        assert len(words) <= room
        left = re.search(r" and (\d) more", words)
        assert words.count("×") + int(left[1] if left else 0) == 5
    assert models_words({"p:" + "m" * 100: Mix(1)}, 72).endswith("m…")
    assert models_words({"p:\x1b[31m": Mix(1)}) == r"1 × p:\u{1b}[31m"
    assert models_words({}) == ""
