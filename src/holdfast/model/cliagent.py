"""Coding agents of the command line: how each is started with nobody to talk to, and what it may see.

An agent is named by words: those of a preset, with options of its own behind it; `acp:` and a command that
speaks the Agent Client Protocol; or any command with `{prompt}` or `{prompt_file}` in it.

Where our sandbox holds an agent, its own questions are switched off: nobody is there to answer, and it can do
no more than the sandbox lets it. Where it does not, the agent keeps them, and what it may not do it does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Literal

from holdfast.errors import UsageError
from holdfast.model.fixed import fixed
from holdfast.model.text import one_line

PROMPT, PROMPT_FILE, REPORT_FILE = "{prompt}", "{prompt_file}", "{report_file}"
ACP = "acp:"

Tells = Literal["", "claude", "codex", "gemini", "aider", "opencode", "mini"]


@fixed
class CliAgent:
    """An agent as it is started; the prompt comes on its stdin unless a word of `argv` has it.

    `confined` and `asking` are words behind `argv`, with our sandbox and without. `tells` is the form in
    which it says what it used. `keys` are secrets, which it sees if a person lets it, `sees` settings of the
    person. `sets` are variables of ours, `vows` those that hold in our sandbox alone.
    """

    name: str
    argv: tuple[str, ...]
    confined: tuple[str, ...] = ()
    asking: tuple[str, ...] = ()
    tells: Tells = ""
    keys: tuple[str, ...] = ()
    sees: tuple[str, ...] = ()
    sets: Mapping[str, str] = field(default_factory=dict)
    vows: Mapping[str, str] = field(default_factory=dict)
    version: tuple[str, ...] = ()
    speaks_acp: bool = False

    def words(self, *, sandboxed: bool) -> tuple[str, ...]:
        """The command, with places for the prompt and the report."""
        return (*self.argv, *(self.confined if sandboxed else self.asking))

    @property
    def takes_stdin(self) -> bool:
        """Whether the prompt comes on its standard input."""
        whole = (*self.argv, *self.confined, *self.asking)
        return not any(PROMPT in word or PROMPT_FILE in word for word in whole)


_OPENAI = ("OPENAI_API_KEY",)
_LITELLM = ("OPENAI_BASE_URL", "OPENAI_API_BASE", "LITELLM_LOCAL_MODEL_COST_MAP")
# It writes a name into the configuration of a repository that has none, and may write none here.
_NOBODY = {
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "user.name",
    "GIT_CONFIG_VALUE_0": "agent",
    "GIT_CONFIG_KEY_1": "user.email",
    "GIT_CONFIG_VALUE_1": "agent@localhost",
}
_ANTHROPIC = ("ANTHROPIC_API_KEY",)
_MANY = (*_OPENAI, *_ANTHROPIC, "GEMINI_API_KEY", "OPENROUTER_API_KEY", "DEEPSEEK_API_KEY")

PRESETS: Mapping[str, CliAgent] = {
    agent.name: agent
    for agent in (
        CliAgent(
            "claude",
            ("claude", "--print", "--output-format", "json"),
            confined=("--permission-mode", "bypassPermissions"),
            asking=("--permission-mode", "acceptEdits"),
            tells="claude",
            keys=(*_ANTHROPIC, "CLAUDE_CODE_OAUTH_TOKEN"),
            sees=("ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL"),
            vows={"IS_SANDBOX": "1"},
            version=("claude", "--version"),
        ),
        CliAgent(
            "codex",
            ("codex", "exec", "--json", "--skip-git-repo-check"),
            confined=("--sandbox", "danger-full-access", "-"),
            asking=("--sandbox", "workspace-write", "-"),
            tells="codex",
            keys=("CODEX_API_KEY", *_OPENAI),
            sees=("OPENAI_BASE_URL",),
            version=("codex", "--version"),
        ),
        CliAgent(
            "gemini",
            ("gemini", "--output-format", "json"),
            confined=("--approval-mode", "yolo"),
            asking=("--approval-mode", "auto_edit"),
            tells="gemini",
            keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
            sees=("GEMINI_MODEL",),
            vows={"GEMINI_SANDBOX": "false", "GEMINI_CLI_TRUST_WORKSPACE": "true"},
            version=("gemini", "--version"),
        ),
        CliAgent(
            "aider",
            (
                *("aider", "--message-file", PROMPT_FILE, "--yes-always"),
                *("--no-auto-commits", "--no-dirty-commits", "--no-gitignore"),
                *("--no-check-update", "--no-show-release-notes", "--no-show-model-warnings"),
                *("--no-analytics", "--no-pretty", "--no-stream", "--no-fancy-input"),
                *("--no-detect-urls", "--no-suggest-shell-commands"),
                *("--chat-history-file", REPORT_FILE, "--input-history-file", "/dev/null"),
            ),
            tells="aider",
            keys=_MANY,
            sees=(*_LITELLM, "AIDER_MODEL"),
            sets=_NOBODY,
            version=("aider", "--version"),
        ),
        CliAgent(
            "opencode",
            ("opencode", "run", "--format", "json"),
            tells="opencode",
            keys=_MANY,
            version=("opencode", "--version"),
        ),
        CliAgent(
            "mini",
            ("mini", "--yolo", "--exit-immediately", "--task", PROMPT, "--output", REPORT_FILE),
            tells="mini",
            keys=_MANY,
            sees=(*_LITELLM, "MSWEA_MODEL_NAME", "MSWEA_COST_TRACKING"),
            sets={"MSWEA_CONFIGURED": "true", "MSWEA_SILENT_STARTUP": "1"},
        ),
    )
}
_ALSO = {"claude-code": "claude", "mini-swe-agent": "mini"}


def read_cli_agent(words: Sequence[str]) -> CliAgent:
    """The agent that words name; UsageError says what is missing."""
    first = words[0] if words else ""
    if first.startswith(ACP):
        argv = (first.removeprefix(ACP), *words[1:])
        argv = argv if argv[0] else argv[1:]
        if not argv:
            raise UsageError("'acp:' names no command", hint="acp:COMMAND, as in acp:my-agent")
        return CliAgent(_base(argv[0]), argv, speaks_acp=True)
    if any(PROMPT in word or PROMPT_FILE in word for word in words):
        return CliAgent(_base(first), tuple(words))
    name = _base(first)
    found = PRESETS.get(_ALSO.get(name, name))
    if found is None:
        raise UsageError(
            f"nothing says how '{one_line(first)}' is told what to do",
            hint=f"one of {', '.join(PRESETS)}; acp:COMMAND; or a command with {PROMPT} or {PROMPT_FILE}",
        )
    program = found.argv[0] if first in _ALSO else first
    version = (
        found.version if program == found.argv[0] else ()
    )  # a path: nobody may ask what lies there
    return replace(found, argv=(program, *found.argv[1:], *words[1:]), version=version)


def _base(program: str) -> str:
    return program.rpartition("/")[2] or program
