"""Files that a repository stores as UTF-8 and lays out in another encoding (`working-tree-encoding`).

Git encodes such a file whenever it is checked out and decodes it whenever it is added. What is laid out by
other means must be encoded, too, or it is decoded without ever having been encoded.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping

from holdfast.gitrepo.calls import Room, ask, read_blobs
from holdfast.gitrepo.client import Client
from holdfast.gitrepo.history import File
from holdfast.gitrepo.laying import PLAIN, PROGRAM
from holdfast.gitrepo.listing import null_joined, null_split
from holdfast.gitrepo.names import Oid

_KEY = "working-tree-encoding"
_RULES = ".gitattributes"
_NONE = frozenset({"unspecified", "unset"})


def as_laid_out(client: Client, commit: Oid, files: Mapping[str, File]) -> dict[str, File]:
    """The files of a commit; those with an encoding are named by what git would write into a work tree."""
    rules = [file.oid for path, file in files.items() if os.path.basename(path) == _RULES]
    if not any(_KEY.encode() in text for text in read_blobs(client.base, rules)):
        return dict(files)
    views = os.path.join(client.home, "views")
    folder = tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=views)
    try:
        os.mkdir(empty := os.path.join(folder, "tree"))  # so that the commit's own rules count
        room = client.room(client.work, empty, os.path.join(folder, "index"))
        ask(room, "read-tree", commit)
        plain = [path for path, file in files.items() if file.mode in {PLAIN, PROGRAM}]
        written = _written(room, _encoded(room, plain))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {path: file._replace(oid=written.get(path, file.oid)) for path, file in files.items()}


def _encoded(room: Room, paths: list[str]) -> list[str]:
    said = ask(room, "check-attr", "--cached", "-z", "--stdin", _KEY, stdin=null_joined(paths))
    rows = null_split(said)
    values = zip(rows[0::3], rows[2::3], strict=True)
    return [path for path, value in values if value not in _NONE]


def _written(room: Room, paths: list[str]) -> dict[str, Oid]:
    """What git writes for some paths of the index, stored byte by byte; the names of that."""
    if not paths:
        return {}
    words = ("checkout-index", "--temp", "-z", "--stdin")
    rows = [row.partition("\t") for row in null_split(ask(room, *words, stdin=null_joined(paths)))]
    names = "".join(f"{name}\n" for name, _, _ in rows).encode()
    oids = ask(room, "hash-object", "-w", "--no-filters", "--stdin-paths", stdin=names)
    found = zip(rows, oids.decode().split(), strict=True)
    return {path: Oid(oid) for (_, _, path), oid in found}
