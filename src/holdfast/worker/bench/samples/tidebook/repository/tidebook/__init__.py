"""Tide tables: read them, ask them, print them."""

from tidebook.heights import height_at
from tidebook.parse import TableError, read_table
from tidebook.tides import Tide
from tidebook.windows import Window, windows_above

__all__ = ["TableError", "Tide", "Window", "height_at", "read_table", "windows_above"]
