"""A guard: every term of the glossary that the page uses is translated as the glossary says."""

import csv
import os
import re
import sys
from pathlib import Path


def missing(page: str, translated: str, glossary: list[dict[str, str]]) -> list[str]:
    """What the glossary wants and the translation does not have, a line each."""
    found = []
    for term in glossary:
        english, german = term["english"], term["german"]
        said = re.search(rf"\b{re.escape(english)}s?\b", page, re.IGNORECASE)
        if said and german.lower() not in translated.lower():
            found.append(
                f'"{english}" is "{german}" in our manuals; the translation does not say it'
            )
    return found


def main() -> int:
    """Look at the candidate; the page it comes from is the only one in the step's directory."""
    (page,) = Path("manual").glob("*.md")
    with open(sys.argv[1], encoding="utf-8", newline="") as file:
        glossary = list(csv.DictReader(file))
    candidate = Path(os.environ["HOLDFAST_ARTIFACT"]).read_text(encoding="utf-8")
    problems = missing(page.read_text(encoding="utf-8"), candidate, glossary)
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
