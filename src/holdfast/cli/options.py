"""Options that every command takes, before its name or after it: how to show, where to work."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace

import click

from holdfast.cli.said import keep_folder
from holdfast.cli.view import MODES, Asked, View, choose_view

_ASKED = "holdfast.asked"
Callback = Callable[[click.Context, click.Parameter, object], object]


def _ask(context: click.Context, **wishes: object) -> None:
    """Take a wish into what was asked so far, and choose the view again."""
    root = context.find_root()
    asked = root.meta.get(_ASKED)
    asked = replace(asked if isinstance(asked, Asked) else Asked(), **wishes)  # type: ignore[arg-type]  # one per option
    root.meta[_ASKED] = asked
    root.obj = choose_view(asked)


def _view(context: click.Context) -> View:
    found = context.find_root().obj
    return found if isinstance(found, View) else View()


def _wish(name: str) -> Callback:
    def take(context: click.Context, _: click.Parameter, value: object) -> object:
        if value:
            _ask(context, **{name: value})
        return value

    return take


def _louder(context: click.Context, _: click.Parameter, value: object) -> object:
    if isinstance(value, int) and value:
        _ask(context, verbose=_view(context).verbose + value)
    return value


def _work_in(context: click.Context, __: click.Parameter, value: object) -> object:
    if isinstance(value, str):
        try:
            os.chdir(value)
        except OSError as error:
            raise click.UsageError(f"cannot work in '{value}': {error.strerror}") from error
        keep_folder(context, value)
    return value


def _options(*, hidden: bool) -> list[click.Option]:
    def option(*words: str, callback: Callback, **more: object) -> click.Option:
        return click.Option(
            words,
            callback=callback,
            expose_value=False,
            is_eager=True,
            hidden=hidden,
            **more,  # type: ignore[arg-type]  # as click takes them
        )

    return [
        option("-C", "folder", callback=_work_in, metavar="DIR", help="Work as if started in DIR."),
        option(
            "--output",
            callback=_wish("output"),
            type=click.Choice(MODES),
            help="How to show things (default: auto, rich on a terminal and plain elsewhere).",
        ),
        option(
            "--color",
            callback=_wish("colour"),
            type=click.Choice(["auto", "always", "never"]),
            help="Colours (default: auto, on a terminal unless NO_COLOR is set).",
        ),
        option("--no-input", callback=_wish("no_input"), is_flag=True, help="Never ask."),
        option("-q", "--quiet", callback=_wish("quiet"), is_flag=True, help="Only the result."),
        option("-v", "--verbose", callback=_louder, count=True, help="Say more; may be repeated."),
        option("--debug", callback=lambda *_: None, is_flag=True, help="Show tracebacks."),
    ]


_SHARED = _options(hidden=True)


class _Formatter(click.HelpFormatter):
    """A help page in signs that the stream has: an old terminal, or a pipe of Windows, may lack ours."""

    def getvalue(self) -> str:
        text = super().getvalue()
        if text.isascii() or sys.stdout is None:
            return text
        from holdfast.cli.say import shown

        return shown(text, sys.stdout, raw=True)


class _Context(click.Context):
    formatter_class = _Formatter


def shared_options(group: click.Group) -> click.Group:
    """Give the root its options."""
    group.context_class = _Context
    group.params += _options(hidden=False)
    group.params.append(
        click.Option(
            ["--json"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=lambda context, _, value: _ask(context, output="json") if value else None,
            help="As --output json.",
        )
    )
    return group


def choose(context: click.Context) -> None:
    """Choose the view from what stands before the command's name, or from nothing."""
    if not isinstance(context.find_root().obj, View):
        _ask(context)


def share(command: click.Command) -> click.Command:
    """Let a command take the shared options after its name.

    Words that the command uses itself stay its own. Its `as_json` follows `--output`, and its own
    `quiet` and `verbose` follow what was said before its name.
    """
    if any(param in _SHARED for param in command.params):
        return command  # loaded before
    command.context_class = _Context
    taken = {word for param in command.params for word in (*param.opts, *param.secondary_opts)}
    for param in command.params:
        if param.name == "as_json" and param.callback is None:
            param.callback = _as_json
        elif param.name in {"quiet", "verbose"} and param.callback is None:
            param.callback = _as_before
    command.params += [option for option in _SHARED if not taken.intersection(option.opts)]
    if not isinstance(command, click.Group):
        return command
    for inner in command.commands.values():
        share(inner)
    return command


def _as_json(context: click.Context, _: click.Parameter, value: object) -> bool:
    if value and _view(context).mode != "jsonl":
        _ask(context, output="json")
    return _view(context).mode in {"json", "jsonl"}


def _as_before(context: click.Context, param: click.Parameter, value: object) -> object:
    """The command's own flag, or what was said of it before the command's name."""
    if value is True and param.name == "quiet":
        _ask(context, quiet=True)
    said = _view(context).quiet if param.name == "quiet" else _view(context).verbose
    if isinstance(value, bool):
        return value or bool(said)
    return value + said if isinstance(value, int) else value
