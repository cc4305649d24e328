"""`python -m codemode`, the same as the `codemode` command."""

from codemode.cli.entry import script

if __name__ == "__main__":
    script()
