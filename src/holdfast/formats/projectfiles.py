"""Files of the project whose text becomes part of the plan: prompts and JSON Schemas."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from holdfast.errors import PlanError, outside_fault
from holdfast.formats.expressions import file_template, text_template
from holdfast.formats.nodes import FORBIDDEN, Mapping, Node, Scalar, read
from holdfast.formats.problems import MOST_CANDIDATES, Problems, quoted
from holdfast.formats.reading import Reading, kind_of
from holdfast.formats.shapes import inside, plain, text
from holdfast.formats.soundness import check_value
from holdfast.model.digest import Json

LARGEST = 16 * 1024 * 1024
PROMPT_FILES = (".md", ".txt", ".prompt")


def prompt_text(reading: Reading, key: str, node: Node) -> str | None:
    """A text, or the content of the file it names."""
    value = node.value if isinstance(node, Scalar) else None
    if not isinstance(value, str) or not value.endswith(PROMPT_FILES) or "\n" in value:
        return text_template(reading, key, node)
    is_text = " " in value.strip() and not _exists(reading.root, value)
    if is_text:
        return text_template(reading, key, node)
    found = _file_text(reading, key, node, value)
    return None if found is None else file_template(reading, key, node, value, found)


def rubric_text(reading: Reading, key: str, node: Node) -> str | None:
    """A text, or the content of the file it names; nothing is filled in."""
    value = text(reading, key, node)
    if value is None or not value.endswith(PROMPT_FILES) or "\n" in value:
        return value
    if " " in value.strip() and not _exists(reading.root, value):
        return value
    return _file_text(reading, key, node, value)


def _file_text(reading: Reading, key: str, node: Node, value: str) -> str | None:
    known = reading.contents.get(f"prompt {value}")
    if isinstance(known, str):
        return known
    content = file_content(reading, key, node, value)
    if content is None:
        return None
    try:
        found = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        reading.problems.add("P045", node, f"{quoted(value)} is not UTF-8 text")
        return None
    odd = FORBIDDEN.search(found)
    if odd:
        message = f"{quoted(value)} holds the character U+{ord(odd.group()):04X}"
        reading.problems.add("P045", node, message)
        return None
    reading.contents[f"prompt {value}"] = found
    return found


def json_schema(reading: Reading, key: str, node: Node) -> Json:
    """A JSON Schema written in the plan, or the content of the file that is named."""
    if isinstance(node, Mapping):
        written = plain(reading, key, node)
        check_value(reading, "json-schema", written, node)
        return written
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        message = f"{reading.label(key)} must be a file or a mapping, not {kind_of(node)}"
        hint = "name a file, or write the schema out as a mapping"
        reading.problems.add("P032", node, message, hint)
        return None
    value = node.value
    known = reading.contents.get(f"schema {value}")
    if known is not None:
        return known
    content = file_content(reading, key, node, value)
    if content is None:
        return None
    found = _parsed(reading, node, value, content)
    if found is not None:
        reading.contents[f"schema {value}"] = found
    return found


def _parsed(reading: Reading, node: Node, name: str, content: bytes) -> Json:
    """The problems of that file are problems of this load, where the plan names it."""
    own = Problems(name)
    try:
        tree = read(content, own, strict_json=name.endswith(".json"))
        if not isinstance(tree, Mapping):
            own.add("P045", tree, f"a JSON Schema is a mapping, not {kind_of(tree)}")
        found = plain(Reading(own, reading.root), name, tree)
        own.stop()
        check_value(reading, "json-schema", found, tree, problems=own, named=node)
        own.stop()
        return found
    except PlanError as error:
        for item in error.problems:
            message = f"{name}:{item.line}:{item.column}: {item.message}"
            reading.problems.add(item.code, node, message, item.hint)
        return None


def file_content(reading: Reading, key: str, node: Node, value: str) -> bytes | None:
    """The bytes of a file of the project; nothing after it reported why not."""
    parts = inside(reading, key, node, value)
    if parts is None:
        return None
    try:
        file = reading.root.joinpath(*parts)
        if not file.resolve().is_relative_to(reading.root.resolve()):
            message = f"{quoted(value)} in {reading.label(key)} leads out of the project"
            reading.problems.add("P043", node, message)
            return None
        if not file.is_file():
            message = f"there is no file {quoted(value)} for {reading.label(key)}"
            reading.problems.add("P045", node, message, _neighbour(reading, file))
            return None
        if file.stat().st_size > LARGEST:
            message = f"{quoted(value)} is larger than {LARGEST // (1024 * 1024)} MB"
            reading.problems.add("P045", node, message)
            return None
        return file.read_bytes()
    except (OSError, ValueError, RuntimeError) as error:
        if (fault := outside_fault(error)) is not None:
            raise fault from error
        reason = error.strerror if isinstance(error, OSError) else None
        message = f"{quoted(value)} cannot be read: {(reason or 'no usable name').lower()}"
        reading.problems.add("P045", node, message)
        return None


def _neighbour(reading: Reading, file: Path) -> str:
    """A file beside it that may be meant; that both are `.json` makes no two names alike."""
    if not file.parent.is_dir():
        return ""
    names = sorted(item.name for item in islice(file.parent.iterdir(), MOST_CANDIDATES))
    names.sort(key=lambda name: name.endswith(file.suffix))
    stems = {Path(name).stem: name for name in names}
    near = reading.problems.nearest(file.stem, stems)
    return f"did you mean '{stems[near]}'?" if near else ""


def _exists(root: Path, value: str) -> bool:
    try:
        return (root / value).is_file()
    except (OSError, ValueError):
        return False
