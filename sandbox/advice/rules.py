"""Which rules are asked for which exception.

Knows: the table. Does not know: what a rule looks at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sandbox.advice.attributes import missing_attribute
from sandbox.advice.calls import called, context_manager, given_to_asyncio, looped_over, not_awaited
from sandbox.advice.conversions import bad_number, bad_time, long_number, not_json, table_rows
from sandbox.advice.failed import Rule, locate_failure
from sandbox.advice.frozen import read_only
from sandbox.advice.operations import nested_loop, not_usable, nothing_there, too_deep, too_large
from sandbox.advice.reading import method_for_key, missing_index, missing_key, unpacked, wrong_index
from sandbox.advice.variables import name_error, not_importable, unbound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sandbox.advice.names import Surroundings


def advise(error: BaseException, source: str, program_file: str, around: Surroundings) -> str | None:
    """Return what to write instead of what raised, or None when that is not known.

    Args:
        error: What ended the program.
        source: The program.
        program_file: The file name of the program's code.
        around: What it found when it started.
    """
    try:
        failed = locate_failure(error, source, program_file, around)
        for kind in type(error).__mro__:
            for rule in _RULES.get(kind, ()):
                hint = rule(failed)
                if hint is not None:
                    return hint
    except Exception:  # noqa: BLE001  # objects of the program may do anything; a hint is not worth an error
        return None
    return None


_RULES: Final[Mapping[type, tuple[Rule, ...]]] = {
    UnboundLocalError: (unbound,),
    NameError: (name_error,),
    KeyError: (missing_key,),
    IndexError: (missing_index, nothing_there),
    AttributeError: (not_awaited, missing_attribute),
    TypeError: (
        *(not_awaited, given_to_asyncio, context_manager, looped_over, called, read_only),
        *(method_for_key, wrong_index, unpacked, not_usable),
    ),
    MemoryError: (too_large,),
    ValueError: (bad_number, long_number, not_json, bad_time, unpacked, nothing_there),
    ImportError: (not_importable,),
    RecursionError: (too_deep,),
    RuntimeError: (nested_loop,),
    Exception: (table_rows,),
}
