"""The little world in which the laws are tested: what every step makes, and what its guards say.

Both the executor that the engine drives and the oracle ask these functions. All of it is a function of
the step, of what it reads, of how often it was refused, and of a salt that only changes between runs.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import cast

from holdfast.model.artifact import Verdict
from holdfast.model.plan import Guard, Step, StepId
from holdfast.ports import Candidate, Job, Outcome
from holdfast.testing import Answer, ScriptedExecutor, failed, lost


def value(step: Step, name: str) -> int:
    return cast("int", step.values.get(name, 0))


def made(step: Step, read: Mapping[StepId, bytes], refusals: int, salt: int) -> bytes:
    """The content that a step makes; one that reads nothing makes the same whatever is above it."""
    digests = {need: hashlib.sha256(content).hexdigest()[:8] for need, content in read.items()}
    content = {
        "step": step.id,
        "text": value(step, "text"),
        "salt": salt,
        "quality": min(refusals, value(step, "skill")),
        "read": dict(sorted(digests.items())) if value(step, "reads") else {},
    }
    return json.dumps(content, sort_keys=True).encode()


def persons_version(text: int, quality: int) -> bytes:
    return json.dumps({"person": text, "quality": quality}).encode()


def mishap(step: Step, attempt: int, salt: int) -> Outcome | None:
    """How an attempt ends that makes nothing at all."""
    match step.values.get("mode"):
        case "broken":
            return failed("no")
        case "moody" if salt == 0:
            return failed("not today")
        case "gone":
            return lost()
        case "gone-first" if attempt == 1:
            return lost(code="timed_out")
    return None


def verdict(guards: tuple[Guard, ...], content: bytes) -> Verdict:
    quality = json.loads(content)["quality"]
    for guard in guards:
        config = cast("Mapping[str, int]", guard.config)
        if config.get("fatal"):
            return Verdict("fatal", guard.name, "never")
        if quality < config["least"]:
            return Verdict("reject", guard.name, f"better than {quality}")
    return Verdict("accept")


def scripted(salts: Mapping[StepId, int], *, seed: int = 0) -> ScriptedExecutor:
    def answer(job: Job) -> Answer:
        read = {need: given.content() for need, given in job.given.items()}
        salt = salts.get(job.step.id, 0)
        ended = mishap(job.step, job.attempt, salt)
        return ended or made(job.step, read, len(job.feedback), salt)

    def judge(job: Job, candidate: Candidate) -> Verdict:
        return verdict(job.step.guards, candidate.content)

    return ScriptedExecutor(answer, judge=judge, seed=seed)
