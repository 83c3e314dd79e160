"""Completion in the real shells: a person presses Tab, and the command gets the whole name."""

import os
import pty
import select
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial

import pytest

from tests.cli.project import LIBRARY, Project, until
from tests.cli.terminal import take_terminal_awake

# How each is started without anybody's configuration, and what its manual page says to put there.
SHELLS: Mapping[str, tuple[list[str], str]] = {
    "bash": (["--norc", "--noprofile", "-i"], 'eval "$(holdfast completion bash 2>/dev/null)"'),
    "zsh": (
        ["-f", "-i"],
        'autoload -Uz compinit; compinit -u -D; eval "$(holdfast completion zsh 2>/dev/null)"',
    ),
    "fish": (["--no-config", "-i"], "holdfast completion fish 2>/dev/null | source"),
}


@pytest.mark.parametrize("name", SHELLS)
def test_tab_completes_commands_options_and_steps(
    project: Project, require_part: Callable[[str], str], name: str
) -> None:
    project.plan({"brief": {"shell": "echo brief"}, "market": {"shell": "echo market"}})
    bin_folder, typed = project.folder / "bin", project.folder / "typed.txt"
    bin_folder.mkdir()
    shim = bin_folder / "holdfast"
    shim.write_text(
        f'#!/bin/sh\n[ -n "$_HOLDFAST_COMPLETE" ] || echo "$@" >> {typed}\n'
        f'exec {sys.executable} -P -m holdfast "$@"\n'
    )
    shim.chmod(0o755)
    words, setup = SHELLS[name]
    env = {
        **LIBRARY,
        "PATH": f"{bin_folder}:{os.environ['PATH']}",
        "HOME": str(project.home),
        "TERM": "xterm",
        "LANG": "C.UTF-8",
    }
    main, side = pty.openpty()
    shell = subprocess.Popen(
        [require_part(name), *words],
        cwd=project.root,
        env=env,
        stdin=side,
        stdout=side,
        stderr=side,
        start_new_session=True,
        preexec_fn=take_terminal_awake,  # noqa: PLW1509 - no threads
    )
    os.close(side)
    said: list[bytes] = []

    def has_typed(line: str) -> bool:
        while select.select([main], [], [], 0)[0]:  # a shell that nobody reads stops
            try:
                said.append(os.read(main, 65536))
            except OSError:
                pytest.fail(f"{name} has ended: {b''.join(said)!r}")
        return typed.exists() and line in typed.read_text().splitlines()

    try:
        os.write(main, f"{setup}; holdfast --version\n".encode())
        until(lambda: has_typed("--version"), f"{name} is set up: {said[-3:]}")
        for keys, line in (
            ("holdfast stat\t\n", "status"),
            ("holdfast why --again\t\n", "why --against"),
            ("holdfast show br\t\n", "show brief"),
        ):
            os.write(main, keys.encode())
            until(partial(has_typed, line), f"{name} completes: {line}")
    finally:
        shell.kill()
        shell.wait()
        os.close(main)
