"""Run one program: compile, bind, drive, and put its end into one message.

Knows: the rules of a program's result and of its end.
Does not know: sockets, processes, which names and modules the language has.
"""

from __future__ import annotations

from asyncio import events
from typing import TYPE_CHECKING, Any, Final, Protocol

from sandbox import fences, values, wire
from sandbox.diagnostics import place_in
from sandbox.policy import ProgramRefusedError, ProgramResult
from sandbox.preflight.idle import idle_hint
from sandbox.preflight.spaces import Parameters
from sandbox.values import JsonValue, NotJsonError
from sandbox.worker.batches import add_batch
from sandbox.worker.channel import SupervisorGoneError
from sandbox.worker.loop import WireLoop
from sandbox.worker.namespaces import (
    CallError,
    HostNamespace,
    complete,
    find_pending,
    make_error_class,
    never_awaited,
    refusal_text,
    space_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import CodeType, ModuleType

    from sandbox.preflight.finder import CertainError

_DEFAULT_ERROR_CLASS: Final[dict[str, Any]] = {"name": "HostCallError", "attributes": []}


class Wire(Protocol):
    """What a program's run needs of a channel."""

    def post(self, message: bytes) -> None:
        """Queue a message."""

    def flush(self) -> None:
        """Send what is queued."""

    def receive(self, timeout_seconds: float | None) -> list[Any]:
        """Wait for messages."""


_kept: list[dict[str, Any]] = []
"""Globals of the programs of this process; it ends with the last."""


class Stage:
    """What a program finds, set up before the program is there. For one program.

    Args:
        channel: Where calls and printed text go.
        offer: The body of the `prepare` message.
        language: `sandbox.worker.restricted`, or in some tests `sandbox.worker.plain`.
    """

    def __init__(self, channel: Wire, offer: Mapping[str, Any], language: ModuleType) -> None:
        self._channel = channel
        self._source = ""
        self._check_only = False
        self._note: str | None = None
        self._max_output_bytes = 0
        self._memory_mb = 0
        self._loop = WireLoop(channel)
        self._language = language
        self._namespaces: dict[str, HostNamespace] = {}
        self._bindings: dict[str, object] = {}
        self._modules: dict[str, object] = {}
        self._error_classes: dict[str, type[CallError]] = {}
        for space in offer["namespaces"]:
            self._bind(space)
        for space in offer["namespaces"]:
            if space["batches"] is not None:
                add_batch(self._namespaces[space["name"]], self._namespaces[space["batches"]])
        self._parameters: dict[str, dict[str, Parameters]] = {name: {} for name in self._namespaces}
        spaces = {name: space_of(space, self._parameters[name]) for name, space in self._namespaces.items()}
        hints: Mapping[str, str] = offer["hints"]
        self._provided = frozenset(self._bindings)
        self._globals: dict[str, Any] = language.build_globals(
            self._bindings, self._write, self._modules, hints, self._loop
        )
        # Never freed: that would write to every builtin, while the supervisor waits for the outcome.
        _kept.append(self._globals)
        self._around: Any = language.surroundings(self._globals, spaces, self._modules, hints)

    def _bind(self, space: dict[str, Any]) -> None:
        error: dict[str, Any] = space["errorClass"] or _DEFAULT_ERROR_CLASS
        error_class = self._error_classes.get(error["name"])
        if error_class is None:
            error_class = make_error_class(error["name"], tuple(error["attributes"]))
            self._error_classes[error["name"]] = error_class
        namespace = HostNamespace(
            space["name"],
            space["members"],
            noun=space["noun"],
            error_class=error_class,
            loop=self._loop,
            program_file=self._language.PROGRAM_FILE,
            positional=space["positional"],
            eager=frozenset(space["eager"]),
            aliases=space["aliases"],
        )
        self._namespaces[space["name"]] = namespace
        self._bindings[space["name"]] = namespace
        if space["errorClass"]:
            self._bindings[error["name"]] = error_class
        if space["importable"]:
            self._modules[space["name"]] = namespace

    def run(self, request: Mapping[str, Any]) -> bytes:
        """Run a program to its end and return the encoded `done` message.

        Args:
            request: The body of the `run` message.

        Raises:
            MemoryError: There was not even memory left to say that there was none.
            SupervisorGoneError: The supervisor closed the wire.
        """
        self._source = request["source"]
        self._check_only = request["checkOnly"]
        self._max_output_bytes = request["maxOutputBytes"]
        self._memory_mb = request["memoryMb"]
        for name, namespace in self._namespaces.items():
            complete(namespace, request["signatures"].get(name, {}), request["maxCallBytes"])
        for name, known in request["parameters"].items():
            self._parameters[name].update(
                {member: Parameters.from_json(record) for member, record in known.items()}
            )
        try:
            code, entry_name = self._compile()
        except ProgramRefusedError as refused:
            return _done({"failure": _refusal(refused, self._source)})
        try:
            if certain := self.foresee(self._source):
                return _done({"failure": _foreseen(certain, self._source)})
            if self._check_only:
                return _done(self._with_hint({}))
            exec(code, self._globals)  # noqa: S102  # the policy's output, which is what this process is for
            result = self._loop.run(self._globals[entry_name]())
        except SupervisorGoneError:
            raise
        except SystemExit as leave:
            # `sys.exit()` ends a program well; with a status or a message it ends badly.
            if leave.code in (None, 0):
                return _done(self._with_hint({}))
            return _done({"failure": self._failure(leave)})
        except MemoryError as error:
            failure = self._failure(error)
            failure["kind"] = "memory-limit"
            # CPython's own says nothing at all.
            failure["message"] = (
                f"MemoryError: the program used all its memory; the limit is memory_mb={self._memory_mb}"
            )
            return _done({"failure": failure})
        except BaseException as error:  # noqa: BLE001  # a program may raise anything, and all of it is its own
            return _done({"failure": self._failure(error)})
        return self._result(result)

    def foresee(self, source: str) -> list[CertainError]:
        """Return what in a program must fail."""
        # A run leaves imports until they are executed; a check executes nothing.
        judges_imports = self._globals if self._check_only else None
        return self._language.certain_errors(source, self._around, judges_imports)  # type: ignore[no-any-return]  # a module is Any

    def _compile(self) -> tuple[CodeType, str]:
        provided = self._provided
        try:
            return self._language.compile_program(self._source, provided)  # type: ignore[no-any-return]  # a module is Any
        except ProgramRefusedError:
            # Only a text that is no program itself is searched for one, so no string in it is taken for one.
            inner = fences.unfenced(self._source)
            if inner is None:
                raise
            self._source, self._note = inner, fences.NOTE
            return self._language.compile_program(inner, provided)  # type: ignore[no-any-return]  # as above

    def _write(self, _stream: str, text: str) -> None:
        if len(text) > self._max_output_bytes:
            # More than the supervisor will take; it says so when it sees one byte too many.
            text = text[: self._max_output_bytes + 1]
        self._channel.post(values.encode([wire.LOG, text]))
        self._channel.flush()

    def _result(self, result: object) -> bytes:
        if result is not None and type(result) is not ProgramResult:
            result = ProgramResult(result, implicit=False)  # Plain Python knows no wrapper.
        if result is None:
            self._note = self._note or idle_hint(self._source)
            return _done(self._with_hint({}))
        try:
            value = values.from_program(result.value, "result")
        except NotJsonError as error:
            return self._not_json(error, result)
        encoded = values.encode(value)
        # Cheap first: what is written has at least as many bytes as what is counted.
        if len(encoded) > self._max_output_bytes and values.json_size(value) > self._max_output_bytes:
            message = f"outer output exceeded {self._max_output_bytes} bytes"
            return _done({"failure": {"kind": "output-limit", "message": message}})
        rest = values.encode(self._with_hint({}))
        return b'["%b",{"value":%b%b]' % (
            wire.DONE.encode(),
            encoded,
            b"," + rest[1:] if rest != b"{}" else b"}",
        )

    def _not_json(self, error: NotJsonError, result: ProgramResult) -> bytes:
        call = find_pending(result.value)
        if call is not None:
            reason = refusal_text(call)
        elif result.implicit:
            hint = (
                f"the last line's value is no result, because it is not JSON: {error}; `return` what you need"
            )
            return _done(self._with_hint({"hint": hint}))
        else:
            reason = str(error)
        message = f"program completion must be lossless JSON: {reason}"
        return _done({"failure": {"kind": "invalid-output", "message": message}})

    def _failure(self, error: BaseException) -> dict[str, Any]:
        failure: dict[str, Any] = {
            "kind": "exception",
            **self._language.describe(error, self._source, self._around),
        }
        if failure.get("hint") is None:
            failure["hint"] = never_awaited(self._namespaces.values())
        return failure

    def _with_hint(self, body: dict[str, JsonValue]) -> dict[str, JsonValue]:
        hint = never_awaited(self._namespaces.values()) or self._note
        if hint is not None:
            body["hint"] = hint
        return body


def _foreseen(errors: list[CertainError], source: str) -> dict[str, Any]:
    first = errors[0]
    lines = [f"{first.error_type}: {first.message}"]
    lines += [
        f"line {error.line}: {error.message}" + (f"; {error.hint}" if error.hint else "")
        for error in errors[1:]
    ]
    return {
        "kind": "policy",
        "message": "\n".join(lines),
        "errorType": first.error_type,
        "line": first.line,
        "hint": first.hint,
        "traceback": [list(place_in(source, first.line))],
    }


def _refusal(refused: ProgramRefusedError, source: str) -> dict[str, Any]:
    first = refused.refusals[0]
    lines = [f"{refused.error_type}: {first.message} (column {first.column})"]
    lines += [str(refusal) for refusal in refused.refusals[1:]]
    return {
        "kind": "policy",
        "message": "\n".join(lines),
        "errorType": refused.error_type,
        "line": first.line,
        "hint": first.hint,
        "traceback": [list(place_in(source, first.line))],
    }


def _done(body: dict[str, Any]) -> bytes:
    return values.encode([wire.DONE, body])


def forget_loop() -> None:
    """Undo what a run set in asyncio, for a process that runs another one: the warm-up."""
    events._set_running_loop(None)  # noqa: SLF001  # asyncio offers it to authors of loops
