"""How well edits find their place: real commits, the file disturbed in between, beside other engines."""
