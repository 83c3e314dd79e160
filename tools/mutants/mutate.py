"""Small wrong changes of a module, one at a time, each with a name that outlives the lines around it.

What is not changed: docstrings, annotations, decorators, the words of an error, and texts with a space in
them, also pieces of f-strings. Those are wording or types; the other gates look at them.
"""

from __future__ import annotations

import ast
import collections
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple

MODULE: Final = "<module>"
_LONGEST: Final = 90

_COMPARED: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_COUNTED: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_CALLED: Final = {"min": "max", "max": "min", "any": "all", "all": "any"}
_NEGATED_BY_COMPARING: Final = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)
_OF_TYPES: Final = {"Literal", "TypeVar", "NewType", "cast", "Annotated", "TypeAlias"}
_ONCE: Final = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.Expr, ast.If)
_PLAIN: Final = {"bool", "bytes", "dict", "float", "int", "list", "str", "tuple", "type"}
_UNTOUCHED: Final = {"annotation", "returns", "decorator_list", "type_params", "format_spec"}


class Change(NamedTuple):
    """One node in place of another; the two texts and the lines show where it matters."""

    kind: str
    before: ast.AST
    after: ast.AST | None
    replacement: ast.AST


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of a module; `function` is the outermost one around it, which is compiled anew."""

    module: str
    function: str
    is_code: bool  # else it is read once, when the module is loaded
    kind: str
    text: str
    number: int  # among those of this function with the same text
    first: int
    last: int
    statement: tuple[int, int]
    index: int  # among those of the module

    @property
    def name(self) -> str:
        return f"{self.module}:{self.function}: {self.text} #{self.number}"


class _Place(NamedTuple):
    node: ast.AST
    put: Callable[[ast.AST], None]
    function: str
    is_code: bool
    statement: tuple[int, int]
    is_predicate: bool  # inside a function that answers yes or no


def mutants(module: str, source: str) -> list[Mutant]:
    seen: collections.Counter[tuple[str, str]] = collections.Counter()
    found: list[Mutant] = []
    for place, change in _all(ast.parse(source)):
        after = "nothing" if change.after is None else _short(change.after)
        text = f"{_short(change.before)} → {after}"
        seen[place.function, text] += 1
        first = int(getattr(change.before, "lineno", place.statement[0]))
        one = Mutant(
            module,
            place.function,
            place.is_code,
            change.kind,
            text,
            seen[place.function, text],
            first,
            int(getattr(change.before, "end_lineno", None) or first),
            place.statement,
            len(found),
        )
        found.append(one)
    return found


def mutated(source: str, chosen: Mutant, *, alone: bool = False) -> ast.Module:
    """The whole module with this one change, or no more than the function or class around it."""
    tree = ast.parse(source)
    place, change = next(islice(_all(tree), chosen.index, None))
    place.put(change.replacement)
    if alone:
        top = chosen.function.partition(".")[0]
        tree.body = [one for one in tree.body if getattr(one, "name", top) == top]
        tree.body = [one for one in tree.body if not isinstance(one, _ONCE) or _is_future(one)]
    return ast.fix_missing_locations(tree)


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _all(tree: ast.Module) -> Iterator[tuple[_Place, Change]]:
    for place in list(_places(tree)):
        for change in _changes(place):
            yield place, change


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _places(tree: ast.Module) -> Iterator[_Place]:
    stack: list[tuple[ast.AST, str, bool, tuple[int, int], bool]] = [
        (tree, MODULE, False, (1, 1), False)
    ]
    while stack:
        node, function, is_code, statement, predicate = stack.pop()
        below: list[tuple[ast.AST, str, bool, tuple[int, int], bool]] = []
        for child, put, name in _children(node):
            at, inside, within, answers = statement, function, is_code, predicate
            if isinstance(child, ast.stmt):
                at = _lines(child)
            if isinstance(node, ast.FunctionDef) and name == "body":
                within = True
                returns = node.returns
                answers = isinstance(returns, ast.Name) and returns.id == "bool"
            if isinstance(child, ast.ClassDef | ast.FunctionDef) and not within:
                inside = child.name if function == MODULE else f"{function}.{child.name}"
            if not _is_skipped(child):
                yield _Place(child, put, inside, within, at, answers)
                below.append((child, inside, within, at, answers))
        stack.extend(reversed(below))


def _children(node: ast.AST) -> Iterator[tuple[ast.AST, Callable[[ast.AST], None], str]]:
    for name, value in ast.iter_fields(node):
        if name in _UNTOUCHED or (isinstance(node, ast.Raise) and name in {"exc", "cause"}):
            continue
        if isinstance(value, list):
            for index, one in enumerate(value):
                if isinstance(one, ast.AST):
                    yield one, partial(value.__setitem__, index), name
        elif isinstance(value, ast.AST):
            yield value, partial(setattr, node, name), name


def _lines(node: ast.stmt) -> tuple[int, int]:
    """Of the statement itself, without those inside it."""
    body = getattr(node, "body", None) or getattr(node, "cases", None)
    last = node.end_lineno or node.lineno
    if body:
        first = body[0].pattern if isinstance(body[0], ast.match_case) else body[0]
        last = max(node.lineno, first.lineno - 1)
    return node.lineno, last


def _is_skipped(node: ast.AST) -> bool:
    match node:
        case ast.Expr(value=ast.Constant(value=str())) | ast.Import() | ast.ImportFrom():
            return True
        case ast.keyword(arg="strict"):
            return True  # of zip: it only guards against what cannot be
        case ast.Subscript(value=ast.Name(id=name)) | ast.Call(func=ast.Name(id=name)):
            return name in _OF_TYPES
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Assign(targets=[ast.Name(id="__all__" | "__slots__")]):
            return True
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return _is_type(left) or _is_type(right)
        case _:
            return False


def _is_type(node: ast.expr) -> bool:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in _PLAIN or (name[:1].isupper() and not name.isupper())
        case ast.Constant(value=None):
            return True
        case _:
            return False


def _with(node: ast.AST, **fields: object) -> Any:  # noqa: ANN401  # a node of the same class
    return type(node)(**{**vars(node), **fields})


def _negated(node: ast.expr) -> ast.expr:
    return ast.copy_location(ast.UnaryOp(ast.Not(), node), node)


def _changes(place: _Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.stmt):
        yield from _of_statement(node, place)
    elif isinstance(node, ast.expr):
        yield from _of_expression(node)
    if isinstance(node, ast.comprehension):
        for index, test in enumerate(node.ifs):
            rest = [*node.ifs[:index], *node.ifs[index + 1 :]]
            yield Change("filter", test, None, _with(node, ifs=rest))
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        yield from _of_test(node, "test", node.test)
    elif isinstance(node, ast.match_case) and node.guard:
        yield from _of_test(node, "guard", node.guard)


def _of_test(node: ast.AST, field: str, test: ast.expr) -> Iterator[Change]:
    if not _is_negated_anyway(test):
        other = _negated(test)
        yield Change("condition", test, other, _with(node, **{field: other}))


def _is_negated_anyway(test: ast.expr) -> bool:
    match test:
        case ast.UnaryOp(op=ast.Not()) | ast.Constant():
            return True
        case ast.Compare(ops=[one]):
            return isinstance(one, _NEGATED_BY_COMPARING)
        case _:
            return False


def _of_statement(node: ast.stmt, place: _Place) -> Iterator[Change]:
    gone = ast.copy_location(ast.Pass(), node)
    match node:
        case ast.Expr(value=ast.Yield() | ast.YieldFrom() | ast.Await() as value):
            never = ast.BoolOp(ast.And(), [ast.Constant(0), value])  # still a generator
            yield Change("removed", node, None, _with(node, value=never))
        case ast.Expr() | ast.Raise() | ast.Assert() | ast.Delete():
            yield Change("removed", node, None, gone)
        case ast.Break() | ast.Continue():
            yield Change("removed", node, None, gone)
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield Change("removed", node, None, gone)
        case ast.Assign(targets=[ast.Tuple(elts=[ast.Attribute(), *_])]):
            yield Change("removed", node, None, gone)
        case ast.AugAssign():
            yield Change("removed", node, None, gone)
            if other := _COUNTED.get(type(node.op)):
                changed = _with(node, op=other())
                yield Change("arithmetic", node, changed, changed)
        case ast.Return(value=ast.expr() as value) if place.is_code:
            if place.is_predicate and not _is_negated_anyway(value):
                changed = _with(node, value=_negated(value))
                yield Change("returned", node, changed, changed)
            elif not place.is_predicate and not isinstance(value, ast.Constant):
                changed = _with(node, value=ast.Constant(None))
                yield Change("returned", node, changed, changed)
        case ast.Match(cases=cases) if len(cases) > 1:
            for index, case in enumerate(cases):
                if not isinstance(case.body[0], ast.Raise):
                    rest = [*cases[:index], *cases[index + 1 :]]
                    yield Change("case", case.pattern, None, _with(node, cases=rest))
        case _:
            pass


def _of_expression(node: ast.expr) -> Iterator[Change]:
    match node:
        case ast.Compare(ops=ops):
            for index, one in enumerate(ops):
                changed = _with(node, ops=[*ops[:index], _COMPARED[type(one)](), *ops[index + 1 :]])
                yield Change("comparison", node, changed, changed)
        case ast.BoolOp(op=op):
            changed = _with(node, op=ast.Or() if isinstance(op, ast.And) else ast.And())
            yield Change("and/or", node, changed, changed)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield Change("not", node, operand, _with(node, operand=_negated(operand)))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            yield Change("sign", node, operand, operand)
        case ast.BinOp(op=op) if type(op) in _COUNTED:
            changed = _with(node, op=_COUNTED[type(op)]())
            yield Change("arithmetic", node, changed, changed)
        case ast.Call():
            yield from _of_call(node)
        case ast.Constant(value=value):
            if (new := _other(value)) is not None:
                changed = _with(node, value=new)
                yield Change("constant", node, changed, changed)
        case _:
            pass


def _of_call(node: ast.Call) -> Iterator[Change]:
    if isinstance(node.func, ast.Name) and node.func.id in _CALLED:
        changed = _with(node, func=_with(node.func, id=_CALLED[node.func.id]))
        yield Change("called", node, changed, changed)
    for index, keyword in enumerate(node.keywords):
        if _is_skipped(keyword):
            continue
        rest = [*node.keywords[:index], *node.keywords[index + 1 :]]
        yield Change("argument", keyword, None, _with(node, keywords=rest))


def _other(value: object) -> object:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str() if not any(letter.isspace() for letter in value):
            return f"{value}~"
        case _:
            return None
