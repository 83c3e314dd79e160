"""The results as a page: docs/benchmarks-edits.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.edits.contest import VERDICTS, Contest, Row

TEXT = Path(__file__).parent / "page.md"
OURS = "holdfast"
UNKNOWING = "base not known"
NONE = "–"
LIMITS = (
    ("exact, of cases with one right answer", "at least", 95.0, "%"),
    ("wrong", "at most", 0.2, "%"),
    ("damaged", "at most", 1.0, "%"),
    ("partial", "at most", 0.0, "%"),
    ("wrong where it must be refused", "at most", 0.0, "%"),
    ("95th percentile", "at most", 50.0, "ms"),
)


def page(found: Contest) -> str:
    filled = {
        "about": _about(found),
        "engines": _engines(found),
        "promises": _promises(found),
        "kinds": _kinds(found),
    }
    text = TEXT.read_text(encoding="utf-8")
    for name, table in filled.items():
        text = text.replace("{{" + name + "}}", table)
    return text


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *rows])


def _about(found: Contest) -> str:
    facts = ", ".join(f"{name} {value}" for name, value in found.environment.items())
    taken = ", ".join(f"{name} ({count})" for name, count in found.repositories.items())
    return (
        f"{facts}. Commits of {taken}. {found.cases:,} cases with one right answer,"
        f" {found.must_refuse:,} that must be refused."
    )


def _engines(found: Contest) -> str:
    head = ["engine", *VERDICTS, "wrong where it must be refused", "95 % within ms", "CPU"]
    return _table(head, [_engine(found, row) for row in found.rows])


def _engine(found: Contest, row: Row) -> list[str]:
    version = next((v for name, v in found.versions.items() if row.engine.startswith(name)), "")
    name = f"{row.engine} ({version})" if version else row.engine
    if row.missing:
        return [name, row.missing, *[NONE] * 7]
    shares = [
        f"{row.share(one):.1f}" if one != "wrong" else f"{row.share(one):.2f}" for one in VERDICTS
    ]
    return [
        name,
        *shares,
        f"{row.wrong_where_refused():.1f}",
        f"{row.p95_ms:.1f}",
        f"{row.p95_cpu_ms:.1f}",
    ]


def figures(row: Row) -> list[float]:
    """In the order of the limits."""
    shares = [row.share(name) for name in ("exact", "wrong", "damaged", "partial")]
    return [*shares, row.wrong_where_refused(), row.p95_ms]


def _promises(found: Contest) -> str:
    """Of our engines that know what the author saw, the worst counts."""
    ours = [
        row for row in found.rows if row.engine.startswith(OURS) and UNKNOWING not in row.engine
    ]
    rows = []
    for number, (what, relation, limit, unit) in enumerate(LIMITS):
        measured = [figures(row)[number] for row in ours]
        worst = (min if relation == "at least" else max)(measured, default=None)
        if worst is None:
            rows.append((what, f"{relation} {limit:g} {unit}", NONE, "not measured"))
        else:
            held = worst >= limit if relation == "at least" else worst <= limit
            word = "held" if held else "**missed**"
            rows.append((what, f"{relation} {limit:g} {unit}", f"{worst:.2f}", word))
    return _table(("what", "limit", "measured", ""), rows)


def _kinds(found: Contest) -> str:
    """Percent exact by disturbance, or refused where only that is right."""
    rows = [row for row in found.rows if not row.missing]
    kinds = list(dict.fromkeys(kind for row in rows for kind in (*row.answered, *row.refused)))
    lines = []
    for kind in kinds:
        must = any(kind in row.refused for row in rows)
        counted = [(row.refused if must else row.answered).get(kind, {}) for row in rows]
        right = "refused" if must else "exact"
        shares = [100 * one.get(right, 0) / max(sum(one.values()), 1) for one in counted]
        total = str(sum(counted[0].values())) if counted else "0"
        lines.append([f"{kind} (refused)" if must else kind, total, *(f"{s:.0f}" for s in shares)])
    return _table(["disturbance", "cases", *(row.engine for row in rows)], lines)
