"""completion: the script for a shell, and what completes the names of steps and runs."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import click
from click.shell_completion import CompletionItem, get_completion_class

from holdfast.cli.say import heard, out, talk

SHELLS = {
    "bash": 'eval "$(holdfast completion bash)"    # in ~/.bashrc',
    "zsh": 'eval "$(holdfast completion zsh)"    # in ~/.zshrc, after compinit',
    "fish": "holdfast completion fish | source    # in ~/.config/fish/config.fish",
}
MOST = 200
T = TypeVar("T")
_Find = Callable[[click.Context, str], Iterable[tuple[str, str]]]
_Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


@click.command(epilog="\b\nExample:\n  holdfast completion bash >> ~/.bashrc")
@click.argument("shell", type=click.Choice(sorted(SHELLS)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> int:
    """Print the script that completes commands, options, steps and runs in a shell."""
    kind = get_completion_class(shell)
    assert kind is not None
    root = ctx.find_root().command
    out(kind(root, {}, "holdfast", "_HOLDFAST_COMPLETE").source().rstrip("\n"))
    talk(f"add this line: {SHELLS[shell]}")
    return 0


def _quiet(find: _Find | None, files: str) -> _Complete:
    """What is found; if nothing is, `files` lets the shell look. Whatever goes wrong, it says nothing."""

    def complete(
        ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        del param
        found: list[CompletionItem] = []
        with contextlib.suppress(Exception), heard():
            here = os.getcwd()
            try:
                folder = ctx.find_root().params.get("folder")
                if folder:
                    os.chdir(folder)
                for name, note in find(ctx, incomplete) if find else ():
                    if name.startswith(incomplete) and len(found) < MOST:
                        found.append(CompletionItem(name, help=note))
            finally:
                os.chdir(here)
        return found or ([CompletionItem(incomplete, type=files)] if files else [])

    return complete


def _steps(ctx: click.Context, incomplete: str) -> Iterable[tuple[str, str]]:
    from holdfast.cli.place import place

    del incomplete
    given = ctx.params.get
    loaded = place(given("plan"), given("store"), given("plan_id")).load()
    for step in loaded.plan.steps.values():
        yield step.id, step.description.partition("\n")[0][:60]


def _runs(ctx: click.Context, incomplete: str) -> Iterable[tuple[str, str]]:
    from holdfast.cli.place import place

    del incomplete
    given = ctx.params.get
    where = place(given("plan"), given("store"), given("plan_id"))
    yield "@", "the last run"
    yield "@-1", "the one before"
    store = where.open(readonly=True)
    try:
        rows = store.runs(imported=True)
    finally:
        store.close()
    for row in reversed(rows[-MOST:]):
        yield row.run, f"line {row.line}"


def _anything(ctx: click.Context, incomplete: str) -> Iterable[tuple[str, str]]:
    if incomplete.startswith(("@", "r-")):
        yield from _runs(ctx, incomplete)
    else:
        yield from _steps(ctx, incomplete)


def _waiting(ctx: click.Context, incomplete: str) -> Iterable[tuple[str, str]]:
    """Steps that wait for a person, and the ids of what they ask."""
    from holdfast.cli.approvals import decisions_at
    from holdfast.cli.place import place

    del incomplete
    given = ctx.params.get
    where = place(given("plan"), given("store"), given("plan_id"))
    store = where.open(readonly=True)
    try:
        wanted = decisions_at(where, store).wanted()
    finally:
        store.close()
    for item in wanted:
        yield item.step, "waits for a person"
        yield item.approval.id, f"what {item.step} asks"


def _templates(ctx: click.Context, incomplete: str) -> Iterable[tuple[str, str]]:
    from holdfast.cli.templating import template_names

    del ctx, incomplete
    for name in template_names(os.getcwd()):
        yield name, "a template"


# Who finds what a parameter names, by its name or by a word of its metavar.
_BY_NAME: Mapping[str, _Find] = {
    "which": _waiting,
    "what": _anything,
    "ref": _anything,
    "before": _runs,
    "after": _runs,
    "template": _templates,
}
_BY_WORD: Mapping[str, _Find] = {"STEP": _steps, "SEL": _steps, "RUN": _runs}
_FILES = {"FILE": "file", "PLAN": "file", "STEPS.yaml": "file", "DIR": "dir"}
_WORD = re.compile(r"[A-Za-z][A-Za-z.]*")


def equip(command: click.Command) -> None:
    """Let what names steps, runs or files be completed, in the commands of a group too; asked by a shell."""
    for param in command.params:
        if isinstance(param.type, click.types.StringParamType):
            words = _WORD.findall(param.metavar or (param.name or "").upper())
            find = _BY_NAME.get(param.name or "") or _first(words, _BY_WORD)
            files = _first(words, _FILES)
            if find is not None or files is not None:
                param._custom_shell_complete = _quiet(find, files or "")  # noqa: SLF001 - click has no other way in
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        equip(inner)


def _first(words: Iterable[str], known: Mapping[str, T]) -> T | None:
    return next((known[word] for word in words if word in known), None)
