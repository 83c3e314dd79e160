"""A disk that is really full: one clear message, and once there is room again everything goes on."""

import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.project import Project
from tests.crash import plans
from tests.crash.disk import DISK_FAILED, blamed
from tests.crash.faults import Case, Reference, Report, Scene, reference_of
from tests.web.site import serve

EACH = 200_000
FILLER = "filler.bin"


def wide(count: int, place: str) -> dict[str, object]:
    """Steps that make 200 KB each: as what they print, or as files of the project."""
    body = f'head -c {EACH} /dev/zero | tr "\\0" "$(printf %s "$HOLDFAST_STEP" | tail -c 1)"'
    steps: dict[str, object] = {}
    for number in range(count):
        name = f"s{number}"
        line = f"{body}; echo {name}"
        made = {"shell": plans.noted(line)}
        if place == "files":
            made = {"shell": plans.noted(f"{{ {line}; }} > {name}.txt"), "produces": f"{name}.txt"}
        steps[name] = {**made, **({"needs": [f"s{number - 1}"]} if number % 5 else {})}
    return {"name": "wide", "steps": steps}


class Full:
    """A project whose store, and perhaps itself, is on a disk that somebody else has filled."""

    def __init__(self, folder: Path, disk: Path, plan: dict[str, object], place: str) -> None:
        self.scene = Scene(folder)
        self.disk = disk
        plans.write_project(self.scene.root, plan, {})
        if place == "files":
            shutil.move(self.scene.root, disk / "project")
            self.scene.root.symlink_to(disk / "project")
        else:
            self.scene.store.symlink_to(disk / "store")
            (disk / "store").mkdir()
        # Else a command that takes a while is ended, because so small a disk has nothing to spare.
        person = folder / "home" / ".config" / "holdfast"
        person.mkdir(parents=True)
        (person / "config.toml").write_text("[sandbox]\nspare = 1\n")

    def fill(self, leave: int) -> None:
        """Take all room but so many bytes."""
        free = shutil.disk_usage(self.disk).free
        with open(self.disk / FILLER, "wb") as file:
            left = max(0, free - leave)
            while left > 0:
                left -= file.write(b"f" * min(left, 1 << 20))

    def free(self) -> None:
        (self.disk / FILLER).unlink()


def overfilled(report: Report, full: Full, reference: Reference, leave: int) -> None:
    """Run out of room, make room, go on."""
    case = Case(full.scene, reference, report, f"{leave} bytes left")
    full.fill(leave)
    answer = full.scene.call("run", "-j", "2")
    if answer.code != DISK_FAILED:
        case.violated(f"it ended with {answer.code}: {answer.err[-1500:]}")
    case.fired()
    journal = case.broken(answer)
    case.ended(f"exit {answer.code}")
    said = [line for line in answer.err.splitlines() if line.startswith("error[")]
    if len(said) != 1 or not ("full" in said[0] or "space" in said[0]):
        case.violated(f"no one clear message: {answer.err[-800:]}")
    if blame := blamed(journal):
        case.violated(f"a step was blamed: {dict(blame)}")
    full.free()
    case.recovered()


def filled(
    tmp_path: Path,
    disk: Callable[[int], Path],
    report: Report,
    place: str,
    count: int,
    megabytes: int,
    rooms: list[int],
) -> None:
    plan = wide(count, place)
    plain = Scene(tmp_path / "plain")
    plans.write_project(plain.root, plan, {})
    reference = reference_of(plain, "-j", "2")
    for number, leave in enumerate(rooms):
        full = Full(tmp_path / f"case-{number}", disk(megabytes), plan, place)
        overfilled(report, full, reference, leave)


@pytest.mark.req("D08", "I1")
@pytest.mark.parametrize("place", ["store", "files"])
def test_a_full_disk_is_said_once_and_the_run_goes_on_when_there_is_room(
    place: str, tmp_path: Path, disk: Callable[[int], Path], settle: Callable[[Report], None]
) -> None:
    report = Report(f"D08 full disk ({place})")
    filled(tmp_path, disk, report, place, 12, 16, [1_200_000])
    settle(report)


@pytest.mark.req("D08")
def test_the_page_answers_while_the_disk_is_full_and_after(
    tmp_path: Path, disk: Callable[[int], Path]
) -> None:
    """Who looks sees the run as far as it came, and after room was made that it ended well."""
    project, small = Project(tmp_path), disk(16)
    (small / "store").mkdir()
    (project.root / ".holdfast").symlink_to(small / "store")
    person = project.home / ".config" / "holdfast"
    person.mkdir(parents=True)
    (person / "config.toml").write_text("[sandbox]\nspare = 1\n")
    filler = small / FILLER
    try:
        project.plan({f"s{n}": {"shell": f"head -c {EACH} /dev/urandom"} for n in range(12)})
        project.plan({"first": {"shell": "echo first"}}, file="first.yaml", name="first")
        assert project.run("first.yaml").code == 0
        page = serve(project)
        page.enter()
        free = shutil.disk_usage(small).free
        filler.write_bytes(b"f" * (free - 1_200_000))
        stopped = project.call("run", "-j", "2")
        assert stopped.code == DISK_FAILED, stopped
        run = project.ok("status", "--json", "--plan-id", "demo").json["run"]
        with suppress(OSError), open(small / "rest.bin", "wb", buffering=0) as rest:
            while True:  # and now nothing fits any more
                rest.write(b"r" * 4096)
        asked = [page.ask(path).status for path in ("/", f"/runs/{run}", "/approvals")]
        assert asked == [200, 200, 200]
        for place in (filler, small / "rest.bin"):
            place.unlink(missing_ok=True)
        resumed = project.resume()
        assert (resumed.code, set(resumed.states.values())) == (0, {"done"}), resumed.err
        assert b"completed" in page.ask(f"/runs/{run}").body
    finally:
        project.end()


@pytest.mark.soak("full-disk")
@pytest.mark.req("D08", "I1")
@pytest.mark.parametrize("place", ["store", "files"])
def test_a_disk_that_is_full_at_any_moment(
    place: str, tmp_path: Path, disk: Callable[[int], Path], settle: Callable[[Report], None]
) -> None:
    report = Report(f"D08 a disk with less and less room ({place})")
    rooms = [0, 4096, 40_000, *range(100_000, 3_000_000, 150_000)]
    filled(tmp_path, disk, report, place, 24, 24, rooms)
    settle(report)


@pytest.mark.soak("full-disk")
@pytest.mark.req("D08", "I1")
def test_two_hundred_steps_do_not_fit_on_a_disk_that_then_grows(
    tmp_path: Path, disk: Callable[[int], Path], settle: Callable[[Report], None]
) -> None:
    """200 steps of 200 KB on 16 MB: nothing lost, nothing doubled, once the disk has room for all."""
    report = Report("D08 200 steps on 16 MB")
    plan = wide(200, "store")
    plain = Scene(tmp_path / "plain")
    plans.write_project(plain.root, plan, {})
    reference = reference_of(plain, "-j", "2")
    small = disk(16)
    full = Full(tmp_path / "case", small, plan, "store")
    case = Case(full.scene, reference, report, "16 MB")
    answer = full.scene.call("run", "-j", "2")
    if answer.code != DISK_FAILED:
        case.violated(f"it ended with {answer.code}: {answer.err[-1500:]}")
    case.fired()
    journal = case.broken(answer)
    case.ended(f"exit {answer.code}")
    if blame := blamed(journal):
        case.violated(f"a step was blamed: {dict(blame)}")
    for _ in range(3):  # still no room: it says so again, and nothing is lost
        again = full.scene.call("resume", "-j", "2")
        if again.code != DISK_FAILED:
            case.violated(f"resume without room ended with {again.code}: {again.err[-800:]}")
        case.broken(again)
    subprocess.run(["mount", "-o", "remount,size=96m", str(small)], check=True)
    case.recovered("resume")
    settle(report)
