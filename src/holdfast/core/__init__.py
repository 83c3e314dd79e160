"""The law: what is stale, what comes next, what an event means. No clock, no files, no chance."""
