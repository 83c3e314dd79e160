"""The tool that tries the tests: which changes it makes, and how it counts them."""

import ast
import gc
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.core.fold import apply
from tools.mutants import report, trial
from tools.mutants.__main__ import place_of
from tools.mutants.mutate import Mutant, mutants, mutated

SOURCE = '''"""A module."""

from __future__ import annotations

LIMITS = {"most": 3}


def chosen(items: list[int], *, few: bool = False) -> int | None:
    """What is left."""
    if few and len(items) > LIMITS["most"]:
        raise ValueError("too many of 3")
    found = [one for one in items if one is not None]
    found.sort(reverse=True)

    def last() -> int:
        return found[-1]

    return last() if found else None


class Kept:
    def is_empty(self) -> bool:
        return not self.items
'''


def all_mutants() -> list[Mutant]:
    return mutants("module", SOURCE)


def told(function: str) -> set[str]:
    return {one.text for one in all_mutants() if one.function == function}


def test_each_kind_of_change_is_made_once_and_words_are_left_alone() -> None:
    assert told("chosen") == {
        "False → True",
        "few and len(items) > LIMITS['most'] → not (few and len(items) > LIMITS['most'])",
        "few and len(items) > LIMITS['most'] → few or len(items) > LIMITS['most']",
        "len(items) > LIMITS['most'] → len(items) >= LIMITS['most']",
        "'most' → 'most~'",
        "raise ValueError('too many of 3') → nothing",
        "one is not None → nothing",
        "one is not None → one is None",
        "found.sort(reverse=True) → nothing",
        "reverse=True → nothing",
        "True → False",
        "return last() if found else None → return None",
        "return found[-1] → return None",
        "-1 → 1",
        "found → not found",
        "1 → 2",
    }
    assert told("Kept.is_empty") == {"not self.items → self.items"}
    assert told("<module>") == {"'most' → 'most~'", "3 → 4"}


def test_what_is_read_once_when_the_module_is_loaded_is_known_apart() -> None:
    once = {(one.function, one.text) for one in all_mutants() if not one.is_code}
    assert once == {
        ("<module>", "'most' → 'most~'"),
        ("<module>", "3 → 4"),
        ("chosen", "False → True"),
    }


def test_every_mutant_is_a_module_that_differs_from_the_others() -> None:
    written = [ast.unparse(mutated(SOURCE, one)) for one in all_mutants()]
    assert len({*written, ast.unparse(ast.parse(SOURCE))}) == len(written) + 1
    for text in written:
        compile(text, "module", "exec")


def test_a_name_outlives_lines_that_move() -> None:
    moved = mutants("module", SOURCE.replace("LIMITS = ", "\n\n\nLIMITS = "))
    assert [one.name for one in moved] == [one.name for one in all_mutants()]
    assert [one.first for one in moved] != [one.first for one in all_mutants()]


@pytest.mark.parametrize(
    "work, verdict",
    [
        (lambda: {"verdict": "survived"}, "survived"),
        (lambda: {"verdict": "killed", "by": object()}, "broken"),
        (lambda: {"verdict": json.loads("")}, "broken"),
    ],
)
def test_a_fork_that_breaks_kills_nothing(
    work: Callable[[], dict[str, object]], verdict: str
) -> None:
    assert trial.told(work)["verdict"] == verdict


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(report, "PLACE", tmp_path)
    monkeypatch.setattr(report, "REASONS", tmp_path / "survivors.toml")
    return tmp_path


def reason(change: str) -> str:
    return f"""
[[survivor]]
module = "module"
function = "chosen"
change = "{change}"
reason = "it may"
"""


def test_survivors_are_listed_with_their_reasons_and_do_not_count_as_killed(kept: Path) -> None:
    (kept / "survivors.toml").write_text(reason("1 → 2"))
    every = all_mutants()
    results = {
        one.name: {"name": one.name, "verdict": "survived" if one.text == "1 → 2" else "killed"}
        for one in every
    }
    assert report.write(every, results) == 0
    data = json.loads((kept / "report.json").read_text())
    assert data["score"] == round(100 * (len(every) - 1) / len(every), 1)
    assert [(one["name"], one["reason"]) for one in data["survivors"]] == [
        ("module:chosen: 1 → 2 #1", "it may")
    ]
    written = (kept / "report.md").read_text()
    assert "`1 → 2`: survived; it may" in written
    assert "1 left, 0 of them without a reason." in written


def test_survivors_without_a_reason_are_counted_apart(kept: Path) -> None:
    (kept / "survivors.toml").write_text(reason("1 → 2"))
    every = all_mutants()
    left = {"1 → 2": "survived", "-1 → 1": "unreached", "True → False": "survived"}
    results = {one.name: {"verdict": left.get(one.text, "killed")} for one in every}
    report.write(every, results)
    assert json.loads((kept / "report.json").read_text())["without a reason"] == 2
    bare, reasoned = (kept / "report.md").read_text().split("## Not killed, with a reason")
    assert "3 left, 2 of them without a reason." in bare
    assert ("`-1 → 1`: unreached" in bare, "`1 → 2`" in bare) == (True, False)
    assert "`1 → 2`: survived; it may" in reasoned


def test_too_few_a_broken_trial_and_a_stale_reason_fail(kept: Path) -> None:
    every = all_mutants()
    (kept / "survivors.toml").write_text("")
    killed = {one.name: {"verdict": "killed"} for one in every}
    assert report.write(every, killed) == 0
    assert report.write(every, {**killed, every[0].name: {"verdict": "broken", "why": "?"}}) == 1
    few = {one.name: {"verdict": "unreached"} for one in every[:4]}
    assert report.write(every, {**killed, **few}) == 1
    (kept / "survivors.toml").write_text(reason("1 → 2"))
    assert report.write(every, killed) == 1
    assert json.loads((kept / "report.json").read_text())["stale"] == ["module:chosen: 1 → 2"]


def test_a_sample_stays_when_other_mutants_come_and_go() -> None:
    every = sorted(all_mutants(), key=lambda one: place_of(1, one))
    fewer = [one for one in every if one.function != "chosen"]
    assert sorted(fewer, key=lambda one: place_of(1, one)) == fewer
    assert sorted(every, key=lambda one: place_of(2, one)) != every


def test_a_test_whose_parameters_a_change_renames_is_run_all_the_same() -> None:
    class Named:
        def __init__(self, name: str) -> None:
            self.nodeid = name

    only = trial._Only(["f::two[b]", "f::one[a]"], {"f::one[a]", "f::one[c]", "f::two[b]"})
    items = [Named(name) for name in ("f::one[a~]", "f::one[c]", "f::two[b]", "f::three")]
    only.pytest_collection_modifyitems(items)  # type: ignore[arg-type]  # their names are all it reads
    assert [one.nodeid for one in items] == ["f::two[b]", "f::one[a~]"]


def test_a_reason_for_what_a_sample_left_out_is_not_stale(kept: Path) -> None:
    every = all_mutants()
    (kept / "survivors.toml").write_text(reason("1 → 2"))
    some = [one for one in every if one.text != "1 → 2"]
    assert report.write(some, {one.name: {"verdict": "killed"} for one in some}, every) == 0


def test_a_reason_that_another_sample_needs_is_not_stale(kept: Path) -> None:
    every = all_mutants()
    (kept / "survivors.toml").write_text(reason("1 → 2"))
    results = {
        one.name: {"verdict": "survived" if one.text == "1 → 2" else "killed"} for one in every
    }
    some = [one for one in every if one.text != "1 → 2"]
    assert report.write(some, results, every) == 0


def test_a_reason_may_be_that_of_one_among_equal_changes(kept: Path) -> None:
    twice = mutants("module", SOURCE.replace("found[-1]", "found[-1] or found[1]"))
    left = [one for one in twice if one.text == "1 → 2"]
    results = {one.name: {"verdict": "survived" if one in left else "killed"} for one in twice}
    assert [one.number for one in left] == [1, 2]
    (kept / "survivors.toml").write_text(f"{reason('1 → 2')}number = 2\n")
    report.write(twice, results)
    data = json.loads((kept / "report.json").read_text())["survivors"]
    assert [one["reason"] for one in data] == ["", "it may"]


def test_the_functions_of_the_core_are_found_though_objects_are_frozen() -> None:
    """Without them no change is tried: the session freezes what it has loaded."""
    gc.freeze()
    assert apply in trial.functions()["fold", "apply"]
    assert trial.exchange("fold", ast.parse(trial.source_of("fold")), trial.functions()) > 0
    assert trial.caches()
