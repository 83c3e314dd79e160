"""A process that stores things and says aloud what was acknowledged; the tests kill it, or its disk.

python writer.py DIRECTORY RUN COUNT [race | torn:N]
"""

import hashlib
import os
import signal
import sys

from holdfast.errors import ConflictError, HoldfastError
from holdfast.model.artifact import Artifact
from holdfast.model.digest import Digest
from holdfast.model.event import AttemptAccepted, RunResumed
from holdfast.model.line import StopRequested
from holdfast.model.plan import RunId, StepId
from holdfast.ports import Append, Batch
from holdfast.store.sqlite import SqliteStore


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def content_of(run: str, number: int) -> bytes:
    """Every fifth content is large."""
    return f"{run} {number} ".encode() * (5000 if number % 5 == 0 else 5)


def digest_of(content: bytes) -> Digest:
    return Digest(hashlib.sha256(content).hexdigest())


def row(run: str, number: int) -> Artifact:
    ref = digest_of(f"ref {run} {number}".encode())
    digest = digest_of(content_of(run, number))
    return Artifact(
        "p",
        "l",
        StepId(f"s{number}"),
        ref,
        ref,
        ref,
        digest,
        "accepted",
        "generated",
        RunId(run),
        1,
    )


def store_one(store: SqliteStore, run: str, number: int) -> None:
    content = content_of(run, number)
    artifact = row(run, number)
    small = len(content) < 16384
    if not small:
        store.put(content)
    event = AttemptAccepted(artifact.step, 1, artifact.digest)
    store.commit(
        Batch(
            appends=[Append(f"run:{run}", number, [(number, event)], 1)],
            artifacts=[artifact],
            blobs=[(artifact.digest, content)] if small else [],
        )
    )
    say(f"stored {number} {artifact.digest}")


def race(store: SqliteStore, run: str) -> None:
    """One event at the end of a journal that others write too."""
    while True:
        last = store.last("line:shared")
        event = StopRequested(RunId(run), now=False, by=run)
        try:
            store.commit(Batch(appends=[Append("line:shared", last, [(1, event)])]))
        except ConflictError:
            continue
        return


class Torn:
    """Writes half of the given call, then the process is no more."""

    def __init__(self, call: int) -> None:
        self.left = call

    def __call__(self, handle: int, data: memoryview) -> int:
        self.left -= 1
        if self.left:
            return os.write(handle, data)
        os.write(handle, data[: len(data) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
        return 0


def main(directory: str, run: str, count: int, mode: str = "") -> None:
    write = Torn(int(mode.partition(":")[2])) if mode.startswith("torn") else os.write
    store = SqliteStore.open(directory, create=True, write=write)
    store.open_run(
        RunId(run), "p", "l", Batch(appends=[Append(f"run:{run}", 0, [(0, RunResumed("e"))])])
    )
    say("open")
    if mode.startswith("torn"):
        pieces = [bytes([n]) * 9000 for n in range(8)]
        say(f"stored {store.put(pieces)}")
        return
    number = 0
    try:
        for number in range(1, count + 1):
            store_one(store, run, number)
            if mode == "race":
                race(store, run)
    except HoldfastError as error:
        say(f"failed {error.code} {error.message}")
        try:
            store_one(store, run, number)
        except HoldfastError as again:
            say(f"again {again.code} {again.message}")
    store.close()
    say("closed")


if __name__ == "__main__":
    try:
        main(sys.argv[1], sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
    except HoldfastError as problem:
        say(f"refused {problem.code} {problem.message}")
