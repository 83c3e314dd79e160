"""luigi: its local scheduler, one file for each step.

It sees no change: where the leaf was changed, the files of the two affected steps are removed, as a
user would have to.
"""

from __future__ import annotations

import logging
import sys

import luigi

from bench.case import Case, Timing, report

case = Case.given()
needs = dict(case.graph)
outputs = case.folder / "o"


class Step(luigi.Task):
    number = luigi.IntParameter()

    def requires(self) -> list[Step]:
        return [Step(number=need) for need in needs[self.number]]

    def output(self) -> luigi.LocalTarget:
        return luigi.LocalTarget(f"{outputs}/{self.number}")

    def run(self) -> None:
        values = []
        for target in self.input():
            with target.open() as file:
                values.append(file.read())
        with self.output().open("w") as file:
            file.write(case.step(self.number, values))


def main() -> None:
    logging.disable(logging.CRITICAL)
    sys.setrecursionlimit(200_000)
    outputs.mkdir(exist_ok=True)
    if case.salt:
        for number in (case.leaf, case.last):
            (outputs / str(number)).unlink(missing_ok=True)
    with Timing() as timing:
        luigi.build(
            [Step(number=case.last)],
            local_scheduler=True,
            workers=1,
            no_lock=True,
            log_level="CRITICAL",
        )
    report((outputs / str(case.last)).read_text(encoding="ascii"), timing, case.executed)


if __name__ == "__main__":
    main()
