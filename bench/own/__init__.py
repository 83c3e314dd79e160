"""Figures of Holdfast alone; each module is a process that prints one line of JSON."""
