"""A home whose repository is gone: another one is at its place now, a new clone or something else.

Our branches stand on commits of the person's repository, which a pin keeps there. A repository without any
pin is not the one that our branches were made in, unless somebody removed the pins. If it has all that they
stand on, it can take the other's place. If not, nothing here is of use to it: it goes aside, and stays there
for people to look at.
"""

from __future__ import annotations

import os

from holdfast.gitrepo.calls import answer, ask
from holdfast.gitrepo.client import Client
from holdfast.gitrepo.durable import sync_folder
from holdfast.gitrepo.holding import working
from holdfast.gitrepo.pins import KEEP

_STAYS = frozenset({"lock", "busy", "work.git"})
_NAME = "former-"


def leave_former(client: Client) -> str:
    """Put aside what belongs to another repository; where it is then, empty if there is nothing of the kind.

    The client is to be opened again afterwards.
    """
    with working(client, "leave") as held:
        words = ("for-each-ref", "--format=%(objectname)", "refs/heads/", "refs/holdfast/")
        tips = ask(held.base, *words).split()
        if not tips or ask(held.theirs, "for-each-ref", "--count=1", KEEP).strip():
            return ""
        whole = answer(held.base, "rev-list", "--quiet", "--stdin", stdin=b"\n".join(tips))
        return "" if whole.code == 0 else _put_aside(held)


def _put_aside(client: Client) -> str:
    """Move everything but the lock; the branches last, for they tell that there is something to move."""
    names = [name for name in os.listdir(client.home) if name not in _STAYS]
    numbers = [name.removeprefix(_NAME) for name in names if name.startswith(_NAME)]
    number = max((int(text) for text in numbers if text.isdigit()), default=0) + 1
    aside = os.path.join(client.home, f"{_NAME}{number}")
    os.mkdir(aside, 0o700)
    for name in (*(name for name in names if not name.startswith(_NAME)), "work.git"):
        os.rename(os.path.join(client.home, name), os.path.join(aside, name))
    sync_folder(client.home)
    return aside
