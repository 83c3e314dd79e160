"""Environments of the peers: made on demand from peers.toml, one each, kept outside the repository."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

PINS = Path(__file__).parent / "peers.toml"


class MissingError(Exception):
    """A peer that is not there; the message says why, in words for the table."""


@dataclass(frozen=True, slots=True)
class Peer:
    name: str
    packages: tuple[str, ...] = ()
    program: str = ""
    shapes: tuple[str, ...] = ("wide", "chain", "layered")
    phases: tuple[str, ...] = ("cold", "noop", "change")
    largest: int = 1_000
    steps: int = 0
    workers: int = 1
    durable: bool = True
    repeats: int = 3
    imports: str = ""
    command: tuple[str, ...] = ()
    note: str = ""
    keeps: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """A peer that can be measured: its Python (ours for a program of the system) and its version."""

    peer: Peer
    python: str
    version: str


def peers() -> dict[str, Peer]:
    """All peers, in the order of the file."""
    read = tomllib.loads(PINS.read_text(encoding="utf-8"))
    return {name: _peer(name, table) for name, table in read.items()}


def _peer(name: str, table: dict[str, object]) -> Peer:
    renamed = {"import": "imports"}
    given = {
        renamed.get(key, key): tuple(value) if isinstance(value, list) else value
        for key, value in table.items()
    }
    return Peer(name, **given)  # type: ignore[arg-type]  # the file is ours; a wrong key is refused


def cache_folder(given: str | None) -> Path:
    if given:
        return Path(given).absolute()
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "holdfast-bench"


def find(peer: Peer, cache: Path) -> Found:
    """The peer, installed if it was not; raises `MissingError`."""
    if peer.program:
        return Found(peer, sys.executable, _program_version(peer.program))
    folder = cache / f"{peer.name}-{_identity(peer)}"
    python = folder / "bin" / "python"
    if not (folder / "installed").exists():
        _install(peer, folder, python)
    return Found(peer, str(python), _installed_version(peer, python))


def _identity(peer: Peer) -> str:
    """Another set of pins or another Python is another environment."""
    text = "\n".join((*peer.packages, sys.version, sys.base_prefix))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _install(peer: Peer, folder: Path, python: Path) -> None:
    print(f"installing {' '.join(peer.packages)}", file=sys.stderr, flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if uv := shutil.which("uv"):
        make = [uv, "venv", "--quiet", "--python", sys.executable, "--clear", str(folder)]
        fill = [uv, "pip", "install", "--quiet", "--python", str(python), *peer.packages]
    else:
        make = [sys.executable, "-m", "venv", str(folder)]
        fill = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
        fill += peer.packages
    for command in (make, fill):
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            print(done.stdout + done.stderr, file=sys.stderr, flush=True)
            raise MissingError("could not be installed")
    (folder / "installed").touch()


def _installed_version(peer: Peer, python: Path) -> str:
    """Versions as the environment's metadata says them, of all packages that are pinned by name."""
    names = [re.split(r"[=<>\[]", package)[0] for package in peer.packages]
    script = "import sys, importlib.metadata as m; print(*(m.version(n) for n in sys.argv[1:]))"
    done = subprocess.run(
        [str(python), "-c", script, *names], check=False, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise MissingError("its environment is broken")
    first, *more = zip(names, done.stdout.split(), strict=True)
    return ", ".join((first[1], *(f"{name} {version}" for name, version in more)))


def _program_version(program: str) -> str:
    if shutil.which(program) is None:
        raise MissingError("not on this machine")
    done = subprocess.run([program, "--version"], check=False, capture_output=True, text=True)
    found = re.search(r"\d+(\.\d+)+", done.stdout)
    return found.group() if found else "unknown"
