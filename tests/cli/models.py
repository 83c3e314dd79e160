"""A project whose model steps are answered by a scripted server on loopback."""

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from holdfast.testing.server import Asked, ModelServer, Reply
from tests.cli.project import Project, kill, until

Script = Callable[[Asked], Reply] | Sequence[Reply] | str

# What it takes to ask a model, and what is first loaded when one is asked: a second of work.
LOADED = (
    "holdfast.config.keys",
    "holdfast.generators.chat",
    "holdfast.generators.models",
    "holdfast.generators.prices",
    "holdfast.generators.recorded",
    "holdfast.generators.vendors.openai",
    "anyio._backends._asyncio",
    "genai_prices.data",
    "openai.resources.chat.chat",
    "openai.resources.chat.completions.completions",
    *(
        f"keyring.backends.{name}"
        for name in ("SecretService", "Windows", "chainer", "kwallet", "libsecret", "macOS")
    ),
)


@contextmanager
def served(
    project: Project, script: Script, more: str = "", *, provider: str = ""
) -> Iterator[ModelServer]:
    """A server that the person's configuration names as the provider `fake`, with a price."""
    with ModelServer(script) as server:
        configure(project, server.url, more, provider)
        yield server


def configure(project: Project, url: str, more: str = "", provider: str = "") -> None:
    """Name a server as the provider `fake`."""
    project.loaded = LOADED
    folder = project.home / ".config" / "holdfast"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(
        f'[providers.fake]\nkind = "openai"\nbase_url = "{url}"\n{provider}\n'
        f'[prices."fake:m"]\ninput = 1\noutput = 2\n{more}',
        encoding="utf-8",
    )


def kill_before_it_asks(project: Project) -> None:
    """Run, and die while the first call waits at a door where nobody is let in or turned away."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as door:
        address = door.getsockname()
        with socket.create_connection(address):  # it is full with this one
            configure(project, f"http://127.0.0.1:{address[1]}/v1")
            engine = project.start("run", "--yes")
            until(lambda: "call_started" in project.call("trace", "--json").out, "it is stored")
            kill(engine)


def step(prompt: object = "say something", **more: object) -> dict[str, object]:
    """A step that the model of the server does."""
    return {"prompt": prompt, "model": "fake:m", **more}
