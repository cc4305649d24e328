"""What a program calls the host through: namespaces, their members, and calls not yet awaited.

A call starts when it is awaited or scheduled, as a coroutine would. Until then it is a
`PendingCall`, which answers every other use with an error that says to write `await`.

Knows: the shapes a program sees. Does not know: what a member does.
"""

from __future__ import annotations

import difflib
import sys
from collections import ChainMap
from typing import TYPE_CHECKING, Any, Final, NoReturn

from sandbox import values, wire
from sandbox.facades.appearance import named, renamed
from sandbox.preflight.spaces import Space
from sandbox.values import NotJsonError
from sandbox.worker.loop import CallFuture, line_text

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
    from types import FrameType

    from sandbox.preflight.spaces import Parameters
    from sandbox.worker.batches import Batch
    from sandbox.worker.loop import Waiter, WireLoop

_MAX_SEARCHED: Final = 10_000
"""Items looked at when a result holds a call that was not awaited. Arbitrary."""
_MAX_NAMES_SHOWN: Final = 20
"""Names listed when an unknown one is asked for. Arbitrary."""
BATCH: Final = "batch"
"""Name of the helper that makes many calls at a time."""
NO_VALUE: Final = object()
"""In place of the answer of a call that has none yet."""


class CallError(Exception):
    """Base of the exception classes that failed host calls raise in a program."""


def make_error_class(name: str, member_attributes: tuple[str, ...]) -> type[CallError]:
    """Return a new exception class whose instances know which member failed."""

    def init(self: CallError, message: object = "", member: object = None) -> None:
        CallError.__init__(self, message)
        for attribute in member_attributes:
            setattr(self, attribute, member)

    init.__name__, init.__qualname__ = "__init__", f"{name}.__init__"
    return type(name, (CallError,), {"__init__": init, "__module__": "__program__", "__qualname__": name})


class PendingCall:
    """A host call that was made but not yet awaited."""

    __slots__ = ("_arguments", "_function", "_future", "_is_sent", "_line", "_value")

    def __init__(self, function: HostFunction, arguments: object, line: int | None) -> None:
        self._function = function
        self._arguments = arguments
        self._line = line
        self._future: asyncio.Future[Any] | None = None
        self._value: object = NO_VALUE
        self._is_sent = False
        """Whether it left in a batch, which is told the answer."""

    def __await__(self) -> Generator[Any, None, Any]:
        function = self._function
        loop = function._loop
        if self._is_new() and loop.has_nothing_else():
            # The one wait of a program that does one thing after the other: no future, no trip to the loop.
            function._unstarted.pop(self, None)
            try:
                self._value = loop.call_and_wait(
                    function._target, function._encoded(self._arguments), self._line, function._make_error
                )
            except CallError as error:
                self._arguments = None
                fail(self, error)
                raise
            self._arguments = None
            return self._value
        return (yield from start(self).__await__())

    def _is_new(self) -> bool:
        return self._future is None and self._value is NO_VALUE and not self._is_sent

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{refusal_text(self)} (then read {name!r} of its value)")

    def __eq__(self, other: object) -> bool:
        # Sets and dicts of calls, as asyncio.wait takes them, compare calls by identity.
        if self is other:
            return True
        if type(other) is PendingCall:
            return False
        raise TypeError(refusal_text(self))

    __hash__ = object.__hash__
    """By identity too; defined here, where `__eq__` would take it away."""


def refusal_text(call: PendingCall) -> str:
    """Say that a call was used before it ran, and what to write."""
    name = call._function._label
    return f"{name}(...) was not awaited, so it has not run: write `await {name}(...)`"


def _refuse_operation(self: PendingCall, *_args: object, **_kwargs: object) -> NoReturn:
    raise TypeError(refusal_text(self))


_OPERATIONS: Final = """
getitem setitem delitem iter next len contains bool call str repr format lt le gt ge int float index
add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow and rand or ror xor rxor
neg pos invert abs round iadd isub enter exit aenter aexit aiter anext
"""
for _operation in _OPERATIONS.split():
    setattr(PendingCall, f"__{_operation}__", _refuse_operation)
del _operation


def start(call: PendingCall) -> asyncio.Future[Any]:
    """Send a call to the host, once, and return the future of its answer."""
    if call._future is None:
        if call._value is not NO_VALUE or call._is_sent:
            call._future = call._function._loop.create_future()
            if call._value is not NO_VALUE:
                call._future.set_result(call._value)
            return call._future
        call._function._unstarted.pop(call, None)
        call._future = call._function._start(call._arguments, call._line)
        call._arguments = None
    return call._future


def fail(call: PendingCall, error: BaseException) -> None:
    """Let a call end in an exception, which whoever awaits it from now on gets."""
    future = call._future
    if future is None:
        future = call._future = call._function._loop.create_future()
    if not future.done():
        future.set_exception(error)
        future.exception()  # Marks it as seen.


def start_together(awaitables: tuple[object, ...]) -> list[Any] | None:
    """Return the futures of calls that will be sent, all at once, when the loop comes to its next pass.

    That is when tasks of theirs would begin, so calls that nobody gives the loop a chance to send never run.
    None when they are not all calls that have yet to start.
    """
    calls = [item for item in awaitables if type(item) is PendingCall and item._is_new()]
    if not calls or len(calls) < len(awaitables):
        return None
    futures: list[Any] = []
    for call in calls:
        if call._future is None:  # The same call may be there twice.
            call._future = CallFuture(call._function._loop, call._function._make_error)
        futures.append(call._future)
    calls[0]._function._loop.call_soon(_send_all, calls)
    return futures


def _send_all(calls: list[PendingCall]) -> None:
    # The same call may be there twice.
    for some in in_messages(filter(_is_unsent, dict.fromkeys(calls)), _fail_alone):
        futures: Any = [call._future for call, _ in some]
        for future, number in zip(futures, send_together(some, futures), strict=True):
            future.call_id = number
        for call, _ in some:
            _forget_unsent(call)


def in_messages(
    calls: Iterable[PendingCall], fail: Callable[[PendingCall, CallError], object]
) -> Iterator[list[tuple[PendingCall, bytes]]]:
    """Encode the arguments of calls, and give what is to be sent at a time.

    Args:
        calls: Calls that have not been sent.
        fail: Called with those that the host is not to see for their arguments, and why.

    Yields:
        Calls that fit into one message, each with its arguments.
    """
    some: list[tuple[PendingCall, bytes]] = []
    size, most = 0, _FIRST_CALLS
    for call in calls:
        function = call._function
        try:
            encoded = function._encoded(call._arguments)
        except CallError as error:
            fail(call, error)
            continue
        if some and (len(some) >= most or size + len(encoded) > function._max_call_bytes):
            yield some
            # The supervisor begins with these while the others are being written.
            function._loop.flush()
            some, size, most = [], 0, wire.MAX_BATCH_CALLS
        some.append((call, encoded))
        size += len(encoded)
    if some:
        yield some


def send_together(calls: list[tuple[PendingCall, bytes]], waiters: Sequence[Waiter]) -> list[int]:
    """Send calls with their arguments in one message, and return their numbers.

    Args:
        calls: What `in_messages` gives.
        waiters: For each call, who gets its answer.
    """
    loop = calls[0][0]._function._loop
    if len(calls) == 1:
        ((call, encoded),) = calls
        return [loop.send_one(waiters[0], call._function._target, encoded, call._line)]
    texts = [
        b"[%b,%b,%b]" % (call._function._target, encoded, line_text(call._line)) for call, encoded in calls
    ]
    return loop.send_together(waiters, b"[%b]" % b",".join(texts))


def _fail_alone(call: PendingCall, error: CallError) -> None:
    assert call._future is not None, "it was made for gathering"
    call._future.set_exception(error)
    _forget_unsent(call)


def _forget_unsent(call: PendingCall) -> None:
    call._function._unstarted.pop(call, None)
    call._arguments = None


def _is_unsent(call: PendingCall) -> bool:
    """Return whether a call that has a future still has to be sent."""
    future = call._future
    return type(future) is CallFuture and not future.call_id and not future.done()


def as_coroutine(awaitable: Any) -> Any:
    """Return a coroutine in place of a call, for asyncio; anything else comes back unchanged."""
    return _await(awaitable) if type(awaitable) is PendingCall else awaitable


async def _await(call: PendingCall) -> Any:
    return await start(call)


class HostFunction:
    """One member of a namespace, as the program sees it."""

    __slots__ = (
        "_eager",
        "_label",
        "_loop",
        "_make_error",
        "_max_call_bytes",
        "_noun",
        "_positional",
        "_program_file",
        "_signature",
        "_target",
        "_unstarted",
    )

    def __init__(self, namespace: HostNamespace, member: str, signature: str) -> None:
        self._label = namespace._label(member)
        self._loop = namespace._loop
        self._max_call_bytes = namespace._max_call_bytes
        self._noun = namespace._noun
        self._program_file = namespace._program_file
        self._positional: list[str] = namespace._positional.get(member, [])
        self._eager = member in namespace._eager
        self._signature = signature
        self._target = values.encode(namespace._name) + b"," + values.encode(member)
        self._make_error: Callable[[str], BaseException] = namespace._error_factory(member)
        self._unstarted = namespace._unstarted

    def __call__(self, /, *args: object, **kwargs: object) -> PendingCall:  # noqa: D102  # a program's call
        arguments: object = kwargs
        if args:
            arguments = self._by_position(args, kwargs)
        frame = sys._getframe(1)
        file = self._program_file
        line = frame.f_lineno if frame.f_code.co_filename == file else program_line(frame, file)
        call = PendingCall(self, arguments, line)
        if self._eager:
            start(call)
            self._loop.flush()
        elif len(self._unstarted) < _MAX_UNSTARTED:
            self._unstarted[call] = None
        return call

    def _by_position(self, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        names = self._positional
        if names and len(args) <= len(names) and not kwargs.keys() & set(names[: len(args)]):
            return dict(zip(names, args, strict=False)) | kwargs
        if names or kwargs or len(args) > 1 or not isinstance(args[0], dict):
            raise TypeError(
                f"{self._label} takes its arguments by name, or as one dict and nothing else:"
                f" {self._signature}"
            )
        return args[0]

    def __repr__(self) -> str:
        return f"<{self._noun} {self._label}>"

    def _start(self, arguments: object, line: int | None) -> CallFuture:
        return self._loop.start_call(self._target, self._encoded(arguments), line, self._make_error)

    def _encoded(self, arguments: object) -> bytes:
        try:
            encoded = values.encode(values.from_program(arguments, "arguments"))
        except NotJsonError as error:
            call = find_pending(arguments)
            reason = str(error) if call is None else refusal_text(call)
            raise self._make_error(f"{self._label}: {reason}") from None
        if len(encoded) > self._max_call_bytes:
            raise self._make_error(
                f"{self._label}: the arguments have {len(encoded)} bytes of JSON; the limit is"
                f" max_call_bytes={self._max_call_bytes}: send less per call"
            )
        return encoded


_FIRST_CALLS: Final = 32
"""Calls in the first message of several. Arbitrary: so few that the supervisor begins soon."""
_MAX_UNSTARTED: Final = 256
"""Calls remembered for the "was never awaited" hint; a program may make millions. Arbitrary."""


class HostNamespace:
    """One global of the program whose members are host functions.

    Members are read as attributes or, whatever their name, as items.
    """

    __slots__ = (
        "__dict__",
        "_aliases",
        "_batch",
        "_eager",
        "_error_class",
        "_groups",
        "_loop",
        "_max_call_bytes",
        "_members",
        "_name",
        "_noun",
        "_positional",
        "_program_file",
        "_signatures",
        "_unstarted",
    )

    def __init__(
        self,
        name: str,
        signatures: dict[str, str],
        *,
        noun: str,
        error_class: type[CallError],
        loop: WireLoop,
        program_file: str,
        positional: Mapping[str, list[str]],
        eager: frozenset[str],
        aliases: Mapping[str, list[str]],
    ) -> None:
        self._name = name
        self._aliases = aliases
        self._groups = {alias.partition(".")[0] for alias in aliases if _is_path(alias)} - signatures.keys()
        self._noun = noun
        self._signatures = signatures
        self._error_class = error_class
        self._loop = loop
        self._program_file = program_file
        self._max_call_bytes = 0
        self._positional = positional
        self._eager = eager
        self._members: dict[str, HostFunction] = {}
        self._batch: Batch | None = None
        self._unstarted: dict[PendingCall, None] = {}

    def __getattr__(self, name: str) -> HostFunction | HostGroup | Batch:
        found: HostFunction | HostGroup | Batch
        if name == BATCH and self._batch is not None:
            found = self._batch
        elif name in self._groups:
            found = HostGroup(self, name)
        else:
            found = self._member(name, AttributeError)
        # From now on the interpreter finds it by itself, in a third of the time.
        self.__dict__[name] = found
        return found

    def __getitem__(self, name: str) -> HostFunction:
        # LookupError and not KeyError, which would show its text in quotes.
        return self._member(name, LookupError)

    def __contains__(self, name: object) -> bool:
        return type(name) is str and self._resolved(name) in self._signatures

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._signatures))

    def __len__(self) -> int:
        return len(self._signatures)

    def __dir__(self) -> list[str]:
        return [name for name in self if name.isidentifier() and not name.startswith("_")]

    def __repr__(self) -> str:
        return f"<{self._name}: {len(self._signatures)} {self._noun}s>"

    def _member(self, name: object, error: type[Exception]) -> HostFunction:
        if type(name) is not str:
            raise TypeError(f"{self._name}[...] takes the name of a {self._noun} as a string")
        function = self._members.get(name)
        if function is None:
            member = self._resolved(name)
            if member not in self._signatures:
                raise error(self._unknown(name))
            # Under an alias it is the same function, with its own name.
            function = self._members.get(member) or HostFunction(self, member, self._signatures[member])
            self._members[name] = self._members[member] = function
        return function

    def _resolved(self, name: str) -> str:
        """Return the member that a name stands for: itself, unless it is an alias of just one."""
        if name in self._signatures:
            return name
        members = self._aliases.get(name, ())
        return members[0] if len(members) == 1 else name

    def _unknown(self, name: str) -> str:
        if name in self._aliases:
            labels = " or ".join(map(self._label, dict.fromkeys(self._aliases[name])))
            return f"{self._noun} name {name!r} is ambiguous: write {labels}"
        names = sorted([*self._signatures, *([] if self._batch is None else [BATCH])])
        text = f"unknown {self._noun} {name!r}."
        close = self._close(name, names)
        if close:
            text += " Did you mean " + " or ".join(self._label(known) for known in close) + "?"
        shown = ", ".join(names[:_MAX_NAMES_SHOWN]) or "none"
        more = f" and {len(names) - _MAX_NAMES_SHOWN} more" if len(names) > _MAX_NAMES_SHOWN else ""
        return f"{text} The {self._noun}s are: {shown}{more}"

    def _close(self, name: str, names: list[str]) -> list[str]:
        """Return what somebody may have meant."""
        aliases = [alias for alias, members in self._aliases.items() if len(members) == 1 and _is_path(alias)]
        # A name differs from what models write mostly by its separators, or by what stands before it.
        plain = {_squash(known): known for known in (*aliases, *names)}
        if _squash(name) in plain:
            return [plain[_squash(name)]]
        ends = [alias for alias in aliases if _squash(alias.partition(".")[2]) == _squash(name)]
        return ends[:3] or difflib.get_close_matches(name, [*names, *aliases], 3)

    def _label(self, member: str) -> str:
        if member in self._aliases and member not in self._signatures and _is_path(member):
            return f"{self._name}.{member}"
        if member.isidentifier() and not member.startswith("_"):
            return f"{self._name}.{member}"
        return f"{self._name}[{values.encode(member).decode()}]"

    def _error_factory(self, member: str) -> Callable[[str], BaseException]:
        error_class = self._error_class

        def make(message: str) -> BaseException:
            return error_class(message, member)

        return make


class HostGroup:
    """Members of a namespace whose aliases begin with the same word, as in `tools.server.tool`."""

    __slots__ = ("_namespace", "_word")

    def __init__(self, namespace: HostNamespace, word: str) -> None:
        self._namespace = namespace
        self._word = word

    def __getattr__(self, name: str) -> HostFunction:
        return self._namespace._member(f"{self._word}.{name}", AttributeError)

    def __repr__(self) -> str:
        space = self._namespace
        count = sum(alias.startswith(f"{self._word}.") and _is_path(alias) for alias in space._aliases)
        return f"<{space._name}.{self._word}: {count} {space._noun}s>"


def complete(namespace: HostNamespace, signatures: Mapping[str, str], max_call_bytes: int) -> None:
    """Tell a namespace what is known only together with the program, before that begins.

    Args:
        namespace: The namespace.
        signatures: Those of members the program may name that were not told before.
        max_call_bytes: JSON bytes that the arguments of a call may have.
    """
    namespace._signatures.update(signatures)
    namespace._max_call_bytes = max_call_bytes


def space_of(namespace: HostNamespace, parameters: Mapping[str, Parameters]) -> Space:
    """Describe a namespace to whoever checks a program's text."""
    members: Mapping[str, str] = namespace._signatures
    coroutines: tuple[str, ...] = ()
    if namespace._batch is not None:
        members = ChainMap(namespace._signatures, {BATCH: f"{BATCH}(calls: list) -> list"})
        coroutines = (BATCH,)
    return Space(
        members,
        parameters,
        namespace._positional,
        namespace._eager,
        coroutines,
        namespace._noun,
        namespace._label,
        namespace._unknown,
        namespace._groups,
        namespace._resolved,
    )


def find_pending(value: object) -> PendingCall | None:
    """Return a call that hides in plain containers, where a result was meant to be."""
    found = [value]
    for _ in range(_MAX_SEARCHED):
        if not found:
            return None
        item = found.pop()
        if type(item) is PendingCall:
            return item
        if type(item) is dict:
            found.extend(item.values())
        elif type(item) in (list, tuple):
            found.extend(item)  # type: ignore[arg-type]  # an exact list or tuple
    return None


def never_awaited(namespaces: Iterable[HostNamespace]) -> str | None:
    """Return a hint naming the calls that were made but never started, or None."""
    lost = [call for space in namespaces for call in space._unstarted]
    if not lost:
        return None
    first = lost[0]
    where = "" if first._line is None else f" (line {first._line})"
    more = f", and {len(lost) - 1} more" if len(lost) > 1 else ""
    name = f"{first._function._label}(...)"
    return f"{name}{where}{more} was never awaited, so it did not run: write `await` before it"


def _is_path(alias: str) -> bool:
    first, dot, second = alias.partition(".")
    return bool(dot) and first.isidentifier() and second.isidentifier()


def _squash(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())


def program_line(frame: FrameType | None, program_file: str) -> int | None:
    """Return the line of the program that led to a frame."""
    while frame is not None:
        if frame.f_code.co_filename == program_file:
            return frame.f_lineno
        frame = frame.f_back
    return None


# What Python's own messages call these: the names of our classes would only puzzle a program's author.
renamed({HostFunction: "function", HostNamespace: "namespace", PendingCall: "call"})
renamed({HostGroup: "namespace"})
named(_await, "call")
