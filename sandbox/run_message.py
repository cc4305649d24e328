"""The first message of a run: the program, what it may call, and the bounds a worker keeps itself.

Knows: programs and limits, and what of them a worker is told. Does not know: how it is sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sandbox import values, wire

if TYPE_CHECKING:
    from sandbox.limits import Limits
    from sandbox.vocabulary import Program


def run_message(program: Program, limits: Limits) -> bytes:
    """Return the encoded message."""
    body: dict[str, Any] = {
        "source": program.source,
        "checkOnly": program.check_only,
        "maxOutputBytes": limits.max_output_bytes,
        "maxCallBytes": limits.max_call_bytes,
        "memoryMb": limits.memory_mb,
        "hints": dict(program.hints),
        "namespaces": [
            {
                "name": space.name,
                "members": dict(space.members),
                "noun": space.noun,
                "importable": space.importable,
                "positional": {member: list(names) for member, names in space.positional.items()},
                "eager": sorted(space.eager),
                "batches": space.batches,
                "aliases": {alias: list(members) for alias, members in space.aliases.items()},
                "parameters": {member: known.to_json() for member, known in space.parameters.items()},
                "errorClass": None
                if space.error_class is None
                else {
                    "name": space.error_class.name,
                    "attributes": list(space.error_class.member_attributes),
                },
            }
            for space in program.namespaces
        ],
    }
    return values.encode([wire.RUN, body])
