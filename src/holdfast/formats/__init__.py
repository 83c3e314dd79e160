"""Plan files: YAML or JSON in, checked plans out, every problem with its place."""

from holdfast.formats.globs import glob_regex
from holdfast.formats.planfile import Loaded, load_plan, load_text
from holdfast.formats.render import render

__all__ = ["Loaded", "glob_regex", "load_plan", "load_text", "render"]
