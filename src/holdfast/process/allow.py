"""Which commands may be started at all: rules on the program that is meant and on its parsed words.

This is advice to whoever starts commands that he did not write, not a boundary: programs do more than
their words show, and only the sandbox holds. So whatever cannot be understood is refused: a line with
anything in it that a shell would act upon, a program that is not where its name leads outside of the
workspace. Of programs that can start others or write files by their words, only options that are known to
be harmless pass, spelled out; every other word must stand in the rule itself. A rule for a program that
nobody described here (a compiler, a test runner) allows all of its words.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from holdfast.errors import ProcessError
from holdfast.model.fixed import frozen
from holdfast.process.confine import is_within
from holdfast.process.lookup import find

_ACTIVE = frozenset(
    ";&|<>()$`{}*?[]~#!^"
)  # outside of quotes; some of them within double ones, too
_IN_DOUBLE = frozenset("$`!")
_HINT = "name the program and its words; no shell reads them"


@frozen
class Rule:
    """A program by its name, or by its absolute path, and the words that must follow it."""

    program: str
    words: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str) -> Rule:
        """`git status` allows git with `status` as its first word, and what does no harm after it."""
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
    fitting = [rule for rule in fitting if tuple(words[: len(rule.words)]) == rule.words]
    if not fitting:
        raise ProcessError(f"'{shlex.join(argv)}' is not allowed", hint=_listed(rules))
    path = _program(name, cwd, env)
    check = _CHECKS.get(os.path.basename(name))
    if check is not None:
        flaws = [check(rule.words, words[len(rule.words) :]) for rule in fitting]
        if all(flaws):
            raise ProcessError(f"'{shlex.join(argv)}' is not allowed: {flaws[0]}")
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


class _Harmless(NamedTuple):
    """Options that neither start a program nor write a file: letters, those with a value, and whole words."""

    letters: str
    valued: str
    words: frozenset[str]


def _harmless(letters: str, valued: str, words: str) -> _Harmless:
    return _Harmless(letters, valued, frozenset(words.split()))


_NUMBER = re.compile(r"-[0-9]+[A-Za-z]?")  # as in `git log -3`, `find -mtime -7`
_FIND = _harmless(
    "",
    "",
    "-H -L -P -a -and -amin -atime -cmin -ctime -daystart -depth -empty -executable -false -group -iname"
    " -inum -ipath -iregex -links -ls -maxdepth -mindepth -mmin -mount -mtime -name -newer -not -o -or"
    " -path -perm -print -print0 -printf -prune -quit -readable -regex -regextype -size -true -type -user"
    " -wholename -writable -xdev",
)
_SORT = _harmless(
    "bcCdfghiMmnRrsuVz",
    "kSt",
    "--check --field-separator --human-numeric-sort --ignore-case --key --numeric-sort --reverse --stable"
    " --unique --version-sort --zero-terminated",
)
_RG = _harmless(
    "abcFHhiIlLnNoPpqsSuUvwx",
    "ABCegjmMtT",
    "--after-context --before-context --case-sensitive --color --column --context --count --files"
    " --files-with-matches --files-without-match --fixed-strings --glob --heading --hidden --iglob"
    " --ignore-case --json --line-number --max-count --max-depth --multiline --no-config --no-heading"
    " --no-ignore --no-line-number --null --only-matching --quiet --regexp --smart-case --sort --stats"
    " --trim --type --type-not --vimgrep --word-regexp",
)
_GIT_GREP = _harmless(
    "acEFGHhIilLnPqrvwWz",
    "ABCem",
    "--all-match --and --cached --count --extended-regexp --files-with-matches --fixed-strings"
    " --ignore-case --line-number --name-only --not --or --untracked --word-regexp",
)
_GIT_LOOK = _harmless(
    "bCFiEMpqrsuwz",
    "GLnSU",
    "--abbrev-commit --abbrev-ref --after --all --author --before --branch --cached --color --date"
    " --decorate --diff-filter --find-renames --first-parent --follow --format --git-dir --graph --grep"
    " --ignored --max-count --merges --name-only --name-status --no-color --no-ext-diff --no-merges"
    " --no-patch --no-renames --no-textconv --numstat --oneline --patch --porcelain --pretty --reverse"
    " --short --shortstat --show-toplevel --since --staged --stat --tags --unified --until"
    " --untracked-files --verify --word-diff",
)
_LOOKS = "blame describe diff log ls-files ls-tree rev-parse shortlog show status"
_GIT = {"grep": _GIT_GREP, **dict.fromkeys(_LOOKS.split(), _GIT_LOOK)}


def _only(known: _Harmless, named: Sequence[str], words: Sequence[str]) -> str:
    """Also what stands after `--` must be harmless: it may be the value of the option before."""
    del named
    for word in words:
        if word in {"-", "--"} or not word.startswith("-") or _NUMBER.fullmatch(word):
            continue
        if word.partition("=")[0] in known.words:
            continue
        plain = word[1:].lstrip(known.letters)
        if word.startswith("--") or (plain and plain[0] not in known.valued):
            return f"'{word}' may start a program or write a file, for all that is known"
    return ""


def _git(named: Sequence[str], words: Sequence[str]) -> str:
    command, *rest = (*named[:1], *words) or ("",)
    if command in _GIT:
        return _only(_GIT[command], named, rest)
    return _nothing(named, words)


def _nothing(named: Sequence[str], words: Sequence[str]) -> str:
    if named and not words:
        return ""
    return "it can start programs and write files, so a rule must name all of its words"


_PLAIN_SED = re.compile(
    r"(?:(?:[0-9]+|\$|/[^/\\]*/)(?:,(?:[0-9]+|\$|/[^/\\]*/))?)?!?(?:[pdq=]|s/[^/\\]*/[^/\\]*/[gpI0-9]*)"
)


def _sed(named: Sequence[str], words: Sequence[str]) -> str:
    del named
    scripts = [word for word in words if not word.startswith("-")][:1]
    for word in words:
        if word.startswith("-") and word not in {"-n", "-E", "-r", "-z", "--"}:
            return f"'{word}' cannot be judged"
    if not scripts or not all(_PLAIN_SED.fullmatch(part.strip()) for part in scripts[0].split(";")):
        return "a script of sed can start programs and write files; this one is not plain enough to tell"
    return ""


def _awk(named: Sequence[str], words: Sequence[str]) -> str:
    del named
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


_STARTERS = "busybox env nice nohup script setsid su sudo tar timeout watch xargs"
_CHECKS: dict[str, Callable[[Sequence[str], Sequence[str]], str]] = {
    "find": partial(_only, _FIND),
    "sort": partial(_only, _SORT),
    "rg": partial(_only, _RG),
    "sed": _sed,
    **dict.fromkeys(("awk", "gawk", "mawk"), _awk),
    "git": _git,
    **dict.fromkeys(_STARTERS.split(), _nothing),
}
