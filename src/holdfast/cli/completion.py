"""completion: the script for a shell, and what completes the names of steps and runs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem, get_completion_class

from holdfast.cli.say import out, talk

SHELLS = {
    "bash": 'eval "$(holdfast completion bash)"    # in ~/.bashrc',
    "zsh": 'eval "$(holdfast completion zsh)"    # in ~/.zshrc, after compinit',
    "fish": "holdfast completion fish | source    # in ~/.config/fish/config.fish",
}
MOST = 200
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


def _quiet(find: _Find) -> _Complete:
    """Completion is a help: whatever goes wrong, it says nothing."""

    def complete(
        ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        del param
        found: list[CompletionItem] = []
        with contextlib.suppress(Exception):
            here = os.getcwd()
            try:
                folder = ctx.find_root().params.get("folder")
                if folder:
                    os.chdir(folder)
                for name, note in find(ctx, incomplete):
                    if name.startswith(incomplete) and len(found) < MOST:
                        found.append(CompletionItem(name, help=note))
            finally:
                os.chdir(here)
        return found

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


_BY_NAME: dict[str, _Find] = {
    "which": _waiting,
    "step": _steps,
    "steps": _steps,
    "force_steps": _steps,
    "run_id": _runs,
    "what": _anything,
    "ref": _anything,
}


def equip(command: click.Command) -> None:
    """Let the arguments of a command that name steps or runs be completed; asked only by a shell."""
    for param in command.params:
        find = _BY_NAME.get(param.name or "")
        if find is not None and isinstance(param.type, click.types.StringParamType):
            param._custom_shell_complete = _quiet(find)  # noqa: SLF001 - click has no other way in
