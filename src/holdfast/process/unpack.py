"""Take plain files out of a tar archive into a new directory, and nothing else.

The library that reads the archive never writes: extraction by libraries follows links that an earlier
member made, in versions that are still in use. Here no name with `..`, no absolute name, no name twice and
no member but files and directories comes through, nothing is opened through a link, and the size of
everything is bounded before it is written.
"""

from __future__ import annotations

import contextlib
import io
import os
import tarfile
from typing import IO, Literal

from holdfast.errors import ProcessError

MOST_BYTES = 2**30
MOST_FILES = 100_000
MOST_RATIO = 100
_LEAST_BYTES = 2**20  # below that no ratio is worth a word
_PIECE = 2**20
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def unpack(
    content: bytes,
    folder: str,
    *,
    others: Literal["refuse", "skip"] = "refuse",
    most_bytes: int = MOST_BYTES,
    most_files: int = MOST_FILES,
) -> list[str]:
    """Write the files of an archive into an existing, empty directory; their names, in order.

    `others` are links, devices and whatever else is no file. ProcessError says what is wrong; what was
    written until then lies in the directory.
    """
    room = min(most_bytes, max(_LEAST_BYTES, MOST_RATIO * len(content)))
    written: dict[str, None] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:*") as archive:
            for number, member in enumerate(archive):
                if number >= most_files:
                    raise ProcessError(f"the archive has more than {most_files} members")
                if member.isdir():
                    continue  # made when something lies in it
                if not member.isfile() or member.issparse():
                    if others == "refuse":
                        raise ProcessError(f"'{member.name[:200]}' in the archive is no plain file")
                    continue
                parts = _parts(member.name)
                name = "/".join(parts)
                room -= member.size
                if room < 0 or member.size < 0:
                    raise ProcessError("the archive holds more than is allowed")
                if name in written:
                    raise ProcessError(f"'{name}' is in the archive twice")
                file = archive.extractfile(member)
                assert file is not None  # it is a plain file
                _write(folder, parts, file, executable=bool(member.mode & 0o100))
                written.setdefault(name)
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        raise ProcessError(f"the archive cannot be read: {error}") from error
    return list(written)


def _parts(name: str) -> list[str]:
    parts = [part for part in name.split("/") if part != "."]
    if (
        not parts
        or name.startswith("/")
        or "\\" in name
        or any(part in {"", ".."} or not part.isprintable() for part in parts)
    ):
        raise ProcessError(f"'{name[:200]}' is no name for a file of an archive")
    return parts


def _write(folder: str, parts: list[str], file: IO[bytes], *, executable: bool) -> None:
    here = os.open(folder, _FOLDER)
    try:
        for part in parts[:-1]:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, 0o700, dir_fd=here)
            below = os.open(part, _FOLDER, dir_fd=here)
            os.close(here)
            here = below
        made = os.open(parts[-1], _CREATE, 0o700 if executable else 0o600, dir_fd=here)
        with os.fdopen(made, "wb") as target:
            while piece := file.read(_PIECE):
                target.write(piece)
    finally:
        os.close(here)
