"""The report of `make mutants`: a line for each module, and every survivor, with its reason if it has one.

Reasons are kept in survivors.toml by module, function and change, so that they outlive lines that move. An
entry that no mutant matches any longer, or whose mutants are all killed, is told as stale.
"""

from __future__ import annotations

import collections
import json
import tomllib
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from tools.mutants.mutate import Mutant

PLACE: Final = Path(".mutants")
REASONS: Final = Path(__file__).with_name("survivors.toml")
ENOUGH: Final = 85
COLUMNS: Final = ("killed", "timeout", "survived", "unreached", "broken")
_KILLED: Final = {"killed", "timeout"}


def write(
    chosen: Sequence[Mutant],
    results: Mapping[str, Mapping[str, Any]],
    every: Sequence[Mutant] = (),
) -> int:
    """Write both forms and say the score; 1 if it is too low or a trial broke.

    `every` are all mutants of the modules, where `chosen` is a sample of them.
    """
    reasons = tomllib.loads(REASONS.read_text(encoding="utf-8")).get("survivor", [])
    tried = [(one, results[one.name]) for one in chosen if one.name in results]
    left: list[tuple[Mutant, Mapping[str, Any], str]] = []
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for one, result in tried:
        verdict = result["verdict"]
        counts[one.module][verdict] += 1
        if verdict in _KILLED:
            continue
        at = next((at for at, entry in enumerate(reasons) if _matches(entry, one)), None)
        if at is not None:
            counts[one.module]["reasoned"] += 1
        left.append((one, result, reasons[at]["reason"] if at is not None else ""))
    modules = {one.module for one in chosen}
    stale = [
        f"{entry['module']}:{entry['function']}: {entry['change']}"
        for entry in reasons
        if entry["module"] in modules and _is_stale(entry, every or chosen, results)
    ]
    whole = sum(counts.values(), collections.Counter[str]())
    lines = _lines(counts, whole, left, stale, len(chosen))
    PLACE.mkdir(exist_ok=True)
    (PLACE / "report.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    data = {
        "chosen": len(chosen),
        "score": _score(whole),
        "without a reason": _bare(whole),
        "modules": counts,
        "stale": stale,
        "survivors": [{**result, "line": one.first, "reason": why} for one, result, why in left],
    }
    (PLACE / "report.json").write_text(
        json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    print(f"{_tally(whole, len(chosen))}, {len(stale)} stale reasons: {PLACE}/report.md")
    return int(_score(whole) < ENOUGH or bool(whole["broken"]) or bool(stale))


def _matches(entry: Mapping[str, Any], one: Mutant) -> bool:
    return (
        entry["module"] == one.module
        and fnmatchcase(one.function, entry["function"])
        and (entry["change"] == one.text or fnmatchcase(one.text, entry["change"]))
        and entry.get("number", one.number) == one.number
    )


def _is_stale(
    entry: Mapping[str, Any], every: Sequence[Mutant], results: Mapping[str, Mapping[str, Any]]
) -> bool:
    """Whether every mutant of this entry is killed; one that was not tried says nothing."""
    return all(
        one.name in results and results[one.name]["verdict"] in _KILLED
        for one in every
        if _matches(entry, one)
    )


def _score(counts: Mapping[str, int]) -> float:
    """Of all that were tried and did not break, whatever the reasons of survivors."""
    whole = sum(counts[name] for name in COLUMNS if name != "broken")
    return round(100 * sum(counts[name] for name in _KILLED) / whole, 1) if whole else 0.0


def _bare(counts: Mapping[str, int]) -> int:
    """How many are neither killed nor have a reason."""
    left = sum(counts[name] for name in COLUMNS if name not in _KILLED)
    return left - counts["reasoned"]


def _tally(whole: Mapping[str, int], chosen: int) -> str:
    left = sum(whole[name] for name in COLUMNS if name not in _KILLED)
    return (
        f"{sum(whole[name] for name in COLUMNS)} of {chosen} mutants tried, {_score(whole)} % killed, "
        f"{left} left, {_bare(whole)} of them without a reason"
    )


def _lines(
    counts: Mapping[str, collections.Counter[str]],
    whole: collections.Counter[str],
    left: Sequence[tuple[Mutant, Mapping[str, Any], str]],
    stale: Sequence[str],
    chosen: int,
) -> list[str]:
    heads = ("module", "mutants", *COLUMNS, "without a reason", "score")
    lines = [
        "# Mutants of the core",
        "",
        f"{_tally(whole, chosen)}.",
        "",
        f"| {' | '.join(heads)} |",
        f"|---{'|--:' * (len(heads) - 1)}|",
    ]
    for name, row in [*sorted(counts.items()), ("all", whole)]:
        cells = [sum(row[one] for one in COLUMNS), *(row[one] for one in COLUMNS)]
        lines.append(f"| {name} | {' | '.join(map(str, cells))} | {_bare(row)} | {_score(row)} |")
    for head, is_reasoned in (("without a reason", False), ("with a reason", True)):
        lines += ["", f"## Not killed, {head}", ""]
        rows = [row for row in left if bool(row[2]) is is_reasoned]
        for one, result, why in sorted(rows, key=lambda row: (row[0].module, row[0].first)):
            told = f" ({result['why']})" if result["verdict"] == "broken" else ""
            lines.append(
                f"- {one.module}:{one.first} `{one.function}` {one.kind}: `{one.text}`: "
                f"{result['verdict']}{told}{f'; {why}' if why else ''}"
            )
    if stale:
        lines += ["", "## Reasons that nothing needs", "", *(f"- {one}" for one in stale)]
    return lines
