"""The counts of several repositories as one table."""

from __future__ import annotations

from collections.abc import Sequence

from bench.relevance.measure import AT, Measured


def table(found: Sequence[Measured]) -> str:
    """Percent of all questions, one row for each ranker."""
    total = sum(one.questions for one in found)
    names = ", ".join(f"{one.name} ({one.questions} of {one.files:,} files)" for one in found)
    lines = [f"{total} questions: {names}", ""]
    lines += ["| ranker | @1 | @5 | @10 | all@10 |", "|---|---:|---:|---:|---:|"]
    for row in found[0].rows if found else ():
        shares = [sum(one.rows[row].hit[many] for one in found) for many in AT]
        shares.append(sum(one.rows[row].whole for one in found))
        cells = " | ".join(f"{100 * share / total:.1f}" if total else "-" for share in shares)
        lines.append(f"| {row} | {cells} |")
    return "\n".join(lines)
