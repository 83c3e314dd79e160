"""Steps that a language model does: the prompt rendered, one question, its answer the candidate.

The order of what a model reads, which `docs/howto/models.md` states:

    system   the role
    user     # CONSTRAINTS, # SPECIFICATION, # CONTRACT, one section for each value, one for each file that
             `inputs` names, one for each artifact it needs and does not read by an expression, # HISTORY
             (feedback so far), # TASK

Text of files and artifacts is data: it stands between fences in the user's turn, never in the role.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping

from holdfast.errors import AttemptError, EditError
from holdfast.generators.contract import value_bytes
from holdfast.model.call import Answer, Message, Request
from holdfast.model.digest import Json
from holdfast.model.plan import Step
from holdfast.model.telling import asked_schema, parted
from holdfast.model.text import fenced
from holdfast.ports import Calls, Candidate, Feedback, Given, Job
from holdfast.process.inside import open_inside

MOST_FILES = 4 * 1024 * 1024  # bytes of files in one prompt
_WRAPPER = "An earlier answer was refused by the guard '{guard}':\n{feedback}"


Find = Callable[[str, str], list[str]]


class LlmGenerator:
    """Asks the step's model once; text, or JSON that the step's schema describes.

    `find` gives the files of a directory that a glob of `inputs` matches.
    """

    def __init__(self, find: Find) -> None:
        self._find = find

    def identity(self, step: Step, root: str) -> Mapping[str, Json]:
        """The plan says it all: prompt, model, parameters and what is needed are in the key."""
        del step, root
        return {}

    async def generate(self, job: Job) -> Candidate:
        calls = calls_of(job)
        request = request_of(job, self._find)
        try:
            async with asyncio.timeout(job.step.timeout):
                answer = await calls.ask(request)
        except TimeoutError as error:
            message = f"'{request.model}' did not answer within {job.step.timeout:g} s"
            raise AttemptError(message, reason="timed_out") from error
        made = parted(job.step, said(answer, request))
        return Candidate("bytes", made.output, handoff=made.handoff)

    async def close(self) -> None:
        """Nothing is kept."""


def request_of(job: Job, find: Find) -> Request:
    """The one question of an attempt."""
    step = job.step
    return Request(step.model, rendered(job, find), step.parameters, asked_schema(step))


def calls_of(job: Job) -> Calls:
    """How the attempt asks models."""
    if job.calls is None:
        raise AttemptError("no model can be asked here", reason="call_refused")
    return job.calls


def said(answer: Answer, request: Request) -> str:
    """The text of an answer that is whole; AttemptError if the model would not give one."""
    if answer.finish == "refused":
        words = answer.text.strip()[:500] or "it gave no reason"
        raise AttemptError(f"'{request.model}' refused to answer: {words}", reason="model_refused")
    if answer.finish == "length":
        most = request.parameters.get("max_tokens")
        own = f"at its limit of {most} tokens" if most else "at its limit"
        message = f"the answer of '{request.model}' was cut {answer.cut or own}"
        raise AttemptError(message, reason="answer_cut", log=answer.text.encode())
    if not answer.text.strip() and not answer.uses:
        raise AttemptError(f"'{request.model}' answered nothing", reason="answer_empty")
    return answer.text


def rendered(job: Job, find: Find) -> tuple[Message, ...]:
    """The conversation that a step begins with."""
    prompt = job.step.prompt
    given = prompt if isinstance(prompt, Mapping) else {"task": prompt}
    parts = _sections(job, given, find)
    sections = [f"# {name}\n{text}" for name, text in parts if text.strip()]
    messages = [Message("user", "\n\n".join(sections))]
    if role := given.get("role"):
        messages.insert(0, Message("system", _text(role)))
    return tuple(messages)


def _sections(job: Job, prompt: Mapping[str, Json], find: Find) -> Iterator[tuple[str, str]]:
    step = job.step
    constraints = (_text(prompt.get("constraints")), step.constraints)
    yield "CONSTRAINTS", "\n".join(part for part in constraints if part)
    yield "SPECIFICATION", step.specification
    yield "CONTRACT", step.contract
    for name, value in step.values.items():
        yield name, fenced(_text(value))
    for path, text in _files(job, find):
        yield f"FILE {path}", fenced(text)
    for need, given in job.given.items():
        if need not in job.told:
            yield f"RESULT OF {need}", _given_text(given)
    yield "WHAT IS KNOWN", fenced(job.context) if job.context else ""
    yield "HISTORY", "\n\n".join(_told(prompt, item) for item in job.feedback)
    yield "TASK", _text(prompt.get("task"))


def _files(job: Job, find: Find) -> Iterator[tuple[str, str]]:
    """The files that the step says it reads; AttemptError if a model cannot read them."""
    paths = dict.fromkeys(path for each in job.step.inputs for path in find(job.folder, each.glob))
    left = MOST_FILES
    for path in paths:
        try:
            with open_inside(job.folder, path) as file:
                content = file.read(left + 1)
        except (EditError, OSError) as error:
            message = f"its input '{path}' cannot be read for a model: {error}"
            raise AttemptError(message, reason="call_refused") from error
        left -= len(content)
        if left < 0:
            message = f"its inputs are more than the {MOST_FILES >> 20} MB that a prompt may hold"
            raise AttemptError(f"{message}; name fewer files", reason="call_refused")
        try:
            yield path, content.decode()
        except UnicodeDecodeError as error:
            message = f"its input '{path}' is no text, so no model can read it here"
            raise AttemptError(message, reason="call_refused") from error


def _told(prompt: Mapping[str, Json], item: Feedback) -> str:
    wrapper = _text(prompt.get("feedback_wrapper")) or _WRAPPER
    return wrapper.replace("{guard}", item.guard or "its own").replace("{feedback}", item.text)


def _given_text(given: Given) -> str:
    if given.form != "tree":
        return fenced(given.content().decode("utf-8", "replace"))
    files = (
        f"{path}\n{fenced(read().decode('utf-8', 'replace'))}" for path, _, read in given.files
    )
    return "\n".join(files)


def _text(value: Json) -> str:
    return "" if value is None else value_bytes(value).decode()
