"""The compile-time half of the language wall: `compile_program` and what it raises."""

from sandbox.policy.program import PROGRAM_FILE, CompiledProgram, compile_program
from sandbox.policy.refusals import ProgramRefusedError, Refusal
from sandbox.policy.results import ProgramResult

__all__ = [
    "PROGRAM_FILE",
    "CompiledProgram",
    "ProgramRefusedError",
    "ProgramResult",
    "Refusal",
    "compile_program",
]
