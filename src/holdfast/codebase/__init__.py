"""Finding one's way in a code base: what it has, where things are, what a change touches."""
