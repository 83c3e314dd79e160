"""Holdfast measured beside the bare loop and its peers; `make bench`."""
