"""hamilton: a module with a function for each step, and its cache."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

from hamilton import driver

from bench.case import Case, Timing, report


def source_of(case: Case) -> str:
    lines = []
    for number, needs in case.graph:
        names = [f"s{need}" for need in needs]
        wanted = [f"{name}: str" for name in names]
        if number == case.leaf:
            wanted.append("salt: str")
        lines.append(f"def s{number}({', '.join(wanted)}) -> str:")
        lines.append(f"    return case.step({number}, [{', '.join(names)}])\n")
    return "\n".join(lines)


def module_of(case: Case) -> ModuleType:
    """The steps as functions; the cache knows them by their source, so that is a file."""
    path = case.folder / "steps.py"
    if not path.exists():
        path.write_text(source_of(case), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("steps", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    module.__dict__["case"] = case
    sys.modules["steps"] = module
    spec.loader.exec_module(module)
    return module


def main() -> None:
    sys.setrecursionlimit(200_000)
    case = Case.given()
    builder = driver.Builder().with_modules(module_of(case))
    built = builder.with_cache(path=f"{case.folder}/kept").build()
    last = f"s{case.last}"
    with Timing() as timing:
        value = built.execute([last], inputs={"salt": case.salt})[last]
    report(value, timing, case.executed)


if __name__ == "__main__":
    main()
