"""`python -m codemode`, the same as the `codemode` command."""

import sys

from codemode.cli.entry import main

if __name__ == "__main__":
    sys.exit(main())
