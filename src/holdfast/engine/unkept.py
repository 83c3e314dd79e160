"""What is never kept: people's words and files are stored as they are, so none of them may hold a secret."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holdfast.errors import UsageError
from holdfast.model.secret import holds

Hidden = Callable[[], Sequence[str]]


def check_free(what: str, content: str | bytes, hidden: Hidden) -> None:
    """UsageError if something that is about to be stored holds a secret; it says what, never the value."""
    if not content:
        return
    given = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
    if holds([given], hidden()):
        raise UsageError(
            f"{what} holds the value of a secret or of a key, which is never stored;"
            " nothing was changed",
            hint="take it out and say it again; if it was seen by others, renew the key",
        )


def check_words(because: str, hidden: Hidden) -> None:
    """The same for a person's reason."""
    check_free("what --because says", because, hidden)
