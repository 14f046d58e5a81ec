"""`python -m rsi` is the `rsi` command."""

import sys

from rsi.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
