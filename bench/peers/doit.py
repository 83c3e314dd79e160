"""doit: Python actions on files, state in its `dbm` file; building its list is part of the run."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from doit.cmd_base import ModuleTaskLoader
from doit.doit_cmd import DoitMain

from bench.case import Case, Timing, report


class Steps:
    """The graph as files in a folder."""

    def __init__(self, case: Case) -> None:
        self.case, self.outputs = case, case.folder / "o"
        self.source = case.folder / "leaf.src"
        self.outputs.mkdir(exist_ok=True)
        self.source.write_text(case.salt, encoding="utf-8")

    def output(self, number: int) -> str:
        return f"{self.outputs}/{number}"

    def value(self, number: int) -> str:
        with open(self.output(number), encoding="ascii") as file:
            return file.read()

    def carry_out(self, number: int, needs: tuple[int, ...]) -> None:
        value = self.case.step(number, [self.value(need) for need in needs])
        with open(self.output(number), "w", encoding="ascii") as file:
            file.write(value)

    def all(self) -> Iterator[dict[str, object]]:
        for number, needs in self.case.graph:
            files = [self.output(need) for need in needs]
            if number == self.case.leaf:
                files.append(str(self.source))
            yield {
                "name": str(number),
                "actions": [(self.carry_out, [number, needs])],
                "targets": [self.output(number)],
                "file_dep": files,
                **({} if files else {"uptodate": [True]}),
            }


def main() -> None:
    case = Case.given()
    steps = Steps(case)
    config = {"dep_file": f"{case.folder}/doit.db", "verbosity": 0, "reporter": "zero"}
    loader = ModuleTaskLoader({"DOIT_CONFIG": config, "task_step": steps.all})
    with Timing() as timing:
        code = DoitMain(loader).run(["run"])
    if code:
        sys.exit(f"doit ended with {code}")
    report(steps.value(case.last), timing, case.executed)


if __name__ == "__main__":
    main()
