"""Hints for the slips that language models make: what to write instead of what failed.

One rule a slip, in a table by exception type. A rule gives a hint only when it knows what was meant; a wrong
hint costs a reader more than none. Values are looked at where they stand, in the failed frame, and only if
they are plain data, so that no code of the program runs.
"""

from sandbox.advice.names import Surroundings, unknown_name
from sandbox.advice.rules import advise

__all__ = ["Surroundings", "advise", "unknown_name"]
