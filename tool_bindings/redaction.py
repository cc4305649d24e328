"""Masking of secrets in anything that is shown or recorded.

Knows: finding configured secret values in text and JSON values, also in the escaped spellings they
take inside JSON, Python and URLs, and putting a mask in their place so that JSON stays JSON.
Does not know: where events, logs and receipts are written; their writers call `mask`.
"""

from __future__ import annotations

import base64
import re
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, quote_plus

from sandbox.values import number_text
from tool_bindings.errors import DefinitionError
from tool_bindings.policy import UNCHANGED, Accept
from tool_bindings.results import ToolErrorRecord, ToolFailure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from sandbox.values import JsonValue
    from tool_bindings.pipeline import Dispatch
    from tool_bindings.policy import PostDecision
    from tool_bindings.registry import Disposer, Scope
    from tool_bindings.results import ToolResult

__all__ = ["SecretMasker", "redact_results"]

MASK: Final = "[secret]"
"""What stands in the place of a secret; nothing in it needs escaping anywhere."""

_MIN_CHARS: Final = 4
"""Shortest secret, in characters: shorter ones occur in ordinary text all the time."""


class SecretMasker:
    """Replaces configured secret values wherever they occur.

    Args:
        secrets: The values, each at least 4 characters long.
        patterns: Regular expressions for secrets whose value is not known before, such as
            `sk-[A-Za-z0-9]{20,}`. They are yours to keep fast.

    Raises:
        DefinitionError: A value is too short to be masked without harm, or a pattern is not valid.
    """

    def __init__(self, secrets: Iterable[str], *, patterns: Iterable[str] = ()) -> None:
        spellings: set[str] = set()
        for secret in secrets:
            if len(secret) < _MIN_CHARS:
                raise DefinitionError(f"a secret to mask must have at least {_MIN_CHARS} characters")
            spellings.update(_spellings(secret))
        # The longest spelling first, or a secret that contains another would be masked in part only.
        ordered = sorted(spellings, key=len, reverse=True)
        alternatives = [*map(re.escape, ordered), *(f"(?:{pattern})" for pattern in patterns)]
        try:
            self._pattern = re.compile("|".join(alternatives)) if alternatives else None
        except re.error as error:
            raise DefinitionError(f"a pattern for secrets is not a regular expression: {error}") from None

    def mask_text(self, text: str) -> str:
        """Return the text with every secret replaced; text that is JSON stays JSON."""
        return text if self._pattern is None else self._pattern.sub(MASK, text)

    def mask(self, value: JsonValue) -> JsonValue:
        """Return a copy of a JSON value with secrets replaced in its strings, keys and numbers.

        A number that spells a secret becomes the string `[secret]`. The value itself is returned
        when nothing was found.
        """
        if self._pattern is None or not self._occurs(value):
            return value
        holder: list[Any] = [None]
        todo: list[tuple[Any, Any, Any]] = [(value, holder, 0)]
        while todo:
            item, target, key = todo.pop()
            if isinstance(item, dict):
                copy: Any = {}
                for name, child in item.items():
                    masked = _unused(self.mask_text(name), copy)
                    copy[masked] = None
                    todo.append((child, copy, masked))
            elif isinstance(item, list):
                copy = [None] * len(item)
                todo.extend((child, copy, index) for index, child in enumerate(item))
            else:
                copy = self._mask_atom(item)
            target[key] = copy
        masked_value: JsonValue = holder[0]
        return masked_value

    def _mask_atom(self, item: Any) -> Any:
        if isinstance(item, str):
            return self.mask_text(item)
        if type(item) in (int, float) and self.mask_text(number_text(item)) != number_text(item):
            return MASK
        return item

    def _occurs(self, value: JsonValue) -> bool:
        todo: list[Any] = [value]
        while todo:
            item = todo.pop()
            if isinstance(item, dict):
                if any(self.mask_text(name) != name for name in item):
                    return True
                todo.extend(item.values())
            elif isinstance(item, list):
                todo.extend(item)
            elif self._mask_atom(item) != item:
                return True
        return False


def _spellings(secret: str) -> set[str]:
    """Return the secret as it is and as it looks after being written into something else."""
    data = secret.encode("utf-8", "surrogatepass")
    return {
        secret,
        encode_basestring(secret)[1:-1],
        encode_basestring_ascii(secret)[1:-1],
        repr(secret)[1:-1],
        quote(data),
        quote(data, safe=""),
        quote_plus(data),
        base64.b64encode(data).decode("ascii"),
    }


def _unused(name: str, taken: dict[str, Any]) -> str:
    """Keep two keys apart that became the same text by masking."""
    candidate, number = name, 2
    while candidate in taken:
        candidate = f"{name} {number}"
        number += 1
    return candidate


def redact_results(scope: Scope, masker: SecretMasker, *, content_only: bool = False) -> Disposer:
    """Mask secrets in the results of every call through a registry or scope.

    By default the canonical value is masked, so that programs, content, events and errors all see
    the mask. With `content_only` a program still gets the true value: that keeps a log clean, and is
    no confidentiality.

    Returns:
        A function that lifts the policy.
    """

    async def mask_failure(call: Dispatch, proceed: Callable[[], Awaitable[ToolResult]]) -> ToolResult:
        result = await proceed()
        if not isinstance(result, ToolFailure):
            return result
        message = masker.mask_text(result.error.message)
        content: Any = masker.mask(list(result.content))
        return ToolFailure(
            ToolErrorRecord(message, result.error.info),
            content,
            masker.mask(result.meta),
            result.additional_contexts,
        )

    async def mask_success(
        call: Dispatch, result: ToolResult, proceed: Callable[[], Awaitable[PostDecision]]
    ) -> PostDecision:
        decision = await proceed()
        if not isinstance(decision, Accept) or isinstance(result, ToolFailure):
            return decision
        replaced = decision.value if decision.value is not UNCHANGED else result.value
        masked = masker.mask(replaced)
        if not content_only and masked is not replaced:
            return Accept(value=masked, contexts=decision.contexts)
        if decision.value is not UNCHANGED:
            return decision
        content = decision.content if decision.content is not UNCHANGED else result.content
        masked_content: Any = masker.mask(list(content))
        return Accept(content=masked_content, contexts=decision.contexts)

    lift_around = scope.around(mask_failure, first=True)
    lift_post = scope.on_post_execute(mask_success, first=True)

    def dispose() -> None:
        lift_around()
        lift_post()

    return dispose
