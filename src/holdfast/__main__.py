"""`python -m holdfast` is the command."""

import sys

from holdfast.cli.entry import main

if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]  # the directory of the project, which `holdfast` does not search either
    main()
