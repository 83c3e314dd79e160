"""code symbols, impact, map, relevant: what is asked of the index of a code base."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from holdfast.cli.codeindex import index_option, open_index
from holdfast.cli.measure import count
from holdfast.cli.place import json_option
from holdfast.cli.say import out, out_json, talk
from holdfast.errors import UsageError
from holdfast.model.digest import Json
from holdfast.model.text import one_line

if TYPE_CHECKING:
    from holdfast.codebase.facts import Ranked, Symbol

_LIMIT = 100


# --- symbols --------------------------------------------------------------------------------------


@click.command(
    "symbols",
    epilog="\b\nExample:\n  holdfast code symbols parse --prefix\n"
    "  holdfast code symbols --file src/app.py --kind class --json",
)
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--prefix", is_flag=True, help="Names that begin so.")
@click.option("--kind", metavar="KIND", help="Only of this kind: class, function, method, …")
@click.option("--file", "files", multiple=True, metavar="GLOB", help="Only in such files.")
@click.option(
    "-n", "--limit", type=click.IntRange(1), default=_LIMIT, help="At most so many (100)."
)
@index_option
@json_option
def symbols(
    name: str | None,
    kind: str | None,
    files: tuple[str, ...],
    limit: int,
    index_file: str | None,
    *,
    prefix: bool,
    as_json: bool,
) -> int:
    """Show where symbols are defined: by name (Scope.name too), its beginning, kind or file.

    Exit 0 if something was found, else 1.
    """
    from holdfast.codebase.facts import KINDS
    from holdfast.codebase.symbols import find_symbols

    if kind is not None and kind not in KINDS:
        raise UsageError(f"there is no kind '{kind}'", hint=f"one of {', '.join(KINDS)}")
    with open_index(index_file) as (index, _):
        found = find_symbols(index, name, prefix=prefix, kind=kind, files=files)
    if as_json:
        listed: list[Json] = [_symbol_json(path, symbol) for path, symbol in found[:limit]]
        out_json({"schema": "holdfast.code.symbols/1", "total": len(found), "symbols": listed})
        return 0 if found else 1
    for path, symbol in found[:limit]:
        scope = f" in {symbol.scope}" if symbol.scope else ""
        place = f"{one_line(path)}:{symbol.line}"
        out(f"{place}  {symbol.kind}{one_line(scope)}  {one_line(symbol.signature)}", raw=True)
    _more(len(found) - limit, "symbol", "narrow by --kind or --file, or raise -n")
    if not found:
        talk("nothing was found")
    return 0 if found else 1


def _symbol_json(path: str, symbol: Symbol) -> dict[str, Json]:
    return {
        "path": path,
        "name": symbol.name,
        "kind": symbol.kind,
        "scope": symbol.scope,
        "line": symbol.line,
        "end": symbol.end,
        "signature": symbol.signature,
    }


def _more(number: int, noun: str, what: str) -> None:
    if number > 0:
        talk(f"{count(number, noun)} more: {what}")


# --- impact ---------------------------------------------------------------------------------------


@click.command(
    "impact",
    epilog="\b\nExample:\n  holdfast code impact src/session.py\n"
    "  holdfast code impact Session.open --depth 1 --json\n"
    "  holdfast code impact --text 'sessions expire too early'",
)
@click.argument("things", metavar="FILE|SYMBOL…", nargs=-1)
@click.option(
    "--text", default="", metavar="TEXT", help="Begin with the files that a text is about."
)
@click.option("--depth", type=click.IntRange(0, 20), default=3, help="Steps to walk (3).")
@click.option(
    "-n", "--limit", type=click.IntRange(1), default=_LIMIT, help="At most so many (100)."
)
@index_option
@json_option
def impact(
    things: tuple[str, ...],
    text: str,
    depth: int,
    limit: int,
    index_file: str | None,
    *,
    as_json: bool,
) -> int:
    """Show the files that a change touches: its tests and what imports it, each with score and reason."""
    from holdfast.codebase.impact import impact as walk

    if not things and not text.strip():
        raise UsageError("say what changes", hint="a file, a symbol, or --text TEXT")
    with open_index(index_file) as (index, _):
        found = walk(index, things, text, depth)
    return _print_ranked("impact", found, limit, as_json=as_json)


def _print_ranked(kind: str, found: Sequence[Ranked], limit: int, *, as_json: bool) -> int:
    if as_json:
        listed: list[Json] = [
            {"path": one.path, "score": one.score, "reasons": [*one.reasons]}
            for one in found[:limit]
        ]
        schema = f"holdfast.code.{kind}/1"
        out_json({"schema": schema, "total": len(found), "files": listed})
        return 0 if found else 1
    for one in found[:limit]:
        reasons = "; ".join(one_line(reason) for reason in one.reasons)
        out(f"{one.score:.2f}  {one_line(one.path)}  {reasons}".rstrip(), raw=True)
    _more(len(found) - limit, "file", "raise -n")
    if not found:
        talk("nothing was found")
    return 0 if found else 1


# --- relevant -------------------------------------------------------------------------------------


@click.command(
    "relevant", epilog="\b\nExample:\n  holdfast code relevant 'sessions expire too early' -n 5"
)
@click.argument("text", metavar="TEXT")
@click.option("-n", "--limit", type=click.IntRange(1), default=10, help="At most so many (10).")
@index_option
@json_option
def relevant(text: str, limit: int, index_file: str | None, *, as_json: bool) -> int:
    """Show the files that a text is likely about, the likeliest first, with the reasons.

    Words of paths, symbols and text count, and what earlier commits with such words changed.
    """
    from holdfast.codebase.relevance import relevant as rank

    if not text.strip():
        raise UsageError("the text is empty")
    with open_index(index_file) as (index, _):
        answer = rank(index, text, limit)
    return _print_ranked("relevant", answer.files, limit, as_json=as_json)


# --- map ------------------------------------------------------------------------------------------


@click.command(
    "map", epilog="\b\nExample:\n  holdfast code map --tokens 2000\n  holdfast code map --json"
)
@click.option(
    "--tokens", type=click.IntRange(50, 1_000_000), default=2_000, help="At most so many (2000)."
)
@index_option
@json_option
def map_(tokens: int, index_file: str | None, *, as_json: bool) -> int:
    """Show the code base in few words: its directories, its files, the symbols others use.

    Files stand in the order of their paths. If they are too many, those that least hangs on are left out;
    four signs count as a token. The same files always give the same map.
    """
    from holdfast.codebase.mapping import map_of

    with open_index(index_file) as (index, _):
        found = map_of(index, tokens)
    if as_json:
        out_json(
            {
                "schema": "holdfast.code.map/1",
                "tokens": found.tokens,
                "named": found.named,
                "files": found.files,
                "text": found.text,
            }
        )
        return 0
    out(found.text, raw=True)
    if found.named < found.files:
        talk(f"{found.named:,} of {count(found.files, 'file')}: --tokens {tokens * 2} shows more")
    return 0
