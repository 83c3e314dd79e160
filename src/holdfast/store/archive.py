"""Exports: one run, or a whole store, in one file that says by itself whether it is whole.

A ZIP file (stored or deflated entries, no encryption) with exactly these names:

    holdfast.json             schema, kind, runs, journals (see below); UTF-8 JSON
    journals/000001.jsonl     one event a line: {"seq", "at", "kind", "body", "hash"}
    contents/ab/<sha256>      one content each, named by its digest

`holdfast.json` is `{"schema": "holdfast.export/1", "kind": "run" | "store", "holdfast", "at", "runs":
[{"run", "project", "line", "number", "fence", "imported"}], "journals": [{"name", "file", "last",
"hash"}], "contents": [digest], "absent": [digest], "learned": body}`. `body` is the text of the event as
the journal has it, `hash` the chain up to it (see `codec`), so a journal in the file is checked like one in
the store. `contents` names all contents in the file, `absent` those that its journals name and that were
purged where they came from. `learned`, for the export of one run, is the body of an event with what its
line knew (see `RunImported`). Files of older versions lack `contents` and `learned`.

A reader trusts nothing: names that are not in the list above, names that appear twice, other ways of
compression, more bytes than allowed, a broken chain, a content under the wrong name and an event that
this Holdfast does not know are refused before anything is written. No name of the file ever becomes a
path. The number after the schema's slash grows with a change that an older reader could not read; a
newer file is refused by its number.

Rejected: tar (no index: one content could not be read without all before it), the SQLite file itself
(a database from a stranger is a program for SQLite), one JSON document (a content of a gigabyte).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self, cast

from holdfast.errors import ELSEWHERE, IntegrityError, UsageError
from holdfast.model.digest import Digest, Json
from holdfast.model.event import Recorded, RunStarted
from holdfast.model.line import RunImported
from holdfast.model.plan import RunId
from holdfast.model.text import is_count
from holdfast.model.version import VERSION
from holdfast.ports import RunRow, Store
from holdfast.store.allowance import Allowance, Bounded, TooMuchError, allowance
from holdfast.store.codec import decode, encode, first_hash, next_hash
from holdfast.store.strangers import check_event, is_digest, is_run

FORMAT = "holdfast.export/"
NUMBER = 1
HEAD = "holdfast.json"
_MAX_JOURNAL = 2**30
_MAX_ENTRIES = 4_000_000
_NAME = re.compile(r"journals/\d{6,9}\.jsonl|contents/([0-9a-f]{2})/(\1[0-9a-f]{62})")
_MOMENT = (1980, 1, 1, 0, 0, 0)
_PIECE = 1 << 20
_MORE = "'holdfast import --max-size SIZE FILE' allows more"
_ANEW = "write it anew where it comes from, with 'holdfast export'"
_BROKEN = (
    *(zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, EOFError, NotImplementedError),
    *(RuntimeError, ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError),
)


# --- writing ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Selection:
    """What of a store goes into an export."""

    kind: str
    runs: Sequence[RunRow]
    journals: Sequence[str]
    contents: Sequence[Digest]
    absent: Sequence[Digest] = ()
    learned: RunImported | None = None


def write_archive(path: str, store: Store, chosen: Selection, at: int) -> int:
    """Write an export; the file has its name only when it is whole. Gives its size."""
    temp = f"{path}.part"
    try:
        with zipfile.ZipFile(temp, "w", zipfile.ZIP_DEFLATED) as file:
            heads: list[Json] = []
            for number, journal in enumerate(chosen.journals, 1):
                heads.append(_write_journal(file, store, journal, number))
            for digest in chosen.contents:
                with file.open(
                    _info(f"contents/{digest[:2]}/{digest}"), "w", force_zip64=True
                ) as to:
                    for piece in store.chunks(digest):
                        to.write(piece)
            file.writestr(_info(HEAD), json.dumps(_head(chosen, heads, at), indent=1))
        with open(temp, "rb") as written:
            os.fsync(written.fileno())
        os.replace(temp, path)
    except OSError as error:
        _remove(temp)
        raise UsageError(
            f"'{path}' cannot be written: {error.strerror or error}", hint=ELSEWHERE
        ) from error
    except BaseException:
        _remove(temp)
        raise
    return os.path.getsize(path)


def _remove(path: str) -> None:
    if os.path.exists(path):
        os.unlink(path)


def _info(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _MOMENT)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o600 << 16
    return info


def _write_journal(file: zipfile.ZipFile, store: Store, journal: str, number: int) -> Json:
    name = f"journals/{number:06}.jsonl"
    chain, last = first_hash(journal), 0
    with file.open(_info(name), "w", force_zip64=True) as to:
        for seq, at, event in store.read(journal):
            kind, body = encode(event)
            chain, last = next_hash(chain, seq, at, kind, body), seq
            line = {"seq": seq, "at": at, "kind": kind, "body": body, "hash": chain.hex()}
            to.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
    return {"name": journal, "file": name, "last": last, "hash": chain.hex()}


def _head(chosen: Selection, journals: list[Json], at: int) -> dict[str, Json]:
    return {
        "schema": f"{FORMAT}{NUMBER}",
        "kind": chosen.kind,
        "holdfast": VERSION,
        "at": at,
        "runs": [
            {
                "run": row.run,
                "project": row.project,
                "line": row.line,
                "number": row.number,
                "fence": row.fence,
                "imported": row.imported,
            }
            for row in chosen.runs
        ],
        "journals": journals,
        "contents": list(chosen.contents),
        "absent": list(chosen.absent),
        "learned": None if chosen.learned is None else encode(chosen.learned)[1],
    }


# --- reading ----------------------------------------------------------------------------------


class Archive:
    """An export that was read and found whole; fills the port `Facts`."""

    def __init__(self, path: str, source: Bounded, may: Allowance) -> None:
        self.path = path
        self._source = source
        self._file = zipfile.ZipFile(source)
        self._may = may
        self._at = "its listing"  # what is being read, for whoever is told that it cannot be
        self.kind = ""
        self.absent: tuple[Digest, ...] = ()
        self.learned: RunImported | None = None
        self._listed: tuple[Digest, ...] = ()
        self._runs: list[RunRow] = []
        self._journals: dict[str, tuple[str, int, str]] = {}
        self._contents: dict[Digest, str] = {}

    @classmethod
    def open(cls, path: str, max_bytes: int | None = None) -> Self:
        """Read a file and check everything in it; UsageError says what is wrong with it."""
        with contextlib.ExitStack() as opened:
            try:
                may = allowance(path, max_bytes)
                source = opened.enter_context(Bounded(path, may.listing))
                archive = cls(path, source, may)
            except OSError as error:
                raise UsageError(f"'{path}' cannot be read: {error.strerror or error}") from error
            except TooMuchError as error:
                raise UsageError(f"'{path}' is refused: it lists too much", hint=_MORE) from error
            except _BROKEN as error:
                raise _no_export(path) from error
            archive._check()
            opened.pop_all()
            return archive

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check(self) -> None:
        try:
            self._check_names()
            self._read_head()
            for journal in self._journals:
                self._check_journal(journal)
            for digest in self._contents:
                self._check_content(digest)
            for row in self._runs:
                self._check_run(row)
            for digest in self._listed:
                if digest not in self._contents:
                    raise self._refusal(f"content '{digest}' is missing")
        except IntegrityError as error:
            raise self._refusal(f"{self._at}: {error.message}", error.hint or _ANEW) from error
        except UsageError:
            raise
        except (*_BROKEN, OSError, RecursionError) as error:
            what = f"{self._at} cannot be read: {_fault(error)}"
            raise self._refusal(what, _ANEW) from error

    def _refusal(self, what: str, hint: str | None = None) -> UsageError:
        return UsageError(f"'{self.path}' is refused: {what}", hint=hint)

    def _check_names(self) -> None:
        items = self._file.infolist()
        if len(items) > _MAX_ENTRIES:
            raise self._refusal(f"it has {len(items)} entries")
        if HEAD not in {item.filename for item in items}:
            raise _no_export(self.path)
        seen: set[str] = set()
        total = 0
        for item in items:
            name = item.filename
            found = _NAME.fullmatch(name)
            if not found and name != HEAD:
                raise self._refusal(f"'{name}' does not belong in an export")
            if name in seen:
                raise self._refusal(f"'{name}' is in it twice")
            if item.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
                raise self._refusal(f"'{name}' is compressed in a way that exports do not use")
            if item.flag_bits & 0x1:
                raise self._refusal(f"'{name}' is encrypted")
            seen.add(name)
            total += item.file_size
            if found and found[2]:
                self._contents[Digest(found[2])] = name
        if total > self._may.total:
            raise self._refusal(
                f"it unpacks to {total} bytes, more than the {self._may.total} that are allowed",
                _MORE,
            )

    def _read_head(self) -> None:
        self._at = f"its {HEAD}"
        if (size := self._file.getinfo(HEAD).file_size) > self._may.text:
            raise self._refusal(f"its {HEAD} is too large", _MORE)
        with self._file.open(HEAD) as text:  # all at once would unpack more than it says it has
            head = cast("Mapping[str, Json]", json.loads(text.read(size + 1)))
        _check_schema(self.path, head.get("schema"))
        self.kind = str(head["kind"])
        if self.kind not in {"run", "store"}:
            raise self._refusal(f"it holds a '{self.kind}'")
        files: set[str] = set()
        for item in cast("list[Mapping[str, str]]", head["journals"]):
            name, file, last, chain = item["name"], item["file"], int(item["last"]), item["hash"]
            if name in self._journals or file in files:
                raise self._refusal(f"journal '{name}' is in it twice")
            self._journals[name] = (file, last, chain)
            files.add(file)
        for row in cast("list[Mapping[str, str]]", head["runs"]):
            self._runs.append(_row(row))
        self.absent = tuple(Digest(item) for item in cast("list[str]", head["absent"]))
        listed = cast("list[str]", head.get("contents", []))
        self._listed = tuple(Digest(item) for item in listed)
        if not all(is_digest(item) for item in (*self.absent, *self._listed)):
            raise self._refusal("it names contents that are none")
        self._check_head()
        if (learned := head.get("learned")) is not None:
            self.learned = self._learned(str(learned))

    def _learned(self, body: str) -> RunImported:
        event = decode("run_imported", body)
        check_event(event)
        if not isinstance(event, RunImported) or self.kind != "run":
            raise self._refusal("it says what a run learned and holds no single run")
        return event

    def _check_head(self) -> None:
        files = {name for name in self._file.namelist() if name.startswith("journals/")}
        if files != {file for file, _, _ in self._journals.values()}:
            raise self._refusal("its journals are not the ones it names")
        runs = [row.run for row in self._runs]
        if not runs:
            raise self._refusal("it holds no run")
        if len({*runs}) != len(runs) or len({row.number for row in self._runs}) != len(runs):
            raise self._refusal("a run is in it twice")
        own = {f"run:{run}" for run in runs}
        if {name for name in self._journals if not name.startswith("line:")} != own:
            raise self._refusal("its journals do not fit its runs")
        if self.kind == "run" and [*self._journals] != [*own]:
            raise self._refusal("it is the export of one run and holds something else")

    def _check_journal(self, journal: str) -> None:
        file, last, chain = self._journals[journal]
        if self._file.getinfo(file).file_size > _MAX_JOURNAL:
            raise self._refusal(f"journal '{journal}' is too large")
        self._at = f"event 1 of journal '{journal}'"
        now, seq = first_hash(journal), 0
        for found, at, kind, body, stored in self._lines(journal):
            seq += 1
            now = next_hash(now, seq, at, kind, body)
            if found != seq or now.hex() != stored:
                raise self._refusal(f"journal '{journal}' is broken at event {seq}")
            event = decode(kind, body)
            check_event(event)
            if encode(event) != (kind, body):
                raise self._refusal(
                    f"journal '{journal}': event {seq} is not as Holdfast writes it"
                )
            self._at = f"event {seq + 1} of journal '{journal}'"
        if seq != last or now.hex() != chain or not last:
            raise self._refusal(f"journal '{journal}' does not end as it should")

    def _lines(self, journal: str) -> Iterator[tuple[int, int, str, str, str]]:
        with self._file.open(self._journals[journal][0]) as text:
            while line := text.readline(self._may.text + 1):
                if len(line) > self._may.text:
                    raise self._refusal(
                        f"journal '{journal}' has an event that is too large", _MORE
                    )
                item = json.loads(line)
                seq, at, kind, body = item["seq"], item["at"], item["kind"], item["body"]
                if type(seq) is not int or type(at) is not int or not 0 <= at < 1 << 53:
                    raise self._refusal(f"journal '{journal}' has a number that is none")
                yield seq, at, str(kind), str(body), str(item["hash"])

    def _check_content(self, digest: Digest) -> None:
        self._at = f"content '{digest}'"
        whole = hashlib.sha256()
        for piece in self.chunks(digest):
            whole.update(piece)
        if whole.hexdigest() != digest:
            raise self._refusal(f"content '{digest}' is not what its name says")

    def _check_run(self, row: RunRow) -> None:
        self._at = f"run '{row.run}'"
        first = next(self.read(f"run:{row.run}")).event
        named = isinstance(first, RunStarted) and (first.run, first.project, first.line)
        if named != (row.run, row.project, row.line):
            raise self._refusal(f"run '{row.run}' is not the one its journal tells of")

    # the port `Facts`

    def read(self, journal: str, after: int = 0) -> Iterator[Recorded]:
        if journal in self._journals:
            for seq, at, kind, body, _ in self._lines(journal):
                if seq > after:
                    yield Recorded(seq, at, decode(kind, body))

    def journals(self) -> Sequence[str]:
        return list(self._journals)

    def runs(self, line: str | None = None, *, imported: bool = False) -> Sequence[RunRow]:
        rows = sorted(self._runs, key=lambda row: row.number)
        return [row for row in rows if line in {None, row.line} and (imported or not row.imported)]

    def get(self, digest: Digest) -> bytes:
        name = self._contents.get(digest)
        if name is None:
            raise IntegrityError(f"content '{digest}' is missing")
        if self._file.getinfo(name).file_size > self._may.content:
            raise IntegrityError(f"content '{digest}' is too large to be read at once", hint=_MORE)
        return b"".join(self.chunks(digest))

    def chunks(self, digest: Digest) -> Iterator[bytes]:
        """A content in pieces, never more than the file said it has."""
        with self._file.open(self._contents[digest]) as content:
            while piece := content.read(_PIECE):
                yield piece

    def contents(self) -> Iterable[Digest]:
        """The digests of all contents."""
        return self._contents.keys()

    def last(self, journal: str) -> tuple[int, Digest]:
        """How a journal ends: number and chain."""
        _, last, chain = self._journals[journal]
        return last, Digest(chain)


def _fault(error: BaseException) -> str:
    """What is wrong, in a person's words; those of a library say what it was doing, not what is to do."""
    match error:
        case OSError():
            return error.strerror or "the system refuses"
        case RecursionError():
            return "it is nested too deeply"
        case UnicodeDecodeError():
            return "it is not UTF-8"
        case json.JSONDecodeError():
            return "it is no JSON, or ends too early"
        case zipfile.BadZipFile() | zlib.error() | EOFError():
            return "its bytes are damaged"
        case NotImplementedError() | RuntimeError():
            return "it is packed in a way that exports do not use"
        case _:
            return "something that belongs in it is missing or has another form"


def _no_export(path: str) -> UsageError:
    return UsageError(
        f"'{path}' is no export of holdfast",
        hint="'holdfast export RUN FILE' writes one; plans are files of YAML, JSON or Python",
    )


def _check_schema(path: str, schema: Json) -> None:
    text = schema if isinstance(schema, str) else ""
    number = text.removeprefix(FORMAT)
    if not text.startswith(FORMAT) or not is_count(number):
        raise _no_export(path)
    if int(number) != NUMBER:
        raise UsageError(
            f"'{path}' has export format {number}, this Holdfast knows format {NUMBER}",
            hint="upgrade holdfast" if int(number) > NUMBER else None,
        )


def _row(item: Mapping[str, Json]) -> RunRow:
    run, project, line = item["run"], item["project"], item["line"]
    number, fence, imported = item["number"], item["fence"], item["imported"]
    if not isinstance(run, str) or not is_run(run):
        raise IntegrityError("a run in it has no proper id")
    if not isinstance(project, str) or not isinstance(line, str) or type(imported) is not bool:
        raise IntegrityError(f"run '{run}' is not described as it should be")
    if type(number) is not int or type(fence) is not int:
        raise IntegrityError(f"run '{run}' is not described as it should be")
    if not (0 < number < 1 << 40 and 0 < fence < 1 << 40):
        raise IntegrityError(f"run '{run}' has a number that cannot be")
    return RunRow(RunId(run), project, line, number, fence, imported)
