"""What is never kept: people's words and files are stored as they are, so none of them may hold a secret."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

from holdfast.errors import UsageError
from holdfast.model.secret import holds
from holdfast.model.text import inked

Hidden = Callable[[], Sequence[str]]


def check_free(what: str, content: str | bytes, hidden: Hidden) -> None:
    """UsageError if something that is about to be stored holds a secret; it says what, never the value."""
    if not content:
        return
    given = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
    if holds([given], hidden()):
        raise _held(what)


def _held(what: str) -> UsageError:
    return UsageError(
        f"{what} holds the value of a secret or of a key, which is never stored;"
        " nothing was changed",
        hint="take it out and say it again; if it was seen by others, renew the key",
    )


def tells(handoff: bytes, secrets: Sequence[str]) -> bool:
    """Whether a handoff holds a secret: as it is written, or in what its texts say once they are read.

    JSON spells any letter in two ways, and a letter without ink hides nothing from a reader.
    """
    if not handoff or not secrets:
        return False
    try:
        said = list(_texts(json.loads(handoff, object_pairs_hook=list)))
    except (ValueError, RecursionError):  # it is refused as no JSON
        said = []
    plain = [form.encode("utf-8", "surrogatepass") for text in said for form in (text, inked(text))]
    return holds([handoff], secrets) or holds([b"\n".join(plain)], secrets)


def _texts(value: object) -> Iterator[str]:
    queue = [value]
    while queue:
        match queue.pop():
            case str() as text:
                yield text
            case list() | tuple() as inner:
                queue.extend(inner)
            case _:
                pass


def check_told(what: str, handoff: bytes, hidden: Hidden) -> None:
    """UsageError if a handoff holds a secret."""
    if tells(handoff, hidden()):
        raise _held(what)


def check_words(because: str, hidden: Hidden) -> None:
    """The same for a person's reason."""
    check_free("what --because says", because, hidden)
