"""snakemake: one rule whose inputs are looked up, two cores; after a kill it is unlocked first."""

from __future__ import annotations

import json
import subprocess
import sys

from bench.case import Case
from bench.peers.programs import OUTPUTS, command_of, measure, needs_of, prepare

RULES = """import json
NEEDS = json.load(open("needs.json"))
rule all:
    input: "{outputs}/{last}"
rule step:
    input: lambda found: NEEDS[found.number]
    output: "{outputs}/{{number}}"
    shell: "{command}"
"""


def main() -> None:
    case = Case.given()
    needs = {number: needs_of(case, number, needs) for number, needs in case.graph}
    (case.folder / "needs.json").write_text(json.dumps(needs), encoding="utf-8")
    command = command_of("{wildcards.number}", "{output}", "$")
    prepare(case, "Snakefile", RULES.format(outputs=OUTPUTS, last=case.last, command=command))
    program = [sys.executable, "-m", "snakemake"]
    if any((case.folder / ".snakemake" / "locks").glob("*")):
        subprocess.run([*program, "--unlock"], cwd=case.folder, check=True, capture_output=True)
    measure(case, [*program, "--cores", "2", "--quiet", "progress", "rules", "--rerun-incomplete"])


if __name__ == "__main__":
    main()
