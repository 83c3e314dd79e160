"""YAML that people write beside us: read without running anything, written back with all that they wrote."""

from __future__ import annotations

import io
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from holdfast.errors import UsageError
from holdfast.model.text import first_line

if TYPE_CHECKING:
    from collections.abc import MutableMapping

WIDE = 4096  # no line is broken that somebody wrote whole


def read_plain(text: str, what: str) -> object:
    """The value in a text; UsageError says that `what` cannot be read, and why."""
    return _read(_library(typ="safe", pure=True), text, what)


def read_kept(text: str, what: str) -> object:
    """The same, with comments, quotes and order, for `text_of`."""
    return _read(_keeping(), text, what)


def empty() -> MutableMapping[str, Any]:
    """A mapping to be written, one key on each line."""
    fresh = _keeping().load("{}")
    fresh.fa.set_block_style()
    return fresh  # type: ignore[no-any-return] # the library says nothing of it


def text_of(value: object) -> str:
    """A value as YAML."""
    out = io.StringIO()
    _keeping().dump(value, out)
    return out.getvalue()


def _read(yaml: Any, text: str, what: str) -> object:  # noqa: ANN401 - the library's own
    from ruamel.yaml.error import YAMLError  # noqa: PLC0415 - an extra

    try:
        return yaml.load(text)
    except (YAMLError, ValueError, RecursionError) as error:
        raise UsageError(f"{what} cannot be read: {first_line(str(error))}") from error


def _keeping() -> Any:  # noqa: ANN401 - the library's own
    yaml = _library()
    yaml.preserve_quotes = True
    yaml.width = WIDE
    yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


def _library(**how: object) -> Any:  # noqa: ANN401 - the library's own
    if find_spec("ruamel") is None:
        raise UsageError(
            "tickets need ruamel.yaml, which is not installed", hint="pip install 'holdfast[work]'"
        )
    from ruamel.yaml import YAML  # noqa: PLC0415 - an extra

    return YAML(**how)  # type: ignore[arg-type] # as the callers above say
