"""The counts of several repositories as one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.relevance.measure import AT, Measured, name_of


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


def speeds(folder: str, found: Mapping[str, float]) -> str:
    """How fast the index of one repository is, beside a bare parser and ripgrep."""
    ratio = found["cold"] / found["bare"]
    lines = [f"Speed, on the files of {name_of(folder)}, the least of some rounds:", ""]
    lines += ["| what | seconds | beside | times |", "|---|---:|---:|---:|"]
    bare = f"{found['bare']:.2f} (a bare parser)"
    lines.append(
        f"| cold index of all files that are parsed, CPU | {found['cold']:.2f} | {bare} | {ratio:.2f} |"
    )
    whole = "cold index of 5,000 files of all kinds and 3,000 commits, CPU"
    lines.append(f"| {whole} | {found['cold with history']:.2f} | | |")
    for what in ("cpu", "wall"):
        name = f"update after a commit, 5,000 files, {what.replace('cpu', 'CPU')}"
        lines.append(f"| {name} | {found[f'update {what}']:.3f} | | |")
    for name, ours in found.items():
        if name.startswith("search "):
            pattern = name.removeprefix("search ")
            theirs = found[f"ripgrep {pattern}"]
            lines.append(
                f"| search `{pattern}`, CPU | {ours:.3f} | {theirs:.3f} (ripgrep) | {ours / theirs:.2f} |"
            )
    return "\n".join(lines)
