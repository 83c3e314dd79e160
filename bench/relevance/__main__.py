"""`python -m bench.relevance GITDIR…`: hit at 1, 5 and 10 and all at 10, on any git directories."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from bench.relevance.measure import measured
from bench.relevance.table import table


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.relevance", description=__doc__)
    parser.add_argument("folders", metavar="GITDIR", nargs="+")
    parser.add_argument("--questions", type=int, default=60, help="of each repository (60)")
    parser.add_argument("--among", type=int, default=2_500, help="newest commits looked at (2500)")
    parser.add_argument("--half", choices=["all", "older", "newer"], default="all")
    parser.add_argument("--out", type=Path, help="write the counts as JSON there")
    given = parser.parse_args()
    found = []
    for folder in given.folders:
        one = measured(folder, given.questions, given.among, given.half)
        print(table([one]), file=sys.stderr, flush=True)
        found.append(one)
    if given.out:
        given.out.write_text(json.dumps([one.as_json() for one in found], indent=1))
    print(table(found))


if __name__ == "__main__":
    main()
