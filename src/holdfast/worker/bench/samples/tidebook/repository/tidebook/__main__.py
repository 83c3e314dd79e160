import sys

from tidebook.cli import main

sys.exit(main(sys.argv[1:]))
