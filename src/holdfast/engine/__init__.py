"""The loop that makes the law happen: read, fold, react, run, append."""
