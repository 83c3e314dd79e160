"""W1 to W5 and W8: all tools on one graph, in rounds, so that each figure alternates with the others."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median

from bench import shapes
from bench.measure import FailedError, Sample, Tool, run
from bench.results import Cell

PHASES = ("cold", "noop", "shortcut", "change")


class Contest:
    """Tools on one graph, each in a folder of its own that lives as long as the contest."""

    def __init__(
        self, tools: Sequence[Tool], shape: str, size: int, scratch: Path, rounds: int
    ) -> None:
        self.tools, self.shape, self.size = tools, shape, size
        self.scratch, self.rounds = scratch, rounds
        self.salts: dict[str, str] = {}
        self.samples: dict[tuple[str, str], list[Sample]] = {}
        self.failed: dict[tuple[str, str], str] = {}

    def given(self, tool: Tool) -> int:
        """The size of the graph that a tool gets: a very slow one a smaller graph."""
        return min(self.size, tool.given or self.size)

    def steps(self, tool: Tool) -> int:
        return len(shapes.make(self.shape, self.given(tool)))

    def hold(self, phases: Iterable[str]) -> list[Cell]:
        """All rounds of all phases; a tool that fails once is out."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        wanted = [phase for phase in PHASES if phase in phases]
        for number in range(self.rounds):
            for phase in wanted:
                for tool in self.tools:
                    if self._takes_part(tool, phase, number):
                        self._once(tool, phase, number)
        shutil.rmtree(self.scratch, ignore_errors=True)
        pairs = [(tool, phase) for tool in self.tools for phase in wanted]
        return [self._cell(tool, phase) for tool, phase in pairs if phase in tool.phases]

    def _takes_part(self, tool: Tool, phase: str, number: int) -> bool:
        if phase not in tool.phases or any(name == tool.name for name, _ in self.failed):
            return False
        once = phase == "cold" and self.size > tool.once_above
        return number < (1 if once else tool.repeats)

    def _once(self, tool: Tool, phase: str, number: int) -> None:
        name = f"{tool.name} {self.shape} {self.size:,} {phase}"
        print(f"round {number + 1}: {name}", file=sys.stderr, flush=True)
        folder = self.scratch / tool.name.replace(" ", "-")
        if phase == "cold":
            shutil.rmtree(folder, ignore_errors=True)
            self.salts[tool.name] = ""
        elif phase == "change":
            self.salts[tool.name] = f"changed{number}"
        try:
            sample = self._sample(tool, phase, folder)
        except FailedError as error:
            print(f"{name}: {error}", file=sys.stderr, flush=True)
            self.failed[tool.name, phase] = str(error)
        else:
            self.samples.setdefault((tool.name, phase), []).append(sample)

    def _sample(self, tool: Tool, phase: str, folder: Path) -> Sample:
        if tool.note and phase != "shortcut":
            shutil.rmtree(folder / tool.note, ignore_errors=True)
        sample = run(tool, self.shape, self.given(tool), folder, self.salts[tool.name])
        wanted = {"cold": self.steps(tool), "change": 2}.get(phase, 0)
        if sample.executed != wanted:
            raise FailedError(f"executed {sample.executed} steps, not {wanted}")
        return sample

    def _cell(self, tool: Tool, phase: str) -> Cell:
        found = self.samples.get((tool.name, phase))
        if not found:
            why = self.failed.get((tool.name, phase), "an earlier phase failed")
            return Cell(tool.name, self.shape, phase, self.size, failed=why)
        return Cell(
            tool=tool.name,
            shape=self.shape,
            phase=phase,
            size=self.size,
            steps=self.steps(tool),
            repeats=len(found),
            cpu=median(sample.cpu for sample in found),
            wall=median(sample.wall for sample in found),
            least_cpu=min(sample.cpu for sample in found),
            least_wall=min(sample.wall for sample in found),
            process_cpu=median(sample.process_cpu for sample in found),
            peak_mb=max(sample.peak_mb for sample in found),
        )
