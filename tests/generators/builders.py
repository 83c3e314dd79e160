"""A project directory in a temporary folder, and the jobs of attempts in it."""

import asyncio
import os
import tempfile
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import TypeVar

import pytest

from holdfast.errors import AttemptError
from holdfast.model.plan import Step, StepId
from holdfast.ports import Candidate, Feedback, Generator, Given, Job

ENGINE = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "SECRET_OF_THE_ENGINE": "1"}
Answer = TypeVar("Answer")


class Project:
    """A root directory with files, and a fresh private room for every job."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "project"
        self.root.mkdir()
        self._rooms = folder
        self.mark = f"test-{os.getpid()}-{folder.name}/"

    def write(self, path: str, text: str, *, executable: bool = False) -> Path:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        place.chmod(0o755 if executable else 0o644)
        return place

    def job(
        self,
        step: Step,
        *,
        attempt: int = 1,
        given: Mapping[str, Given] | None = None,
        feedback: tuple[Feedback, ...] = (),
        env: Mapping[str, str] | None = None,
        on_output: Callable[[str, bytes], None] | None = None,
    ) -> Job:
        return Job(
            step=step,
            attempt=attempt,
            folder=str(self.root),
            root=str(self.root),
            room=tempfile.mkdtemp(prefix="room-", dir=self._rooms),
            mark=f"{self.mark}{step.id}/{attempt}",
            given={StepId(need): artifact for need, artifact in (given or {}).items()},
            feedback=feedback,
            env=env or {},
            on_output=on_output,
        )


def given(content: bytes | str) -> Given:
    plain = content.encode() if isinstance(content, str) else content
    return Given("bytes", lambda: plain)


def given_program(content: bytes) -> Given:
    return Given("program", lambda: content)


def given_tree(files: Mapping[str, bytes]) -> Given:
    def reader(content: bytes) -> Callable[[], bytes]:
        return lambda: content

    return Given(
        "tree", lambda: b"", tuple((path, False, reader(body)) for path, body in files.items())
    )


def made(generator: Generator, job: Job) -> Candidate:
    """The candidate of one attempt; the generator is closed afterwards."""

    async def once() -> Candidate:
        try:
            return await generator.generate(job)
        finally:
            await generator.close()

    return wait(once())


def refused(generator: Generator, job: Job) -> AttemptError:
    """The error of one attempt that gives no candidate."""
    with pytest.raises(AttemptError) as caught:
        made(generator, job)
    return caught.value


def wait(work: Coroutine[object, object, Answer]) -> Answer:
    """Run to the end; a test that hangs fails instead."""

    async def bounded() -> Answer:
        async with asyncio.timeout(60):
            return await work

    return asyncio.run(bounded())
