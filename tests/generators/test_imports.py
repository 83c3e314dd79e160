"""The source that decides what a Python step does, found without running it."""

import os
from pathlib import Path

import pytest

from holdfast.generators.imports import Imports
from holdfast.model.digest import Json
from tests.generators.builders import Project


def closure(project: Project, module: str = "mod") -> dict[str, Json]:
    return Imports().of_module(module, str(project.root))


def files(project: Project, module: str = "mod") -> list[str]:
    found = closure(project, module)
    assert found.keys() == {"code"}
    code = found["code"]
    assert isinstance(code, dict)
    return list(code)


def test_the_standard_library_and_what_is_installed_do_not_count(project: Project) -> None:
    project.write("json.py", "not looked at")
    project.write(
        "mod.py", "import os.path, json, pytest, _pytest.main\nfrom hypothesis import given"
    )
    assert files(project) == ["mod.py"]


def test_imports_are_followed_through_the_project(project: Project) -> None:
    project.write("mod.py", "import a")
    project.write("a.py", "def late():\n    from b import thing")
    project.write("b.py", "class C:\n    import c")
    project.write("c.py", "import mod  # a cycle")
    project.write("unused.py", "")
    assert files(project) == ["a.py", "b.py", "c.py", "mod.py"]


@pytest.mark.req("E2")
def test_an_edit_of_a_transitive_import_changes_the_identity(project: Project) -> None:
    project.write("mod.py", "import a")
    project.write("a.py", "import b")
    project.write("b.py", "X = 1")
    imports = Imports()
    before = imports.of_module("mod", str(project.root))
    assert imports.of_module("mod", str(project.root)) == before
    project.write("b.py", "X = 2")
    assert imports.of_module("mod", str(project.root)) != before


def test_a_change_is_seen_whatever_time_its_file_tells(project: Project) -> None:
    place = project.write("mod.py", "X = 1")
    os.utime(place, ns=(10**18, 10**18))
    imports = Imports()
    before = imports.of_module("mod", str(project.root))
    place.write_text("X = 2")
    os.utime(place, ns=(10**18, 10**18))
    assert imports.of_module("mod", str(project.root)) != before


def test_packages_bring_their_init_files(project: Project) -> None:
    project.write("mod.py", "import pkg.sub.deep")
    for path in ("pkg/__init__.py", "pkg/sub/__init__.py", "pkg/sub/deep.py", "pkg/other.py"):
        project.write(path, "")
    assert files(project) == ["mod.py", "pkg/__init__.py", "pkg/sub/__init__.py", "pkg/sub/deep.py"]


def test_a_from_import_may_name_a_submodule_or_an_attribute(project: Project) -> None:
    project.write("mod.py", "from pkg import sub, attribute")
    project.write("pkg/__init__.py", "attribute = 1")
    project.write("pkg/sub.py", "")
    assert files(project) == ["mod.py", "pkg/__init__.py", "pkg/sub.py"]


def test_relative_imports_are_of_their_package(project: Project) -> None:
    project.write("pkg/__init__.py", "from . import a")
    project.write("pkg/a.py", "from .sub.b import x")
    project.write("pkg/sub/__init__.py", "")
    project.write("pkg/sub/b.py", "from .. import c\nfrom ..d import y")
    project.write("pkg/c.py", "")
    project.write("pkg/d.py", "")
    assert files(project, "pkg") == [
        "pkg/__init__.py",
        "pkg/a.py",
        "pkg/c.py",
        "pkg/d.py",
        "pkg/sub/__init__.py",
        "pkg/sub/b.py",
    ]


def test_folders_without_init_files_are_packages_too(project: Project) -> None:
    project.write("mod.py", "import space.one\nfrom space import two")
    project.write("space/one.py", "")
    project.write("space/two.py", "")
    assert files(project) == ["mod.py", "space/one.py", "space/two.py"]


def test_a_bare_folder_does_not_hide_an_installed_module(project: Project) -> None:
    project.write("mod.py", "import pytest")
    project.write("pytest/data.txt", "")
    assert files(project) == ["mod.py"]


def test_a_star_brings_the_submodules_that_are_exported(project: Project) -> None:
    project.write("mod.py", "from pkg import *")
    project.write("pkg/__init__.py", "__all__ = ['a', 'value']\nvalue = 1")
    project.write("pkg/a.py", "")
    project.write("pkg/b.py", "")
    assert files(project) == ["mod.py", "pkg/__init__.py", "pkg/a.py"]


@pytest.mark.req("R161")
@pytest.mark.parametrize(
    "source, names",
    [
        ("import nowhere.at.all", ["nowhere.at.all"]),
        ("from nowhere import x", ["nowhere"]),
        ("import pkg.missing", ["pkg.missing"]),
        ("import pkg.sub.not_a_package", ["pkg.sub.not_a_package"]),
        ("from space import missing", ["space.missing"]),
        ("from . import x", ["."]),
        ("from ..up import x", ["..up"]),
        ("from pkg.computed import *", []),
        ("from computed import *", ["computed.*"]),
        ("import importlib\nimportlib.import_module(x)", ["mod.py: line 2: import_module(…) of a computed name"]),  # noqa: E501 - a table
        ("from importlib import import_module as go\ngo(x)", ["mod.py: line 2: go(…) of a computed name"]),
        ("__import__(name)", ["mod.py: line 1: __import__(…) of a computed name"]),
        ("import runpy\nrunpy.run_path('x.py')", ["mod.py: line 2: run_path(…)"]),
        ("def f(: pass", ["mod.py: cannot be parsed"]),
    ],
)  # fmt: skip
def test_what_cannot_be_told_is_named(project: Project, source: str, names: list[str]) -> None:
    project.write("mod.py", source)
    project.write("pkg/__init__.py", "")
    project.write("pkg/sub.py", "")
    project.write("pkg/computed.py", "__all__ = sorted(globals())")
    project.write("computed/__init__.py", "__all__ = sorted(globals())")
    project.write("space/one.py", "")
    found = closure(project)
    assert found.get("unresolved", []) == names


def test_a_missing_module_is_unresolved(project: Project) -> None:
    assert closure(project, "nowhere") == {"code": {}, "unresolved": ["nowhere"]}


def test_constant_names_of_import_calls_are_followed(project: Project) -> None:
    project.write("pkg/__init__.py", "import importlib\nimportlib.import_module('.a', __package__)")
    project.write("pkg/a.py", "__import__('pkg.b')")
    project.write("pkg/b.py", "")
    assert files(project, "pkg") == ["pkg/__init__.py", "pkg/a.py", "pkg/b.py"]


@pytest.mark.req("R161")
@pytest.mark.parametrize(
    "source",
    [
        "try:\n    import nowhere\nexcept ImportError:\n    nowhere = None",
        "try:\n    from nowhere import x\nexcept (OSError, ModuleNotFoundError):\n    x = None",
        "try:\n    if True:\n        import nowhere\nexcept Exception:\n    pass",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import nowhere",
    ],
)
def test_a_module_whose_absence_is_expected_is_recorded_as_absent(
    project: Project, source: str
) -> None:
    project.write("mod.py", source)
    found = closure(project)
    assert (found.get("absent"), found.get("unresolved")) == (["nowhere"], None)
    project.write("nowhere.py", "x = 1")
    assert files(project) == ["mod.py", "nowhere.py"]


@pytest.mark.parametrize(
    "source",
    [
        "try:\n    pass\nexcept ImportError:\n    import nowhere",
        "try:\n    import nowhere\nexcept ValueError:\n    pass",
        "try:\n    import nowhere\nfinally:\n    pass",
        "if TYPE_CHECKING:\n    pass\nelse:\n    import nowhere",
    ],
)
def test_only_the_tried_part_may_be_missing(project: Project, source: str) -> None:
    project.write("mod.py", source)
    assert closure(project)["unresolved"] == ["nowhere"]


def test_a_deep_chain_costs_no_stack(project: Project) -> None:
    for number in range(1500):
        project.write(f"m{number}.py", f"import m{number + 1}")
    project.write("m1500.py", "")
    assert len(files(project, "m0")) == 1501


def test_an_extension_module_of_the_project_counts_by_its_bytes(project: Project) -> None:
    project.write("mod.py", "import fast")
    project.write("fast.abi3.so", "binary")
    assert files(project) == ["fast.abi3.so", "mod.py"]


def test_a_file_stands_for_its_module(project: Project, tmp_path: Path) -> None:
    place = project.write("pkg/__init__.py", "from . import a")
    project.write("pkg/a.py", "")
    found = Imports().of_file(str(place), str(project.root))
    assert found is not None
    assert found == closure(project, "pkg")
    outside = tmp_path / "outside.py"
    outside.write_text("")
    assert Imports().of_file(str(outside), str(project.root)) is None
