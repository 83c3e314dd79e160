"""Runs a coding agent of the command line: the prompt in, what it said and used out.

What it changed is in the folder where it ran: whoever starts it looks there. Its words are the log.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.edits.scope import Scope, judge
from holdfast.errors import AttemptError, ProcessError
from holdfast.generators.acp import talk_acp
from holdfast.generators.contract import lay_out
from holdfast.generators.identity import shell_identity
from holdfast.generators.llm import rendered
from holdfast.generators.reports import Used, read_report
from holdfast.generators.shell import Log, collected
from holdfast.model.cliagent import PROMPT, PROMPT_FILE, REPORT_FILE, CliAgent, read_cli_agent
from holdfast.model.digest import Json
from holdfast.model.plan import Step
from holdfast.ports import Candidate, Job
from holdfast.process.room import put_file
from holdfast.process.run import Command, Completed, Sandbox, run
from holdfast.process.terms import Terms

MOST_WORDS = 4_000  # characters of its last words that are kept
# What a repository tells agents to start, and where to send keys: nobody here wrote it for this run.
CONFIGS = (
    *(".env", ".aider.conf.yml", ".aider.model.settings.yml", ".aider.model.metadata.json"),
    *(".claude", ".codex", ".gemini", ".opencode", "opencode.json", "opencode.jsonc", ".mcp.json"),
)
_MOST_ARGUMENT = 120_000  # bytes of one word of a command; Linux takes 128 KiB
_KEPT = 64 << 20  # bytes of what it writes to stdout
_OFFLINE = re.compile(
    rb"(?i)connection (error|refused|failed)|could not resolve|name resolution|ENOTFOUND|ECONNREFUSED"
    rb"|EAI_AGAIN|getaddrinfo|network is unreachable|fetch failed|cannot connect|failed to connect"
    rb"|APIConnectionError"
)
_ENDINGS = {
    "signalled": "was ended by signal {0.signal}",
    "timed_out": "did not end within {1:g} s",
    "overflow": "wrote more than 64 MB to stdout",
    "no_room": "was ended because it left too little room on the disk",
    "not_found": "was not found",
    "not_executable": "cannot be executed",
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where an agent works: its folder, a private room, its environment, and what it may not do."""

    folder: str
    room: str
    env: Mapping[str, str]
    mark: str
    terms: Terms | None
    root: str
    seconds: float | None = None
    on_output: Callable[[str, bytes], None] | None = None
    refusal: Callable[[str], str] = lambda _: ""  # why a path may not be written
    is_named: bool = False  # by a person: what the words name it may read

    @property
    def is_held(self) -> bool:
        """Whether our sandbox holds what runs here."""
        return self.terms is not None and self.terms.sandbox

    @property
    def has_network(self) -> bool:
        """Whether what runs here can reach others."""
        return not self.is_held or bool(self.terms and self.terms.network)

    def sandbox(self, words: Sequence[str]) -> Sandbox | None:
        """The sandbox of a command; a person may name programs and files that PATH does not lead to."""
        if self.terms is None:
            return None
        named = [word for word in words if self.is_named and os.path.isabs(word)]
        files = tuple(word for word in named if os.path.isfile(word))
        above = [os.path.dirname(words[0])] if words[0] in files else []
        path = os.pathsep.join([*above, self.env["PATH"]])
        configured = [os.path.join(self.folder, name) for name in CONFIGS]
        terms = replace(
            self.terms,
            readable=(*self.terms.readable, *files),
            hidden=(*self.terms.hidden, *filter(os.path.lexists, configured)),
        )
        return terms.sandbox_for(self.root, self.folder, self.room, path)


@dataclass(frozen=True, slots=True)
class Ran:
    """How an agent ended: `flaw` says what was wrong, empty if it ended well. `said` are its last words."""

    flaw: str
    code: int | None
    said: str
    log: bytes
    used: Used
    confined: bool = True
    is_late: bool = False
    lacks: str = ""  # what it may have failed for want of


def environment(
    agent: CliAgent, env: Mapping[str, str], engine: Mapping[str, str], *, held: bool
) -> dict[str, str]:
    """What an agent sees: a clean environment, the settings of the person that are its own, ours."""
    settings = {name: engine[name] for name in agent.sees if name in engine}
    return {**env, **settings, **agent.sets, **(agent.vows if held else {})}


class CliAgentGenerator:
    """Lets a coding agent do a step in its copy of the project; the candidate is what the step says.

    Without `produces` and effects that is its last words.
    """

    def __init__(self, terms: Terms, engine: Mapping[str, str] = os.environ) -> None:
        self._terms = replace(terms, written_here=False)  # what it runs, it chooses itself
        self._engine = engine

    def identity(self, step: Step, root: str) -> Mapping[str, Json]:
        """The project files that its words name; the words and its version are in the key already."""
        return shell_identity(step, root)

    async def generate(self, job: Job) -> Candidate:
        step, terms = job.step, self._terms
        agent = read_cli_agent(step.run)
        env = lay_out(job, self._engine)
        place = Place(
            folder=job.folder,
            room=job.room,
            env=environment(agent, env, self._engine, held=terms.sandbox),
            mark=job.mark,
            terms=terms,
            root=job.root,
            seconds=step.timeout,
            on_output=job.on_output,
            refusal=_protected,
        )
        told = "\n\n".join(message.text for message in rendered(job, lambda *_: []))
        ran = await run_cli_agent(agent, told, place)
        used = f"it says that it used {ran.used.words}\n" if ran.used.words else ""
        log = ran.log + used.encode()
        if ran.flaw:
            reason = "timed_out" if ran.is_late else "command_failed"
            told = "\n".join(filter(None, (ran.said, ran.flaw, ran.lacks)))
            raise AttemptError(told, reason=reason, log=log)
        if step.produces:
            return replace(collected(job, log), confined=ran.confined)
        return Candidate("bytes", ran.said.encode(), log=log, confined=ran.confined)

    async def close(self) -> None:
        """Nothing is kept."""


def _protected(path: str) -> str:
    found = judge(Scope(), path)
    return "" if found is None else found.message


async def run_cli_agent(agent: CliAgent, prompt: str, place: Place) -> Ran:
    """Run an agent to its end; AttemptError if it could not be started at all."""
    log = Log(place.on_output)
    try:
        if agent.speaks_acp:
            ran = await _by_protocol(agent, prompt, place, log)
        else:
            ran = await _by_command(agent, prompt, place, log)
    except ProcessError as error:
        raise AttemptError(str(error), reason="command_failed", log=log.content()) from error
    return _explained(ran, place)


async def _by_command(agent: CliAgent, prompt: str, place: Place, log: Log) -> Ran:
    text = prompt.encode("utf-8", "replace")
    words = agent.words(sandboxed=place.is_held)
    report = f"{place.room}/report"
    given = {
        PROMPT_FILE: put_file(f"{place.room}/prompt.md", text),
        REPORT_FILE: report,
        PROMPT: prompt,  # last: whatever stands in it stays as it is
    }
    if len(text) > _MOST_ARGUMENT and any(PROMPT in word for word in words):
        raise AttemptError(
            f"a prompt of {len(text)} bytes does not fit into a command; use {PROMPT_FILE}",
            reason="command_failed",
        )
    argv = tuple(_filled(word, given) for word in words)
    command = Command(
        argv=argv,
        cwd=place.folder,
        env=place.env,
        timeout=place.seconds,
        mark=place.mark,
        keep=_KEPT,
        stdin=text if agent.takes_stdin else None,
        sandbox=place.sandbox(words),
    )
    done = await run(command, on_output=log.add)
    told = read_report(agent.tells, done.stdout, _content(report))
    said = (
        told.said
        or done.stdout.decode("utf-8", "replace")
        or done.stderr.decode("utf-8", "replace")
    )
    return Ran(
        flaw=_flaw(agent.name, done, place.seconds) or told.flaw,
        code=done.code,
        said=said.strip()[-MOST_WORDS:],
        log=log.content(),
        used=told.used,
        confined=done.confined and (place.terms is None or done.sandboxed),
        is_late=done.ended in {"timed_out", "idle"},
    )


def _filled(word: str, given: Mapping[str, str]) -> str:
    for name, value in given.items():
        word = word.replace(name, value)
    return word


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(_KEPT)
    except OSError:
        return b""


def _flaw(name: str, done: Completed, seconds: float | None) -> str:
    if done.success:
        return ""
    if done.ended == "exited":
        return f"'{name}' ended with exit code {done.code}"
    return f"'{name}' {_ENDINGS.get(done.ended, 'said nothing for too long').format(done, seconds)}"


async def _by_protocol(agent: CliAgent, prompt: str, place: Place, log: Log) -> Ran:
    talked = await talk_acp(
        agent.argv,
        prompt,
        folder=place.folder,
        env=place.env,
        mark=place.mark,
        sandbox=place.sandbox(agent.argv),
        seconds=place.seconds,
        refusal=place.refusal,
        on_output=log.add,
    )
    flaw = f"'{agent.name}' {talked.flaw}" if talked.flaw else ""
    return Ran(
        flaw, None, talked.said.strip()[-MOST_WORDS:], log.content(), Used(), is_late=talked.is_late
    )


def _explained(ran: Ran, place: Place) -> Ran:
    """An agent that could not reach its model needs a network, which a person alone can give it."""
    if place.has_network or not _OFFLINE.search(ran.log):
        return ran
    why = "perhaps it could not connect: the sandbox has no network; a person gives it one with --network"
    return replace(ran, lacks=why)
