"""Keys of providers in the keyring of the system."""

from __future__ import annotations

import keyring
from keyring.backends.fail import Keyring as NoKeyring
from keyring.errors import KeyringError, PasswordDeleteError

from holdfast.errors import UsageError

_SERVICE = "holdfast"


def stored_key(provider: str) -> str | None:
    """The key of a provider; None if there is none, or no keyring."""
    try:
        return keyring.get_password(_SERVICE, provider)
    except KeyringError:
        return None


def keep_key(provider: str, key: str, variable: str) -> None:
    """Store the key of a provider; UsageError if there is no keyring, with the variable to set instead."""
    hint = f"set {variable} instead" if variable else "name a variable in 'api_key_env' instead"
    if isinstance(keyring.get_keyring(), NoKeyring):
        raise UsageError("there is no keyring on this machine", hint=hint)
    try:
        keyring.set_password(_SERVICE, provider, key)
    except KeyringError as error:
        raise UsageError(f"the keyring refused: {error}", hint=hint) from error


def forget_key(provider: str) -> bool:
    """Remove the key of a provider; false if there was none."""
    try:
        keyring.delete_password(_SERVICE, provider)
    except (PasswordDeleteError, KeyringError):
        return False
    return True
