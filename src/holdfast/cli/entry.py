"""Where the program begins: the version at once, everything else by the command."""

import gc
import sys

from holdfast.model.version import VERSION

_BETWEEN_SEARCHES = 100_000  # objects; what a command is made of, half of that, stays till it ends


def main() -> None:
    """Say the version without loading what only other commands need, or be the command."""
    if sys.argv[1:] == ["--version"] and sys.stdout is not None:
        try:
            sys.stdout.write(f"holdfast, version {VERSION}\n")
            sys.stdout.flush()
        except OSError as error:
            from holdfast.cli.main import cannot_write

            sys.exit(cannot_write(error))
        sys.exit(0)
    gc.set_threshold(_BETWEEN_SEARCHES, *gc.get_threshold()[1:])
    from holdfast.cli.main import main as command

    try:
        command()
    finally:
        gc.freeze()  # else Python searches all of it for what can go before the process does
