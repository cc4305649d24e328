"""`python -m codemode`, the same as the `codemode` command."""

from codemode.cli import script

if __name__ == "__main__":
    script()
