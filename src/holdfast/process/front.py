"""Run a command from a program that has no event loop: `call`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence

from holdfast.errors import ProcessError
from holdfast.process.allow import Rule, parse_line
from holdfast.process.confine import Sandbox
from holdfast.process.launch import Confine
from holdfast.process.run import Command, Completed, run

_PASSED_ON = ("PATH", "LANG", "LC_ALL", "HOME", "TMPDIR")
_SCRATCH = "/tmp"  # noqa: S108 - the command's own, in its sandbox


def call(
    command: str | Sequence[str],
    *,
    cwd: str = ".",
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
    idle: float | None = None,
    sandbox: Sandbox | None = None,
    allow: Sequence[Rule | str] | None = None,
    hide: Sequence[str] = (),
    keep: int = 16 * 2**20,
    whole: str | None = None,
    on_output: Callable[[str, bytes], None] | None = None,
    confine: Confine = "auto",
) -> Completed:
    """Run a command to its end and say how it went; none of its processes is left.

    A text is split into words as a shell would, and refused if a shell would do anything else with it.
    The command sees PATH, LANG, LC_ALL, HOME and TMPDIR of this process and what `env` says beside or
    instead. In a sandbox HOME and TMPDIR are `/tmp`, which is its own. More than `keep` bytes of output
    end it, unless `whole` names a file for them.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise ProcessError("this thread runs an event loop", hint="await holdfast.process.run.run")
    words = parse_line(command) if isinstance(command, str) else tuple(command)
    base = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    if sandbox is not None:
        base |= {"HOME": _SCRATCH, "TMPDIR": _SCRATCH}
    rules = None
    if allow is not None:
        rules = tuple(Rule.of(rule) if isinstance(rule, str) else rule for rule in allow)
    wanted = Command(
        argv=words,
        cwd=os.path.abspath(cwd),
        env={**base, **(env or {})},
        timeout=timeout,
        idle=idle,
        keep=keep,
        whole=whole,
        hide=tuple(hide),
        sandbox=sandbox,
        allow=rules,
        confine=confine,
    )
    return asyncio.run(run(wanted, on_output=on_output))
