"""Draws the plans of examples/ for the gallery page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
COMMAND = (sys.executable, "-P", "-m", "holdfast", "graph", "--format", "svg", "--no-state")


def drawings() -> dict[str, str]:
    """A drawing of each example that has a plan, by its place in docs."""
    return {
        f"images/gallery-{plan.parent.name}.svg": subprocess.run(
            COMMAND, cwd=plan.parent, check=True, capture_output=True, text=True
        ).stdout
        for plan in sorted(EXAMPLES.glob("*/plan.yaml"))
    }
