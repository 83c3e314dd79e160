"""How to ask for a way in: known to the door, and to a second `holdfast ui` of the same user."""

OPEN = "/door/open"  # with a code, in a browser
CODE = "/door/code"  # for another code
KEY_HEADER = "X-Holdfast-Key"
