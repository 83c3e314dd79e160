"""`python -m bench.scale`: the real claims of both stores under simulated workers; JSON on stdout.

Small unless told otherwise; `--steps 100000 --workers 500 --engines 8` is the play of docs/scale.md. Ends
with 1 if a step was lost, done twice, or taken over too late.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from bench.scale.check import Found, judge
from bench.scale.hold import play
from bench.scale.places import STORES, new_store
from bench.scale.scene import Scene


def main(words: Sequence[str]) -> int:
    least = Scene()
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    for name in ("steps", "workers", "engines", "lanes", "seed"):
        parser.add_argument(f"--{name}", type=int, default=getattr(least, name))
    parser.add_argument("--duration", type=float, default=least.duration, help="of a step, in s")
    parser.add_argument("--stores", default=",".join(STORES))
    given = vars(parser.parse_args(words))
    stores = given.pop("stores").split(",")
    wrong = False
    for found in plays(Scene(**given), stores):
        print(json.dumps(asdict(found), indent=1), flush=True)
        for words_of_it in found.wrong:
            wrong = True
            print(f"{found.store}: {words_of_it}", file=sys.stderr)
    return int(wrong)


def plays(scene: Scene, stores: Sequence[str]) -> Iterator[Found]:
    """The scene on each of these stores."""
    for store in stores:
        with new_store(store) as place:
            yield judge(store, play(scene, place))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
