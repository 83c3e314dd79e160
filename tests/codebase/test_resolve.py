"""Which files imports mean, in small code bases of each language."""

import pytest

from holdfast.codebase.facts import Import
from holdfast.codebase.resolve import Resolver, manifests

PYTHON = [
    "src/app/__init__.py",
    "src/app/session.py",
    "src/app/store/__init__.py",
    "src/app/store/disk.py",
    "tests/test_session.py",
    "tools/app.py",
]
SCRIPT = [
    "packages/core/package.json",
    "packages/core/src/index.ts",
    "packages/core/src/deep/part.ts",
    "packages/web/src/page.tsx",
    "packages/web/src/lib/index.js",
    "packages/web/src/util.ts",
]
GO = ["go.mod", "main.go", "router/mux.go", "router/tree.go", "router/mux_test.go"]
RUST = [
    "Cargo.toml",
    "src/lib.rs",
    "src/store/mod.rs",
    "src/store/disk.rs",
    "src/errors.rs",
    "crates/cli/Cargo.toml",
    "crates/cli/src/main.rs",
    "crates/cli/src/args.rs",
]
JAVA = [
    "core/src/main/java/com/example/store/Store.java",
    "core/src/main/java/com/example/model/User.java",
    "core/src/main/java/com/example/model/Group.java",
    "app/src/main/java/com/example/App.java",
]
TEXTS = [
    ("go.mod", "module example.com/app\n\ngo 1.22\n"),
    ("packages/core/package.json", '{"private": true, "name": "@acme/core"}'),
    ("Cargo.toml", '[package]\nname = "my-lib"\nversion = "1"\n'),
    ("crates/cli/Cargo.toml", '[workspace]\n[package]\nname = "cli"\n'),
]


def resolved(paths: list[str], path: str, name: str, item: str = "") -> list[str]:
    return Resolver(paths, manifests(TEXTS)).files(path, Import(name, 1, item))


@pytest.mark.req("R138")
@pytest.mark.parametrize(
    "path, name, item, expected",
    [
        ("tests/test_session.py", "app.session", "Session", ["src/app/session.py"]),
        ("tests/test_session.py", "app", "session", ["src/app/session.py"]),
        ("tests/test_session.py", "app.store", "", ["src/app/store/__init__.py"]),
        ("src/app/session.py", ".store", "open", ["src/app/store/__init__.py"]),
        ("src/app/session.py", ".store", "disk", ["src/app/store/disk.py"]),
        ("src/app/store/disk.py", "..", "session", ["src/app/session.py"]),
        ("src/app/session.py", "os.path", "", []),
        ("src/app/session.py", "....", "x", []),
    ],
)
def test_python(path: str, name: str, item: str, expected: list[str]) -> None:
    assert resolved(PYTHON, path, name, item) == expected


@pytest.mark.req("R138")
@pytest.mark.parametrize(
    "name, expected",
    [
        ("./lib", ["packages/web/src/lib/index.js"]),
        ("./util.js", ["packages/web/src/util.ts"]),
        ("./util?raw", ["packages/web/src/util.ts"]),
        ("@acme/core", ["packages/core/src/index.ts"]),
        ("@acme/core/deep/part", ["packages/core/src/deep/part.ts"]),
        ("@/util", ["packages/web/src/util.ts"]),
        ("react", []),
        ("../../../../../etc/passwd", []),
    ],
)
def test_javascript_and_typescript(name: str, expected: list[str]) -> None:
    assert resolved(SCRIPT, "packages/web/src/page.tsx", name) == expected


@pytest.mark.req("R138")
def test_go_means_all_files_of_a_package_but_its_tests() -> None:
    assert resolved(GO, "main.go", "example.com/app/router") == ["router/mux.go", "router/tree.go"]
    assert resolved(GO, "main.go", "example.com/application") == []
    assert resolved(GO, "main.go", "fmt") == []


@pytest.mark.req("R138")
@pytest.mark.parametrize(
    "path, name, expected",
    [
        ("src/lib.rs", "mod store", ["src/store/mod.rs"]),
        ("src/store/mod.rs", "mod disk", ["src/store/disk.rs"]),
        ("src/store/disk.rs", "crate::errors::Error", ["src/errors.rs"]),
        ("src/store/disk.rs", "super::super::errors::Error", ["src/errors.rs"]),
        ("crates/cli/src/main.rs", "my_lib::store::disk::Page", ["src/store/disk.rs"]),
        ("crates/cli/src/args.rs", "crate::run", ["crates/cli/src/main.rs"]),
        ("src/errors.rs", "std::io", []),
    ],
)
def test_rust(path: str, name: str, expected: list[str]) -> None:
    assert resolved(RUST, path, name) == expected


@pytest.mark.req("R138")
@pytest.mark.parametrize(
    "name, expected",
    [
        ("com.example.store.Store", [JAVA[0]]),
        ("com.example.store.Store.Inner", [JAVA[0]]),
        ("com.example.model.*", [JAVA[2], JAVA[1]]),
        ("java.util.List", []),
    ],
)
def test_java(name: str, expected: list[str]) -> None:
    assert resolved(JAVA, JAVA[3], name) == expected


def test_a_file_never_imports_itself() -> None:
    assert resolved(PYTHON, "src/app/session.py", "app.session") == []
