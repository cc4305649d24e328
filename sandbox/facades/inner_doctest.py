# ruff: noqa: BLE001, PT028, PYI024, SLOT002 -- the names and signatures are the library's
"""`doctest` for programs: runs the examples in the program's docstrings and reports as the library does.

Knows: how examples are written, run, compared and reported. Does not know: how text becomes code; the two
helpers it is given do. This text runs as a program does.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections import namedtuple
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # Given to this text by `sandbox.guards.examples`.
    docstrings: Any = None
    open_examples: Any = None

__all__ = [
    "COMPARISON_FLAGS", "DONT_ACCEPT_BLANKLINE", "DONT_ACCEPT_TRUE_FOR_1", "ELLIPSIS", "FAIL_FAST",
    "IGNORE_EXCEPTION_DETAIL", "NORMALIZE_WHITESPACE", "REPORTING_FLAGS", "REPORT_NDIFF",
    "REPORT_ONLY_FIRST_FAILURE", "SKIP", "TestResults", "run_docstring_examples", "testmod",
]  # fmt: skip

DONT_ACCEPT_TRUE_FOR_1 = 1
DONT_ACCEPT_BLANKLINE = 2
NORMALIZE_WHITESPACE = 4
ELLIPSIS = 8
SKIP = 16
IGNORE_EXCEPTION_DETAIL = 32
COMPARISON_FLAGS = 63
REPORT_UDIFF = 64
REPORT_CDIFF = 128
REPORT_NDIFF = 256
REPORT_ONLY_FIRST_FAILURE = 512
FAIL_FAST = 1024
REPORTING_FLAGS = 1984

_FLAGS = {
    "DONT_ACCEPT_TRUE_FOR_1": 1, "DONT_ACCEPT_BLANKLINE": 2, "NORMALIZE_WHITESPACE": 4, "ELLIPSIS": 8,
    "SKIP": 16, "IGNORE_EXCEPTION_DETAIL": 32, "REPORT_UDIFF": 64, "REPORT_CDIFF": 128, "REPORT_NDIFF": 256,
    "REPORT_ONLY_FIRST_FAILURE": 512, "FAIL_FAST": 1024,
}  # fmt: skip
_RULE = "*" * 70
_PROMPT = re.compile(r"( *)>>>( |$)")
_OPTIONS = re.compile(r"#\s*doctest:\s*([^\n'\"]*)$", re.MULTILINE)
_TRACEBACK = re.compile(r"Traceback \((?:most recent call last|innermost last)\):\s*$")
_NEWER = sys.version_info >= (3, 13)


class TestResults(namedtuple("TestResults", "failed attempted")):
    """How many examples failed, of how many."""


class _Example:
    """One example: its source, what it should print, and where it stands."""

    def __init__(self, source: str, want: str, line: int) -> None:
        self.source = source
        self.want = want
        self.line = line
        self.error = _expected_error(want)
        self.set = self.unset = 0
        for listed in _OPTIONS.findall(source):
            for option in listed.replace(",", " ").split():
                if option[1:] not in _FLAGS or option[0] not in "+-":
                    raise ValueError(f"line {line + 1} of the doctest has an invalid option: {option!r}")
                if option[0] == "+":
                    self.set |= _FLAGS[option[1:]]
                else:
                    self.unset |= _FLAGS[option[1:]]


def _expected_error(want: str) -> str | None:
    """Return the last lines of a traceback, which name the exception; None if the example expects none."""
    lines = want.split("\n")
    if not _TRACEBACK.match(lines[0]):
        return None
    for number, line in enumerate(lines[1:], 1):
        if re.match(r"\w", line):
            return "\n".join(lines[number:])
    return None


def _examples(text: str) -> list[_Example]:
    lines = text.expandtabs().split("\n")
    found: list[_Example] = []
    number = 0
    while number < len(lines):
        start = _PROMPT.match(lines[number])
        if start is None:
            if re.match(r" *>>>", lines[number]):
                raise ValueError(
                    f"line {number + 1} of the docstring lacks blank after >>>: {lines[number]!r}"
                )
            number += 1
            continue
        indent, first = start[1], number
        source = [lines[number][len(indent) + 4 :]]
        number += 1
        while number < len(lines) and re.match(re.escape(indent) + r"\.\.\.( |$)", lines[number]):
            source.append(lines[number][len(indent) + 4 :])
            number += 1
        want: list[str] = []
        while number < len(lines) and lines[number].strip() and not re.match(r" *>>>", lines[number]):
            if not lines[number].startswith(indent):
                raise ValueError(
                    f"line {number + 1} of the docstring has inconsistent leading whitespace: "
                    f"{lines[number]!r}"
                )
            want.append(lines[number][len(indent) :])
            number += 1
        if any(line.strip() and not line.strip().startswith("#") for line in source):
            expected = "\n".join(want) + "\n" if want else ""
            found.append(_Example("\n".join(source) + "\n", expected, first))
    return found


def _matches(want: str, got: str, flags: int) -> bool:
    if got == want:
        return True
    if not flags & DONT_ACCEPT_TRUE_FOR_1 and (got, want) in (("True\n", "1\n"), ("False\n", "0\n")):
        return True
    if not flags & DONT_ACCEPT_BLANKLINE:
        want = re.sub(r"(?m)^<BLANKLINE>\s*?$", "", want)
        got = re.sub(r"(?m)^[^\S\n]+$", "", got)
        if got == want:
            return True
    if flags & NORMALIZE_WHITESPACE:
        got, want = " ".join(got.split()), " ".join(want.split())
        if got == want:
            return True
    return bool(flags & ELLIPSIS) and _matches_with_gaps(want, got)


def _matches_with_gaps(want: str, got: str) -> bool:
    first, *rest = want.split("...")
    if not rest:
        return want == got
    last = rest.pop()
    if not got.startswith(first) or not got.endswith(last) or len(first) + len(last) > len(got):
        return False
    start, end = len(first), len(got) - len(last)
    for part in rest:
        start = got.find(part, start, end)
        if start < 0:
            return False
        start += len(part)
    return True


def _indented(text: str) -> str:
    return re.sub(r"(?m)^(?!$)", "    ", text)


def _difference(want: str, got: str, flags: int) -> str:
    if not flags & DONT_ACCEPT_BLANKLINE:
        got = re.sub(r"(?m)^[ ]*(?=\n)", "<BLANKLINE>", got)
    expected = f"Expected:\n{_indented(want)}" if want else "Expected nothing\n"
    return expected + (f"Got:\n{_indented(got)}" if got else "Got nothing\n")


def _described(error: BaseException) -> str:
    kind = type(error)
    name = (
        kind.__qualname__
        if kind.__module__ in ("builtins", "__main__")
        else f"{kind.__module__}.{kind.__qualname__}"
    )
    text = str(error)
    return f"{name}: {text}\n" if text else f"{name}\n"


def _without_detail(text: str) -> str:
    """Return the bare name of an exception."""
    return text.split("\n", 1)[0].split(":", 1)[0].rpartition(".")[2]


class _Runner:
    """Runs the examples of docstrings and reports."""

    def __init__(self, verbose: bool, flags: int) -> None:
        self._verbose = verbose
        self._flags = flags
        self.tried: dict[str, tuple[int, int]] = {}

    def run(self, name: str, line: int, text: str, names: Any) -> None:
        """Run the examples of one docstring."""
        failed = tried = 0
        for number, example in enumerate(_examples(text)):
            flags = (self._flags | example.set) & ~example.unset
            if flags & SKIP:
                continue
            tried += 1
            quiet = flags & REPORT_ONLY_FIRST_FAILURE and failed
            if self._verbose and not quiet:
                want = f"Expecting:\n{_indented(example.want)}" if example.want else "Expecting nothing\n"
                sys.stdout.write(f"Trying:\n{_indented(example.source)}{want}")
            problem = self._problem(example, f"<doctest {name}[{number}]>", flags, names)
            if problem is None:
                if self._verbose and not quiet:
                    sys.stdout.write("ok\n")
                continue
            failed += 1
            if not quiet:
                sys.stdout.write(
                    f'{_RULE}\nFile "<program>", line {line + example.line}, in {name}\n'
                    f"Failed example:\n{_indented(example.source)}{problem}"
                )
            if flags & FAIL_FAST:
                break
        before = self.tried.get(name, (0, 0))
        self.tried[name] = (before[0] + failed, before[1] + tried)

    def _problem(self, example: _Example, label: str, flags: int, names: Any) -> str | None:
        """Return what is wrong with what an example did, or None."""
        output = io.StringIO()
        error: BaseException | None = None
        with contextlib.redirect_stdout(output):
            try:
                names.run(example.source, label)
            except KeyboardInterrupt:
                raise
            except BaseException as raised:
                error = raised
        got = output.getvalue()
        if got and not got.endswith("\n"):
            got += "\n"
        if error is None:
            return None if _matches(example.want, got, flags) else _difference(example.want, got, flags)
        described = _described(error)
        if example.error is None:
            return (
                f"Exception raised:\n{_indented('Traceback (most recent call last):' + chr(10) + described)}"
            )
        if _matches(example.error, described, flags):
            return None
        if flags & IGNORE_EXCEPTION_DETAIL and _matches(
            _without_detail(example.error), _without_detail(described), flags
        ):
            return None
        return _difference(example.want, got + "Traceback (most recent call last):\n" + described, flags)

    def summarize(self) -> TestResults:
        """Print how everything went."""
        tried = sum(count for _, count in self.tried.values())
        failed = sum(count for count, _ in self.tried.values())
        untested = sorted(name for name, (_, count) in self.tried.items() if not count)
        passed = sorted((name, count) for name, (bad, count) in self.tried.items() if count and not bad)
        broken = sorted((name, bad, count) for name, (bad, count) in self.tried.items() if bad)
        if self._verbose:
            if untested:
                print(f"{_items(untested)} had no tests:")
                for name in untested:
                    print(f"    {name}")
            if passed:
                print(f"{_items(passed)} passed all tests:")
                for name, count in passed:
                    print(f" {count:3d} {_plural('test', count)} in {name}")
        if broken:
            print(_RULE)
            print(f"{_items(broken)} had failures:")
            for name, bad, count in broken:
                print(f" {bad:3d} of {count:3d} in {name}")
        if self._verbose:
            print(f"{tried} {_plural('test', tried)} in {_items(self.tried)}.")
            if _NEWER:
                print(f"{tried - failed} passed{f' and {failed} failed' if failed else ''}.")
            else:
                print(f"{tried - failed} passed and {failed} failed.")
        if failed:
            print(f"***Test Failed*** {failed} {_plural('failure', failed)}.")
        elif self._verbose:
            print("Test passed.")
        return TestResults(failed, tried)


def _plural(noun: str, count: int) -> str:
    return noun if count == 1 and _NEWER else noun + "s"


def _items(things: Any) -> str:
    return f"{len(things)} {_plural('item', len(things))}"


def testmod(
    m: Any = None, name: str | None = None, globs: Any = None, verbose: Any = None, report: bool = True,
    optionflags: int = 0, extraglobs: Any = None, raise_on_error: bool = False, exclude_empty: bool = False,
) -> TestResults:  # fmt: skip
    """Run the examples of the program's docstring and of those of its functions and classes."""
    if raise_on_error:
        raise ValueError("raise_on_error is not available: the report names every failure")
    base = name or "__main__"
    runner = _Runner("-v" in sys.argv if verbose is None else bool(verbose), optionflags)
    for own, line, text in sorted(docstrings()):
        if exclude_empty and not text:
            continue
        names = open_examples()
        for key, value in {**(globs or {}), **(extraglobs or {})}.items():
            names.bind(key, value)
        runner.run(f"{base}.{own}" if own else base, line, text, names)
    if report:
        return runner.summarize()
    return TestResults(
        sum(bad for bad, _ in runner.tried.values()), sum(all_ for _, all_ in runner.tried.values())
    )


def run_docstring_examples(
    f: Any,
    globs: Any = None,
    verbose: bool = False,
    name: str = "NoName",
    compileflags: Any = None,
    optionflags: int = 0,
) -> None:
    """Run the examples of one docstring."""
    runner = _Runner(verbose, optionflags)
    names = open_examples()
    for key, value in (globs or {}).items():
        names.bind(key, value)
    text = f if isinstance(f, str) else f.__doc__ or ""
    runner.run(name, 1, text, names)
