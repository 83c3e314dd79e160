"""Keys of providers in the keyring of the system.

What keeps them is a plug-in that the person chose, and may raise whatever it likes: that is the end of the
keyring for now, never of the command.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import keyring
from keyring.backends.fail import Keyring as NoKeyring
from keyring.errors import NoKeyringError, PasswordDeleteError

from holdfast.errors import UsageError
from holdfast.model.secret import struck_text

_SERVICE = "holdfast"


def stored_key(provider: str) -> str | None:
    """The key of a provider; None if there is none, or no keyring that can be used."""
    with suppress(NoKeyringError, UsageError), _used():
        return keyring.get_password(_SERVICE, provider)
    return None


def keyring_flaw() -> str:
    """Why the keyring cannot be used; nothing if it can, or if this machine has none."""
    try:
        with suppress(NoKeyringError), _used():
            keyring.get_password(_SERVICE, "")
    except UsageError as error:
        return error.message
    return ""


def keep_key(provider: str, key: str, variable: str) -> None:
    """Store the key of a provider; UsageError if there is no keyring, with the variable to set instead."""
    hint = f"set {variable} instead" if variable else "name a variable in 'api_key_env' instead"
    with suppress(NoKeyringError), _used(hint, key):
        if not isinstance(keyring.get_keyring(), NoKeyring):
            keyring.set_password(_SERVICE, provider, key)
            return
    raise UsageError("there is no keyring on this machine", hint=hint)


def forget_key(provider: str) -> bool:
    """Remove the key of a provider; false if there was none, UsageError if nobody knows."""
    try:
        with _used():
            keyring.delete_password(_SERVICE, provider)
    except (PasswordDeleteError, NoKeyringError):
        return False
    return True


@contextmanager
def _used(hint: str | None = None, key: str = "") -> Iterator[None]:
    """Use the keyring; UsageError says why it cannot be, without repeating the key."""
    try:
        yield
    except (PasswordDeleteError, NoKeyringError):
        raise
    except Exception as error:
        why = struck_text(f"{type(error).__name__}: {error}", [key])
        raise UsageError(f"the keyring cannot be used: {why}", hint=hint) from error
