"""`python -m bench.relevance GITDIR…`: hit at 1, 5 and 10 and all at 10, on any git directories."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.measure import REPOSITORY
from bench.relevance.measure import Measured, measured, read
from bench.relevance.speed import figures
from bench.relevance.table import speeds, table

PAGE = REPOSITORY / "docs" / "finding-files.md"
TEMPLATE = Path(__file__).parent / "page.md"


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.relevance", description=__doc__)
    parser.add_argument("folders", metavar="GITDIR", nargs="*")
    parser.add_argument("--questions", type=int, default=60, help="of each repository (60)")
    parser.add_argument("--among", type=int, default=2_500, help="newest commits looked at (2500)")
    parser.add_argument("--half", choices=["all", "older", "newer"], default="all")
    parser.add_argument("--speed", metavar="GITDIR", help="measure how fast the index of this is")
    parser.add_argument("--from", dest="earlier", type=Path, help="what --out wrote before")
    parser.add_argument("--out", type=Path, help="write the counts as JSON there")
    parser.add_argument("--write", action="store_true", help="write docs/finding-files.md")
    given = parser.parse_args(words)
    found: list[Measured] = read(given.earlier) if given.earlier else []
    for folder in given.folders:
        found.append(measured(folder, given.questions, given.among, given.half))
        print(table(found[-1:]), file=sys.stderr, flush=True)
    if given.out:
        given.out.write_text(json.dumps([one.as_json() for one in found], indent=1))
    speed = ""
    if given.speed:
        scratch = REPOSITORY / ".bench" / "code"
        speed = speeds(given.speed, figures(given.speed, scratch))
    text = TEMPLATE.read_text(encoding="utf-8").replace("{{table}}", table(found))
    text = text.replace("{{speed}}\n\n", f"{speed}\n\n" if speed else "")
    if given.write:
        PAGE.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main(sys.argv[1:])
