"""Writes what an installation consists of, from the lock file: CycloneDX 1.6, the same bytes every time."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from holdfast.model.version import VERSION

ROOT = Path(__file__).parents[1]
_PINNED = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(?:\[[^]]*\])?==(?P<version>[^\s;\\]+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True)
class Component:
    """A pinned package. `hashes` are those of its files: one is installed, whichever fits the machine."""

    name: str
    version: str
    hashes: tuple[str, ...]

    @property
    def address(self) -> str:
        return f"pkg:pypi/{self.name.lower().replace('_', '-')}@{self.version}"


def components(lock: str) -> Iterator[Component]:
    """The packages of a lock file, in its order."""
    for entry in re.split(r"\n(?=[A-Za-z0-9])", lock):
        if found := _PINNED.match(entry):
            yield Component(found["name"], found["version"], tuple(_HASH.findall(entry)))


def bill(lock: str, version: str) -> dict[str, object]:
    """The whole document; without a time, so that equal locks give equal bytes."""
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": f"pkg:pypi/holdfast@{version}",
                "name": "holdfast",
                "version": version,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": [
            {
                "type": "library",
                "bom-ref": one.address,
                "name": one.name,
                "version": one.version,
                "purl": one.address,
                "hashes": [{"alg": "SHA-256", "content": content} for content in one.hashes],
            }
            for one in components(lock)
        ],
    }


def main() -> None:
    """Write sbom.json beside the lock file, or where the first word says."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "sbom.json"
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    target.write_text(json.dumps(bill(lock, VERSION), indent=1) + "\n", encoding="utf-8")
    print(f"{target.name}: {sum(1 for _ in components(lock))} packages")


if __name__ == "__main__":
    main()
