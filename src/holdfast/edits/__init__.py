"""Hands for files: read a tree without following links, change a set of files all or nothing."""
