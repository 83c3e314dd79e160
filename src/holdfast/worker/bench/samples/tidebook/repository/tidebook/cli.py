"""The command: python3 -m tidebook."""

import argparse
import sys

from tidebook import show
from tidebook.parse import TableError, read_table
from tidebook.tides import by_day
from tidebook.windows import windows_above


def main(words, out=sys.stdout):
    """Run the command; its exit code."""
    given = _parser().parse_args(words)
    with open(given.file, encoding="utf-8") as file:
        text = file.read()
    try:
        tides = read_table(text)
    except TableError as error:
        print(f"{given.file}: {error}", file=sys.stderr)
        return 1
    if given.command == "table":
        print(show.table(tides), file=out)
    else:
        for day in by_day(tides):
            found = windows_above(tides, day, given.height)
            print(show.windows(day, found), file=out)
    return 0


def _parser():
    parser = argparse.ArgumentParser(prog="tidebook")
    commands = parser.add_subparsers(dest="command", required=True)
    table = commands.add_parser("table", help="print the table")
    table.add_argument("file")
    above = commands.add_parser("above", help="print when the water is high enough")
    above.add_argument("height", type=float)
    above.add_argument("file")
    return parser
