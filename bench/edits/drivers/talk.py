"""How a driver is talked to: a line of JSON for each edit, a line of JSON for what came of it."""

from __future__ import annotations

import base64
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable


def cpu() -> float:
    """Seconds that this process and its children have computed."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def serve(edit: Callable[[str, str], None]) -> None:
    """Answer until the input ends. `edit(path, text)` changes the file, and raises if it will not."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the engine prints is no answer
    for line in sys.stdin:
        asked = json.loads(line)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, asked["path"])
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(base64.b64decode(asked["target"]))
            os.chdir(folder)
            began, used, done = time.perf_counter(), cpu(), True
            try:
                edit(asked["path"], asked["edit"])
            except Exception as error:  # noqa: BLE001 - whatever it is, the engine gave up
                print(f"{type(error).__name__}: {error}"[:200], file=sys.stderr)
                done = False
            took, used = time.perf_counter() - began, cpu() - used
            with open(path, "rb") as file:
                after = base64.b64encode(file.read()).decode()
            os.chdir("/")
        answers.write(
            json.dumps({"after": after, "done": done, "seconds": took, "cpu": used}) + "\n"
        )
        answers.flush()
