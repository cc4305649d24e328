"""The run-time half of the language wall: the globals of a program, and the rules behind its hooks."""

from sandbox.guards.building import build_globals, builtin_names, prepare, prepare_blanks

__all__ = ["build_globals", "builtin_names", "prepare", "prepare_blanks"]
