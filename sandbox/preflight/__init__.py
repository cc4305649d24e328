"""What in a program is bound to fail, found before its first statement runs."""

from sandbox.preflight.finder import MAX_ERRORS, CertainError, certain_errors
from sandbox.preflight.spaces import Parameters, Space

__all__ = ["MAX_ERRORS", "CertainError", "Parameters", "Space", "certain_errors"]
