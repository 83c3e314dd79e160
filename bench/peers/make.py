"""GNU make: a Makefile, two jobs. Its state is the files themselves."""

from __future__ import annotations

from bench.case import Case
from bench.peers.programs import OUTPUTS, command_of, measure, needs_of, prepare


def main() -> None:
    case = Case.given()
    lines = ["MAKEFLAGS += -r", ".SUFFIXES:", f"{OUTPUTS}/{case.last}:"]
    for number, needs in case.graph:
        lines.append(f"{OUTPUTS}/{number}: {' '.join(needs_of(case, number, needs))}")
        lines.append(f"\t@{command_of(str(number), '$@')}")
    prepare(case, "Makefile", "\n".join(lines) + "\n")
    measure(case, ["make", "-s", "-j2"])


if __name__ == "__main__":
    main()
