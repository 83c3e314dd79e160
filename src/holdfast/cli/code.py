"""code: find one's way in a code base."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from holdfast.cli.again import out_next
from holdfast.cli.codeasks import impact, map_, relevant, symbols
from holdfast.cli.codeindex import index_option, open_index
from holdfast.cli.measure import count
from holdfast.cli.place import json_option
from holdfast.cli.say import out, out_json, talk
from holdfast.errors import UsageError
from holdfast.model.digest import Json
from holdfast.model.text import one_line

if TYPE_CHECKING:
    from holdfast.codebase.search import Hits

DEFAULT = 200
_FEW = 20


@click.group(
    "code",
    epilog="\b\nExample:\n  holdfast code search 'def \\w+_index' --type python\n"
    "  holdfast code relevant 'sessions expire too early'\n"
    "  holdfast code impact src/session.py",
)
def code() -> None:
    """Find one's way in the code base of this directory.

    Files that .gitignore leaves out are left out, links are not followed. What is found by parsing is kept
    in .holdfast/code.db, a cache that follows changes and can be deleted at any time.
    """


code.add_command(symbols)
code.add_command(impact)
code.add_command(map_)
code.add_command(relevant)


# --- index ----------------------------------------------------------------------------------------


@code.command("index", epilog="\b\nExample:\n  holdfast code index\n  holdfast code index --json")
@index_option
@json_option
def index(index_file: str | None, *, as_json: bool) -> int:
    """Bring the index up to date and say what it holds, and what it could not read or parse."""
    with open_index(index_file) as (opened, updated):
        files = opened.files()
        names = len(opened.symbols())
    languages: dict[str, int] = {}
    for file in files:
        languages[file.language] = languages.get(file.language, 0) + 1
    flawed = [(file.path, file.flaws) for file in files if file.flaws]
    if as_json:
        out_json(
            {
                "schema": "holdfast.code.index/1",
                "files": len(files),
                "read": updated.read,
                "parsed": updated.parsed,
                "removed": updated.removed,
                "commits": updated.commits,
                "symbols": names,
                "languages": dict(sorted(languages.items())),
                "left_out": [{"path": path, "why": why} for path, why in updated.left_out],
                "flawed": [{"path": path, "flaws": flaws} for path, flaws in flawed],
                "unparsed": [*updated.unparsed],
            }
        )
        return 0
    most = sorted(languages.items(), key=lambda item: (-item[1], item[0]))
    out(f"{count(len(files), 'file')}, {count(names, 'symbol')}; {updated.read:,} read now")
    if most:
        out(", ".join(f"{name} {number:,}" for name, number in most[:8]))
    _few("not whole in the index", [f"{one_line(p) or '.'}: {why}" for p, why in updated.left_out])
    _few(
        "parsed with flaws",
        [f"{one_line(p)}: {count(flaws, 'place')}" for p, flaws in flawed],
    )
    out_next("holdfast code map    holdfast code relevant TEXT")
    return 0


def _few(title: str, lines: Sequence[str]) -> None:
    if lines:
        out(f"{title} ({len(lines):,})")
    for line in lines[:_FEW]:
        out(f"  {line}", raw=True)
    if len(lines) > _FEW:
        out(f"  and {len(lines) - _FEW:,} more: --json")


# --- search ---------------------------------------------------------------------------------------


@code.command(
    "search",
    epilog="\b\nExample:\n  holdfast code search 'TODO|FIXME' -g 'src/**' --context 2\n"
    "  holdfast code search -e --force --files\n  holdfast code search -w run --type go --count",
)
@click.argument("words", metavar="[PATTERN] [PATH…]", nargs=-1)
@click.option("-e", "--regexp", "pattern", metavar="PATTERN", help="The pattern, whatever it is.")
@click.option("-F", "--fixed", is_flag=True, help="Take the pattern as it stands.")
@click.option("-i", "--ignore-case", is_flag=True, help="Capital or small letters alike.")
@click.option("-w", "--word", is_flag=True, help="Only whole words.")
@click.option(
    "-g", "--glob", "globs", multiple=True, metavar="GLOB", help="Only such paths; !GLOB not."
)
@click.option(
    "-t", "--type", "types", multiple=True, metavar="LANGUAGE", help="Only this language."
)
@click.option(
    "-A", "after", type=click.IntRange(0, 1000), default=0, help="Lines after each match."
)
@click.option("-B", "before", type=click.IntRange(0, 1000), default=0, help="Lines before it.")
@click.option("--context", "around", type=click.IntRange(0, 1000), default=0, help="Both.")
@click.option("-l", "--files", "files_only", is_flag=True, help="Only the names of files.")
@click.option("--count", "counted", is_flag=True, help="Only how many lines match in each file.")
@click.option(
    "-n", "--limit", type=click.IntRange(1), default=DEFAULT, help="At most so many (200)."
)
@json_option
def search(
    words: tuple[str, ...],
    pattern: str | None,
    globs: tuple[str, ...],
    types: tuple[str, ...],
    after: int,
    before: int,
    around: int,
    limit: int,
    *,
    fixed: bool,
    ignore_case: bool,
    word: bool,
    files_only: bool,
    counted: bool,
    as_json: bool,
) -> int:
    """Search lines by a regular expression, in the syntax of ripgrep (without it, in that of Python).

    A pattern that begins with '-' stands after -e or after '--'. Exit 0 if something was found, else 1.
    """
    from holdfast.codebase.search import Query
    from holdfast.codebase.search import search as look

    if pattern is None:
        if not words:
            raise UsageError(
                "there is no pattern to search for", hint="holdfast code search PATTERN"
            )
        pattern, *rest = words
        words = tuple(rest)
    query = Query(
        pattern=pattern,
        paths=words,
        globs=globs,
        languages=types,
        before=max(before, around),
        after=max(after, around),
        ignore_case=ignore_case,
        word=word,
        fixed=fixed,
        limit=limit,
    )
    hits = look(os.getcwd(), query)
    if hits.tool != "ripgrep":
        talk("ripgrep is not installed: patterns of Python; pip install 'holdfast[code]'")
    if as_json:
        out_json(_hits_json(hits, files_only=files_only or counted))
    elif files_only or counted:
        _print_files(hits, limit, counted=counted)
    else:
        _print_lines(hits)
    return 0 if hits.total else 1


def _print_files(hits: Hits, limit: int, *, counted: bool) -> None:
    for path in list(hits.counts)[:limit]:
        out(f"{one_line(path)}:{hits.counts[path]}" if counted else one_line(path), raw=True)
    if len(hits.counts) > limit:
        _more(len(hits.counts) - limit, "file", hits)


def _print_lines(hits: Hits) -> None:
    last: tuple[str, int] | None = None
    has_context = not all(line.is_match for line in hits.lines)
    for line in hits.lines:
        if has_context and last is not None and last != (line.path, line.number - 1):
            out("--", raw=True)
        last = (line.path, line.number)
        sign = ":" if line.is_match else "-"
        out(f"{one_line(line.path)}{sign}{line.number}{sign}{line.text}", raw=True)
    for note in hits.notes:
        talk(one_line(note))
    if hits.total > hits.shown:
        _more(hits.total - hits.shown, "line", hits)
    if not hits.total:
        talk("nothing was found")


def _more(number: int, noun: str, hits: Hits) -> None:
    least = "at least " if hits.cut else ""
    talk(f"{least}{count(number, noun)} more: narrow by a path, -g GLOB or --type, or raise -n")


def _hits_json(hits: Hits, *, files_only: bool) -> dict[str, Json]:
    lines: list[Json] = [
        {"path": one.path, "line": one.number, "text": one.text, "match": one.is_match}
        for one in hits.lines
    ]
    return {
        "schema": "holdfast.code.search/1",
        "tool": hits.tool,
        "total": hits.total,
        "shown": hits.shown,
        "cut": hits.cut,
        "files": dict(hits.counts),
        "lines": [] if files_only else lines,
    }
