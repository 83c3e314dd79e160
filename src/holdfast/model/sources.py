"""What the source of a finding names: entries and steps, and sources in the world.

A source is read part by part, with commas, semicolons or line breaks between them, none of which parts an
address; marks around the whole are no part of it. A part that names an entry or a step stands for that, in
marks, with a place in it and in the words that people put before it too: `search`, (search), "search (p. 3)",
"from step Search", "handoff of search", "search's output", "as told in e-1f3c…". Any other is a source in the
world. One source may be written in many ways, and `source_name` gives
all of them one name, by which it counts once and is contested:

    letters      composed as Unicode says, small, without those that nobody sees; one blank for several
    marks        around it, a stop behind it, `source:`, `see` and `from` before it
    a file       without `file:`, `./` and `x/..`, and without the place in it: gauge.csv#L3, :12, (row 3);
                 a place is numbers and ranges of them, and a file behind it is another source
    an address   scheme and host in small letters, the rest as it is; without `#…`, (p. 3) and the last slash
    a year       or another mere number belongs to what stands before it: Smith, 2019 and Smith (2019)

What differs in anything else is two: /data/gauge.csv is not gauge.csv, nor is http:// the same as https://.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple
from unicodedata import category, normalize

from holdfast.model.pattern import Pattern

DIGITS = 12  # of an id
ENTRY = Pattern(rf"(?<![\w-])[eh]-[0-9a-f]{{{DIGITS}}}(?![\w-])", re.IGNORECASE)
Meant = Callable[[str], str]  # the entry or step that a name means; empty if it means none

_SCHEME = r"(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9+.-]{1,15}://"
_ADDRESS = Pattern(rf"({_SCHEME})([^/?#]*)(.*)", re.DOTALL)
_WRITTEN = Pattern(
    rf"{_SCHEME}\S*|(?<![\w-])[eh][-\u2010\u2011][0-9a-f]{{4,{DIGITS}}}(?![\w-])", re.IGNORECASE
)  # an id in words; what looks like one inside of an address is none
_LONGEST = 1_000  # letters of a part that is more than prose
_ROUNDS = 8
_SIMPLE = Pattern(r"(?:[a-z0-9_-]+/)*[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|[a-z0-9]+(?: [a-z0-9]+)+")
_NAME = Pattern(
    r"(?:\[[^\[\]]*\]|[^\s,;&+\[]|[&+](?![^\s,;&+]))+"
)  # what stands in brackets belongs to the id of an item, and C++ is one name
_BETWEEN = Pattern(r"[\s,;&+]")
_BESIDE = frozenset({"and", "&", "+", "step", "steps"})  # words between names, or before them
_LISTS = Pattern(r"[,;\n]")
_AND = Pattern(
    r"\s+(?:and|&|\+|vs\.?|versus)\s+(?!\d[\d.:\u2013-]*(?:\s|\Z))", re.IGNORECASE
)  # rows 3 and 5 are one place

HYPHENS = {0x2010: "-", 0x2011: "-"}  # that look like the plain one
_AROUND = frozenset(
    ["()", "[]", "{}", "<>", '""', "''", "``", "**", "“”", "„“", "„”", "\u2018\u2019", "«»", "»«"]
)
_LEAD = Pattern(
    r"(?:sources?|src|see|from|via|cf)\s*[:=]\s*"
    r"|(?:see\s+also|see|from|cf\.|according\s+to|as\s+told\s+by)\s+|[-*•]\s+",
    re.IGNORECASE,
)
_THINGS = ("handoff", "output", "artifact", "evidence", "finding", "result")
_TOLD = rf"(?:{'|'.join(_THINGS)})s?"
_MAY_HAVE = ("e-", "h-", " and ", " vs ", " versus ", " row", " p", " cell")
_HEADS = (*_THINGS, "step", "the ", "see ", "from ", "according ", "as ")
_TAILS = (" step", *(f".{one}{end}" for one in _THINGS for end in ("", "s")))
_BEFORE_STEP = Pattern(
    rf"(?:the\s+)?(?:{_TOLD}|steps?)(?:\s*[:.]\s*|\s+(?:(?:of|from|by)\s+)?)(?:the\s+)?"
    r"(?:steps?\s*[:.]?\s+)?",
    re.IGNORECASE,
)
_BEHIND_STEP = Pattern(rf"(?:['\u2019]s?\s+{_TOLD}|\.{_TOLD}|\s+step|/)\Z", re.IGNORECASE)

_FILE = r"[^\s/]*\.[A-Za-z][A-Za-z0-9]{0,7}"
_IS_FILE = Pattern(rf"(?:\S*/)?{_FILE}")
_ENDS_HOST = "".join(rf"(?<!\.{one})" for one in ("local", "internal", "lan", "com", "net", "io"))
_NUMBER = r"[A-Z]{0,3}\d{1,9}(?:\.\d{1,9}){0,5}[A-Z]{0,2}\.?"
_UP_TO = r"(?:\s*[-\u2013:,/&]\s*|\s+(?:and|to|of|through)\s+)"
_NUMBERS = rf"{_NUMBER}(?:{_UP_TO}{_NUMBER}){{0,20}}"
_PAGES = rf"(?:rows?|pages?|pp?|cells?)\.?\s*{_NUMBERS}"
_SPOT = (
    r"(?:rows?|lines?|pages?|pp?|cells?|columns?|cols?|sheets?|tables?|figures?|figs?)"
    rf"\.?\s*{_NUMBERS}"
)
_SPOTS = rf"{_SPOT}(?:(?:\s*[,;]\s*|\s+(?:(?:of|in)\s+)?){_SPOT}){{0,3}}"
_MARK = r"#[A-Za-z][\w=.,:-]*"  # gauge.csv#L3
_LINE = r":\d+(?:[-:,]\d+)*"  # gauge.csv:12
_IN_FILE = Pattern(
    rf"((?:.*[\s/])?{_FILE})(?:{_MARK}|{_ENDS_HOST}{_LINE}|\s*\({_SPOTS}\)|\s+{_SPOTS})",
    re.IGNORECASE | re.DOTALL,
)
_IN_ADDRESS = Pattern(rf"({_SCHEME}\S+?)(?:\s*\({_SPOTS}\)|\s+{_SPOTS})", re.IGNORECASE)
_IN_STEP = Pattern(
    rf"(.*\S)(?:{_MARK}|{_LINE}|\s*\({_SPOTS}\)|\s+{_PAGES})", re.IGNORECASE | re.DOTALL
)  # a step may be called like what has lines: metro line 5
_ON_PAGE = Pattern(rf"(.*\S)\s*\({_PAGES}\)", re.IGNORECASE | re.DOTALL)
_IS_PAGE = Pattern(rf"\(?{_PAGES}\)?", re.IGNORECASE)
_IS_SPOT = Pattern(rf"\(?{_SPOTS}\)?", re.IGNORECASE)
_ARE_NUMBERS = Pattern(_NUMBERS, re.IGNORECASE)
_PART = Pattern(
    rf"(?:\[[^\[\]]*\]|\({_SPOTS}\)|{_SCHEME}(?:[^\s,;]|[,;](?!\s|\Z|{_SCHEME}))+|[^,;\n])+",
    re.IGNORECASE,
)
_IS_NUMBER = Pattern(r"\(?\d[\d\s./\u2013-]{0,20}[a-z]?\)?")
_YEAR = Pattern(r"\((\d{4}[a-z]?)\)")
_LOCAL = Pattern(r"file:(?://(?:localhost(?=/))?)?\s*", re.IGNORECASE)


class Source(NamedTuple):
    """What a source names: entries and steps, and sources in the world, each of its own."""

    names: tuple[str, ...]
    plain: tuple[str, ...]


def read_source(source: str, meant: Meant) -> Source:
    """What a source names, part by part: entries and steps, or ids in its words; else it is a plain name."""
    if not source:
        return Source((), ())
    if listed := _all_known(source, meant):
        return Source(listed, ())
    if _SIMPLE.fullmatch(source) and not _has_words(source):
        return Source((), (source,))
    names: dict[str, None] = {}
    plain: list[str] = []
    for part in parts_of(_inside(source.strip())):
        for piece in _pieces(part, meant):
            if found := _named(piece, meant):
                names.update(dict.fromkeys(found))
            else:
                plain.append(piece)
    world = [_one_name(one) for one in _whole(plain, is_first=not names)]
    return Source(tuple(names), tuple(dict.fromkeys(world)))


@lru_cache(maxsize=65_536)
def source_names(source: str) -> tuple[str, ...]:
    """The names of all sources in the world that a source has, as if it named no step and no entry."""
    return read_source(source, lambda _: "").plain


def source_name(text: str) -> str:
    """The one name of a source in the world, however it is written; of a list, in whatever order."""
    for _ in range(_ROUNDS):
        names = source_names(text)
        name = names[0] if len(names) == 1 else _list_name(text, names)
        if name == text:
            break
        text = name
    return text


def _list_name(text: str, names: tuple[str, ...]) -> str:
    """Its sources in the order of the alphabet; its own words, if that would not be read as the same list."""
    listed = ", ".join(sorted(names))
    is_same = {*source_names(listed)} == {*names}
    return listed if names and is_same else _tidy(text).casefold()


def parts_of(source: str) -> list[str]:
    """The parts of a source that are listed with commas, semicolons or line breaks between them."""
    if not _LISTS.search(source):
        return [source] if source else []
    parts = (part.strip().removeprefix("and ").lstrip() for part in _PART.findall(source))
    return [part for part in parts if part]


def listed_in(source: str, is_known: Callable[[str], object]) -> tuple[str, ...]:
    """The entries and steps that a source lists as they are written, without ids in its words."""

    def meant(name: str) -> str:
        return name if is_known(name) else ""

    if listed := _all_known(source, meant):
        return listed
    found = (one for part in parts_of(source) for one in _all_known(part, meant))
    return tuple(dict.fromkeys(found))


def written_ids(source: str) -> list[str]:
    """What looks like the id of evidence or of a handoff in the words of a source, as it is written."""
    return [one for one in _WRITTEN.findall(source) if "://" not in one]


def with_ids(source: str, ids: Mapping[str, str]) -> str:
    """A source with other ids, wherever it has these in a list or in its words."""
    listed = _NAME.sub(lambda found: ids.get(found[0], found[0]), source)
    return _WRITTEN.sub(lambda found: ids.get(found[0], found[0]), listed)


def _has_words(source: str) -> bool:
    """Whether a simple source may have ids, words around the name of a step, or several with `and`."""
    return (
        any(one in source for one in _MAY_HAVE)
        or source.startswith(_HEADS)
        or source.endswith(_TAILS)
    )


# --- entries and steps ----------------------------------------------------------------------------


def _all_known(text: str, meant: Meant) -> tuple[str, ...]:
    """The names in a text that is a list of them and nothing else: one or several."""
    if one := meant(text):
        return (one,)
    if not _BETWEEN.search(text):
        return ()
    known: dict[str, None] = {}
    for one in _NAME.findall(text):
        if one not in _BESIDE:
            name = meant(one)
            if not name:
                return ()
            known[name] = None
    return tuple(known)


def _named(piece: str, meant: Meant) -> tuple[str, ...]:
    """The entries and steps that a piece means, in marks and words around them or in its own words."""
    if len(piece) <= _LONGEST:
        for text in _without_words(piece):
            if found := _all_known(text, meant):
                return found
    ids = [one.translate(HYPHENS).lower() for one in written_ids(piece)]
    return tuple(dict.fromkeys(filter(None, (meant(one) for one in ids))))


def _without_words(piece: str) -> Iterator[str]:
    yield piece
    text = _bare(_tidy(piece))
    yield text
    if place := _IN_STEP.fullmatch(text):
        text = _bare(place[1])
        yield text
    found = _BEFORE_STEP.match(text)
    less = _bare(text[found.end() :]) if found else text
    yield less
    yield _bare(_BEHIND_STEP.sub("", less))


def _pieces(part: str, meant: Meant) -> list[str]:
    """What a part joins with `and`: files and addresses, or others beside a name; else the whole.

    Others are single words, or whatever stands beside a name that is said to be one: "output of search".
    """
    if len(part) > _LONGEST or not _AND.search(part):
        return [part]
    pieces = [_bare(one) for one in _AND.split(_bare(_tidy(part)))]
    strange = [one for one in pieces if not _is_somewhere(one)]
    known = [one for one in strange if _named(one, meant)]
    is_said = any(_BEFORE_STEP.match(one) or _BEHIND_STEP.search(one) for one in known)
    is_list = is_said or not any(" " in one for one in strange if one not in known)
    return pieces if not strange or (known and is_list) else [part]


# --- sources in the world -------------------------------------------------------------------------


def _whole(pieces: list[str], *, is_first: bool) -> list[str]:
    """The pieces, a mere number with what stands before it, and without places in what stands before."""
    whole: list[str] = []
    for piece in pieces:
        text = _tidy(piece)
        if whole or not is_first:
            in_file = not whole or _is_somewhere(whole[-1])
            if _IS_PAGE.fullmatch(text) or (in_file and _IS_SPOT.fullmatch(text)):
                continue
            if whole and _ARE_NUMBERS.fullmatch(text) and _place_in(_bare(_tidy(whole[-1]))):
                continue
            if _IS_NUMBER.fullmatch(text):
                whole[-1:] = [f"{whole[-1]} {text}"] if whole else []
                continue
        whole.append(piece)
    return whole


def _is_somewhere(text: str) -> bool:
    """Whether something is a file or an address, perhaps with the place in it."""
    name = _bare(_tidy(text))
    if found := _place_in(name):
        name = _bare(found[1])
    return " " not in name and bool(_IS_FILE.fullmatch(name) or _ADDRESS.fullmatch(name))


def _place_in(name: str) -> re.Match[str] | None:
    if len(name) > _LONGEST:
        return None
    return (_IN_ADDRESS if _ADDRESS.fullmatch(name) else _IN_FILE).fullmatch(name)


@lru_cache(maxsize=65_536)
def _one_name(text: str) -> str:
    """A name that is its own: what one round leaves, as `.` behind a place in a file, the next takes off."""
    for _ in range(_ROUNDS):
        name = _named_once(text)
        if name == text:
            break
        text = name
    return text


def _named_once(text: str) -> str:
    name = _tidy(text)
    if len(name) > _LONGEST:
        return name.casefold()
    name = _bare(name) or name
    if found := _place_in(name):
        name = _bare(found[1])
    if not _ADDRESS.fullmatch(name) and (found := _ON_PAGE.fullmatch(name)):
        name = _bare(found[1])
    local = _LOCAL.match(name)
    if local is None and (address := _ADDRESS.fullmatch(name)):
        scheme, host, rest = address.groups()
        return (scheme + host).lower() + rest.partition("#")[0].rstrip("/")
    name = _path(name[local.end() :] if local else name) or name
    return _YEAR.sub(r"\1", name).casefold()


def _tidy(text: str) -> str:
    """A text with each letter as one, without letters that nobody sees, one blank for several."""
    if not text.isascii():
        seen = normalize("NFC", text).translate(HYPHENS)
        text = "".join(letter for letter in seen if category(letter) != "Cf")
    return " ".join(text.split())


def _bare(text: str) -> str:
    """A text without the marks around it, and without `source:`, `see` or `from` before it."""
    while True:
        less = _inside(text if text.endswith("/..") else text.rstrip(".,;: "))
        found = _LEAD.match(less)
        less = less[found.end() :] if found and found.end() < len(less) else less
        if less == text or not less:
            return text
        text = less


def _inside(text: str) -> str:
    """A text without a pair of marks around the whole of it."""
    is_around = text[:1] + text[-1:] in _AROUND and len(text) > 1 and text[-1] not in text[1:-1]
    return text[1:-1].strip() if is_around else text


def _path(text: str) -> str:
    """A path without steps that lead nowhere; other texts are as they were."""
    if "/" not in text:
        return text
    steps: list[str] = []
    for step in text.split("/"):
        if step == ".." and steps and steps[-1] != "..":
            steps.pop()
        elif step not in {"", "."}:
            steps.append(step)
    return ("/" if text.startswith("/") else "") + "/".join(steps)
