"""A guard: the translation has the headings, lists, tables, links and code blocks of the page."""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
PARTS: Mapping[str, str] = {
    "heading": r"(?m)^(#+) ",
    "entry of a list": r"(?m)^(-|\d+\.) ",
    "row of a table": r"(?m)^(\|)",
    "link": r"\]\(([^)]+)\)",
}


def differences(page: str, translated: str) -> list[str]:
    """What the translation lost or changed, a line each."""
    found = []
    for before, after in zip(CODE.findall(page), CODE.findall(translated), strict=False):
        if before != after:
            wanted, got = before.splitlines()[1], after.splitlines()[1]
            found.append(f'a code block says "{got}" where the page says "{wanted}"')
    if len(CODE.findall(page)) != len(CODE.findall(translated)):
        found.append("a code block is missing, or one too many")
    for name, pattern in PARTS.items():
        wanted_all, got_all = re.findall(pattern, page), re.findall(pattern, translated)
        if wanted_all != got_all:
            found.append(f"{name}: {len(got_all)} like this {got_all}, the page has {wanted_all}")
    return found


def main() -> int:
    """Look at the candidate; the page it comes from is the only one in the step's directory."""
    (page,) = Path("manual").glob("*.md")
    candidate = Path(os.environ["HOLDFAST_ARTIFACT"]).read_text(encoding="utf-8")
    problems = differences(page.read_text(encoding="utf-8"), candidate)
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
