"""The push of what a ticket came to: a run of its own, for it acts outside and only a person asks for it."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.errors import AttemptError, PushError, UsageError
from holdfast.gitrepo.client import Client
from holdfast.gitrepo.names import check_address
from holdfast.gitrepo.pushing import Allowed, Wish, push
from holdfast.model.digest import Json, canonical
from holdfast.model.expression import literals
from holdfast.model.plan import Plan, Step, StepId
from holdfast.ports import Candidate, Job
from holdfast.worker.noting import noted
from holdfast.worker.plan import ORIGIN, branch_of, line_of
from holdfast.worker.ticket import Ticket
from holdfast.worker.tools import in_thread

PUSH = "push"
STEP = StepId("push")


def push_plan(ticket: Ticket, head: str, url: str, run: str) -> Plan:
    """The plan that pushes the branch of a ticket, as a run left it, to one address."""
    values: dict[str, Json] = {"branch": branch_of(ticket), "head": head, "url": url, "run": run}
    step = Step(
        id=STEP,
        uses=PUSH,
        values={key: literals(value) for key, value in values.items()},
        effects="external",
        idempotent=True,  # a branch that is there already is left there
        description=f"push {branch_of(ticket)} to {url}",
    )
    return Plan(
        name=f"{line_of(ticket)}.push",
        steps={STEP: step},
        origin={ORIGIN: {"id": ticket.id, "branch": branch_of(ticket), "base": head}},
    )


class PushGenerator:
    """Pushes; what git and the remote said is stored, with git's own exit code."""

    def __init__(self, client: Client, helper: str = "") -> None:
        self._client = client
        self._helper = helper

    def identity(self, step: Step, root: str) -> Mapping[str, Json]:
        """The branch, the commit and the address are in the plan."""
        del step, root
        return {}

    async def generate(self, job: Job) -> Candidate:
        given = job.step.values
        failed: list[PushError] = []

        async def pushed() -> Mapping[str, Json]:
            try:
                said = await in_thread(lambda: self._push(given))
            except PushError as error:
                failed.append(error)
                return _record(given, error.ended, error.said)
            except UsageError as error:
                raise AttemptError(str(error), reason="command_failed") from error
            return _record(given, 0, said)

        record = await noted(job, PUSH, dict(given), pushed)
        if failed:
            raise AttemptError(str(failed[0]), reason="command_failed", log=failed[0].said.encode())
        return Candidate("bytes", canonical(record))

    async def close(self) -> None:
        """Nothing is kept."""

    def _push(self, given: Mapping[str, Json]) -> str:
        url = str(given["url"])
        allowed = Allowed(frozenset({check_address(url).scheme}), self._helper)
        wish = Wish(str(given["head"]), str(given["branch"]))
        return push(self._client, url, [wish], allowed=allowed).said


def _record(given: Mapping[str, Json], code: int, said: str) -> dict[str, Json]:
    return {
        "cmd": f"git push {given['url']} {given['head']}:refs/heads/{given['branch']}",
        "exit_code": code,
        "top_stderr": said[:2000] if code else "",
    }
