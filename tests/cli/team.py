"""Several machines that share a store: directories of their own, names of their own, one database."""

import os
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.cli.project import COMMAND, Project
from tests.forge import Running

QUICK = ("--poll", "0.1", "--beat", "0.3", "--lease", "2")
ALONE = () if os.geteuid() == 0 else ("--user", "--map-root-user")


class Machine(Project):
    """A checkout of the project on one machine; all of them note in one file what they ran."""

    def __init__(self, folder: Path, url: str, log: Path | None = None) -> None:
        folder.mkdir(exist_ok=True)
        super().__init__(folder)
        self.url = url
        self.granted = folder.parent
        if log is not None:
            self.log = log

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        return {**super().environment(), "HOLDFAST_STORE": self.url, **(extra or {})}

    def elsewhere(self, name: str, *words: str, before: Sequence[str] = ()) -> Running:
        """A command on a machine of another name: nobody here can tell whether it lives."""
        named = ["sh", "-c", f'hostname {name}; exec "$@"', "sh", *before]
        process = subprocess.Popen(
            ["unshare", *ALONE, "--uts", *named, *COMMAND, *words],
            cwd=self.root,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._started.append(process)
        return process

    def twin(self, *words: str) -> Running:
        """A command on another machine that has the same name as this one."""
        boot = self.folder / "boot_id"
        boot.write_text(f"{uuid.uuid4()}\n")
        other = f'mount --bind {boot} /proc/sys/kernel/random/boot_id; exec "$@"'
        process = subprocess.Popen(
            ["unshare", *ALONE, "--mount", "sh", "-ec", other, "sh", *COMMAND, *words],
            cwd=self.root,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._started.append(process)
        return process
