"""The steps of the plan, and their guard."""

from pathlib import Path


def count(gather: str) -> dict[str, object]:
    """Return JSON: the keys are what the plan calls 'outputs'."""
    words = gather.split()
    return {"total": len(words), "longest": max(words, key=len)}


def report(count: dict[str, object], title: str) -> None:
    """Write the file that the plan says it produces."""
    text = f"# {title}\n\n{count['total']} words; the longest is {count['longest']}.\n"
    Path("report.md").write_text(text, encoding="utf-8")


def has_title(artifact: str) -> str | None:
    """Return nothing to accept, or words to refuse with: the next try gets them."""
    return None if artifact.startswith("# ") else "a report begins with a title"
