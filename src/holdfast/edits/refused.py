"""What was refused is not worked out again: the same edit of the same files gets the same answer.

A refusal is kept under the digest of the edit and of what it was judged by, with how the files looked that
it was about. If one of them looks otherwise since, the edit is new.

    <state>/refused/<digest>.json
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass

from holdfast.edits.outcome import Refusal
from holdfast.edits.tree import open_root, opened, outside_world, write_file
from holdfast.model.digest import digest_bytes

MOST_KEPT = 200
_FOLDER = "refused"


@dataclass(frozen=True, slots=True)
class Refused:
    """An edit that was refused: how often, with what, and the files that it looked at."""

    times: int
    refusals: tuple[Refusal, ...]
    seen: Mapping[str, str | None]


def edit_digest(*decisive: object) -> str:
    """The digest of an edit and of all that decides about it; each must show all that it is."""
    body = "\0".join(repr(one) for one in decisive)
    return digest_bytes(body.encode(errors="surrogatepass"))


def recall(state: str, digest: str, now: Callable[[str], str | None]) -> Refused | None:
    """The earlier refusal of the same edit, if every file looks as it did; `now` says how one does."""
    found = _read(os.path.join(state, _FOLDER, f"{digest}.json"))
    if found is None or any(now(path) != look for path, look in found.seen.items()):
        return None
    return found


def remember(state: str, digest: str, refused: Refused) -> None:
    """Keep a refusal; the oldest ones go."""
    folder = os.path.join(state, _FOLDER)
    body = json.dumps(asdict(refused)).encode(errors="surrogatepass")
    with outside_world("keep what was refused"):
        os.makedirs(folder, 0o700, exist_ok=True)
        with opened(open_root(folder)) as directory:
            with suppress(FileNotFoundError):
                os.unlink("new", dir_fd=directory)
            write_file(directory, "new", [body], 0o600)
            os.rename("new", f"{digest}.json", src_dir_fd=directory, dst_dir_fd=directory)
        _drop_oldest(folder)


def forget_refusal(state: str, digest: str) -> None:
    """The edit was made after all."""
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(state, _FOLDER, f"{digest}.json"))


def _drop_oldest(folder: str) -> None:
    with os.scandir(folder) as entries:
        files = sorted((entry.stat().st_mtime_ns, entry.path) for entry in entries)
    for _, path in files[:-MOST_KEPT]:
        with suppress(FileNotFoundError):
            os.unlink(path)


def _read(path: str) -> Refused | None:
    """What was kept; what cannot be read is nothing."""
    try:
        with open(path, "rb") as file:
            body = json.loads(file.read())
        refusals = tuple(Refusal(**one) for one in body["refusals"])
        seen = {str(path): look for path, look in body["seen"].items()}
        return Refused(int(body["times"]), refusals, seen)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def repeated(earlier: Refused) -> tuple[Refusal, ...]:
    """The answer to whoever tries the same again: so much first, then what was said before."""
    first: Sequence[str] = [one.message for one in earlier.refusals[:1]]
    times = "once" if earlier.times == 1 else f"{earlier.times} times"
    told = Refusal(
        earlier.refusals[0].path if earlier.refusals else "",
        "repeated",
        f"this very edit was refused {times} before, and no file changed since",
        guidance="".join(f"change the edit: {message}" for message in first),
    )
    return (told, *earlier.refusals)
