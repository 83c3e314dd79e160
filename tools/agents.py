"""The coding agent of others that a test drives: installed once, in an environment of its own.

`make test` makes it first, so that no test has to; what cannot be installed is named, and its test skipped.
"""

import os
import sys

from bench.envs import Found, MissingError, Peer, cache_folder, find

# litellm, which it asks models with, imports mcp and does not say so.
AGENT = Peer("mini-swe-agent", ("mini-swe-agent==2.4.6", "litellm==1.106.2", "mcp==2.3.0"))


def found() -> Found:
    """Where it is, installed if it was not; raises `MissingError`."""
    return find(AGENT, cache_folder(os.environ.get("HOLDFAST_AGENT_CACHE")))


if __name__ == "__main__":
    try:
        found()
    except MissingError as error:
        print(f"{AGENT.name} {error}; the test that needs it is skipped", file=sys.stderr)
