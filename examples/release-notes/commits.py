"""Lists the commits after the last release, oldest first, as JSON."""

import json
import subprocess
import sys

FIELDS = ("id", "subject", "body")


def main() -> None:
    """Print them; the repository and the tag are the arguments."""
    repository, tag = sys.argv[1:]
    git = [
        "git",
        "-C",
        repository,
        "log",
        "--reverse",
        "--abbrev=7",
        "-z",
        "--format=%h%x1f%s%x1f%b",
    ]
    said = subprocess.run([*git, f"{tag}..HEAD"], check=True, capture_output=True, text=True)  # noqa: S603
    rows = [entry.split("\x1f") for entry in said.stdout.split("\0") if entry]
    commits = [dict(zip(FIELDS, map(str.strip, row), strict=True)) for row in rows]
    print(json.dumps({"commits": commits}, indent=1))


if __name__ == "__main__":
    main()
