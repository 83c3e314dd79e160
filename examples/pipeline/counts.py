"""Reads one file of a counter and looks at what came out; adds them up for the report."""

import csv
import os
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

MOST = 20_000  # bicycles a day; more has never passed anywhere in town
STUCK = 3  # days with the very same count, one after the other


def clean(file: str) -> dict[str, Any]:
    """The days of one counter, in order, with their sum."""
    with open(file, encoding="utf-8", newline="") as rows:
        days = [{"date": row["date"], "count": int(row["count"])} for row in csv.DictReader(rows)]
    days.sort(key=lambda day: day["date"])
    return {"place": Path(file).stem, "days": days, "total": sum(day["count"] for day in days)}


def whole(cleaned: dict[str, Any]) -> str | None:
    """A guard: every day of the month is there once."""
    days = [date.fromisoformat(day["date"]) for day in cleaned["days"]]
    wrong = []
    for one, following in pairwise(days):
        if one == following:
            wrong.append(f"{one} is there twice")
        elif one + timedelta(days=1) != following:
            wrong.append(f"nothing between {one} and {following}")
    if days[0].day != 1 or (days[-1] + timedelta(days=1)).day != 1:
        wrong.append(f"a month has more days than {days[0]} to {days[-1]}")
    return "; ".join(wrong) or None


def plausible(cleaned: dict[str, Any]) -> str | None:
    """A guard: no count that cannot be, and no counter that hangs."""
    wrong = [
        f"{day['date']}: {day['count']} bicycles"
        for day in cleaned["days"]
        if not 0 <= day["count"] <= MOST
    ]
    days = cleaned["days"]
    for first in range(len(days) - STUCK + 1):
        window = days[first : first + STUCK]
        if len({day["count"] for day in window}) == 1:
            wrong.append(
                f"the counter hangs from {window[0]['date']} on: {window[0]['count']} again"
            )
            break
    return "; ".join(wrong) or None


def report(files: list[str], cleaned: list[dict[str, Any]]) -> None:
    """The month as a table, the busiest place first; what is missing is said."""
    places = sorted(cleaned, key=lambda one: -int(one["total"]))
    lines = [
        "# Bicycles in June",
        "",
        "| Place | Bicycles | Busiest day | Weekend |",
        "|---|---:|---|---:|",
    ]
    for one in places:
        best = max(one["days"], key=lambda day: int(day["count"]))
        free = [d["count"] for d in one["days"] if date.fromisoformat(d["date"]).weekday() > 4]
        share = round(100 * sum(free) / one["total"])
        lines.append(
            f"| {one['place']} | {one['total']} | {best['date']}: {best['count']} | {share} % |"
        )
    lines += ["", f"Together {sum(one['total'] for one in places)} at {len(places)} places."]
    missing = sorted({Path(file).stem for file in files} - {one["place"] for one in places})
    if missing:
        lines += ["", f"Not counted, because the checks refused the file: {', '.join(missing)}."]
    Path("report.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def adds_up(text: str, files: list[str]) -> str | None:
    """A guard that counts again, another way: the files that are in the report, line by line."""
    counted = 0
    for file in files:
        name = os.path.splitext(os.path.basename(file))[0]
        if f"| {name} |" in text:
            lines = Path(file).read_text(encoding="utf-8").split()[1:]
            counted += sum(int(line.partition(",")[2]) for line in lines)
    return None if f"Together {counted} at" in text else f"the files in the report have {counted}"
