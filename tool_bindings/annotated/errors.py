"""What can be wrong with an annotation: one error, a stable code, and the place.

Knows: the codes.
Does not know: the rules behind them (`shapes`, `envelope`).
"""

from __future__ import annotations

from typing import Final

from tool_bindings.errors import HarnessError

__all__ = ["CODES", "AnnotationError"]

CODES: Final = (
    "unsupported_schema",
    "missing_field",
    "invalid_type",
    "invalid_status",
    "status_conflict",
    "invalid_block",
    "invalid_correlation",
    "invalid_data_schema",
    "raw_relation",
    "raw_unavailable",
    "not_lossless_json",
    "malformed_annotation",
    "mcp_result_type",
)
"""Every code an `AnnotationError` can have; explained in docs/annotated-results.md."""


class AnnotationError(HarnessError, ValueError):
    """An annotation, or the record that carries it, breaks the envelope's rules; its producer is at fault.

    Attributes:
        code: One of `CODES`.
        pointer: JSON pointer to what is wrong or missing, for example `/content/0/text`. Empty for
            the value as a whole.
        reason: What is there, and what must be.
        message: Place and reason, as one sentence.
    """

    def __init__(self, code: str, pointer: str, reason: str) -> None:
        assert code in CODES, f"{code!r} is not a code of the annotated tool-result contract"
        place = f', "{pointer}"' if pointer else ""
        super().__init__(f"annotated tool result{place}: {reason}", code)
        self.pointer = pointer
        self.reason = reason
