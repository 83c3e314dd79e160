"""What is worked on, and who works: a ticket with hidden tests, and words for `holdfast work`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping

from holdfast.model.digest import Json, digest_bytes, digest_json
from holdfast.model.fixed import fixed

FILES = "{files}"  # in a command: where the paths of tests stand
_TEST = re.compile(
    r"(?:.*/)?(?:tests?|__tests__|spec)/.*|(?:.*/)?(?:test_[^/]*|[^/]*_test\.[^/]+|[^/]*\.(?:test|spec)\.[^/]+)"
)


@fixed
class Case:
    """A ticket with all that it takes to judge what came of it.

    `source` is a git directory that has the commit `base`. `hidden` are files of tests by their paths, None
    for one that must go. `test` runs the hidden tests, `checks` are what anybody who works may run.
    """

    name: str
    ticket: str
    source: str
    base: str
    hidden: Mapping[str, bytes | None]
    test: str
    checks: tuple[str, ...]
    reference: str = ""  # a script that solves it
    known: bool = False  # somebody saw that it is one


@fixed
class Hands:
    """Who works: more words for `holdfast work`, or a script for each case."""

    name: str
    words: tuple[str, ...] = ()
    script: Callable[[Case], str] | None = None


def key_of(case: Case, hands: Hands) -> str:
    """What makes a result that of this case by these hands: all that could make it another."""
    hidden: dict[str, Json] = {
        path: None if content is None else digest_bytes(content)
        for path, content in case.hidden.items()
    }
    told: dict[str, Json] = {
        "ticket": case.ticket,
        "base": case.base,
        "hidden": hidden,
        "test": case.test,
        "checks": list(case.checks),
        "hands": hands.name,
        "words": list(hands.words),
        "script": hands.script(case) if hands.script else None,
    }
    return digest_json(told)[:12]


def is_test(path: str) -> bool:
    """Whether a file is one of tests, or beside them, going by its path."""
    return _TEST.fullmatch(path) is not None


def on_files(command: str, paths: tuple[str, ...]) -> str:
    """A command about these files of tests."""
    return command.replace(FILES, " ".join(shlex.quote(path) for path in paths))
