"""A bit that changed at rest or on its way to the disk: found, named, never served, never used."""

import hashlib
import json
import random
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import apsw
import pytest

from holdfast.engine.audit import audit
from holdfast.errors import HoldfastError
from holdfast.store.sqlite import SqliteStore
from tests.crash.disk import RUN, places
from tests.crash.faults import Answer, Reference, Report, Scene, Shim, each, lay, spread

DAMAGED = 9
DISK_FAILED = 74
NOT_THERE = 2  # what a damaged log lost is not there any more
TYPED = {0, DAMAGED, DISK_FAILED}  # how a command may end over a damaged store
LOG = ("state.db-wal",)
STORE = ".holdfast/blobs/:.holdfast/state.db:.holdfast/apply/"


class Bit(NamedTuple):
    """One bit of one file of a store."""

    file: str
    byte: int
    bit: int

    def flip(self, store: Path) -> None:
        place = store / self.file
        content = bytearray(place.read_bytes())
        content[self.byte] ^= 1 << self.bit
        place.chmod(0o600)
        place.write_bytes(content)


def finished(folder: Path, *, with_log: bool = False) -> Scene:
    """A project after its run; with the write-ahead log that a killed engine leaves, if asked for."""
    scene = lay(folder, "reference")
    if not with_log:
        assert scene.call(*RUN).code == 0
        return scene
    first = lay(folder.with_name(f"{folder.name}-first"), "reference")
    assert first.call("plan").code == 0
    first.store.mkdir()
    with SqliteStore.open(str(first.store), create=True):
        # While somebody has it open, the end of the command does not move the log into the database.
        assert first.call(*RUN).code == 0
        shutil.rmtree(scene.folder)
        shutil.copytree(first.folder, scene.folder, symlinks=True)
    (scene.store / "state.db-shm").unlink()
    first.remove()
    return scene


def last_commit(log: Path) -> int:
    """Where the frames of the last commit of a write-ahead log begin."""
    content = log.read_bytes() if log.exists() else b""
    frame, salt = 24 + 4096, content[16:24]
    heads = ((place, content[place : place + 24]) for place in range(32, len(content), frame))
    ends = [place + frame for place, head in heads if head[8:16] == salt and any(head[4:8])]
    return [32, 32, *ends][-2]


def files_of(store: Path) -> Iterator[str]:
    """The files in which a store keeps what it was told."""
    for place in sorted((store / "blobs").glob("??/*")):
        yield str(place.relative_to(store))
    yield from (name for name in ("state.db", "state.db-wal") if (store / name).exists())


def bits(store: Path, count: int, seed: int) -> list[Bit]:
    """Bits by lot, the same share of each file's; where nothing is written none is tried."""
    dice = random.Random(seed)
    chosen = []
    names = list(files_of(store))
    for number in range(count):
        name = names[number % len(names)]
        content = (store / name).read_bytes()
        byte = dice.randrange(len(content))
        for _ in range(20):
            if content[byte]:
                break
            byte = dice.randrange(len(content))
        chosen.append(Bit(name, byte, dice.randrange(8)))
    return chosen


def problems_of(store: Path) -> list[str]:
    """What `verify` would say, asked in this process."""
    try:
        with SqliteStore.open(str(store), create=False, readonly=True) as opened:
            return list(audit(opened).problems)
    except HoldfastError as error:
        return [error.message]


def contents_of(store: Path) -> dict[str, str]:
    """The digest of what a reader gets of each accepted artifact; what is refused is left out."""
    found: dict[str, str] = {}
    try:
        with SqliteStore.open(str(store), create=False, readonly=True) as opened:
            for row in opened.artifacts():
                if row.status == "accepted":
                    try:
                        content = opened.get(row.digest)
                    except HoldfastError:
                        continue
                    found[row.step] = hashlib.sha256(content).hexdigest()
    except HoldfastError:
        pass
    return found


class Rot:
    """Asks a damaged store what a sound one would answer, and compares."""

    def __init__(self, report: Report, reference: Reference, name: str) -> None:
        self._report, self._reference, self._name = report, reference, name
        with report.lock:
            report.tried += 1

    def violated(self, what: str) -> None:
        with self._report.lock:
            self._report.violations.append(f"{self._report.name}: {self._name}: {what}")

    def look(self, store: Path, *, may_lack: bool = False) -> bool:
        """Whether damage is found; what is served is right in any case.

        `may_lack`: the bit is in the last commit of a log, where it looks like a write that was torn.
        """
        try:
            found = problems_of(store)
            served = contents_of(store)
        except Exception as error:  # noqa: BLE001 - every other end is the violation looked for
            self.violated(f"{type(error).__name__}: {error}")
            return True
        for step, digest in served.items():
            if digest != self._reference.results.get(step, "" if not found else digest):
                self.violated(f"{step} is served as {digest[:12]}")
        if not (found or may_lack) and served.keys() != self._reference.results.keys():
            self.violated(f"nothing is found, and only {sorted(served)} are served")
        with self._report.lock:
            self._report.outcomes["found" if found else "harmless"] += 1
            self._report.fired += 1
            self._report.kept += len(served)
        return bool(found)

    def answered(self, answer: Answer, codes: set[int]) -> None:
        if answer.code not in codes:
            self.violated(f"it ended with {answer.code}: {answer.err[-800:]}")
        if "Traceback" in answer.err or "[this is a bug]" in answer.err:
            self.violated(f"a traceback or a bug: {answer.err[-800:]}")

    def ask(self, scene: Scene, *, damaged: bool) -> None:
        """The commands: what they print is right, or they refuse; a run ends well or says why not."""
        verify = scene.call("verify", "--json")
        self.answered(verify, {DAMAGED} if damaged else {0})
        if bool(json.loads(verify.out).get("bits")) != damaged:
            self.violated(f"verify has other bits: {verify.out[-400:]}")
        for step in ("large", "report"):
            shown = scene.call("show", step)
            self.answered(shown, TYPED | {NOT_THERE})
            digest = hashlib.sha256(shown.out.encode()).hexdigest()
            if shown.code == 0 and digest != self._reference.results[step]:
                self.violated(f"show prints something else of {step}")
        self.answered(scene.call("export", "--all", str(scene.folder / "out.zip")), TYPED)
        run = scene.call("run", "--force-node", "pages")
        self.answered(run, TYPED)
        if run.code == 0 and scene.files() != self._reference.files:
            self.violated("a run that ended well left other files")
        with self._report.lock:
            self._report.outcomes[f"run exit {run.code}"] += 1
            self._report.work += len(run.acknowledged)


class Bench:
    """A copy of a store in which one bit after the other is flipped; looking at it may change it."""

    def __init__(self, scene: Scene, place: Path) -> None:
        self._whole, self.place = scene.store, place
        shutil.copytree(scene.store, place)

    @contextmanager
    def damaged(self, bit: Bit) -> Iterator[Path]:
        bit.flip(self.place)
        yield self.place
        for name in {bit.file, "state.db", "state.db-wal"}:
            if (self._whole / name).exists():
                shutil.copy(self._whole / name, self.place / name)
        for name in ("state.db-shm", *(() if (self._whole / "state.db-wal").exists() else LOG)):
            (self.place / name).unlink(missing_ok=True)


def rotten(
    report: Report, scene: Scene, reference: Reference, chosen: list[Bit], aloud: int
) -> None:
    """Flip each bit in a copy of the store; of so many copies one is also asked by commands.

    Files take turns: a number that theirs divides would ask about one of them alone.
    """
    last = last_commit(scene.store / "state.db-wal")
    bench = Bench(scene, scene.folder.with_name("bench"))
    report.total = len(chosen)
    for number, bit in enumerate(chosen, 1):
        rot = Rot(report, reference, f"{bit.file} byte {bit.byte} bit {bit.bit}")
        with bench.damaged(bit) as store:
            in_log = bit.file in LOG and bit.byte >= last
            damaged = rot.look(store, may_lack=in_log)
        if number % aloud == 0:
            copy = scene.copied(f"bit-{number}")
            bit.flip(copy.store)
            rot.ask(copy, damaged=damaged)
            copy.remove()


@pytest.mark.req("D07", "I5", "I6")
@pytest.mark.parametrize("where", ["at rest", "in the log"])
def test_a_flipped_bit_is_found_or_harmless(
    where: str,
    tmp_path: Path,
    reference: Callable[[str], Reference],
    settle: Callable[[Report], None],
) -> None:
    scene = finished(tmp_path / "whole", with_log=where == "in the log")
    report = Report(f"D07 bits flipped {where}")
    rotten(report, scene, reference("reference"), bits(scene.store, 30, seed=7), aloud=7)
    settle(report)
    assert report.outcomes["found"] > report.tried / 10


@pytest.mark.soak("short-torn-flip")
@pytest.mark.req("D07", "I5", "I6")
@pytest.mark.parametrize("slice_", range(4))
@pytest.mark.parametrize("where", ["at rest", "in the log"])
def test_thousands_of_flipped_bits_are_found_or_harmless(
    where: str,
    slice_: int,
    tmp_path: Path,
    reference: Callable[[str], Reference],
    settle: Callable[[Report], None],
) -> None:
    scene = finished(tmp_path / "whole", with_log=where == "in the log")
    report = Report(f"D07 thousands of bits flipped {where}")
    chosen = bits(scene.store, 750, seed=70 + slice_)
    rotten(report, scene, reference("reference"), chosen, aloud=53)
    settle(report)
    assert report.outcomes["found"] > report.tried / 10


def at(store: Path, pattern: bytes) -> list[Bit]:
    """A bit of a text in the database file; a page that was moved leaves a copy that nobody reads."""
    content = (store / "state.db").read_bytes()
    found = [Bit("state.db", match.start() + 2, 1) for match in re.finditer(pattern, content)]
    assert found, pattern
    return found


@pytest.mark.req("D07", "I5", "I6")
def test_verify_names_what_is_damaged_and_nobody_is_given_it(tmp_path: Path) -> None:
    """A blob file, a small content, an event and a page, each damaged by an edit of the raw file."""
    whole = finished(tmp_path / "whole")
    run = whole.journal().runs[-1]
    results = whole.journal().results()
    large, small = results["large"], results["left"]

    def damaged(name: str, *bits: Bit) -> tuple[Scene, str]:
        scene = whole.copied(name)
        for bit in bits:
            bit.flip(scene.store)
        answer = scene.call("verify", "--json")
        assert answer.code == DAMAGED, answer
        assert json.loads(answer.out)["bits"]
        return scene, "\n".join(json.loads(answer.out)["problems"])

    scene, said = damaged("blob", Bit(f"blobs/{large[:2]}/{large}", 20_000, 3))
    assert f"content '{large}' of step 'large' in run '{run}' is damaged" in said
    answer = scene.call("show", "large")
    assert (answer.code, answer.out) == (DAMAGED, "")
    answer = scene.call("run", "--force-node", "report")  # it reads what is damaged
    assert answer.code == DAMAGED
    assert "the artifact of 'large' cannot be used" in answer.err
    assert answer.err.endswith("hint: holdfast run\n")
    assert scene.begun()["report"] == 1
    assert scene.call("run", "--force-node", "report").code == 0
    assert (scene.begun()["large"], scene.begun()["report"]) == (2, 2)
    assert scene.call("verify").code == 0

    scene, said = damaged("row", *at(whole.store, rb"TIDE ROCK KELP\n(?!{)"))
    assert f"content '{small}' of step 'left' in run '{run}' is damaged" in said
    assert scene.call("show", "left").code == DAMAGED

    scene, said = damaged("event", *at(whole.store, rb'"again","attempt":2'))
    assert f"journal 'run:{run}': event" in said
    answer = scene.call("status")
    assert answer.code == DAMAGED
    assert f"journal 'run:{run}' is damaged at event" in answer.err

    size = (whole.store / "state.db").stat().st_size
    header = next(p for p in range(4096, size, 4096) if _is_page(whole.store, p))
    scene, said = damaged("page", Bit("state.db", header, 3))
    assert "database" in said
    assert "Traceback" not in scene.call("run").err


def _is_page(store: Path, place: int) -> bool:
    """Whether a leaf of a table begins here."""
    return (store / "state.db").read_bytes()[place] == 13


def has_lost(scene: Scene, answer: Answer) -> bool:
    """Whether something was told as accepted that the journal does not have, if that can be read at all."""
    try:
        return bool(answer.acknowledged - scene.journal().steps)
    except apsw.CorruptError:  # the changed write was that of the tables
        return False


def flipped(
    tmp_path: Path,
    shim: Shim,
    reference: Reference,
    report: Report,
    sample: int | None,
    slice_: int = 0,
) -> None:
    """One bit of one write into the store is another: what is read of it is right, or refused."""
    writes = replace(shim, calls=("write", "pwrite64"))
    first = lay(tmp_path / "count")
    calls = writes.count(first, *RUN, how="flip", under=places(first, STORE))

    def flip(number: int) -> None:
        scene = lay(tmp_path / f"case-{number}")
        log = scene.folder / "fault.txt"
        fault = writes.fault(number, "flip", places(scene, STORE), str(log))
        answer = scene.call(*RUN, fault=fault)
        rot = Rot(report, reference, f"write {number} flipped")
        rot.answered(answer, TYPED)
        with report.lock:
            report.work += len(answer.acknowledged)
        if answer.code == 0:
            damaged = rot.look(scene.store)
            if damaged or number % 8 == 0:
                rot.ask(scene, damaged=damaged)
        elif has_lost(scene, answer):
            rot.violated("told as accepted, but not in the journal")
        else:
            with report.lock:
                report.fired += 1
                report.outcomes[f"exit {answer.code}"] += 1
        shutil.rmtree(scene.folder)

    every = [number for number in range(1, len(calls) + 1) if number % 4 == slice_]
    each(flip, spread(calls, sample, seed=6) if sample else every)


@pytest.mark.req("D05", "D07", "I5")
def test_a_write_with_a_flipped_bit_is_found_when_it_is_read(
    tmp_path: Path,
    shim: Shim,
    reference: Callable[[str], Reference],
    settle: Callable[[Report], None],
) -> None:
    report = Report("D05 flipped writes")
    flipped(tmp_path, shim, reference("reference"), report, 4)
    settle(report)


@pytest.mark.soak("short-torn-flip")
@pytest.mark.req("D05", "D07", "I5")
@pytest.mark.parametrize("slice_", range(4))
def test_every_write_with_a_flipped_bit_is_found_when_it_is_read(
    slice_: int,
    tmp_path: Path,
    shim: Shim,
    reference: Callable[[str], Reference],
    settle: Callable[[Report], None],
) -> None:
    report = Report("D05 every write flipped")
    flipped(tmp_path, shim, reference("reference"), report, None, slice_)
    settle(report)
