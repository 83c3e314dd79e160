"""What a parser finds in sources of each language."""

import pytest

from holdfast.codebase.facts import Outline
from holdfast.codebase.outline import outline_of
from tests.codebase import languages


def outlined(source: str, language: str) -> Outline:
    found = outline_of(source.encode(), language)
    assert found is not None, f"no grammar of {language} is installed"
    return found


def names(outline: Outline) -> list[str]:
    return [
        f"{symbol.kind} {symbol.scope + '.' if symbol.scope else ''}{symbol.name}"
        for symbol in outline.symbols
    ]


def imports(outline: Outline) -> list[str]:
    return [f"{one.name} > {one.item}" if one.item else one.name for one in outline.imports]


@pytest.mark.req("R138")
def test_python_has_classes_methods_functions_constants_and_imports() -> None:
    found = outlined(languages.PYTHON, "python")
    assert names(found) == [
        "constant LIMIT",
        "class Session",
        "method Session.open",
        "class Session.Key",
        "method Session.Key.text",
        "function close_all",
        "function close_all.one",
        "function checked",
    ]
    assert imports(found) == [
        "os.path",
        "collections > abc",
        ".store > Store",
        ".store > open_store",
        ". > helpers",
        "app.errors",
        "importlib > resources",
        "importlib > util",
        "app > late",
    ]
    assert found.flaws == 0


@pytest.mark.req("R138")
def test_javascript_has_functions_however_they_are_written_and_all_kinds_of_import() -> None:
    found = outlined(languages.JAVASCRIPT, "javascript")
    assert names(found) == [
        "constant path",
        "constant LIMIT",
        "class App",
        "method App.constructor",
        "method App.listen",
        "function start",
        "function main",
        "function handler",
        "function use",
        "function stop",
    ]
    assert imports(found) == ["node:path", "./router", "./types.js", "./lazy"]


@pytest.mark.req("R138")
def test_typescript_has_types_interfaces_and_enums() -> None:
    found = outlined(languages.TYPESCRIPT, "typescript")
    assert names(found) == [
        "interface Store",
        "type Id",
        "enum Colour",
        "class Base",
        "method Base.name",
        "method Base.open",
        "module Inner",
        "function parse",
        "function outside",
    ]
    assert imports(found) == ["../model/user", "fs"]


@pytest.mark.req("R138")
def test_tsx_has_components() -> None:
    found = outlined(languages.TSX, "tsx")
    assert names(found) == ["function Card", "class Page", "method Page.render"]
    assert imports(found) == ["react", "./Button"]


@pytest.mark.req("R138")
def test_go_has_methods_of_their_receivers() -> None:
    found = outlined(languages.GO, "go")
    assert names(found) == [
        "constant Limit",
        "constant ErrClosed",
        "struct Server",
        "interface Handler",
        "type Names",
        "function New",
        "method Server.Listen",
    ]
    assert imports(found) == ["fmt", "example.com/app/router"]


@pytest.mark.req("R138")
def test_rust_has_methods_of_their_types_and_each_path_of_a_use() -> None:
    found = outlined(languages.RUST, "rust")
    assert names(found) == [
        "module inline",
        "function inline.deep",
        "constant LIMIT",
        "struct Session",
        "enum Kind",
        "trait Open",
        "method Open.open",
        "type Id",
        "method Session.close",
        "macro twice",
        "function main",
    ]
    assert imports(found) == [
        "crate::store::Store",
        "crate::store::disk",
        "crate::store::disk::Page",
        "super::errors::Error",
        "std::io",
        "mod parser",
    ]


@pytest.mark.req("R138")
def test_java_has_what_classes_hold() -> None:
    found = outlined(languages.JAVA, "java")
    assert names(found) == [
        "class Session",
        "field Session.LIMIT",
        "method Session.Session",
        "method Session.close",
        "enum Session.State",
        "interface Session.Listener",
        "method Session.Listener.onClose",
        "class Point",
        "interface Marked",
    ]
    assert imports(found) == [
        "java.util.List",
        "com.example.store.Store",
        "com.example.model.*",
        "com.example.Checks > notNull",
    ]


def test_a_signature_ends_where_its_definition_ends() -> None:
    found = outlined("interface I { void go(); }\n", "java")
    assert [symbol.signature for symbol in found.symbols] == ["interface I", "void go()"]


def test_a_symbol_has_its_lines_and_a_signature_without_its_body() -> None:
    found = outlined(languages.PYTHON, "python")
    opened = next(symbol for symbol in found.symbols if symbol.name == "open")
    assert (opened.line, opened.end) == (20, 23)
    assert opened.signature == 'def open(self, name: str) -> "Session"'


@pytest.mark.parametrize(
    "language", ["python", "javascript", "typescript", "tsx", "go", "rust", "java"]
)
def test_what_cannot_be_parsed_is_counted_and_the_rest_is_found(language: str) -> None:
    source = {
        "python": "def good(): pass\n)))(\ndef (\n",
        "go": "package a\nfunc good() {}\nfunc (((\n",
        "rust": "fn good() {}\nfn ((( {\n",
        "java": "class good {}\nclass ((( {\n",
    }.get(language, "function good() {}\nfunction ((( {\n")
    found = outlined(source, language)
    assert found.flaws > 0
    assert "good" in {symbol.name for symbol in found.symbols}


def test_a_language_without_a_grammar_has_no_outline() -> None:
    assert outline_of(b"(defun f ())", "other") is None


def test_bytes_that_are_no_utf_8_do_not_stop_a_parser() -> None:
    found = outline_of(b"def caf\xe9(): pass\ndef ok(): pass\n", "python")
    assert found is not None
    assert "ok" in {symbol.name for symbol in found.symbols}
