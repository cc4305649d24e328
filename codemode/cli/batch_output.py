"""The output file of a batch and the journal beside it, from which an interrupted batch goes on.

The output has a record for every line of the input that is not blank, in the order of the input. The journal
is written ahead of it:

    {"began": LINE}                   before the body of the call on that line may run
    {"ended": LINE, "record": ...}    when its record has to wait for that of an earlier line
    {"withdrawn": LINE}               when its body was kept from running after all

So whatever the moment at which the command is killed: a call without `began` has not run; one with `began`
and a record, in the output or the journal, is known; one with `began` alone may have had its effect, and
nobody can say. A write that was cut short leaves a line without an end, which counts as not written: before
`began` nothing has run, and a call whose record was torn is one of those of unknown outcome.

The journal goes when the output is complete.

Knows: the two files, what must be the same when a batch goes on. Does not know: calls, the input's form.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import secrets
import stat
from typing import TYPE_CHECKING, Any, Final, Self

from codemode.cli.status import CommandError
from codemode.private_file import Refusal, open_locked, open_private, reason
from codemode.session_file import LogFile
from sandbox.values import JsonValue, decode, encode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

JOURNAL_SUFFIX: Final = ".journal"
_VERSION: Final = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Origin:
    """What must not have changed when a batch goes on.

    Attributes:
        input: Size and digest of the input file, or None for a stream.
        tools: Names of the tools there are.
        root: Digest of the directory the file tools work in.
    """

    input: dict[str, Any] | None
    tools: list[str]
    root: str

    def difference(self, before: dict[str, Any]) -> str | None:
        """Return what is no longer as the journal says, for a person, or None."""
        if before.get("input") != self.input:
            return "the input is not the one it began with"
        if before.get("root") != self.root:
            return "--root is not the directory it began with"
        known = before.get("tools")
        names = set(known) if isinstance(known, list) else set()
        gone, new = sorted(names - set(self.tools)), sorted(set(self.tools) - names)
        if gone:
            return f"it began with the tool {gone[0]!r}, which is not there now"
        if new:
            return f"it began without the tool {new[0]!r}, which is there now"
        return None


class BatchOutput:
    """Both files, locked. Made by `open`; close it, or use it in a `with`.

    Attributes:
        batch_id: The same whenever the batch goes on; made-up ids of calls begin with it.
        known: Whether there is a journal of what has run. Without one nothing can be added.
    """

    def __init__(self, path: Path, output: LogFile, journal: LogFile, batch_id: str, *, known: bool) -> None:
        self._path = path
        self._output = output
        self._journal = journal
        self.batch_id = batch_id
        self.known = known

    @classmethod
    def open(cls, path: Path, origin: Origin, *, resume: bool) -> Self:
        """Create the files, or go on with those of an interrupted batch.

        Args:
            path: The output file.
            origin: What the batch is made of.
            resume: Whether to go on with what is there, if something is.

        Raises:
            CommandError: They cannot be written, are in use, or do not belong to this batch.
        """
        _size(path)  # Refuses what is no file before anything is made.
        journal_path = path.with_name(path.name + JOURNAL_SUFFIX)
        journal = open_locked(journal_path, _refusal(path))
        try:
            header, has_output = _header(journal_path), _size(path) > 0
            if not has_output and not _has_entries(journal_path):
                header = None  # Nothing has run, so nothing has to be as it was.
            elif not resume:
                raise _refused(path, journal_path, has_output=has_output)
            elif header is not None and (difference := origin.difference(header)) is not None:
                raise CommandError(
                    f"cannot go on with {str(path)!r}: {difference};"
                    " give what it was begun with, or another --output"
                )
            output = LogFile(path, open_private(path, _refusal(path)))
            if header is not None:
                return cls(path, output, LogFile(journal_path, journal), header["batch"], known=True)
            os.ftruncate(journal, 0)
            batch_id = new_batch_id()
            opened = cls(path, output, LogFile(journal_path, journal), batch_id, known=not has_output)
            if opened.known:
                opened._note({"batch": batch_id, "version": _VERSION, **dataclasses.asdict(origin)})
            return opened
        except BaseException as error:
            _drop_empty(journal_path, journal)
            os.close(journal)
            if isinstance(error, OSError):
                raise CommandError(f"cannot write to {str(path)!r}: {reason(error)}") from error
            raise

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield what the output holds.

        Raises:
            CommandError: A line is not a record of a batch.
        """
        for number, line in enumerate(_lines(self._path), 1):
            record = _decoded(line)
            if record is None or type(record.get("line")) is not int:
                raise CommandError(f"{str(self._path)!r}, line {number}: this is no record of a batch")
            yield record

    def unsettled(self, after: int) -> tuple[set[int], dict[int, dict[str, Any]]]:
        """Return what the journal knows of calls whose record the output lacks. Before anything is added.

        Args:
            after: The last line of the input that has a record.

        Returns:
            The lines whose call may have run, and the records of those whose end is known.

        Raises:
            CommandError: The journal is damaged.
        """
        # Only now is it certain that the output is ours to change.
        self._output.cut_torn_line()
        self._journal.cut_torn_line()
        began: set[int] = set()
        ended: dict[int, dict[str, Any]] = {}
        for number, line in enumerate(_lines(self._journal.path), 1):
            entry = _decoded(line)
            if number == 1:
                continue
            kind, of = next(iter(entry.items()), ("", None)) if entry else ("", None)
            if entry is None or type(of) is not int:
                raise CommandError(
                    f"{str(self._journal.path)!r}, line {number} cannot be read,"
                    " so it is not certain which calls have run"
                )
            if of > after and kind == "began":
                began.add(of)
            elif of > after and kind == "ended":
                ended[of] = entry["record"]
            elif kind == "withdrawn":
                began.discard(of)
        return began, ended

    def begin(self, line: int) -> None:
        """Note that the call of a line is about to run.

        Raises:
            OSError: It could not be noted, so it must not run.
        """
        self._journal.append(b'{"began":%d}\n' % line)

    def withdraw(self, line: int) -> None:
        """Note that the call of a line has not run after all."""
        self._note({"withdrawn": line})

    def keep(self, line: int, record: dict[str, Any]) -> None:
        """Note a record whose place in the output has not come."""
        self._note({"ended": line, "record": record})

    def write(self, record: dict[str, Any]) -> None:
        """Add the next record to the output.

        Raises:
            OSError: Nothing of it is in the file.
        """
        self._output.append(encode(record) + b"\n")

    def complete(self) -> None:
        """Remove the journal: nothing is left to go on with."""
        self._journal.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Release both files. Safe to call twice."""
        if not self.known:
            self._journal.path.unlink(missing_ok=True)
        self._output.close()
        self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()

    def _note(self, entry: dict[str, Any]) -> None:
        self._journal.append(encode(entry) + b"\n")


def new_batch_id() -> str:
    """Return an id that no other batch has."""
    return f"batch-{secrets.token_hex(8)}"


def _has_entries(journal_path: Path) -> bool:
    """Say whether the journal tells of any call; the first line is about the batch."""
    return sum(1 for _ in itertools.islice(_lines(journal_path), 2)) > 1


def _refused(path: Path, journal_path: Path, *, has_output: bool) -> CommandError:
    if has_output:
        return CommandError(
            f"{str(path)!r} is there already; go on with it by --resume, or name another file"
        )
    return CommandError(
        f"{str(journal_path)!r} says that calls of an interrupted batch have run;"
        " go on with it by --resume, or remove it"
    )


def _header(path: Path) -> dict[str, Any] | None:
    """Return what the journal says of its batch; None when it is empty, or broke off before it said it."""
    line = next(_lines(path), None)
    if line is None:
        return None
    header = _decoded(line)
    if header is None or header.get("version") != _VERSION or not isinstance(header.get("batch"), str):
        raise CommandError(
            f"{str(path)!r} would be the journal beside the output, but is something else;"
            " move it away, or name another --output"
        )
    return header


def _decoded(line: bytes) -> dict[str, Any] | None:
    try:
        value: JsonValue = decode(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the whole lines of a file; a last one without an end counts as not written."""
    try:
        with path.open("rb") as stream:
            for line in stream:
                if line.endswith(b"\n"):
                    yield line
    except OSError as error:
        raise CommandError(f"cannot read {str(path)!r}: {reason(error)}") from error


def _size(path: Path) -> int:
    try:
        found = path.lstat()
    except OSError:
        return 0  # Not there, or out of reach, which opening it will say.
    if not stat.S_ISREG(found.st_mode):
        what = "a symbolic link" if stat.S_ISLNK(found.st_mode) else "not a regular file"
        raise CommandError(f"cannot write to {str(path)!r}: it is {what}")
    return found.st_size


def _refusal(output: Path) -> Refusal:
    """Word what is wrong with one of the two files of an output."""
    in_use = f"another batch is writing {str(output)!r}; give this one its own --output"
    return Refusal(CommandError, "cannot write to", output, in_use)


def _drop_empty(path: Path, descriptor: int) -> None:
    """Remove a journal that was made a moment ago and says nothing."""
    if os.fstat(descriptor).st_size == 0:
        path.unlink(missing_ok=True)
