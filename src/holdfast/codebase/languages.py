"""Which language a file is written in, told by its name; which of them are parsed."""

from __future__ import annotations

import os
from typing import Final

PARSED: Final = ("python", "javascript", "typescript", "tsx", "go", "rust", "java")

_BY_SUFFIX: Final = {
    "python": ".py .pyi .pyw",
    "javascript": ".js .jsx .mjs .cjs",
    "typescript": ".ts .mts .cts",
    "tsx": ".tsx",
    "go": ".go",
    "rust": ".rs",
    "java": ".java",
    "c": ".c .h",
    "c++": ".cc .cpp .cxx .hh .hpp .hxx .inl",
    "c#": ".cs",
    "css": ".css .scss .sass .less",
    "dart": ".dart",
    "elixir": ".ex .exs",
    "haskell": ".hs",
    "html": ".html .htm .xhtml .jinja .j2 .vue .svelte",
    "json": ".json .jsonc .json5",
    "kotlin": ".kt .kts",
    "lua": ".lua",
    "markdown": ".md .mdx .markdown",
    "perl": ".pl .pm",
    "php": ".php",
    "protobuf": ".proto",
    "restructuredtext": ".rst",
    "ruby": ".rb .rake .gemspec",
    "scala": ".scala",
    "shell": ".sh .bash .zsh .fish",
    "sql": ".sql",
    "swift": ".swift",
    "text": ".txt .adoc",
    "toml": ".toml",
    "xml": ".xml .svg .xsd",
    "yaml": ".yaml .yml",
    "zig": ".zig",
}
_SUFFIX: Final = {one: name for name, many in _BY_SUFFIX.items() for one in many.split()}
_NAMES: Final = {
    "dockerfile": "dockerfile",
    "makefile": "make",
    "gnumakefile": "make",
    "gemfile": "ruby",
    "rakefile": "ruby",
    "cmakelists.txt": "cmake",
    "go.mod": "go.mod",
}
OTHER: Final = "other"
LANGUAGES: Final = tuple(sorted({*_BY_SUFFIX, *_NAMES.values(), OTHER}))


def language_of(path: str) -> str:
    """The language of a file; `other` if its name does not tell."""
    name = os.path.basename(path).lower()
    return _NAMES.get(name) or _SUFFIX.get(os.path.splitext(name)[1], OTHER)


def suffixes_of(language: str) -> tuple[str, ...]:
    """How files of a language end; none for a language that is told by whole names."""
    return tuple(_BY_SUFFIX.get(language, "").split())


def names_of(language: str) -> tuple[str, ...]:
    """Whole names, in small letters, that tell a language."""
    return tuple(name for name, one in _NAMES.items() if one == language)
