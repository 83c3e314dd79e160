"""ninja: a build file, two jobs."""

from __future__ import annotations

from bench.case import Case
from bench.peers.programs import OUTPUTS, command_of, measure, needs_of, prepare


def main() -> None:
    case = Case.given()
    lines = [f"rule step\n  command = {command_of('$id', '$out')}"]
    for number, needs in case.graph:
        files = " ".join(needs_of(case, number, needs))
        lines.append(f"build {OUTPUTS}/{number}: step {files}\n  id = {number}")
    prepare(case, "build.ninja", "\n".join(lines) + "\n")
    measure(case, ["ninja", "-j2"])


if __name__ == "__main__":
    main()
