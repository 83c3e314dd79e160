"""Drivers of other edit engines, each run by the Python of its own environment."""
