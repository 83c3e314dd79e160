"""Plays seeds again: `python -m tests.simulation 123` shows the trace of one, `100-199` counts many.

With `digests` it gives one word for the trace of each.
"""

import sys
import time
from collections import Counter

from tests.simulation.seeds import digest_of, play, shown


def main(words: list[str]) -> int:
    first, _, last = (words[0] if words else "0").partition("-")
    seeds = range(int(first), int(last or first) + 1)
    began, fired, bad = time.process_time(), Counter[str](), 0
    for result in play(seeds):
        fired += result.fired
        bad += bool(result.violations)
        if "digests" in words:
            print(digest_of(result.trace))
        elif len(seeds) == 1:
            print("\n".join(result.trace))
        if result.violations or len(seeds) == 1:
            print(shown(result))
    seconds = time.process_time() - began
    print(
        f"{len(seeds)} seeds, {bad} with violations, {len(seeds) / seconds:.1f} seeds a CPU second"
    )
    print(" ".join(f"{kind}={count}" for kind, count in sorted(fired.items())))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
