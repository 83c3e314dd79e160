"""Guards: what judges a candidate, by kind."""
