"""What to write next after a run that failed, where nobody nearer to the failure knows better.

A rule that looked at the failed expression (`sandbox.advice`) or at the refused construct says more. Where
no rule does, an exception and a refusal show their text and their line, and there is no more to say of them
in general. So this is about what ended the whole run: limits, stops, lost workers, results that are no JSON.

Knows: failure kinds. Does not know: programs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sandbox.vocabulary import Failure, FailureKind

COMPUTE: Final = "compute budget exhausted"
"""How the message of a `timeout` begins that is about processor time; the others are about elapsed time."""

_COMPUTE_STEP: Final = (
    "do less work in Python itself: look things up in a dict or set instead of searching lists, look at less"
    " data, or split the work over several runs"
)
_STEPS: Final[Mapping[FailureKind, str | None]] = {
    "policy": None,
    "exception": None,
    "timeout": (
        "do less in one run: make calls that may overlap with `await asyncio.gather(...)`, put"
        " `async with asyncio.timeout(seconds):` around what may hang, or split the work over several runs"
    ),
    "memory-limit": (
        "keep less at once: handle data piece by piece instead of collecting all of it, and return a summary"
    ),
    "output-limit": "print and return less: counts, a slice such as `rows[:20]`, or a summary",
    "call-limit": (
        "make fewer or smaller calls: ask for many things in one call where a tool allows it, filter early,"
        " or split the work over several runs"
    ),
    "invalid-output": (
        "return only dicts with text keys, lists, text, numbers, True, False and None; convert the rest with"
        " `str(...)`, `list(...)` or `dict(...)`"
    ),
    "abort": (
        "it was stopped from outside and not by a mistake in it: run it again only if that is wanted, without"
        " the calls that are done"
    ),
    "worker-exit": (
        "run it again without the calls that are done; if it ends like this twice, do less in one run, with"
        " less recursion and less data at once"
    ),
}


def advised(failure: Failure) -> Failure:
    """Return a failure with a hint, unless it has one or is better off without."""
    if failure.hint is not None:
        return failure
    is_compute = failure.kind == "timeout" and failure.message.startswith(COMPUTE)
    return failure._replace(hint=_COMPUTE_STEP if is_compute else _STEPS[failure.kind])
