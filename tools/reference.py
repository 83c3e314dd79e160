"""The pages under docs/reference, written from the code: they cannot say what the program does not do."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterable, Mapping
from typing import cast, get_args

import click

from holdfast.cli.catalogue import Entry, entries
from holdfast.cli.main import COMMANDS, PANELS, SHORT, cli
from holdfast.formats.grammar import DEFAULTS, LIMITS, PLAN, STEP, plan_schema
from holdfast.formats.guardlist import BESIDE, GUARD_KINDS
from holdfast.formats.params import PARAM
from holdfast.formats.records import Key
from holdfast.formats.shapes import DURATION, Shape
from holdfast.model.digest import Json
from holdfast.model.event import RunEvent
from holdfast.model.line import LineEvent
from tools.limits import LIMITS as LIMITS_WORDS
from tools.limits import rows as limit_rows

NOTE = "<!-- Written by `make docs` from the code. Change the code, not this page. -->"
KEYS = """The table that the reader and the JSON Schema for editors come from too. [The plan
file](../plan-file.md) explains how the keys work together."""
REASONS = """Every decision to run, to reuse, to wait or to give up has one of these codes. The list is
closed. In JSON: `{"code": …, "text": …, "because": […]}`; the words behind a colon are what `because`
names: files, steps, parts."""
PROBLEMS = """What `holdfast check` may find, with file, line and column. Codes from `P900` are warnings.
`holdfast explain CODE` says the same in the terminal, with an example."""
GUARDS = """What can judge a candidate. [The plan file](../plan-file.md#guards) shows how they are written."""
ERRORS = """With `--json` an error is one object on stdout: `{"error": {"code": …, "message": …, "hint": …}}`.
In words it goes to stderr. [Exit codes](../exit-codes.md) says what to do."""
EVENTS = """A journal is a list of these, in the past tense, each with `seq`, `ts` and `event` (the name).
`holdfast trace --json` prints them. Text from outside never stands in an event: it is a content that the
event names by its digest (`holdfast show DIGEST`)."""

DEFINED = cast("dict[str, Json]", cast("dict[str, Json]", plan_schema())["$defs"])


def generated() -> dict[str, str]:
    """Every generated page by its path under docs."""
    pages = {
        "commands": commands_page(),
        "plan-keys": keys_page(),
        "reasons": codes_page("Reasons", REASONS, "reasons"),
        "problems": codes_page("Problems of a plan file", PROBLEMS, "plan-file"),
        "errors": codes_page("Errors", ERRORS, "errors"),
        "guards": codes_page("Guards", GUARDS, "guards"),
        "events": events_page(),
        "limits": limits_page(),
    }
    return {f"reference/{name}.md": f"{text.strip()}\n" for name, text in pages.items()}


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown table; what would end a cell is escaped."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(cell(c) for c in line)} |" for line in lines)


def cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


# --- commands -----------------------------------------------------------------------------------------


def commands_page() -> str:
    parts = [
        "# Commands",
        NOTE,
        "Every command takes `--help`. Every command takes these too, before or after its name:",
        options_table(cli, click.Context(cli, info_name="holdfast")),
    ]
    for title, names in PANELS.items():
        parts.append(f"## {title}")
        parts += [command_part(name) for name in names]
    missing = sorted(set(COMMANDS) - {name for names in PANELS.values() for name in names})
    if missing:
        raise ValueError(f"commands without a panel: {', '.join(missing)}")
    return "\n\n".join(parts)


def command_part(name: str) -> str:
    context = click.Context(cli, info_name="holdfast")
    command = cli.get_command(context, name)
    assert command is not None
    parts = [f"### {name}", SHORT[name]]
    inner = click.Context(command, info_name=f"holdfast {name}")
    if isinstance(command, click.Group):
        rows = [
            (f"`{word}`", sub.get_short_help_str(200))
            for word in command.list_commands(inner)
            if (sub := command.get_command(inner, word)) is not None
        ]
        parts.append(table(("Command", "Means"), rows))
    usage = " ".join(command.collect_usage_pieces(inner))
    parts.append(f"```text\nholdfast {name} {usage}\n```")
    words = prose(command)
    if words and words != SHORT[name]:
        parts.append(words)
    parts.append(options_table(command, inner))
    parts.append(f"```text\n{example(command)}\n```")
    return "\n\n".join(part for part in parts if part)


def prose(command: click.Command) -> str:
    """The docstring as Markdown: what is kept as it stands in the terminal is a block here too."""
    parts = []
    for part in inspect.cleandoc(command.help or "").split("\n\n"):
        kept = part.startswith("\b\n")
        parts.append(f"```text\n{part[2:]}\n```" if kept else " ".join(part.split()))
    return "\n\n".join(parts)


def example(command: click.Command) -> str:
    _, _, found = (command.epilog or "").partition("Example:\n")
    return inspect.cleandoc(found)


def options_table(command: click.Command, context: click.Context) -> str:
    rows = []
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if isinstance(parameter, click.Option) and record and "--help" not in parameter.opts:
            rows.append((f"`{record[0]}`", record[1]))
    return table(("Option", "Means"), rows) if rows else ""


# --- the plan file --------------------------------------------------------------------------------------


def keys_page() -> str:
    parts = [
        "# Keys of a plan file",
        NOTE,
        KEYS,
    ]
    for title, keys in (
        ("The plan", PLAN),
        ("A step", STEP),
        ("A param", PARAM),
        ("Under `defaults`", DEFAULTS),
        ("Under `limits`", LIMITS),
        ("Kinds of guards", GUARD_KINDS),
        ("Beside the kind of a guard", BESIDE),
    ):
        parts += [f"## {title}", keys_table(keys)]
        reserved = [f"`{name}`" for name, key in keys.items() if key.shape is None]
        if reserved:
            parts.append(f"Known, and refused by this version: {', '.join(reserved)}.")
    parts.append("A guard may also be `all`, `any` or `majority`, with a list of guards under it.")
    return "\n\n".join(parts)


def keys_table(keys: Mapping[str, Key]) -> str:
    words = {name: key.words for name, key in keys.items()}
    said = any(words.values())
    rows = [
        (f"`{name}`", value_words(key.shape), *([words[name]] if said else []))
        for name, key in keys.items()
        if key.shape is not None
    ]
    return table(("Key", "Value", "Means") if said else ("Key", "Value"), rows)


def value_words(shape: Shape[object]) -> str:
    if shape is DURATION:
        return "duration: `90s`, `5m`, `2h`, `7d`"
    return shape_words(shape.schema)


def shape_words(schema: Json) -> str:
    """A JSON Schema in a few words."""
    if not isinstance(schema, dict):
        return "anything"
    if "const" in schema:
        return f"`{schema['const']}`"
    if isinstance(words := schema.get("enum"), list):
        return ", ".join(f"`{word}`" for word in words)
    if isinstance(choices := schema.get("anyOf") or schema.get("oneOf"), list):
        return choice_words(choices)
    match schema.get("type"):
        case "array":
            return f"list of {shape_words(schema.get('items'))}".replace("of a guard", "of guards")
        case "object":
            known = schema.get("properties")
            names = ", ".join(f"`{name}`" for name in known) if isinstance(known, dict) else ""
            return f"mapping with {names}" if 0 < len(names) < 120 else "mapping"  # noqa: PLR2004
        case "integer":
            return (
                f"whole number from {schema['minimum']}" if "minimum" in schema else "whole number"
            )
        case "boolean":
            return "`true` or `false`"
        case "string":
            return "text"
        case _:
            pass
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    return "a guard" if name == "guard" else shape_words(DEFINED.get(name))


def choice_words(choices: list[Json]) -> str:
    first, last = choices[0], choices[-1]
    if len(choices) == 2 and isinstance(last, dict) and last.get("items") == first:  # noqa: PLR2004
        return f"{shape_words(first)}; or a list of such"
    return " or ".join(dict.fromkeys(shape_words(choice) for choice in choices))


# --- words of the journal and of errors -------------------------------------------------------------------


def codes_page(title: str, words: str, group: str) -> str:
    """The codes of one group of the catalogue, as `holdfast explain` tells them."""
    rows = [
        (f"`{entry.code}`", entry.title, long_words(entry), entry.do)
        for entry in entries().values()
        if entry.group == group
    ]
    if not rows:
        raise ValueError(f"the catalogue has no group '{group}'")
    head = ("Code", "Says", "Means", "To do")
    return "\n\n".join([f"# {title}", NOTE, words, table(head, rows)])


def long_words(entry: Entry) -> str:
    """The long text, unless it only repeats the short one."""
    means = "" if entry.means == entry.title else entry.means
    leaves = (
        "" if entry.exit_code is None or entry.group == "plan-file" else f"exit {entry.exit_code}"
    )
    return "; ".join(part for part in (means, entry.why, leaves) if part)


def events_page() -> str:
    parts = [
        "# Events",
        NOTE,
        EVENTS,
    ]
    for title, union in (
        ("Of a run", RunEvent),
        ("Of a line", LineEvent),
    ):
        parts.append(f"## {title}")
        for noun in cast("tuple[type, ...]", get_args(union)):
            parts += [f"### {kind_of(noun)}", inspect.getdoc(noun) or ""]
            rows = [
                (f"`{item.name}`", type_words(str(item.type))) for item in dataclasses.fields(noun)
            ]
            parts.append(table(("Field", "Type"), rows))
    return "\n\n".join(parts)


def limits_page() -> str:
    """What is bounded, and by how much."""
    head = ("What", "At most", "Key", "Who says no")
    return f"# Limits\n\n{NOTE}\n\n{LIMITS_WORDS}\n\n{table(head, limit_rows())}\n"


def kind_of(noun: type) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", noun.__name__).lower()


def type_words(text: str) -> str:
    text = re.sub(r"\btuple\[(.*), \.\.\.\]", r"list of \1", text)
    return text.replace(" | None", ", or nothing")
