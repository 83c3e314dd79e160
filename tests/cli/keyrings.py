"""A keyring for tests: a real backend of the library, which keeps keys in a file outside the home."""

from pathlib import Path

from tests.cli.project import Project

BACKEND = '''
"""Keys in a file."""
import json
from pathlib import Path
from keyring.backend import KeyringBackend
from keyring.errors import PasswordDeleteError


class Keyring(KeyringBackend):
    priority = 1
    place = Path(__file__).with_name("keys.json")

    def _read(self):
        return json.loads(self.place.read_text()) if self.place.exists() else {}

    def get_password(self, service, username):
        return self._read().get(f"{service}/{username}")

    def set_password(self, service, username, password):
        self.place.write_text(json.dumps({**self._read(), f"{service}/{username}": password}))

    def delete_password(self, service, username):
        known = self._read()
        if known.pop(f"{service}/{username}", None) is None:
            raise PasswordDeleteError("no such key")
        self.place.write_text(json.dumps(known))
'''


def give_keyring(project: Project) -> Path:
    """Let the person of a project have a keyring; the file with what is in it."""
    folder = project.folder / "ring"
    folder.mkdir()
    (folder / "file_ring.py").write_text(BACKEND)
    config = project.home / ".config" / "python_keyring"
    config.mkdir(parents=True)
    (config / "keyringrc.cfg").write_text(
        f"[backend]\ndefault-keyring=file_ring.Keyring\nkeyring-path={folder}\n"
    )
    return folder / "keys.json"
