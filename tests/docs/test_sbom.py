"""The list of dependencies says what the lock file says."""

import json
import re
from pathlib import Path

from tools.sbom import bill, components

LOCK = Path(__file__).parents[2] / "requirements.lock"


def test_every_pinned_package_is_listed_with_all_of_its_hashes() -> None:
    lock = LOCK.read_text()
    made = json.loads(json.dumps(bill(lock, "1.2.3")))
    pinned = re.findall(r"^([A-Za-z0-9._-]+)==([^ \\\n]+)", lock, re.MULTILINE)
    assert [(one["name"], one["version"]) for one in made["components"]] == pinned
    hashes = [item["content"] for one in made["components"] for item in one["hashes"]]
    assert hashes == re.findall(r"sha256:([0-9a-f]{64})", lock)
    assert all(one["hashes"] for one in made["components"])
    references = [one["bom-ref"] for one in made["components"]]
    assert len(set(references)) == len(references)
    assert made["metadata"]["component"]["version"] == "1.2.3"


def test_names_with_extras_and_markers_are_read() -> None:
    lock = "a_b[x]==1.0 ; sys_platform == 'linux' \\\n    --hash=sha256:" + "0" * 64 + "\n"
    (found,) = components(lock)
    assert (found.address, len(found.hashes)) == ("pkg:pypi/a-b@1.0", 1)
