"""Errors of the tool API, told apart by whose fault they are.

    ToolBindingError
    ├ DefinitionError            the author's, when a tool or policy is defined or registered
    │ ├ DuplicateToolError         the name is taken in this layer
    │ └ UnsupportedSchemaError     a schema breaks the vocabulary's rules (also a HarnessError)
    └ HarnessError               one call's; its code and recorded name go into the result
      ├ UnknownToolError           no such tool is visible to the caller
      ├ InvalidArgumentsError      the caller's arguments do not fit the tool's parameters
      │ └ ArgumentConversionError    they fit the schema but not the Python type
      ├ InvalidResultError         the tool broke its own output declaration
      ├ AbortError                 the caller's abort signal fired
      └ ToolTimeoutError           the timeout policy's deadline passed

Knows: the tree, codes, and recorded names.
Does not know: where they are raised, or how a result is built from one.
"""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "AbortError",
    "ArgumentConversionError",
    "DefinitionError",
    "DuplicateToolError",
    "HarnessError",
    "InvalidArgumentsError",
    "InvalidResultError",
    "ToolBindingError",
    "ToolTimeoutError",
    "UnknownToolError",
    "UnsupportedSchemaError",
]


class ToolBindingError(Exception):
    """Base of every error that this package raises on purpose."""


class DefinitionError(ToolBindingError, TypeError):
    """A tool, schema, scope or policy was declared wrongly; nothing was registered."""


class DuplicateToolError(DefinitionError):
    """The name is already registered in the same layer."""


class HarnessError(ToolBindingError):
    """A failure with a stable code, which the caller of a tool sees as `{name, code}`.

    Raise it, or a subclass, from a tool body to give the failure a code. A subclass that needs its
    own recorded name sets `recorded_as`; one whose code never varies sets `default_code`.

    Attributes:
        message: Text for the model.
        code: Stable slug, for example `FS_NOT_FOUND`.
    """

    recorded_as: ClassVar[str] = ""
    default_code: ClassVar[str] = ""

    def __init__(self, message: str, code: str | None = None) -> None:
        super().__init__(message)
        chosen = code or self.default_code
        if not chosen:
            msg = f"{type(self).__name__} needs a code: pass code=... or set default_code on the class"
            raise TypeError(msg)
        self.message = message
        self.code = chosen

    @property
    def recorded_name(self) -> str:
        """The name stored beside the code in results and events."""
        return self.recorded_as or type(self).__name__


class UnsupportedSchemaError(DefinitionError, HarnessError):
    """A schema breaks the rules of the vocabulary, or is not a valid JSON Schema at all.

    Attributes:
        violations: Everything wrong with it, in the order it was found.
    """

    recorded_as = "JsonSchemaError"
    default_code = "UNSUPPORTED_SCHEMA"

    def __init__(self, violations: list[str]) -> None:
        HarnessError.__init__(self, "unsupported JSON schema: " + "; ".join(violations))
        self.violations = violations


class UnknownToolError(HarnessError):
    """The caller named a tool that it cannot see."""

    recorded_as = "ToolNotFoundError"
    default_code = "UNKNOWN_TOOL"


class InvalidArgumentsError(HarnessError):
    """The arguments do not fit the tool's parameters; the body did not run."""

    recorded_as = "ToolArgsError"
    default_code = "INVALID_ARGS"


class ArgumentConversionError(InvalidArgumentsError):
    """Arguments fit the schema, but not the Python type, such as a date; raised before the function runs."""


class InvalidResultError(HarnessError):
    """The tool's value, rendering or metadata broke the tool's own output declaration."""

    recorded_as = "ToolOutputError"
    default_code = "INVALID_TOOL_OUTPUT"


class AbortError(HarnessError):
    """The caller's abort signal fired before (`ABORTED_BEFORE_DISPATCH`) or after the body started."""

    default_code = "ABORTED"


class ToolTimeoutError(HarnessError):
    """The timeout policy's deadline passed; the body was stopped and awaited."""

    default_code = "TOOL_TIMEOUT"
