"""The power goes at chosen moments of a recorded command; a report says what was wrong afterwards."""

import random
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from tests.crash.faults import Case, Reference, Report, Scene
from tests.crash.power_check import Checker, Edit, part_of, told_by
from tests.crash.power_disk import ENDS, Cut, Disk, Draw, lay_out, moments, states
from tests.crash.power_trace import Op, Recording, record, tree_of

MEMORY = Path("/dev/shm")
EDITED = ("keep.txt", "tree")  # what the reference plan changes in one edit
Wanted = Callable[[int], Iterable[Draw]]


@dataclass
class Outage:
    """One recorded command, the states that were tried, and what they showed."""

    recording: Recording
    edits: tuple[Edit, ...]
    report: Report
    seen: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)  # the distinct states with a violation

    def sweep(self, wanted: Wanted) -> None:
        """Check every distinct state of these draws."""
        with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as place:
            checker = self.checker(Path(place))
            for cut in self._fresh(states(self.recording, wanted)):
                how, violations = checker.check(cut)
                self._note(cut, how, violations)

    def checker(self, place: Path) -> Checker:
        """Who says what is wrong with a state."""
        return Checker(place, self.edits)

    def _fresh(self, cuts: Iterable[Cut]) -> Iterator[Cut]:
        for cut in cuts:
            if cut.digest not in self.seen:
                self.seen.add(cut.digest)
                yield cut

    def _note(self, cut: Cut, how: str, violations: list[str]) -> None:
        report = self.report
        report.tried += 1
        report.fired += not cut.whole
        report.kept += len(told_by(cut.told).steps)
        report.outcomes[how] += 1
        report.violations += [f"{report.name}: {cut.title}: {found}" for found in violations]
        if violations:
            self.broken.add(cut.digest)

    def resume(self, wanted: Wanted, folder: Path, reference: Reference) -> None:
        """From these states let the real command go on to the end.

        One after the other: they are all the same run, and an engine ends what another left of it.
        """
        for number, cut in enumerate(states(self.recording, wanted)):
            scene = Scene(folder / f"{cut.number}-{number}")
            lay_out(cut.state, scene.root)
            case = Case(scene, reference, self.report, cut.title)
            case.fired()
            case.broken(cut.told)
            case.ended("resumed")
            case.recovered(*(["run"] if number % 3 == 0 else []))
            case.close()


def recorded(
    strace: str, scene: Scene, *words: str, env: Mapping[str, str] = MappingProxyType({})
) -> Recording:
    """Record a command, and make sure that what is replayed is what happened."""
    recording = record(strace, scene, *words, env=env)
    disk = Disk(recording.before)
    for op in recording.ops:
        disk.follow(op)
    real = {path: (mode, content) for path, (mode, content) in tree_of(scene.root).items()}
    replayed = {path: tuple(file) for path, file in disk.all().items()}
    wrong = sorted(path for path in real.keys() | replayed if real.get(path) != replayed.get(path))
    assert not wrong, f"the replayed disk is another one: {wrong[:10]}"
    return recording


def edit_of(before: Mapping[str, tuple[int, bytes | None]], root: Path) -> Edit:
    """The edit of the reference plan, by what was there before and what is there now."""
    return Edit(part_of(before, *EDITED), part_of(tree_of(root), *EDITED))


def is_shard(op: Op) -> bool:
    """Whether this is one of the 256 directories for contents: they are all alike."""
    return op.kind == "mkdir" and ".holdfast/blobs/" in op.path


def chosen(recording: Recording, size: int, seed: int, near: str = "") -> Mapping[int, list[Draw]]:
    """Moments by lot, each with one draw; `near`: while something is done to paths with this in them."""
    dice = random.Random(seed)
    alike = {number for number, op in enumerate(recording.ops, 1) if is_shard(op)}
    close = [number for number, op in enumerate(recording.ops, 1) if near in op.path]
    window = range(close[0], close[-1] + 1) if near else range(moments(recording))
    places = [n for n in window if n not in alike or n % 32 == 0]
    draws: tuple[Draw, ...] = (*ENDS, 1, 2, 3)
    found: dict[int, list[Draw]] = {}
    for place in dice.choices(places, k=size):
        found.setdefault(place, []).append(dice.choice(draws))
    return found
