"""What a disk may hold after the power went away: every legal state at every moment of a recording.

The recording is turned into effects on numbered files and directories. Of what was not yet synced,
a disk keeps

    strict      any part: each write or none of it, the last one torn at 512 bytes; each name in a
                directory whose directory was not synced. Only a rename within one directory is one.
    ordered     as ext4 does: names, sizes and modes in the order in which they were changed, up to
                any point; a sync brings all of them up to the file's own. The data of a file that was
                not synced is there, is not, is zeros up to the new size, or is partly there.

`states` gives, for each moment, the two ends (nothing and everything that was not synced), and some
between them by lot.
"""

import hashlib
import os
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from tests.crash.faults import Answer
from tests.crash.power_trace import APPEND, Op, Recording

SECTOR = 512
LONG_AGO = 1_000_000_000
ROOT = 0


class Name(NamedTuple):
    """Names in a directory appear, vanish or mean another file, all at once."""

    owner: int
    names: tuple[tuple[str, int | None], ...]


class Data(NamedTuple):
    owner: int
    offset: int
    content: bytes


class Size(NamedTuple):
    owner: int
    size: int


class Mode(NamedTuple):
    owner: int
    mode: int


Change = Name | Data | Size | Mode


class Done(NamedTuple):
    """A change, when it was made, and its place among those that are kept in order (-1: data)."""

    change: Change
    line: int
    rank: int


class Node(NamedTuple):
    """A file or directory that exists from its first name on."""

    folder: bool
    mode: int


class File(NamedTuple):
    mode: int
    content: bytes | None  # None: a directory


State = dict[str, File]


class Cut(NamedTuple):
    """One possible disk: when the power went, which disk it was, and what had been told by then."""

    number: int
    title: str
    state: State
    told: Answer
    whole: bool  # nothing was lost

    @property
    def digest(self) -> str:
        whole = hashlib.sha1(usedforsecurity=False)
        for path, file in sorted(self.state.items()):
            whole.update(f"{path}\0{file.mode}\0".encode())
            whole.update(b"/" if file.content is None else file.content)
        return whole.hexdigest()


class Disk:
    """Follows a recording: what is there, what of it is safe, and what is not yet."""

    def __init__(self, before: Mapping[str, tuple[int, bytes | None]]) -> None:
        self.nodes = [Node(folder=True, mode=0o755)]
        self.names: dict[int, dict[str, int]] = {ROOT: {}}
        self.sizes: dict[int, int] = {}
        self.safe_names: dict[int, dict[str, int]] = {ROOT: {}}
        self.safe: dict[int, bytes] = {}
        self.safe_modes: dict[int, int] = {}
        self.pending: dict[int, list[Done]] = {}
        self.rank = 0  # of the last change that is kept in order
        self.floor = 0  # up to which they are safe
        self.told = {"out": b"", "err": b""}
        for path, (mode, content) in sorted(before.items()):
            parent, name = self._at(os.path.dirname(path)), os.path.basename(path)
            node = self._new(folder=content is None, mode=mode)
            self.names[parent][name] = self.safe_names[parent][name] = node
            if content is not None:
                self.safe[node], self.sizes[node] = content, len(content)

    # following

    def follow(self, op: Op) -> None:
        if op.kind in self.told:
            self.told[op.kind] += op.data
        elif op.kind == "sync":
            for node in self.nodes_at(op.path):
                self._sync(node, op.began)
        else:
            self._record(op.line, *self._changes(op))

    def nodes_at(self, path: str) -> list[int]:
        return list(range(len(self.nodes))) if path == "*" else [self._at(path)]

    def _at(self, path: str) -> int:
        node = ROOT
        for part in filter(None, path.split("/")):
            node = self.names[node][part]
        return node

    def _new(self, *, folder: bool, mode: int) -> int:
        node = len(self.nodes)
        self.nodes.append(Node(folder, mode & 0o755))
        if folder:
            self.names[node], self.safe_names[node] = {}, {}
        else:
            self.safe[node], self.sizes[node] = b"", 0
        return node

    def _changes(self, op: Op) -> Iterator[Change]:
        parent, name = self._at(os.path.dirname(op.path)), os.path.basename(op.path)
        known = self.names[parent].get(name)
        match op.kind:
            case "make" | "mkdir":
                if known is None:
                    node = self._new(folder=op.kind == "mkdir", mode=op.number)
                    yield Name(parent, ((name, node),))
            case "unlink" | "rmdir":
                yield Name(parent, ((name, None),))
            case "move" | "link":
                target = self._at(os.path.dirname(op.other)), os.path.basename(op.other)
                gone = ((name, None),) if op.kind == "move" else ()
                if target[0] == parent:
                    yield Name(parent, (*gone, (target[1], known)))
                else:
                    yield Name(target[0], ((target[1], known),))
                    if gone:
                        yield Name(parent, gone)
            case "write":
                node = self._at(op.path)
                offset = self.sizes[node] if op.number == APPEND else op.number
                yield Data(node, offset, op.data)
            case "cut":
                if self.sizes[self._at(op.path)] != op.number:
                    yield Size(self._at(op.path), op.number)
            case "mode":
                yield Mode(self._at(op.path), op.number)
            case _:
                raise AssertionError(op.kind)

    def _record(self, line: int, *changes: Change) -> None:
        if any(not isinstance(change, Data) for change in changes):
            self.rank += 1  # two directories of one rename have the same place
        for change in changes:
            rank = -1 if isinstance(change, Data) else self.rank
            self.pending.setdefault(change.owner, []).append(Done(change, line, rank))
            match change:
                case Name():
                    _rename(self.names[change.owner], change)
                case Data():
                    end = change.offset + len(change.content)
                    self.sizes[change.owner] = max(self.sizes[change.owner], end)
                case Size():
                    self.sizes[change.owner] = change.size
                case Mode():
                    pass

    def _sync(self, node: int, began: int) -> None:
        """All that was done to this file before the call is safe now."""
        waiting = self.pending.pop(node, [])
        kept = [done for done in waiting if done.line <= began]
        rest = [done for done in waiting if done.line > began]
        if rest:
            self.pending[node] = rest
        self.floor = max([self.floor, *(done.rank for done in kept), *self._named(node, began)])
        if self.nodes[node].folder:
            for done in kept:
                _rename(self.safe_names[node], done.change)
        else:
            self.safe[node] = _written(self.safe[node], [done.change for done in kept])
            for done in kept:
                if isinstance(done.change, Mode):
                    self.safe_modes[node] = done.change.mode

    def _named(self, node: int, began: int) -> Iterator[int]:
        """When this file got names that are not safe by themselves yet."""
        for waiting in self.pending.values():
            for change, line, rank in waiting:
                named = isinstance(change, Name) and any(n == node for _, n in change.names)
                if named and line <= began:
                    yield rank

    # what may be left

    def strict(self, keeps: Callable[[Change], bool], dice: random.Random | None) -> State:
        """Some changes are kept; with dice, of the last kept write of a file perhaps only a part."""
        names, files, modes = dict(self.safe_names), dict(self.safe), dict(self.safe_modes)
        for node, waiting in self.pending.items():
            kept = [done.change for done in waiting if keeps(done.change)]
            self._keep(node, kept, names, files, modes, dice)
        return self._tree(names, files, modes)

    def ordered(self, upto: int, data: Callable[[int], str], dice: random.Random) -> State:
        """The changes of names, sizes and modes up to one of them, and what `data` says of each file."""
        names, files, modes = dict(self.safe_names), dict(self.safe), dict(self.safe_modes)
        for node, waiting in self.pending.items():
            reached = []
            for done in waiting:
                if done.rank > upto:
                    break  # data that came after a new size was never in the old blocks
                reached.append(done.change)
            how = data(node)
            if how == "zeros":
                reached = [_zeroed(change) for change in reached]
            elif how == "lost":
                reached = [change for change in reached if not isinstance(change, Data)]
            elif how == "some":
                reached = [c for c in reached if not isinstance(c, Data) or dice.random() < 0.5]
            self._keep(node, reached, names, files, modes, dice if how == "some" else None)
        return self._tree(names, files, modes)

    def _keep(
        self,
        node: int,
        kept: list[Change],
        names: dict[int, dict[str, int]],
        files: dict[int, bytes],
        modes: dict[int, int],
        dice: random.Random | None,
    ) -> None:
        if self.nodes[node].folder:
            names[node] = dict(names[node])
            for change in kept:
                _rename(names[node], change)
            return
        if dice is not None and kept and dice.random() < 0.5:
            kept[-1] = _torn(kept[-1], dice)
        files[node] = _written(files[node], kept)
        for change in kept:
            if isinstance(change, Mode):
                modes[node] = change.mode

    def _tree(
        self,
        names: Mapping[int, dict[str, int]],
        files: Mapping[int, bytes],
        modes: Mapping[int, int],
    ) -> State:
        state: State = {}
        below = [("", ROOT)]
        seen = {ROOT}
        while below:
            path, folder = below.pop()
            for name, node in names[folder].items():
                place = f"{path}{name}"
                mode = modes.get(node, self.nodes[node].mode)
                if not self.nodes[node].folder:
                    state[place] = File(mode, files[node])
                elif node not in seen:  # a directory has one name
                    seen.add(node)
                    state[place] = File(mode, None)
                    below.append((f"{place}/", node))
        return state

    def all(self) -> State:
        """What a running system sees."""
        return self.ordered(self.rank, lambda _: "kept", random.Random(0))


def _rename(names: dict[str, int], change: Change) -> None:
    assert isinstance(change, Name)
    for name, node in change.names:
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


def _written(content: bytes, changes: Iterable[Change]) -> bytes:
    whole = bytearray(content)
    for change in changes:
        if isinstance(change, Data):
            end = change.offset + len(change.content)
            whole.extend(bytes(max(0, change.offset - len(whole))))
            whole[change.offset : end] = change.content
        elif isinstance(change, Size):
            whole.extend(bytes(max(0, change.size - len(whole))))
            del whole[change.size :]
    return bytes(whole)


def _zeroed(change: Change) -> Change:
    return (
        change._replace(content=bytes(len(change.content))) if isinstance(change, Data) else change
    )


def _torn(change: Change, dice: random.Random) -> Change:
    """The sectors of a write up to one of them."""
    if not isinstance(change, Data):
        return change
    end = change.offset + len(change.content)
    sectors = range(change.offset // SECTOR * SECTOR + SECTOR, end, SECTOR)
    stop = dice.choice(sectors) if sectors else change.offset
    return change._replace(content=change.content[: stop - change.offset])


Draw = Literal["none", "all", "named"] | int

ENDS: tuple[Draw, ...] = ("none", "all", "named")


def moments(recording: Recording) -> int:
    """How many moments there are at which the power may go: before, between and after the calls."""
    return len(recording.ops) + 1


def states(recording: Recording, wanted: Callable[[int], Iterable[Draw]]) -> Iterator[Cut]:
    """What the disk may hold at each moment; `wanted` says which draws to make there.

    A draw is an end or a number to throw dice with. "named": every name, and no data, that was not
    synced is there.
    """
    disk = Disk(recording.before)
    for number in range(moments(recording)):
        if number:
            disk.follow(recording.ops[number - 1])
        told = Answer(0, *(disk.told[kind].decode(errors="replace") for kind in ("out", "err")))
        for draw in wanted(number):
            for name, state in _drawn(disk, draw, f"{number}/{draw}"):
                title = f"moment {number}, {name} {draw}"
                yield Cut(number, title, state, told, not disk.pending or draw == "all")


def _drawn(disk: Disk, draw: Draw, seed: str) -> Iterator[tuple[str, State]]:
    dice = random.Random(seed)
    if draw == "all":
        yield "both", disk.all()
    elif draw == "none":
        yield "strict", disk.strict(lambda _: False, None)
        yield "ordered", disk.ordered(disk.floor, lambda _: "lost", dice)
    elif draw == "named":
        yield "strict", disk.strict(lambda change: isinstance(change, Name), None)
        yield "ordered", disk.ordered(disk.rank, lambda _: dice.choice(("lost", "zeros")), dice)
    else:
        share = dice.choice((0.2, 0.5, 0.8, 0.95))
        yield "strict", disk.strict(lambda _: dice.random() < share, dice)
        upto = dice.randint(disk.floor, disk.rank)
        how = ("kept", "lost", "zeros", "some")
        yield "ordered", disk.ordered(upto, lambda _: dice.choice(how), dice)


def lay_out(state: State, root: Path) -> None:
    """Let a directory that does not exist hold this state."""
    root.mkdir(parents=True)
    for path, (mode, content) in sorted(state.items()):
        place = root / path
        if content is None:
            os.mkdir(place, mode)
        else:
            handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(handle, "wb") as file:
                file.write(content)
            os.chmod(place, mode)
            os.utime(place, (LONG_AGO, LONG_AGO))  # nothing was written since the power went
