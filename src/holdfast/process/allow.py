"""Which commands may be started at all: rules on the program that is meant and on its parsed words.

This is advice to whoever starts commands that he did not write, not a boundary: programs do more than
their words show, and only the sandbox holds. So whatever cannot be understood is refused: a line with
anything in it that a shell would act upon, a program that is not where its name leads outside of the
workspace, an option that names a program to start or a file to write.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from holdfast.errors import ProcessError
from holdfast.process.confine import is_within
from holdfast.process.lookup import find

_ACTIVE = frozenset(
    ";&|<>()$`{}*?[]~#!^"
)  # outside of quotes; some of them within double ones, too
_IN_DOUBLE = frozenset("$`!")
_HINT = "name the program and its words; no shell reads them"


@dataclass(frozen=True, slots=True)
class Rule:
    """A program by its name, or by its absolute path, and the words that must follow it."""

    program: str
    words: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str) -> Rule:
        """`git status` allows git with `status` as its first word, whatever follows."""
        program, *words = parse_line(text)
        return cls(program, tuple(words))


def parse_line(line: str) -> tuple[str, ...]:
    """The words of a line that no shell will read; ProcessError if one would do more than split it."""
    quote, escaped = "", False
    for letter in line:
        if not letter.isprintable():
            raise ProcessError(f"a command line holds {letter!r}", hint=_HINT)
        if escaped:
            escaped = False
        elif letter == "\\" and quote != "'":
            escaped = True
        elif letter == quote:
            quote = ""
        elif not quote and letter in "'\"":
            quote = letter
        elif (not quote and letter in _ACTIVE) or (quote == '"' and letter in _IN_DOUBLE):
            raise ProcessError(f"a shell would act upon '{letter}' in '{line}'", hint=_HINT)
    try:
        words = tuple(shlex.split(line))
    except ValueError as error:
        raise ProcessError(f"'{line}' cannot be read: {error}", hint=_HINT) from error
    if not words or "=" in words[0]:
        raise ProcessError(f"'{line}' does not begin with a program", hint=_HINT)
    return words


def allowed(
    argv: Sequence[str], rules: Sequence[Rule], cwd: str, env: Mapping[str, str]
) -> tuple[str, ...]:
    """The command with the path of its program, if a rule allows it; ProcessError says why not.

    The workspace is `cwd`: what lies there is never what a name means.
    """
    if not argv:
        raise ProcessError("a command needs a program")
    name, *words = argv
    fitting = [rule for rule in rules if _names(rule, name)]
    if not fitting:
        raise ProcessError(
            f"'{name}' is not among the programs that are allowed", hint=_listed(rules)
        )
    if not any(tuple(words[: len(rule.words)]) == rule.words for rule in fitting):
        raise ProcessError(f"'{shlex.join(argv)}' is not allowed", hint=_listed(fitting))
    path = _program(name, cwd, env)
    check = _CHECKS.get(os.path.basename(name))
    if check is not None and (flaw := check(words)):
        raise ProcessError(f"'{shlex.join(argv)}' is not allowed: {flaw}")
    return (path, *words)


def _names(rule: Rule, name: str) -> bool:
    return name == rule.program and ("/" not in name or os.path.isabs(name))


def _listed(rules: Sequence[Rule]) -> str:
    return ", ".join(shlex.join([rule.program, *rule.words]) for rule in rules) or "none is allowed"


def _program(name: str, cwd: str, env: Mapping[str, str]) -> str:
    """Where the program of a name is: on PATH, and not in the workspace, also behind links."""
    folders = env.get("PATH", os.defpath).split(os.pathsep)
    absolute = os.pathsep.join(folder for folder in folders if os.path.isabs(folder))
    found = find(name, cwd, {"PATH": absolute})
    if found.refusal is not None:
        raise ProcessError(f"'{name}' is {found.refusal.replace('_', ' ')}")
    workspace = os.path.realpath(cwd)
    for path in (os.path.abspath(found.path), os.path.realpath(found.path)):
        if is_within(path, workspace) or is_within(
            os.path.realpath(os.path.dirname(path)), workspace
        ):
            raise ProcessError(f"'{name}' would be '{path}', which lies in the workspace")
    return found.path


def _has(words: Sequence[str], *options: str) -> str:
    """The first word that is one of these options, also with a value or, of long ones, shortened."""
    for word in words:
        head = word.partition("=")[0]
        for option in options:
            if head == option or (
                option.startswith("--") and len(head) > len("--x") and option.startswith(head)
            ):
                return f"'{word}' may start a program or write a file"
            if len(option) == 2 and word.startswith(option) and not word.startswith("--"):  # noqa: PLR2004 - as -I
                return f"'{word}' may start a program or write a file"
    return ""


def _find(words: Sequence[str]) -> str:
    for word in words:
        if re.fullmatch(r"-(exec|execdir|ok|okdir|delete|fprint0?|fprintf|fls|files0-from)", word):
            return f"'{word}' may start a program or change a file"
    return ""


_PLAIN_SED = re.compile(
    r"(?:(?:[0-9]+|\$|/[^/\\]*/)(?:,(?:[0-9]+|\$|/[^/\\]*/))?)?!?(?:[pdq=]|s/[^/\\]*/[^/\\]*/[gpI0-9]*)"
)


def _sed(words: Sequence[str]) -> str:
    scripts = [word for word in words if not word.startswith("-")][:1]
    for word in words:
        if word.startswith("-") and word not in {"-n", "-E", "-r", "-z", "--"}:
            return f"'{word}' cannot be judged"
    if not scripts or not all(_PLAIN_SED.fullmatch(part.strip()) for part in scripts[0].split(";")):
        return "a script of sed can start programs and write files; this one is not plain enough to tell"
    return ""


def _awk(words: Sequence[str]) -> str:
    programs = []
    position = 0
    while position < len(words):
        word = words[position]
        if word in {"-F", "-v"}:
            position += 1
        elif word.startswith(("-F", "-v")):
            pass
        elif word.startswith("-"):
            return f"'{word}' cannot be judged"
        else:
            programs.append(word)
            break
        position += 1
    if not programs or re.search(r"[|>@`\\]|system|getline|close|fflush|printf?\s*\(", programs[0]):
        return "a program of awk can start others and write files; this one is not plain enough to tell"
    return ""


def _git(words: Sequence[str]) -> str:
    if not words or words[0].startswith("-"):
        return "options before its command change what git starts"
    return _has(
        words, "--exec", "--upload-pack", "--receive-pack", "--output", "--ext-diff", "--textconv"
    )


def _tar(words: Sequence[str]) -> str:
    return _has(
        words,
        "--checkpoint-action",
        "--to-command",
        "--use-compress-program",
        "--rsh-command",
        "--rmt-command",
        "--info-script",
        "--new-volume-script",
        "--index-file",
        "-I",
        "-F",
    )


def _always(words: Sequence[str]) -> str:
    del words
    return "it starts whatever its words name"


_CHECKS: dict[str, Callable[[Sequence[str]], str]] = {
    "find": _find,
    "sed": _sed,
    "awk": _awk,
    "gawk": _awk,
    "mawk": _awk,
    "git": _git,
    "tar": _tar,
    **dict.fromkeys(
        (
            "env",
            "xargs",
            "nohup",
            "nice",
            "timeout",
            "setsid",
            "sudo",
            "su",
            "watch",
            "script",
            "busybox",
        ),
        _always,
    ),
}
