"""The grammars of the parsed languages, and the patterns that find symbols and imports in them.

A pattern captures the definition under the kind of its symbol and its name as `name`; what an import asks
for is captured as `import`. Grammars of other versions may lack a kind of node: a pattern that a grammar
does not know is left out. Nothing deeper than its depth is looked at: inside of functions there is little
that others name, and most of the nodes.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from tree_sitter import Language, Parser, Query, QueryCursor

_SCRIPT = """
(function_declaration name: (identifier) @name) @function
(generator_function_declaration name: (identifier) @name) @function
(method_definition name: (property_identifier) @name) @method
(lexical_declaration (variable_declarator name: (identifier) @name value: (arrow_function))) @function
(lexical_declaration (variable_declarator name: (identifier) @name value: (function_expression))) @function
(program (lexical_declaration (variable_declarator name: (identifier) @name)) @constant)
(program (export_statement (lexical_declaration (variable_declarator name: (identifier) @name)) @constant))
(program (variable_declaration (variable_declarator name: (identifier) @name)) @constant)
(assignment_expression left: (member_expression property: (property_identifier) @name)
  right: (function_expression)) @function
(assignment_expression left: (member_expression property: (property_identifier) @name)
  right: (arrow_function)) @function
(import_statement source: (string) @import)
(export_statement source: (string) @import)
((call_expression function: (identifier) @called arguments: (arguments . (string) @import))
  (#eq? @called "require"))
(call_expression function: (import) arguments: (arguments . (string) @import))
"""
_TYPED = """
(class_declaration name: (type_identifier) @name) @class
(abstract_class_declaration name: (type_identifier) @name) @class
(interface_declaration name: (type_identifier) @name) @interface
(type_alias_declaration name: (type_identifier) @name) @type
(enum_declaration name: (identifier) @name) @enum
(function_signature name: (identifier) @name) @function
(abstract_method_signature name: (property_identifier) @name) @method
(internal_module name: (identifier) @name) @module
(import_require_clause source: (string) @import)
"""
_PATTERNS = {
    "python": """
(class_definition name: (identifier) @name) @class
(function_definition name: (identifier) @name) @function
(module (expression_statement (assignment left: (identifier) @name) @constant))
(import_statement) @import
(import_from_statement) @import
""",
    "javascript": _SCRIPT + "(class_declaration name: (identifier) @name) @class\n",
    "typescript": _SCRIPT + _TYPED,
    "tsx": _SCRIPT + _TYPED,
    "go": """
(function_declaration name: (identifier) @name) @function
(method_declaration name: (field_identifier) @name) @method
(type_spec name: (type_identifier) @name type: (struct_type)) @struct
(type_spec name: (type_identifier) @name type: (interface_type)) @interface
(type_spec name: (type_identifier) @name) @type
(type_alias name: (type_identifier) @name) @type
(source_file (const_declaration (const_spec name: (identifier) @name) @constant))
(source_file (var_declaration (var_spec name: (identifier) @name) @constant))
(source_file (var_declaration (var_spec_list (var_spec name: (identifier) @name) @constant)))
(import_spec path: (interpreted_string_literal) @import)
(import_spec path: (raw_string_literal) @import)
""",
    "rust": """
(function_item name: (identifier) @name) @function
(function_signature_item name: (identifier) @name) @function
(struct_item name: (type_identifier) @name) @struct
(union_item name: (type_identifier) @name) @struct
(enum_item name: (type_identifier) @name) @enum
(trait_item name: (type_identifier) @name) @trait
(type_item name: (type_identifier) @name) @type
(const_item name: (identifier) @name) @constant
(static_item name: (identifier) @name) @constant
(macro_definition name: (identifier) @name) @macro
(mod_item name: (identifier) @name body: (declaration_list)) @module
(impl_item type: (type_identifier) @name) @scope
(impl_item type: (generic_type type: (type_identifier) @name)) @scope
(mod_item name: (identifier) @import !body)
(use_declaration argument: (_) @import)
(extern_crate_declaration name: (identifier) @import)
""",
    "java": """
(class_declaration name: (identifier) @name) @class
(interface_declaration name: (identifier) @name) @interface
(enum_declaration name: (identifier) @name) @enum
(record_declaration name: (identifier) @name) @class
(annotation_type_declaration name: (identifier) @name) @interface
(method_declaration name: (identifier) @name) @method
(constructor_declaration name: (identifier) @name) @method
(field_declaration declarator: (variable_declarator name: (identifier) @name)) @field
(import_declaration) @import
""",
}
_DEPTHS = {"python": 6, "javascript": 9, "typescript": 9, "tsx": 9, "go": 4, "rust": 6, "java": 7}
_MODULES = {
    "python": ("tree_sitter_python", "language"),
    "javascript": ("tree_sitter_javascript", "language"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "go": ("tree_sitter_go", "language"),
    "rust": ("tree_sitter_rust", "language"),
    "java": ("tree_sitter_java", "language"),
}


@dataclass(frozen=True, slots=True)
class Grammar:
    """A parser of one language, with the patterns that it knows."""

    language: str
    parser: Parser
    patterns: QueryCursor


@cache
def grammar_of(language: str) -> Grammar | None:
    """The grammar of a language; None if it has none here, or none is installed."""
    named = _MODULES.get(language)
    if named is None:
        return None
    try:
        sitter = importlib.import_module("tree_sitter")
        spoken = sitter.Language(getattr(importlib.import_module(named[0]), named[1])())
    except (ImportError, AttributeError, ValueError):  # missing, or of a version that does not fit
        return None
    cursor = sitter.QueryCursor(_query(sitter, spoken, _PATTERNS[language]))
    cursor.set_max_start_depth(_DEPTHS[language])
    return Grammar(language, sitter.Parser(spoken), cursor)


def _query(sitter: ModuleType, spoken: Language, patterns: str) -> Query:
    """All patterns together, or those of them that the grammar knows."""
    query: type[Query] = sitter.Query
    with suppress(sitter.QueryError):
        return query(spoken, patterns)
    known = []
    for pattern in re.split(r"\n(?=\()", patterns.strip()):
        with suppress(sitter.QueryError):
            query(spoken, pattern)
            known.append(pattern)
    return query(spoken, "\n".join(known))


@cache
def missing() -> tuple[str, ...]:
    """The languages that would be parsed if their grammars were installed."""
    return tuple(name for name in _MODULES if not _is_there(_MODULES[name][0]))


def _is_there(module: str) -> bool:
    try:
        return all(importlib.util.find_spec(one) is not None for one in ("tree_sitter", module))
    except ImportError:
        return False
