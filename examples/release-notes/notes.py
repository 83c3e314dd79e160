"""Guards and the writer of the release notes."""

from collections import Counter
from typing import Any


def each_once(grouped: dict[str, Any], commits: dict[str, Any]) -> str | None:
    """A guard: every commit is named, none twice, and none that is not there."""
    subjects = {one["id"]: one["subject"] for one in commits["commits"]}
    named = Counter(one["id"] for section in grouped["sections"] for one in section["commits"])
    wrong = [f"{name} ({subjects[name]}) is missing" for name in subjects if name not in named]
    wrong += [f"{name} is named {times} times" for name, times in named.items() if times > 1]
    wrong += [f"there is no commit {name}" for name in named if name not in subjects]
    return "; ".join(wrong) or None


def write(version: str, group: dict[str, Any]) -> None:
    """The notes as Markdown, in the order of the sections."""
    lines = [f"# Harbour bell {version}", "", group["headline"]]
    for section in group["sections"]:
        lines += ["", f"## {section['title']}", ""]
        lines += [f"- {one['line']} ({one['id']})" for one in section["commits"]]
    with open("notes.md", "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
