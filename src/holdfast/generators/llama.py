"""The child process of the local model: a llama.cpp server on loopback, as long as its engine lives.

Started by its path, with the path of the weights. One frame on standard output says {"address"} or
{"error"}; a frame is a length in four bytes, most significant first, and that many bytes of JSON. The end
of standard input is the end of the server: the engine is gone, however it went.
"""

from __future__ import annotations

import json
import os
import struct
import sys
from importlib import import_module

KEY = "HOLDFAST_LOCAL_KEY"  # the variable with the key that the server wants
_CONTEXT = 4096  # tokens of prompt and answer
_MOST_THREADS = 8


def main() -> None:
    """Serve until the engine is gone."""
    frames = os.dup(1)
    os.dup2(2, 1)  # what the library prints is no frame
    server: object = None
    said: dict[str, str]
    try:
        server, address = serve(sys.argv[1], sys.argv[2])
        said = {"address": address}
    except Exception as error:  # noqa: BLE001 - whatever it is, the engine tells it
        said = {"error": f"{type(error).__name__}: {error}"}
    body = json.dumps(said).encode()
    os.write(frames, struct.pack(">I", len(body)) + body)
    while server is not None and os.read(0, 4096):
        pass
    os._exit(0)  # its threads need not agree


def serve(weights: str, name: str) -> tuple[object, str]:
    """A server with these weights on a free port, and its address."""
    xllamacpp = import_module("xllamacpp")  # only this process loads it
    given = xllamacpp.CommonParams()
    given.model.path = weights
    given.model_alias = {name}
    given.hostnames = ["127.0.0.1"]
    given.port = 0
    given.n_ctx = _CONTEXT
    given.n_parallel = 1
    given.cpuparams.n_threads = min(os.cpu_count() or 1, _MOST_THREADS)
    given.api_keys = [os.environ.pop(KEY)]
    given.endpoint_slots = False
    given.verbosity = 0
    server = xllamacpp.Server(given)
    return server, str(server.listening_address)


if __name__ == "__main__":
    main()
