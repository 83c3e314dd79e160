"""A directory whose files are edited, and where its edits are kept: a place that only their owner knows.

Journals are obeyed: after a crash they say what is written and removed. A clone or an archive can bring any
file, with any mode and owner, but none whose name it does not know. So edits are kept in

    .holdfast/edits/NAME

where NAME comes from a key that lies in the person's own state directory, outside of what is edited. What
lies beside it is never obeyed. It is looked at only to say that somebody else's edit was cut short there.

    XDG_STATE_HOME/holdfast/key   (~/.local/state/holdfast/key)
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
from contextlib import suppress
from dataclasses import dataclass

from holdfast.edits.journal import keep_home
from holdfast.edits.keeping import check_keys, is_cut_short
from holdfast.edits.lock import exclusive
from holdfast.edits.scope import Scope
from holdfast.edits.tree import (
    open_directory,
    open_root,
    opened,
    outside_world,
    quoted,
    sync_directory,
    write_file,
)
from holdfast.errors import EditError, StoreError, UsageError

STATE = ".holdfast/edits"
_JOURNALS = "journals"
_KEY, _NEW_KEY = "key", "key.new"
_KEY_FORM = re.compile(r"[0-9a-f]{64}")
_ELSEWHERE = "keep edits elsewhere (--state DIR)"


@dataclass(frozen=True, slots=True)
class Workspace:
    """A directory whose files are edited, what may be edited, and where edits are kept.

    Without `state` they are kept in the directory itself, at a place that comes from the person's key.
    """

    root: str
    scope: Scope = Scope()
    state: str = ""

    @property
    def state_dir(self) -> str:
        return self.state or os.path.join(self.root, STATE, _name_of(self.root))

    @property
    def journals(self) -> str:
        return os.path.join(self.state_dir, _JOURNALS)


def check_state(workspace: Workspace) -> None:
    """Refuse a place for edits that is not ours: it would say what we write, and where."""
    if not workspace.state:
        doing = outside_world(f"open {quoted(workspace.root)}")
        with doing, opened(open_root(workspace.root)) as root, suppress(FileNotFoundError):
            _check_own(root, workspace)
    check_keys(workspace.journals)


def _check_own(root: int, workspace: Workspace) -> None:
    """A link on the way could lead to edits of another directory; who may write there could say anything."""
    name = os.path.basename(workspace.state_dir)
    with opened(open_directory(root, [*STATE.split("/"), name])) as own:
        status = os.fstat(own)
        if status.st_uid != os.geteuid() or status.st_mode & 0o022:
            raise EditError(
                f"{quoted(workspace.state_dir)} can be written by others",
                hint=f"look at what it holds, then remove it; or {_ELSEWHERE}",
            )
        os.close(open_directory(own, [_JOURNALS]))


def keep_state(workspace: Workspace) -> None:
    """Let the place for edits outlast a power cut, and stay out of version control."""
    keep_home(workspace.journals)
    above = os.path.dirname(os.path.abspath(workspace.state_dir))
    ignored = os.path.join(workspace.state_dir, ".gitignore")
    with outside_world(f"make {quoted(workspace.state_dir)}"):
        for place in _upward(above, 1 if workspace.state else 2):
            sync_directory(os.path.dirname(place))
        with suppress(FileExistsError), open(ignored, "x", encoding="ascii") as file:
            file.write("*\n")


def cut_short_by_others(workspace: Workspace) -> list[str]:
    """Places in the directory where edits that are not ours were cut short: they are left as they are."""
    if workspace.state:
        return []
    place = os.path.join(workspace.root, STATE)
    own = os.path.basename(workspace.state_dir)
    with outside_world(f"look into {quoted(place)}"), suppress(FileNotFoundError):
        with os.scandir(place) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        others = [os.path.join(place, name) for name in names if name != own]
        return [other for other in others if is_cut_short(os.path.join(other, _JOURNALS))]
    return []


# The key.


def keep_key(workspace: Workspace) -> None:
    """Make the person's key, if there is none: whoever keeps an edit needs it to find it again."""
    if workspace.state:
        return
    folder = _key_folder()
    if _is_shipped(folder, workspace.root):
        raise UsageError(
            f"{quoted(folder)} lies in what is edited: its key is no secret", hint=_ELSEWHERE
        )
    if _read_key(folder):
        return
    try:
        with exclusive(folder), outside_world(f"make a key in {quoted(folder)}"):
            _make_key(folder)
    except StoreError as error:
        raise StoreError(
            error.message, hint=f"{_ELSEWHERE}, or let XDG_STATE_HOME name a directory of yours"
        ) from error


def _make_key(folder: str) -> None:
    if _read_key(folder):
        return  # somebody was quicker
    with opened(open_root(folder)) as directory:
        with suppress(FileNotFoundError):
            os.unlink(_NEW_KEY, dir_fd=directory)
        write_file(directory, _NEW_KEY, [secrets.token_hex(32).encode()], 0o600)
        os.rename(_NEW_KEY, _KEY, src_dir_fd=directory, dst_dir_fd=directory)
    for place in _upward(folder, 3):
        sync_directory(place)


def _read_key(folder: str) -> str:
    """The key; empty if there is none. One that a crash left unfinished is none: its name comes last."""
    try:
        with open(os.path.join(folder, _KEY), encoding="ascii", errors="replace") as file:
            found = file.read().strip()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        raise StoreError(f"cannot read the key in {quoted(folder)}: {error.strerror}") from error
    if not _KEY_FORM.fullmatch(found):
        raise StoreError(
            f"the key in {quoted(folder)} is damaged",
            hint="remove it; edits that are kept are then reached by --state .holdfast/edits/NAME",
        )
    return found


def _name_of(root: str) -> str:
    """Where the person's edits are in every workspace. Whoever has no key has kept none: any name will do."""
    folder = _key_folder()
    key = "" if _is_shipped(folder, root) else _read_key(folder)
    return hmac.digest((key or secrets.token_hex(32)).encode(), b"edits", "sha256").hex()[:32]


def _key_folder() -> str:
    base = os.environ.get("XDG_STATE_HOME", "")
    base = base if os.path.isabs(base) else os.path.expanduser("~/.local/state")
    return os.path.join(base, "holdfast")


def _is_shipped(folder: str, root: str) -> bool:
    """Whether the key lies in what is edited: whoever ships that ships the key with it."""
    inside = os.path.realpath(root)
    return os.path.commonpath([inside, os.path.realpath(folder)]) == inside


def _upward(place: str, count: int) -> list[str]:
    """A directory and those above it."""
    found = [place]
    while len(found) < count:
        found.append(os.path.dirname(found[-1]))
    return found
