"""One driver for each peer; see bench/case.py for what they are given."""
