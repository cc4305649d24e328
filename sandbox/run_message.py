"""The first messages of a worker: what a program finds, and the program itself.

What does not depend on the program is said apart, so that it is encoded once and can be said to a worker
that is parked: `prepare`. The program and its bounds are `run`.

Knows: programs and limits, and what of them a worker is told. Does not know: how it is sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sandbox import values, wire

if TYPE_CHECKING:
    from sandbox.limits import Limits
    from sandbox.vocabulary import Namespace, Program


class Offer:
    """What programs find beside their own text. The same object for every program that finds the same.

    Args:
        program: One that finds it.
    """

    __slots__ = ("_parts", "message")

    def __init__(self, program: Program) -> None:
        self._parts = _parts(program)
        self.message = values.encode(
            [
                wire.PREPARE,
                {"namespaces": list(map(_offered, program.namespaces)), "hints": dict(program.hints)},
            ]
        )
        """The encoded message."""

    def is_of(self, program: Program) -> bool:
        """Return whether a program finds just this."""
        # Parts that are the very same objects, as they mostly are, are not looked into.
        return self._parts == _parts(program)


def _parts(program: Program) -> tuple[object, ...]:
    return (
        program.hints,
        *(
            (
                space.name,
                space.members,
                space.noun,
                space.importable,
                space.positional,
                space.eager,
                space.batches,
                space.aliases,
                space.error_class,
            )
            for space in program.namespaces
        ),
    )


def _offered(space: Namespace) -> dict[str, Any]:
    return {
        "name": space.name,
        "members": dict(space.members),
        "noun": space.noun,
        "importable": space.importable,
        "positional": {member: list(names) for member, names in space.positional.items()},
        "eager": sorted(space.eager),
        "batches": space.batches,
        "aliases": {alias: list(members) for alias, members in space.aliases.items()},
        "errorClass": None
        if space.error_class is None
        else {"name": space.error_class.name, "attributes": list(space.error_class.member_attributes)},
    }


def run_message(program: Program, limits: Limits) -> bytes:
    """Return the encoded message."""
    body: dict[str, Any] = {
        "source": program.source,
        "checkOnly": program.check_only,
        "maxOutputBytes": limits.max_output_bytes,
        "maxCallBytes": limits.max_call_bytes,
        "memoryMb": limits.memory_mb,
        "signatures": {
            space.name: dict(space.signatures) for space in program.namespaces if space.signatures
        },
        "parameters": {
            space.name: {member: known.to_json() for member, known in space.parameters.items()}
            for space in program.namespaces
            if space.parameters
        },
    }
    return values.encode([wire.RUN, body])
