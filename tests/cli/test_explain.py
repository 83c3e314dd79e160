"""explain: every code has a text; a step is explained as why does."""

import re

import pytest

from holdfast.cli.catalogue import GROUPS, entries, find
from holdfast.cli.main import COMMANDS, EXIT_CODES
from holdfast.core.reasons import CODES
from holdfast.formats.problems import CODES as PROBLEMS
from tests.cli.project import Project

ENTRIES = entries()
NAMES = ("YAML", "Dependency", "Ctrl-C", "Holdfast", "RE2", "HOLDFAST_ARTIFACT")


@pytest.mark.req("R170")
@pytest.mark.parametrize("code", ENTRIES)
def test_every_code_has_a_text_with_meaning_cause_remedy_and_example(code: str) -> None:
    entry = ENTRIES[code]
    for text in (entry.title, entry.means, entry.why, entry.do):
        assert text, "each code needs its text in catalogue.toml"
        assert text == text.strip().rstrip(".")
        assert not text[0].isupper() or text.startswith(NAMES)
    assert entry.example
    for word in re.findall(r"\bholdfast ([a-z]+)\b", f"{entry.do} {entry.example}"):
        assert word in COMMANDS, "the example names a command that is not there"


def test_the_catalogue_holds_every_list() -> None:
    assert set(CODES) | set(PROBLEMS) <= set(ENTRIES)
    assert {"usage", "plan", "held", "store", "integrity", "bug", "guard:command"} <= set(ENTRIES)
    for number in re.findall(r"(?m)^ *(\d+) | (\d+) (?=[a-z])", EXIT_CODES):
        assert f"exit:{''.join(number)}" in ENTRIES


@pytest.mark.parametrize(
    "given, code",
    [
        ("P030", "P030"),
        ("p030", "P030"),
        ("error[P030]", "P030"),
        ("Guard_Rejected", "guard_rejected"),
        ("3", "exit:3"),
        ("regex", "guard:regex"),
    ],
)
def test_a_code_is_found_however_it_is_written(given: str, code: str) -> None:
    found = find(ENTRIES, given)
    assert found is not None
    assert found.code == code


def test_a_code_a_step_and_nothing_known(project: Project) -> None:
    told = project.ok("explain", "guard_rejected", "--json").json
    assert (told["schema"], told["code"], told["group"]) == (
        "holdfast.explain/1",
        "guard_rejected",
        "reasons",
    )
    assert told["means"]
    assert told["example"]
    assert len(project.ok("explain", "--json").json["codes"]) == len(ENTRIES)
    listed = project.ok("explain").out.splitlines()
    assert [line for line in listed if line in GROUPS] == list(GROUPS)
    assert [line.split()[0] for line in listed if line.startswith("  ")] == list(ENTRIES)
    project.plan({"build": {"shell": "true"}})
    assert project.ok("explain", "build").out == project.ok("why", "build").out
    assert "did you mean 'holdfast explain build'" in project.refused(2, "explain", "biuld")
    assert "'holdfast explain guard_broken'" in project.refused(2, "explain", "gard_broken")
    project.write("plan.yaml", "steps: [")
    assert "neither a code nor a step" in project.refused(2, "explain", "xyzzy")
    assert not project.store.exists()
