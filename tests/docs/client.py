"""A `holdfast` for pages that starts at once: the command is forked from a process that has loaded it.

It asks through the socket of `tests.forge`, whose number is its first word, and gives its own streams,
directory and environment. Imports as little as it can.
"""

import json
import os
import socket
import sys


def main(number: str, *words: str) -> int:
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    asked = json.dumps([words, os.getcwd(), dict(os.environ), "apart"]).encode()
    with socket.socket(fileno=int(number)) as asking, theirs:
        socket.send_fds(asking, [asked], [theirs.fileno(), 0, 1, 2])
    if not mine.recv(64):
        sys.exit("the process that forks commands is gone")
    code = int(mine.recv(64))
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
