"""Plan files: YAML or JSON in, checked plans out, every problem with its place."""

from holdfast.formats.planfile import Asked, Loaded, load_plan, load_text
from holdfast.formats.render import render
from holdfast.model.glob import glob_regex

__all__ = ["Asked", "Loaded", "glob_regex", "load_plan", "load_text", "render"]
