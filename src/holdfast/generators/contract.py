"""The command contract: what the process of a step is given, and what it gives back."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence

from holdfast.edits import tree
from holdfast.errors import AttemptError, EditError
from holdfast.model.artifact import Form
from holdfast.model.digest import Json
from holdfast.model.handoff import MOST_TOLD
from holdfast.model.walls import WALLS, Walls, moved_by
from holdfast.ports import Candidate, Feedback, File, Job
from holdfast.process.gitplaces import own_objects
from holdfast.process.room import (
    clean_environment,
    file_name,
    private_folder,
    put_file,
    put_given,
)

ADD = "add"
HANDOFF = "handoff.json"
MOST_ADDED = 16 * 1024 * 1024  # bytes, as for a plan file


def lay_out(job: Job, engine: Mapping[str, str]) -> dict[str, str]:
    """Write the files of an attempt into its room and return the environment that names them.

    HOLDFAST_ADD is a directory for steps to be added. HOLDFAST_FEEDBACK is absent on the first attempt,
    HOLDFAST_PROMPT without a prompt, HOLDFAST_EFFECT_KEY without external effects. HOLDFAST_CONTEXT names
    something empty if nothing was handed over, and the file that HOLDFAST_HANDOFF names does not exist yet.
    """
    room = job.room
    environment = clean_environment(room, engine, job.env)
    if job.step.workspace == "worktree":
        environment.update(own_objects(job.folder, room))
    environment["HOLDFAST_STEP"] = job.step.id
    environment["HOLDFAST_ATTEMPT"] = str(job.attempt)
    environment["HOLDFAST_ROOT"] = job.root
    environment["HOLDFAST_INPUTS"] = inputs = private_folder(room, "inputs")
    for need, given in job.given.items():
        put_given(f"{inputs}/{file_name(need)}", given)
    environment["HOLDFAST_WITH"] = values = private_folder(room, "with")
    for name, value in job.step.values.items():
        put_file(f"{values}/{file_name(name)}", value_bytes(value))
    environment["HOLDFAST_HANDOFF"] = f"{room}/{HANDOFF}"
    environment["HOLDFAST_ADD"] = private_folder(room, ADD)
    if job.effect:
        environment["HOLDFAST_EFFECT_KEY"] = job.effect
    if job.feedback:
        history = json.dumps([_feedback_json(item) for item in job.feedback], ensure_ascii=False)
        environment["HOLDFAST_FEEDBACK"] = put_file(
            f"{room}/feedback.json", history.encode("utf-8", "replace")
        )
    environment["HOLDFAST_CONTEXT"] = (
        put_file(f"{room}/context.md", job.context.encode()) if job.context else os.devnull
    )
    if job.step.prompt is not None:
        text = prompt_text(job.step.prompt, job.feedback)
        environment["HOLDFAST_PROMPT"] = put_file(f"{room}/prompt.txt", text.encode())
    return environment


def value_bytes(value: Json) -> bytes:
    """Text as it is, any other value as JSON with sorted keys."""
    if isinstance(value, str):
        return value.encode()
    return json.dumps(value, ensure_ascii=False, sort_keys=True).encode()


def prompt_text(prompt: Json, feedback: Sequence[Feedback] = ()) -> str:
    """A prompt as one text; a mapping becomes the sections ROLE, CONSTRAINTS, HISTORY, TASK.

    HISTORY holds the feedback so far, each put in the place of `{feedback}` of `feedback_wrapper`.
    """
    if not isinstance(prompt, Mapping):
        return value_bytes(prompt).decode()
    wrapper = prompt.get("feedback_wrapper")
    history = feedback if wrapper else ()
    wrapped = [str(wrapper).replace("{feedback}", item.text) for item in history]
    sections = {
        "ROLE": prompt.get("role"),
        "CONSTRAINTS": prompt.get("constraints"),
        "HISTORY": "\n\n".join(wrapped),
        "TASK": prompt.get("task"),
    }
    shown = (f"# {name}\n{value_bytes(text).decode()}\n" for name, text in sections.items() if text)
    return "\n".join(shown)


def collect(folder: str, produces: Sequence[str], walls: Walls = WALLS) -> Candidate:
    """Read what a step made at its paths; one file is its bytes, anything else several files.

    A path with no file, a link or a special file is a rejection (`guard_rejected`): the step ended
    well but did not make what it promised.
    """
    try:
        paths = [os.path.normpath(path) for path in produces]
        hint = moved_by("artifact", walls.artifact)
        found = tree.read_contents(folder, paths, walls.artifact, hint)
    except EditError as error:
        raise AttemptError(str(error), reason="guard_rejected") from error
    missing = [path for path in produces if not _is_made(path, found)]
    if missing:
        names = ", ".join(f"'{path}'" for path in missing)
        raise AttemptError(f"the step made no file at {names}", reason="guard_rejected")
    files = tuple(File(*item) for item in found)
    if len(produces) == len(files) == 1 and files[0].path == os.path.normpath(produces[0]):
        form: Form = "program" if files[0].executable else "bytes"
        return Candidate(form=form, content=files[0].content)
    return Candidate(form="tree", files=files)


def fragments(room: str) -> tuple[File, ...]:
    """The files that an attempt left in the directory HOLDFAST_ADD, by name; nearly always none.

    Whether they are fragments of a plan is for the engine to see. Anything but a file is a rejection.
    """
    try:
        if not os.listdir(f"{room}/{ADD}"):  # wherever a link there leads
            return ()
        with (
            tree.opened(tree.open_root(room)) as top,
            tree.opened(tree.open_directory(top, (ADD,))) as here,
        ):
            names = [f"{ADD}/{name}" for name in os.listdir(here)]
        if not names:
            return ()
        read = tree.read_contents(room, names, MOST_ADDED)
        found = [item._replace(path=item.path.removeprefix(f"{ADD}/")) for item in read]
    except FileNotFoundError:
        return ()
    except (EditError, NotADirectoryError) as error:
        raise AttemptError(f"in HOLDFAST_ADD: {error}", reason="guard_rejected") from error
    return tuple(File(*item) for item in found)


def handoff(room: str) -> bytes:
    """What an attempt wrote to HOLDFAST_HANDOFF, nearly always nothing; what is no file is rejected."""
    if not os.path.lexists(f"{room}/{HANDOFF}"):
        return b""
    try:
        found = tree.read_contents(room, [HANDOFF], MOST_TOLD)
    except EditError as error:
        raise AttemptError(f"HOLDFAST_HANDOFF: {error}", reason="guard_rejected") from error
    if not found:
        raise AttemptError("HOLDFAST_HANDOFF: a directory lies there", reason="guard_rejected")
    return found[0].content


def _feedback_json(item: Feedback) -> dict[str, str | None]:
    return {"digest": item.digest, "guard": item.guard, "feedback": item.text}


def _is_made(path: str, entries: Sequence[tree.Content]) -> bool:
    plain = os.path.normpath(path)
    return any(item.path == plain or item.path.startswith(f"{plain}/") for item in entries)
