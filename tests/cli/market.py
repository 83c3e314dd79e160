"""A market for tests: a scripted model server that a project's person has configured and priced."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from holdfast.testing.server import ModelServer, Reply, Script
from tests.cli.models import LOADED
from tests.cli.project import Project

PRICE = {"input": 0, "output": 100}  # an output token costs 100 micro-dollars


class Market:
    """A project whose person can ask `fake:m`."""

    def __init__(self, project: Project, server: ModelServer) -> None:
        self.project = project
        self.server = server
        project.loaded = LOADED

    def configure(
        self,
        price: Mapping[str, float] | None = PRICE,
        budgets: Mapping[str, float] | None = None,
        at_once: int = 64,
    ) -> None:
        """Write the person's own configuration."""
        lines = ["[providers.fake]", 'kind = "openai"', f'base_url = "{self.server.url}"']
        lines.append(f"at_once = {at_once}")
        if price is not None:
            lines += ['[prices."fake:m"]', *(f"{key} = {value}" for key, value in price.items())]
        if budgets:
            lines += ["[budgets]", *(f"{key} = {value}" for key, value in budgets.items())]
        place = self.project.home / ".config" / "holdfast" / "config.toml"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("\n".join(lines) + "\n")

    @property
    def asked(self) -> list[str]:
        """The last message of every request."""
        return [request.last for request in self.server.requests]


def asking(prompt: str, *, most: int = 5, **more: Any) -> dict[str, Any]:
    """A step that asks the model, for an answer of at most so many tokens."""
    return {"prompt": prompt, "model": {"id": "fake:m", "max_tokens": most}, "retries": 0, **more}


@contextmanager
def market(project: Project, script: Script | Sequence[Reply] | str) -> Iterator[Market]:
    """A server, and a project that knows it."""
    with ModelServer(script) as server:
        found = Market(project, server)
        found.configure()
        yield found
