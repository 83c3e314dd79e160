"""Which files an import means: best effort, by the names of the files that are there.

Nothing is run and no configuration of a build is obeyed beyond the names of modules and packages, so what
is found is likely, not certain; what is not found belongs to another code base, or is made by a build.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from holdfast.codebase.facts import Import
from holdfast.codebase.languages import language_of

_SCRIPTS = (".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts", ".d.ts", ".json", ".vue")
_TYPED_FOR = {".js": (".ts", ".tsx"), ".jsx": (".tsx",), ".mjs": (".mts",), ".cjs": (".cts",)}
_MOST = 40  # files that one import may mean


class Manifests(NamedTuple):
    """Names that build files give to directories: modules of Go, packages of JavaScript, crates of Rust."""

    go: Mapping[str, str]
    scripts: Mapping[str, str]
    crates: Mapping[str, str]


def manifests(texts: Iterable[tuple[str, str]]) -> Manifests:
    """What go.mod, package.json and Cargo.toml files call the directories they lie in."""
    found: dict[str, dict[str, str]] = {"go.mod": {}, "package.json": {}, "Cargo.toml": {}}
    patterns = {
        "go.mod": r"^module\s+\"?([^\s\"]+)",
        "package.json": r'"name"\s*:\s*"([^"]+)"',
        "Cargo.toml": r'^\[package\][^\[]*?^name\s*=\s*"([^"]+)"',
    }
    for path, text in texts:
        place, name = posixpath.split(path)
        if name in patterns and (match := re.search(patterns[name], text, re.MULTILINE)):
            found[name].setdefault(
                match[1].replace("-", "_") if name == "Cargo.toml" else match[1], place
            )
    return Manifests(found["go.mod"], found["package.json"], found["Cargo.toml"])


class Resolver:
    """Finds the files that imports mean among the paths of a code base."""

    def __init__(self, paths: Iterable[str], names: Manifests) -> None:
        self._paths = frozenset(paths)
        self._names = names
        self._ends: dict[str, list[str]] = {}
        self._folders: dict[str, list[str]] = {}
        for path in sorted(self._paths):
            place, name = posixpath.split(path)
            self._folders.setdefault(place, []).append(path)
            if language_of(path) in {"python", "java", "rust"}:
                stem = posixpath.splitext(name)[0]
                stem = posixpath.basename(place) if stem == "__init__" else stem
                self._ends.setdefault(stem, []).append(path)
        self._roots: dict[str, list[str]] = {}
        self._by_language: Mapping[str, Callable[[str, Import], Iterable[str]]] = {
            "python": self._python,
            "javascript": self._script,
            "typescript": self._script,
            "tsx": self._script,
            "go": self._go,
            "rust": self._rust,
            "java": self._java,
        }

    def files(self, path: str, wanted: Import) -> list[str]:
        """The files that an import in a file means, never the file itself."""
        find = self._by_language.get(language_of(path))
        found = dict.fromkeys(find(path, wanted)) if find else {}
        return [one for one in found if one != path][:_MOST]

    # Python

    def _python(self, path: str, wanted: Import) -> Iterator[str]:
        name = wanted.name
        dots = len(name) - len(name.lstrip("."))
        parts = [part for part in name[dots:].split(".") if part]
        if dots:
            base = posixpath.dirname(path)
            for _ in range(dots - 1):
                base = posixpath.dirname(base)
            yield from self._python_at(posixpath.join(base, *parts), wanted.item)
            return
        for root in self._python_roots(path, parts):
            yield from self._python_at(posixpath.join(root, *parts), wanted.item)

    def _python_at(self, module: str, item: str) -> Iterator[str]:
        """A module, or the submodule that is taken from it; a package says what it gives in its own file."""
        if item and item != "*":
            inner = self._module(posixpath.join(module, item))
            if inner:
                yield inner
                return
        found = self._module(module)
        if found:
            yield found

    def _module(self, place: str) -> str:
        for name in (
            f"{place}.py",
            f"{place}/__init__.py",
            f"{place}.pyi",
            f"{place}/__init__.pyi",
        ):
            if name in self._paths:
                return name
        return ""

    def _python_roots(self, path: str, parts: list[str]) -> list[str]:
        """The directories from which these parts lead to a module; the nearest to the file that asks."""
        if not parts:
            return []
        inner = "/".join(parts)
        found = self._roots.get(inner)
        if found is None:
            found = self._roots[inner] = []
            for candidate in self._ends.get(parts[-1], ()):
                place = candidate.rpartition(".")[0].removesuffix("/__init__")
                if place == inner or place.endswith(f"/{inner}"):
                    found.append(place[: -len(inner)].rstrip("/"))
        return sorted(found, key=lambda root: (-_shared(root, path), root.count("/"), root))[:1]

    # JavaScript and TypeScript

    def _script(self, path: str, wanted: Import) -> Iterator[str]:
        name = wanted.name.partition("?")[0]
        if name.startswith("."):
            place = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
            yield from self._script_at(place)
            return
        for package, place in self._names.scripts.items():
            if name == package or name.startswith(f"{package}/"):
                inner = name[len(package) :].strip("/")
                tried = [posixpath.join(place, "src", inner), posixpath.join(place, inner)]
                yield from next((f for t in tried if (f := list(self._script_at(t)))), [])
                return
        if name.startswith(("@/", "~/", "src/")):
            inner = name.partition("/")[2]
            above = posixpath.dirname(path)
            while True:
                for start in ("src", ""):
                    found = list(self._script_at(posixpath.join(above, start, inner)))
                    if found:
                        yield from found
                        return
                if not above:
                    return
                above = posixpath.dirname(above)

    def _script_at(self, place: str) -> Iterator[str]:
        place = posixpath.normpath(place)
        stem, end = posixpath.splitext(place)
        tried = [place, *(stem + other for other in _TYPED_FOR.get(end, ()))]
        tried += [place + other for other in _SCRIPTS]
        tried += [posixpath.join(place, "index" + other) for other in _SCRIPTS]
        found = next((one for one in tried if one in self._paths), "")
        if found:
            yield found

    # Go

    def _go(self, _: str, wanted: Import) -> Iterator[str]:
        for module, place in self._names.go.items():
            if wanted.name == module or wanted.name.startswith(f"{module}/"):
                folder = posixpath.join(place, wanted.name[len(module) :].strip("/")).rstrip("/")
                for path in self._folders.get(folder, ()):
                    if path.endswith(".go") and not path.endswith("_test.go"):
                        yield path

    # Rust

    def _rust(self, path: str, wanted: Import) -> Iterator[str]:
        if wanted.name.startswith("mod "):
            base = self._rust_base(path)
            yield from self._rust_at(base, [wanted.name[4:].removeprefix("r#")])
            return
        parts = [part for part in wanted.name.split("::") if part]
        if not parts:
            return
        head, rest = parts[0], parts[1:]
        if head == "crate":
            yield from self._rust_at(self._rust_root(path), rest, whole=True)
        elif head in {"self", "super"}:
            base = self._rust_base(path)
            for part in parts:
                if part == "super":
                    base = posixpath.dirname(base)
            inner = [part for part in parts if part not in {"self", "super"}]
            yield from self._rust_at(base, inner, whole=True)
        elif head in self._names.crates:
            source = posixpath.join(self._names.crates[head], "src")
            yield from self._rust_at(source, rest, whole=True)
        else:  # a module beside, as paths begin there too
            yield from self._rust_at(self._rust_base(path), parts)

    def _rust_base(self, path: str) -> str:
        """The directory that holds the modules of a file."""
        place, name = posixpath.split(path)
        return (
            place if name in {"mod.rs", "lib.rs", "main.rs"} else posixpath.join(place, name[:-3])
        )

    def _rust_root(self, path: str) -> str:
        place = posixpath.dirname(path)
        while place:
            if any(f"{place}/{name}.rs" in self._paths for name in ("lib", "main")):
                return place
            place = posixpath.dirname(place)
        return posixpath.dirname(path)

    def _rust_at(self, base: str, parts: list[str], *, whole: bool = False) -> Iterator[str]:
        """The file of the longest part of a path; with `whole`, of the crate itself if there is none."""
        for end in range(len(parts), 0, -1):
            place = posixpath.join(base, *parts[:end])
            for name in (f"{place}.rs", f"{place}/mod.rs"):
                if name in self._paths:
                    yield name
                    return
        if whole:
            tried = [f"{base}/{name}.rs" for name in ("lib", "main", "mod")] + [f"{base}.rs"]
            found = next((name for name in tried if name in self._paths), "")
            if found:
                yield found

    # Java

    def _java(self, path: str, wanted: Import) -> Iterator[str]:
        parts = wanted.name.split(".")
        if parts[-1] == "*":
            inner = "/".join(parts[:-1])
            for place, names in self._folders.items():
                if place == inner or place.endswith(f"/{inner}"):
                    yield from (name for name in names if name.endswith(".java"))
            return
        while len(parts) > 1:  # a class inside of a class lies in the file of the outer one
            inner = "/".join(parts)
            fits = [
                one
                for one in self._ends.get(parts[-1], ())
                if one == f"{inner}.java" or one.endswith(f"/{inner}.java")
            ]
            if fits:
                yield max(fits, key=lambda one: (_shared(one, path), -len(one)))
                return
            parts.pop()


def _shared(one: str, other: str) -> int:
    """How many leading directories two paths share."""
    count = 0
    for a, b in zip(one.split("/"), other.split("/"), strict=False):
        if a != b:
            break
        count += 1
    return count
