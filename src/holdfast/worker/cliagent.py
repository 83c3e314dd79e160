"""A cycle that a command-line agent does: it runs once at the desk, and what it left is looked at.

The whole run is one use of a tool, `agent`: its beginning is stored before it starts, and after a kill the
next attempt begins with the files as they were before it. What it wrote outside of its scope is taken back,
path by path; a change that is too large is taken back whole. Commits of its own count for nothing: the files
are the result.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping

from holdfast.edits.beneath import read_beneath, remove_beneath
from holdfast.errors import AttemptError, EditError
from holdfast.generators.cliagent import Place, Ran, environment, run_cli_agent
from holdfast.gitrepo.state import status
from holdfast.model.call import Message
from holdfast.model.cliagent import CliAgent
from holdfast.model.digest import Json
from holdfast.model.secret import holds
from holdfast.model.text import one_line
from holdfast.ports import Job
from holdfast.process.room import clean_environment
from holdfast.process.terms import Terms
from holdfast.worker.desk import Desk
from holdfast.worker.memory import Memory
from holdfast.worker.noting import noted
from holdfast.worker.tools import in_thread

TOOL = "agent"
_FEW = 20  # paths that are told
_TOP = 2_000  # characters of what it complains about
_LINE = 300  # characters of a line of its last words that are told


class Hired:
    """One run of an agent; what it comes to is in the memory of its cycle."""

    def __init__(
        self,
        job: Job,
        desk: Desk,
        memory: Memory,
        agent: CliAgent,
        terms: Terms | None,
        subject: str,
    ) -> None:
        self._job = job
        self._desk = desk
        self._memory = memory
        self._agent = agent
        self._terms = terms
        self._subject = subject  # of its commit
        self._log = b""

    def log(self) -> bytes:
        """What it said."""
        return self._log

    async def through(self, messages: tuple[Message, ...]) -> str:
        """Let it work; why it ended: finish or failed. AttemptError if it left nothing."""
        begun, memory = self._memory.state, self._memory
        prompt = messages[-1].text
        given = {"command": shlex.join(self._agent.argv), "state": begun, "prompt": prompt}
        record = await noted(self._job, TOOL, given, lambda: self._run(prompt), "undone")
        told, said = str(record["told"]), str(record["said"])
        self._log = self._log or f"{told}\n{said}".encode()
        memory.state = str(record["state"])
        if memory.state == begun:
            reason = "timed_out" if record["late"] else "command_failed"
            words = "\n".join(_cut(line) for line in f"{said}\n{told}".strip().splitlines())
            raise AttemptError(words, reason=reason, log=self._log)
        is_ready = record["exit_code"] == 0
        memory.ended = "finish"
        memory.last = {"ready": is_ready, "summary": said, "message": self._subject}
        if is_ready:  # it says nothing of nodes: the ticket is one
            memory.nodes.append({"id": "n-1", "finished": True})
        return "finish" if is_ready else "failed"

    async def _run(self, prompt: str) -> Mapping[str, Json]:
        before, desk = self._memory.state, self._desk
        if self._job.place is not None:
            await self._job.place()
        desk.stir()
        ran = await run_cli_agent(self._agent, prompt, self._place())
        state, words = await in_thread(lambda: self._looked_at(before, ran))
        told = "\n".join(words)
        self._log = ran.log + f"\n{told}\n".encode()
        return {
            "cmd": shlex.join(self._agent.argv),
            "exit_code": ran.code or -1 if ran.flaw else 0,
            "top_stderr": ran.said[-_TOP:] if ran.flaw else "",
            "state": state,
            "told": told,
            "said": ran.said,
            "late": ran.is_late,
        }

    def _place(self) -> Place:
        job, desk = self._job, self._desk
        held = self._terms is not None and self._terms.sandbox
        env = clean_environment(job.room, os.environ, job.env)
        return Place(
            folder=desk.folder,
            room=job.room,
            env=environment(self._agent, env, os.environ, held=held),
            mark=job.mark,
            terms=self._terms,
            root=desk.folder,
            seconds=desk.bounds.agent,
            on_output=job.on_output,
            refusal=self._refusal,
            is_named=True,
        )

    def _refusal(self, path: str) -> str:
        return next(iter(self._desk.refused([path]).values()), "")

    def _looked_at(self, before: str, ran: Ran) -> tuple[str, list[str]]:
        """What it left: the state of what may stand of it, and what is to be told."""
        desk = self._desk
        words = [ran.flaw or f"'{self._agent.name}' ended well"]
        leaks = self._leaks()
        state = desk.keep("an agent")
        refused = desk.refused([item.path for item in desk.touched(before, state)])
        why = [f"'{one_line(path)}' holds a secret" for path in leaks]
        why += refused.values()
        if why:
            state = self._taken_back(before, {*leaks, *refused})
            words.append(f"what it may not write was taken back: {'; '.join(why[:_FEW])}")
        if too_far := desk.over(before, state):
            desk.go_to(before)
            state = before
            words.append(f"what it changed was taken back: {too_far}")
        changed = [item.path for item in desk.touched(before, state)]
        words.append(f"it changed {', '.join(changed[:_FEW])}" if changed else "it changed nothing")
        if ran.lacks and (ran.flaw or not changed):
            words.append(ran.lacks)
        if used := ran.used.words:
            words.append(f"it says that it used {used}")
        return state, words

    def _leaks(self) -> list[str]:
        """The files that hold a secret which it was let see, and are gone now: nothing of them is stored."""
        job, folder = self._job, self._desk.folder
        secrets = [job.env[name] for name in job.step.secrets if name in job.env]
        found = []
        for entry in status(self._desk.tree).entries if secrets else ():
            try:
                seen = read_beneath(folder, entry.path)
            except EditError:  # no file, or one that no edit could write either
                continue
            if seen is not None and holds([seen.content], secrets):
                remove_beneath(folder, entry.path)
                found.append(entry.path)
        return found

    def _taken_back(self, before: str, paths: set[str]) -> str:
        try:
            return self._desk.take_back(before, paths)
        except EditError:  # a folder where a file was: nothing of it can be told apart
            self._desk.go_to(before)
            return before


def _cut(line: str) -> str:
    return line if len(line) <= _LINE else f"{line[:_LINE]}…"
