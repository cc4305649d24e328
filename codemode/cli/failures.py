"""How a program that failed, or is bound to fail, is told to a person.

A model reads the error first, since it may be cut short; a person reads a terminal from its end. So here
what has been done already comes first, and the error with its hint last.

Knows: what is said, and in which order. Does not know: how a program is run or judged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codemode.outcome import failure_text
from codemode.receipts import already_done
from codemode.terminal import escape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codemode.cli.console import Console
    from codemode.receipts import CallRecord
    from sandbox.vocabulary import Failure


def say_failure(failure: Failure, calls: Sequence[CallRecord], console: Console) -> None:
    """Say which calls were made, then why the run failed; what it printed is on standard output already."""
    done = already_done(calls)
    if done:
        console.say(escape(done, keep="\n"))
    console.say(console.err_paint.bad(escape(failure_text(failure, (), ()), keep="\n\t")))


def say_verdict(failure: Failure, console: Console) -> None:
    """Say what a check found, in words that do not speak of a run: there was none."""
    console.say(console.err_paint.bad(escape(_verdict(failure), keep="\n\t")))


def _verdict(failure: Failure) -> str:
    if failure.kind != "policy":
        # A limit, or the worker itself: nothing is known of the program.
        return f"the check could not be finished ({failure.kind}): {failure.message}"
    # Several errors come a line each; place and hint belong to the first.
    message, _, others = failure.message.partition("\n")
    lines = [f"bound to fail: {message}"]
    if failure.traceback:
        lines += [f"  line {frame.line}, in {frame.function}: {frame.text}" for frame in failure.traceback]
    elif failure.line is not None:
        lines.append(f"  line {failure.line}")
    if others:
        lines += ["Also:", others]
    if failure.hint is not None:
        lines.append(f"Hint: {failure.hint}")
    return "\n".join(lines)
