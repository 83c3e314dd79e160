"""What tests of goals ask a scripted server, and what it answers."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from holdfast.testing.server import Asked, ModelServer, Reply, Say
from tests.cli import models
from tests.cli.project import Project

GOAL = "Build a REST API with authentication"


def artifact(name: str, *requires: str, **more: str) -> dict[str, Any]:
    """One artifact as a planner names it."""
    return {
        "id": name,
        "description": f"the {name} of the API",
        "contract": f"what {name} must fulfil",
        "requires": list(requires),
        **more,
    }


def answer(*artifacts: dict[str, Any]) -> str:
    return json.dumps({"artifacts": artifacts})


API = answer(
    artifact("UserProtocol", produces_file="src/user.py", domain_type="protocol"),
    artifact("AuthInterface", domain_type="interface"),
    artifact("UserModel", "UserProtocol"),
    artifact("AuthService", "AuthInterface"),
    artifact("App", "UserModel", "AuthService"),
)
STEPS = ["App", "AuthInterface", "AuthService", "UserModel", "UserProtocol"]
TIERS = '[tiers]\nlarge = "fake:m"\nmedium = "fake:m"\nsmall = "fake:m"\n'


def is_planning(asked: Asked) -> bool:
    """Whether a planner is asked, and not the maker of an artifact."""
    return "Find the artifacts" in asked.last


class Planner:
    """Answers planners in turn, and every maker with what is Python as well as text."""

    def __init__(self, plans: Sequence[str | Reply]) -> None:
        self.plans = list(plans)
        self.planned: list[str] = []  # what planners were asked
        self.made: list[str] = []  # what makers were asked
        self.makes: Reply = Say("x = 1\n")

    def __call__(self, asked: Asked) -> Reply:
        if not is_planning(asked):
            self.made.append(asked.last)
            return self.makes
        self.planned.append(asked.last)
        found = self.plans[min(len(self.planned), len(self.plans)) - 1]
        return Say(found) if isinstance(found, str) else found


@contextmanager
def planner(
    project: Project, *plans: str | Reply, tiers: str = TIERS
) -> Iterator[tuple[Planner, ModelServer]]:
    """A server that plans as it is told."""
    script = Planner(plans or [API])
    with models.served(project, script, tiers) as server:
        yield script, server


def digest(project: Project, *words: str) -> str:
    """The digest of the plan for the goal, as a person reads it."""
    shown = project.ok("plan", GOAL, *words, "--json")
    return str(shown.json["plan"]["digest"])[:12]
