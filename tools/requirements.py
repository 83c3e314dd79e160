"""Print every due requirement with the tests that keep it; fail on a number that has none.

Markers are read from the source of the tests, never by running them: `@pytest.mark.req("R1", "R2")`
on a test or a class, or `pytestmark` in a class or module. A marker above several tests counts for
each of them. A test that is always skipped or expected to fail keeps nothing.
"""

import argparse
import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

KNOWN = frozenset(
    [f"R{n}" for n in range(1, 188)]
    + [f"E{n}" for n in range(1, 20)]
    + [f"D{n:02}" for n in range(1, 41)]
    + [f"I{n}" for n in range(1, 18)]
    + [f"C{n}" for n in range(1, 39)]
)

ORDER = "REDIC"


@dataclass(frozen=True)
class Mark:
    """One number on one test; `test` is None where the marked thing holds no test."""

    number: str
    file: str
    line: int
    test: str | None

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Due:
    numbers: tuple[str, ...]
    removed: dict[str, str]


@dataclass(frozen=True)
class Scope:
    """What a test inherits from the module and the classes around it."""

    file: str
    path: tuple[str, ...] = ()
    numbers: tuple[tuple[str, int], ...] = ()
    is_void: bool = False


def order(number: str) -> tuple[int, int]:
    return ORDER.index(number[0]), int(number[1:])


def read_due(file: Path) -> Due:
    table = tomllib.loads(file.read_text(encoding="utf-8"))
    return Due(numbers=tuple(table["due"]), removed=dict(table.get("removed", {})))


def read_marks(tests: Path) -> list[Mark]:
    marks: list[Mark] = []
    for file in sorted(tests.rglob("*.py")):
        name = file.relative_to(tests.parent).as_posix()
        tree = ast.parse(file.read_text(encoding="utf-8"), filename=name)
        marks += marks_of_body(tree.body, Scope(file=name))
    return marks


def marks_of_body(body: list[ast.stmt], outer: Scope) -> list[Mark]:
    own = [value for statement in body for value in pytestmark_values(statement)]
    scope = extend(outer, own)
    found: list[Mark] = []
    for statement in body:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                found += marks_of_function(statement, scope)
            case ast.ClassDef():
                found += marks_of_class(statement, scope)
            case _:
                pass
    if own and not found:
        found = [Mark(number, scope.file, line, None) for number, line in numbers_in(own)]
    return found


def marks_of_class(statement: ast.ClassDef, outer: Scope) -> list[Mark]:
    scope = extend(outer, statement.decorator_list, statement.name)
    found = marks_of_body(statement.body, scope)
    if any(mark.test for mark in found):
        return found
    # A class without tests of its own may inherit them; one without bases cannot.
    inherits = statement.name.startswith("Test") and bool(statement.bases) and not scope.is_void
    test = "::".join((scope.file, *scope.path)) if inherits else None
    if test is None and scope.numbers == outer.numbers:
        return found
    return [Mark(number, scope.file, line, test) for number, line in scope.numbers]


def marks_of_function(
    statement: ast.FunctionDef | ast.AsyncFunctionDef, outer: Scope
) -> list[Mark]:
    scope = extend(outer, statement.decorator_list, statement.name)
    if not statement.name.startswith("test"):
        own = numbers_in(statement.decorator_list)
        return [Mark(number, scope.file, line, None) for number, line in own]
    test = None if scope.is_void else "::".join((scope.file, *scope.path))
    return [Mark(number, scope.file, line, test) for number, line in scope.numbers]


def extend(outer: Scope, marks: list[ast.expr], name: str | None = None) -> Scope:
    return Scope(
        file=outer.file,
        path=outer.path if name is None else (*outer.path, name),
        numbers=(*outer.numbers, *numbers_in(marks)),
        is_void=outer.is_void or any(is_void(mark) for mark in marks),
    )


def pytestmark_values(statement: ast.stmt) -> list[ast.expr]:
    match statement:
        case ast.Assign(targets=[ast.Name(id="pytestmark")], value=value):
            pass
        case ast.AnnAssign(target=ast.Name(id="pytestmark"), value=ast.expr() as value):
            pass
        case _:
            return []
    return value.elts if isinstance(value, ast.List | ast.Tuple) else [value]


def numbers_in(expressions: Iterable[ast.expr]) -> Iterator[tuple[str, int]]:
    """Every number in `mark.req(...)`, also inside `pytest.param(..., marks=...)`."""
    for call in (inner for expression in expressions for inner in ast.walk(expression)):
        if isinstance(call, ast.Call) and is_mark(call.func, "req"):
            for argument in call.args:
                match argument:
                    case ast.Constant(value=str() as number):
                        yield number, call.lineno
                    case _:
                        yield ast.unparse(argument), call.lineno


def is_void(mark: ast.expr) -> bool:
    """`mark.skip`, and `mark.xfail` without a condition."""
    bare = mark.func if isinstance(mark, ast.Call) else mark
    conditional = isinstance(mark, ast.Call) and bool(mark.args)
    return is_mark(bare, "skip") or (is_mark(bare, "xfail") and not conditional)


def is_mark(expression: ast.expr, name: str) -> bool:
    return re.fullmatch(rf"(pytest\.)?mark\.{name}", ast.unparse(expression)) is not None


def problems(due: Due, marks: list[Mark]) -> list[str]:
    kept = {mark.number for mark in marks if mark.test}
    listed = [*due.numbers, *due.removed]
    return [
        *(f'requirements.toml: "{n}" is no known number' for n in listed if n not in KNOWN),
        *(
            f'requirements.toml: "{n}" stands twice'
            for n in sorted({*listed})
            if listed.count(n) > 1
        ),
        *(
            f'requirements.toml: "{n}" was removed without a reason'
            for n, reason in due.removed.items()
            if not reason.strip()
        ),
        *(f'{m.place}: "{m.number}" is no known number' for m in marks if m.number not in KNOWN),
        *(f'{m.place}: "{m.number}" marks no running test' for m in marks if m.test is None),
        *(f'"{n}" is due and has no test' for n in due.numbers if n not in kept and n in KNOWN),
    ]


def lines(due: Due, marks: list[Mark]) -> Iterator[str]:
    """The map: the due numbers first to last, then what is tested although not due."""
    tests: dict[str, dict[str, None]] = {}
    for mark in marks:
        if mark.test and mark.number in KNOWN:
            tests.setdefault(mark.number, {})[mark.test] = None
    for number in sorted({*due.numbers, *tests} & KNOWN, key=order):
        yield number if number in due.numbers else f"{number} (not due)"
        yield from (f"    {test}" for test in tests.get(number, {"no test": None}))
    for number, reason in due.removed.items():
        yield f"{number} removed: {reason}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Print every due requirement with its tests.")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--quiet", action="store_true", help="print problems and the count only")
    options = parser.parse_args(arguments)
    due = read_due(options.root / "requirements.toml")
    marks = read_marks(options.root / "tests")
    if not options.quiet:
        print("\n".join(lines(due, marks)))
    wrong = problems(due, marks)
    for problem in wrong:
        print(f"error: {problem}", file=sys.stderr)
    kept = {mark.number for mark in marks if mark.test} & {*due.numbers}
    print(f"requirements: {len(due.numbers)} due, {len(kept)} with tests")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
