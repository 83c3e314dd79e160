"""Stores: journals, artifact index and contents in memory, or in a directory with SQLite."""
