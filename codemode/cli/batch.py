"""`codemode batch`: many calls, a line of JSON each, without a program.

Knows: how lines become calls, records become lines, and how far an interrupted batch had come.
Does not know: dispatching, the form of a line, the files.
"""

from __future__ import annotations

import collections
import contextlib
import hashlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import trio

from codemode.batch import BatchResult, run_batch
from codemode.bridge import OUTCOME_UNKNOWN
from codemode.cli import status
from codemode.cli.batch_input import BatchInput, open_input
from codemode.cli.batch_lines import Entry, LineSplitter, parse_line
from codemode.cli.batch_output import JOURNAL_SUFFIX, BatchOutput, Origin, new_batch_id
from codemode.cli.interrupt import Interrupt, stoppable
from codemode.cli.log import event_log
from codemode.cli.servers import mcp_files, with_mcp_servers
from codemode.cli.status import CommandError
from codemode.cli.toolset import Toolset, load_toolset
from codemode.depth import MAX_DEPTH, depth_of
from codemode.events import EventSink
from codemode.policies import installed
from codemode.private_file import reason
from codemode.settings import Settings
from codemode.terminal import BatchBar
from sandbox.vocabulary import ABSENT

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator

    from codemode.batch import ToolCall
    from codemode.cli.console import Console
    from codemode.session_log import SessionLog

_REDRAW_SECONDS: Final = 0.1
"""Time between two pictures of the bar."""
_NOT_STARTED: Final = "ABORTED_BEFORE_DISPATCH"


def run(options: argparse.Namespace, console: Console) -> int:
    """Make the calls and say how many went wrong."""
    if options.resume and options.output is None:
        raise CommandError("--resume goes on with an output file; name it with --output FILE")
    if options.output == "-":
        raise CommandError("--output must name a file; without it, results go to standard output")
    source = open_input(options.file)
    toolset = load_toolset(options, protected=_protected(options))
    interrupt = Interrupt(console.tell)
    with event_log(options.events, console) as log:
        batch = trio.run(_run, options, console, source, toolset, log, interrupt)
    batch.summarise()
    if interrupt.number is not None:
        raise CommandError(batch.interrupted(interrupt.words), kind="abort", status=interrupt.status)
    if batch.failure is not None:
        raise CommandError(batch.failure, kind="output", status=status.FAILED)
    return status.FAILED if batch.went_wrong else status.OK


def _protected(options: argparse.Namespace) -> list[Path]:
    """Return the files the tools must not change."""
    files = [name for name in (options.events, options.output) if name is not None]
    if options.file != "-":
        files.append(options.file)
    if options.output is not None:
        files.append(options.output + JOURNAL_SUFFIX)
    return [*mcp_files(options), *map(Path, files)]


async def _run(
    options: argparse.Namespace,
    console: Console,
    source: BatchInput,
    toolset: Toolset,
    log: SessionLog | None,
    interrupt: Interrupt,
) -> _Batch:
    """Run the batch up to its end, or to the second signal."""
    settings = Settings()
    bar = BatchBar(console.err, time.monotonic, source.lines) if console.watched else None
    batch = _Batch(console, source, interrupt, bar)
    try:
        async with (
            stoppable(interrupt) as nursery,
            with_mcp_servers(options, toolset, console) as offered,
        ):
            with (
                batch.writing_to(options, offered),
                installed(toolset.registry, _no_nested_calls, toolset.spill, settings.max_inline_bytes),
            ):
                if bar is not None:
                    nursery.start_soon(_redraw, bar)
                async with contextlib.aclosing(batch.calls(offered.allowed)) as calls:
                    await run_batch(
                        toolset.registry,
                        calls,
                        sink=EventSink(log, None if bar is None else bar.on_event),
                        max_parallel=options.max_parallel or settings.max_parallel_sub_calls,
                        on_result=batch.on_result,
                        watcher=batch,
                        abort=interrupt.abort,
                        session=object() if log is None else log,
                    )
                batch.finish()
    finally:
        if bar is not None:
            bar.clear()
    return batch


class _Batch:
    """One batch on its way from lines to records.

    Attributes:
        failure: Why records can no longer be written, for a person; None while they can.
        went_wrong: Whether any record tells of anything but success.
    """

    def __init__(
        self, console: Console, source: BatchInput, interrupt: Interrupt, bar: BatchBar | None
    ) -> None:
        self._console = console
        self._source = source
        self._abort = interrupt.abort
        self._bar = bar
        self._output: BatchOutput | None = None
        self._output_name = ""
        self._counts: collections.Counter[str] = collections.Counter()
        self._lines: dict[int, int] = {}
        """Line of each call that is on its way, by the call's number."""
        self._taken = 0
        self._given = 0
        self._last_line = 0
        self._noted: set[int] = set()
        """Lines on their way that the journal says have begun."""
        self._gap = False
        """Whether a record is missing, so that none may follow it in the output."""
        self._exhausted = False
        self._resumed = False
        self._made = 0
        self._began = time.monotonic()
        self.failure: str | None = None

    @property
    def went_wrong(self) -> bool:
        """Whether any record tells of anything but success."""
        return any(self._counts[what] for what in ("failed", "unknown", "refused"))

    @contextlib.contextmanager
    def writing_to(self, options: argparse.Namespace, toolset: Toolset) -> Iterator[None]:
        """Write to the file the options name, if they name one, for as long as the block runs."""
        if options.output is None:
            yield
            return
        root = hashlib.sha256(os.fsencode(os.path.realpath(options.root))).hexdigest()
        origin = Origin(self._source.fingerprint, toolset.allowed, root)
        self._output_name = options.output
        with BatchOutput.open(Path(options.output), origin, resume=options.resume) as self._output:
            yield

    # --- the input ---

    async def calls(self, names: list[str]) -> AsyncGenerator[ToolCall | BatchResult]:
        """Yield what is left to do: calls, and records that are known before.

        Raises:
            CommandError: The output does not belong to this input.
        """
        async with contextlib.aclosing(self._entries(names)) as entries:
            prefix = new_batch_id() if self._output is None else self._output.batch_id
            began: set[int] = set()
            ended: dict[int, dict[str, Any]] = {}
            if self._output is not None:
                began, ended = await self._catch_up(self._output, entries)
            async for entry in entries:
                # When nobody reads the results any more, nobody would know what further calls did.
                if self._abort.aborted or self._console.closed:
                    return
                self._lines[self._taken] = entry.line
                self._taken += 1
                made_up_id = f"{prefix}:{entry.line}"
                if entry.line in ended:
                    yield BatchResult.from_json(ended.pop(entry.line))
                elif entry.line in began:
                    yield _unknown(entry, made_up_id)
                else:
                    yield entry.call(made_up_id)
            self._exhausted = not self._abort.aborted

    async def _entries(self, names: list[str]) -> AsyncGenerator[Entry]:
        splitter = LineSplitter()
        tools = frozenset(names)
        async with contextlib.aclosing(self._source.chunks(self._abort)) as chunks:
            async for chunk in chunks:
                for number, line in splitter.feed(chunk):
                    entry = parse_line(number, line, tools, names)
                    if entry is not None:
                        yield entry
        if self._abort.aborted:
            return  # What is left in the splitter may be half a line.
        for number, line in splitter.finish():
            entry = parse_line(number, line, tools, names)
            if entry is not None:
                yield entry

    async def _catch_up(
        self, output: BatchOutput, entries: AsyncIterator[Entry]
    ) -> tuple[set[int], dict[int, dict[str, Any]]]:
        """Go past the lines that have a record; return what the journal knows of those that have none."""
        for record in output.records():
            entry = await anext(entries, None)
            if self._abort.aborted:
                return set(), {}  # No call will be made.
            if entry is None or not entry.matches(record):
                raise CommandError(
                    f"{self._output_name!r} is the output of another batch: its record of line"
                    f" {record['line']} is not one of {self._source.name}"
                )
            self._count(record)
            self._last_line = entry.line
            self._resumed = True
            if self._bar is not None:
                self._bar.advance(entry.line, failed=_outcome(record) != "succeeded")
        if not output.known:
            if await anext(entries, None) is not None:
                raise CommandError(
                    f"{self._output_name + JOURNAL_SUFFIX!r} is missing, so it is not known which calls"
                    f" after line {self._last_line} have run; write to another --output"
                )
            return set(), {}
        began, ended = output.unsettled(self._last_line)
        self._resumed = self._resumed or bool(began)
        return began, ended

    # --- what becomes of it: see BatchWatcher ---

    def starting(self, number: int) -> None:
        """Note in the journal that a call is about to run; without that note it must not."""
        self._made += 1
        if self._output is None:
            return
        try:
            self._output.begin(self._lines[number])
        except OSError as error:
            self._fail(error)
        else:
            self._noted.add(self._lines[number])

    def waiting(self, number: int, result: BatchResult) -> None:
        """Keep a record that has to wait, so that nothing known is lost."""
        self._keep(self._lines[number], result)

    def on_result(self, result: BatchResult) -> None:
        """Write the next record, in the order of the input."""
        line = self._lines.pop(self._given)
        self._given += 1
        if self._was_kept_back(result):
            # It is made when the batch goes on. Until then its place is empty.
            self._gap = True
        if self._gap:
            self._keep(line, result)
            return
        record = _shown(result, line)
        if self._output is None:
            if self._bar is not None:
                self._bar.clear()
            self._console.print_json(record, at_once=True)
            if self._console.closed:
                self._stop_unread(line)
        else:
            try:
                self._output.write(record)
            except OSError as error:
                self._fail(error)
                self._keep(line, result)
                return
        self._noted.discard(line)
        self._count(record)
        self._last_line = line
        if self._bar is not None:
            self._bar.advance(line, failed=_outcome(record) != "succeeded")

    def finish(self) -> None:
        """Take note that every call has settled."""
        complete = self._exhausted and not self._gap and self.failure is None
        if complete and self._output is not None:
            self._output.complete()

    def _keep(self, line: int, result: BatchResult) -> None:
        """Note in the journal what became of a call that it says has begun."""
        if self._output is None or line not in self._noted:
            return
        try:
            if self._was_kept_back(result):
                self._output.withdraw(line)
            else:
                self._output.keep(line, _shown(result, line))
        except OSError as error:
            self._fail(error)
        else:
            self._noted.discard(line)

    def _was_kept_back(self, result: BatchResult) -> bool:
        """Say whether a call has not run because the batch was stopped."""
        record = result.record
        return self._abort.aborted and record.error_code == _NOT_STARTED and not record.executed

    def _fail(self, error: OSError) -> None:
        """Stop, because what happens can no longer be written down."""
        self._gap = True
        if self.failure is None:
            self.failure = f"cannot write to {self._output_name!r}: {reason(error)}; {_GO_ON}"
            self._abort.abort("its outcome cannot be written down")

    def _stop_unread(self, line: int) -> None:
        """Stop, because nobody would know what further calls did."""
        if self.failure is None:
            self.failure = (
                f"nobody reads the records any more, from that of line {line} on; calls that were running"
                " were stopped and may have had their effect. With --output FILE none is lost"
            )
            self._abort.abort("nobody reads the records any more")

    def _count(self, record: dict[str, Any]) -> None:
        self._counts[_outcome(record)] += 1

    # --- what is said at the end ---

    def interrupted(self, words: str) -> str:
        """Say what a signal left undone."""
        done = f"{words} after line {self._last_line}"
        return done if self._output is None else f"{done}; {_GO_ON}"

    def summarise(self) -> None:
        """Say how many calls went how, where somebody wants to know."""
        if not self._made and self._resumed and self._exhausted:
            self._console.say(f"codemode batch: {self._output_name!r} is complete; no call was left to make")
        if not (self.went_wrong or self._console.watched):
            return
        counts = self._counts
        parts = [f"{counts['succeeded']} succeeded", f"{counts['failed']} failed"]
        if counts["unknown"]:
            parts.append(f"{counts['unknown']} of unknown outcome")
        if counts["refused"]:
            parts.append(f"{counts['refused']} not a call")
        total, took = sum(counts.values()), time.monotonic() - self._began
        text = f"{total} {'line' if total == 1 else 'lines'}: {', '.join(parts)} ({took:.2f} s)"
        paint = self._console.err_paint
        self._console.say(f"codemode batch: {paint.bad(text) if self.went_wrong else paint.dim(text)}")


_GO_ON: Final = "the same command with --resume goes on"


def _outcome(record: dict[str, Any]) -> str:
    """Return which of four sorts a record is: succeeded, failed, unknown, refused."""
    if record.get("status") == "not_started":
        return "refused"
    if record.get("status") == "unknown":
        return "unknown"
    return "succeeded" if record.get("status") == "succeeded" and "error" not in record else "failed"


def _shown(result: BatchResult, line: int) -> dict[str, Any]:
    """Return the record as it is written, within what common JSON readers can take in."""
    result.record.line = line
    depth = depth_of(result.value) if result.value is not ABSENT else 0
    record = result.to_json()
    if depth > MAX_DEPTH:
        del record["value"]
        message = f"the value is nested {depth} levels deep; a record holds at most {MAX_DEPTH}"
        record["error"] = {"message": message, "code": "INVALID_OUTPUT"}
    return record


def _unknown(entry: Entry, made_up_id: str) -> BatchResult:
    record = entry.record(made_up_id)
    record.status, record.executed = "unknown", True
    record.error_message = "the batch was cut off while this call ran; it may have had its effect"
    record.error_code = OUTCOME_UNKNOWN
    return BatchResult(record, ABSENT, [], entry.id)


def _no_nested_calls(_listener: object) -> Callable[[], None]:
    """Stand for the log of nested calls, of which a batch has none."""
    return lambda: None


async def _redraw(bar: BatchBar) -> None:
    while True:
        bar.draw()
        await trio.sleep(_REDRAW_SECONDS)
