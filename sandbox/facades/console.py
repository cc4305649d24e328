"""What a program sees of the process it runs in: its output, its (empty) input, and `sys`.

Knows: where text goes (a function is passed in). Does not know: the wire, the log.
"""

from __future__ import annotations

import contextlib
import io
import pprint
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

from sandbox.facades.appearance import plain_function, renamed

Write = Callable[[str, str], None]
"""Takes the stream's name (`stdout` or `stderr`) and the text."""

MAX_RECURSION = 20_000
"""Frames `sys.setrecursionlimit` raises the limit to at most. Pure Python calls use no C stack since 3.11;
the figure is arbitrary, far above the default and well inside the memory limit."""


class OutputStream:
    """`sys.stdout` or `sys.stderr` of a program."""

    __slots__ = ("_name", "_write", "encoding", "errors")

    def __init__(self, name: str, write: Write) -> None:
        self._name = name
        self._write = write
        self.encoding = "utf-8"
        self.errors = "strict"

    @property
    def name(self) -> str:
        """The stream's conventional name."""
        return f"<{self._name}>"

    def write(self, text: str, /) -> int:
        """Send text to the log; return its length."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        exact = str.__str__(text)
        if exact:
            self._write(self._name, exact)
        return len(exact)

    def writelines(self, lines: Iterable[str], /) -> None:
        """Send each of the strings."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Do nothing: text is sent at once."""

    def isatty(self) -> bool:
        """Say that this is no terminal."""
        return False

    def writable(self) -> bool:
        """Say that text can be written."""
        return True

    def readable(self) -> bool:
        """Say that nothing can be read."""
        return False

    def fileno(self) -> NoReturn:
        """Refuse: there is no descriptor."""
        raise io.UnsupportedOperation("fileno")

    def close(self) -> None:
        """Do nothing: the stream stays open for the whole run."""

    def __repr__(self) -> str:
        return self.name


class EmptyInput:
    """`sys.stdin` of a program: at end of file from the start."""

    __slots__ = ()

    def read(self, size: int = -1, /) -> str:
        """Return the empty string."""
        del size
        return ""

    def __repr__(self) -> str:
        return "<stdin>"

    def readline(self, size: int = -1, /) -> str:
        """Return the empty string."""
        del size
        return ""

    def readlines(self, hint: int = -1, /) -> list[str]:
        """Return no lines."""
        del hint
        return []

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def isatty(self) -> bool:
        """Say that this is no terminal."""
        return False


class Console:
    """The standard streams of one program, and everything that depends on where they point."""

    def __init__(self, write: Write) -> None:
        self.stdout: Any = OutputStream("stdout", write)
        self.stderr: Any = OutputStream("stderr", write)

    def connect(self, write: Write) -> None:
        """Send what is written to the two streams somewhere else, before a program has them."""
        for stream in (self.stdout, self.stderr):
            stream._write = write  # noqa: SLF001  # a class of this module

    def print(
        self, *values: Any, sep: Any = " ", end: Any = "\n", file: Any = None, flush: bool = False
    ) -> None:
        """Print values to the log, or to `file`."""
        for label, text in (("sep", sep), ("end", end)):
            if text is not None and not isinstance(text, str):
                raise TypeError(f"{label} must be None or a string, not {type(text).__name__}")
        separator = " " if sep is None else str.__str__(sep)
        line = separator.join([str.__str__(str(value)) for value in values]) + (
            "\n" if end is None else str.__str__(end)
        )
        target = self.stdout if file is None else file
        target.write(line)
        if flush:
            target.flush()

    def pprint(self, object: Any, stream: Any = None, *args: Any, **options: Any) -> None:  # noqa: A002  # the standard signature
        """Print a value, laid out over several lines if it is long."""
        (self.stdout if stream is None else stream).write(pprint.pformat(object, *args, **options) + "\n")

    def pp(self, object: Any, *args: Any, sort_dicts: bool = False, **options: Any) -> None:  # noqa: A002  # the standard signature
        """Print a value, laid out over several lines, keys in their own order."""
        self.pprint(object, *args, sort_dicts=sort_dicts, **options)

    def redirect_stdout(self, new_target: Any) -> _Redirection:
        """Send what is printed inside the `with` block to `new_target`."""
        return _Redirection(self, "stdout", new_target)

    def redirect_stderr(self, new_target: Any) -> _Redirection:
        """Send what is written to `sys.stderr` inside the `with` block to `new_target`."""
        return _Redirection(self, "stderr", new_target)


class _Current:
    """The console of the program that runs."""

    console: Console | None = None


def install(console: Console) -> None:
    """Make a console the one that standard library functions print to."""
    _Current.console = console


def print_now(*values: Any, **options: Any) -> None:
    """Print for a standard library function, which knows no program."""
    if _Current.console is not None:
        _Current.console.print(*values, **options)


class _Redirection:
    """`contextlib.redirect_stdout` and `redirect_stderr`."""

    __slots__ = ("_console", "_old", "_target", "_which")

    def __init__(self, console: Console, which: str, target: Any) -> None:
        self._console = console
        self._which = which
        self._target = target
        self._old: list[Any] = []

    def __enter__(self) -> Any:
        self._old.append(getattr(self._console, self._which))
        setattr(self._console, self._which, self._target)
        return self._target

    def __exit__(self, *details: object) -> None:
        setattr(self._console, self._which, self._old.pop())

    def __repr__(self) -> str:
        return f"<contextlib.redirect_{self._which}>"


class _RedirectedStream:
    """`sys.stdout` or `sys.stderr` as `sys` shows it: whatever the console points to at the moment."""

    __slots__ = ("_console", "_which")

    def __init__(self, console: Console, which: str) -> None:
        self._console = console
        self._which = which

    def _target(self) -> Any:
        return getattr(self._console, self._which)

    @property
    def encoding(self) -> str:
        """The encoding a program may assume."""
        return "utf-8"

    def write(self, text: str, /) -> Any:
        """Write to the current target."""
        return self._target().write(text)

    def writelines(self, lines: Iterable[str], /) -> None:
        """Write each of the strings."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Do nothing: text is sent at once."""

    def isatty(self) -> bool:
        """Say that this is no terminal."""
        return False

    def __repr__(self) -> str:
        return f"<{self._which}>"


class _VersionInfo(tuple[Any, ...]):
    """`sys.version_info` with its named parts."""

    __slots__ = ()

    major = property(lambda self: self[0])
    minor = property(lambda self: self[1])
    micro = property(lambda self: self[2])
    releaselevel = property(lambda self: self[3])
    serial = property(lambda self: self[4])


renamed(
    {
        OutputStream: "TextIOWrapper",
        EmptyInput: "TextIOWrapper",
        _RedirectedStream: "TextIOWrapper",
        _Redirection: "redirect",
        _VersionInfo: "version_info",
    }
)


def _exit(status: Any = None, /) -> NoReturn:
    raise SystemExit(status)


def _exc_info() -> tuple[Any, Any, None]:
    """Return the exception being handled; the traceback is not visible to programs."""
    kind, value, _ = sys.exc_info()
    return kind, value, None


def _set_recursion_limit(limit: int, /) -> None:
    if limit < 1:
        raise ValueError("recursion limit must be greater or equal than 1")
    sys.setrecursionlimit(min(max(limit, sys.getrecursionlimit()), MAX_RECURSION))


def sys_members(console: Console) -> dict[str, object]:
    """Return what `import sys` offers to one program."""
    members: dict[str, object] = {
        name: getattr(sys, name)
        for name in (
            "byteorder", "copyright", "float_info", "float_repr_style", "getdefaultencoding",
            "getrecursionlimit", "getsizeof", "hash_info", "hexversion", "int_info", "intern", "maxsize",
            "maxunicode",
        )
    }  # fmt: skip
    version = f"{sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}"
    return {
        **members,
        "argv": ["program"],
        "exc_info": _exc_info,
        "exit": _exit,
        "platform": "linux",
        "setrecursionlimit": _set_recursion_limit,
        "stderr": _RedirectedStream(console, "stderr"),
        "stdin": EmptyInput(),
        "stdout": _RedirectedStream(console, "stdout"),
        "version": version,
        "version_info": _VersionInfo(sys.version_info),
    }


def pprint_members(console: Console) -> dict[str, object]:
    """Return what `import pprint` offers to one program."""
    return {
        "isreadable": pprint.isreadable, "isrecursive": pprint.isrecursive, "pformat": pprint.pformat,
        "saferepr": pprint.saferepr, "pp": plain_function(console.pp, "pp", "pprint"),
        "pprint": plain_function(console.pprint, "pprint", "pprint"),
    }  # fmt: skip


def contextlib_members(console: Console) -> dict[str, object]:
    """Return what `import contextlib` offers to one program."""
    names = (
        "AbstractAsyncContextManager AbstractContextManager AsyncContextDecorator AsyncExitStack "
        "ContextDecorator ExitStack aclosing "
        "asynccontextmanager closing contextmanager nullcontext suppress"
    )
    members: dict[str, object] = {name: getattr(contextlib, name) for name in names.split()}
    for method in (console.redirect_stderr, console.redirect_stdout):
        function = plain_function(method, method.__name__, "contextlib")
        members[function.__name__] = function
    return members


def print_function(console: Console) -> Callable[..., None]:
    """Return what `print` is to one program."""
    return plain_function(console.print, "print", "builtins")
