"""`make fuzz`: the same targets, led by which lines an input reaches (atheris). Needs that package.

    python -m tests.fuzz.guided TARGET [options of libFuzzer, such as -runs=1000000]

What breaks a promise is written as a crash-… file: copy it to tests/fuzz/corpus/TARGET and mend the code.
"""

from __future__ import annotations

import sys
import tempfile

import atheris

from tests.fuzz.mutate import CORPUS

with atheris.instrument_imports(include=["holdfast"]):
    from tests.fuzz.targets import TARGETS

SECONDS = 20  # instrumented code takes longer


def main() -> None:
    """Fuzz one target; new inputs go to a directory of their own, not into the corpus."""
    name, *options = sys.argv[1:]
    found = tempfile.mkdtemp(prefix=f"holdfast-fuzz-{name}-")

    def one(data: bytes) -> None:
        TARGETS[name](data)

    words = [sys.argv[0], f"-timeout={SECONDS}", *options, found, str(CORPUS / name)]
    atheris.Setup(words, one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
