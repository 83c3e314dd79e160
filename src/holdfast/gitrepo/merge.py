"""Three-way merges by git, of contents that lie in no repository."""

from __future__ import annotations

import os
import subprocess
import tempfile

from holdfast.errors import ProcessError, outside_fault
from holdfast.gitrepo.git import SECONDS, command, environment

_CONFLICTS = range(1, 128)  # it ends with how many there are


def merged(ours: bytes, base: bytes, theirs: bytes) -> bytes | None:
    """What both sides made of the base; None if they contradict each other.

    It runs in a folder of its own, where no repository configures anything.
    """
    with tempfile.TemporaryDirectory(prefix="holdfast-merge-") as folder:
        for name, content in (("ours", ours), ("base", base), ("theirs", theirs)):
            with open(os.path.join(folder, name), "wb") as file:
                file.write(content)
        words = command("merge-file", "--stdout", "--diff3", "ours", "base", "theirs")
        env = environment() | {"GIT_CEILING_DIRECTORIES": os.path.dirname(folder)}
        try:
            done = subprocess.run(
                words,
                cwd=folder,
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise outside_fault(error) or ProcessError(f"git cannot be asked: {error}") from error
    if done.returncode == 0:
        return done.stdout
    if done.returncode in _CONFLICTS:
        return None
    said = done.stderr.decode("utf-8", "replace").strip()
    raise ProcessError(f"'git merge-file' failed: {said or done.returncode}")
