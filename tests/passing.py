"""Others on the same machine who come and go while something is tried."""

import itertools
import socket
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def listening_for_a_moment(folder: Path) -> Iterator[None]:
    """Meanwhile others listen in this folder, each for some hundredths of a second."""
    over = threading.Event()
    open_ones: deque[tuple[Path, socket.socket]] = deque()

    def leave() -> None:
        place, server = open_ones.popleft()
        server.close()
        (place / "s").unlink()
        place.rmdir()

    def listen() -> None:
        for number in itertools.count():
            place, server = folder / str(number), socket.socket(socket.AF_UNIX)
            place.mkdir()
            server.bind(str(place / "s"))
            server.listen()
            open_ones.append((place, server))
            if len(open_ones) > 20:
                leave()
            if over.wait(0.001):
                return

    thread = threading.Thread(target=listen)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        while open_ones:
            leave()
