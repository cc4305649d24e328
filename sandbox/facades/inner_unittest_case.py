# ruff: noqa: BLE001, D102, N802, N803, N815, N818, SLF001 -- the names and signatures are the library's
"""`unittest.case` for programs: test cases and what they assert.

Knows: how one test is run. Does not know: how tests are found and reported; this text runs as a program does.
"""

from __future__ import annotations

import asyncio
import difflib
import pprint
import re
from collections import Counter
from typing import Any

__all__ = [
    "FunctionTestCase", "IsolatedAsyncioTestCase", "SkipTest", "TestCase", "classes", "described",
    "expectedFailure", "skip", "skipIf", "skipUnless",
]  # fmt: skip

classes: list[Any] = []
"""The test cases of the program, in the order they are written."""


class SkipTest(Exception):
    """Raised to skip a test."""


def skip(reason: Any) -> Any:
    """Skip a test or a class of tests."""

    def decorate(item: Any) -> Any:
        if isinstance(item, type):
            item._skip_reason = reason  # type: ignore[attr-defined]
            return item

        def skipped(*_: Any, **__: Any) -> None:
            raise SkipTest(reason)

        skipped.__name__ = item.__name__
        skipped.__doc__ = item.__doc__
        return skipped

    if callable(reason) and not isinstance(reason, str):
        item, reason = reason, ""
        return decorate(item)
    return decorate


def skipIf(condition: Any, reason: str) -> Any:
    """Skip a test if the condition holds."""
    return skip(reason) if condition else lambda item: item


def skipUnless(condition: Any, reason: str) -> Any:
    """Skip a test unless the condition holds."""
    return lambda item: item if condition else skip(reason)(item)


def expectedFailure(item: Any) -> Any:
    """Mark a test that is expected to fail."""
    item.expecting_failure = True
    return item


def _shown(value: Any) -> str:
    return repr(value)


class _Raises:
    """What `assertRaises` gives to a `with` statement."""

    def __init__(self, case: Any, expected: Any, pattern: Any, msg: Any) -> None:
        self._case, self._expected, self._pattern, self._msg = case, expected, pattern, msg
        self.exception: Any = None

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> bool:
        expected = self._expected
        if kind is None:
            wanted = expected if isinstance(expected, tuple) else (expected,)
            listed = ", ".join(each.__name__ for each in wanted)
            name = f"({listed})" if isinstance(expected, tuple) else listed
            raise self._case.failureException(self._case._formatMessage(self._msg, f"{name} not raised"))
        if not issubclass(kind, expected):
            return False
        self.exception = error
        if self._pattern is not None and not re.search(self._pattern, str(error)):
            pattern = self._pattern if isinstance(self._pattern, str) else self._pattern.pattern
            text = f'"{pattern}" does not match "{error}"'
            raise self._case.failureException(self._case._formatMessage(self._msg, text))
        return True


class _SubTest:
    """A part of a test that may fail by itself."""

    def __init__(self, case: Any, message: Any, parameters: Any) -> None:
        self._case = case
        parts = [f"[{message}]"] if message is not None else []
        if parameters:
            parts.append("(" + ", ".join(f"{key}={value!r}" for key, value in parameters.items()) + ")")
        self._label = " ".join(parts) or "(<subtest>)"

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> bool:
        result = self._case._result
        if kind is None or result is None or issubclass(kind, SkipTest):
            return False
        if not issubclass(kind, Exception):
            return False
        label = f"{self._case} {self._label}"
        self._case._part_failed = True
        if issubclass(kind, self._case.failureException):
            result.failures.append((label, described(error)))
            result.mark("F", "FAIL")
        else:
            result.errors.append((label, described(error)))
            result.mark("E", "ERROR")
        return True


def described(error: Any) -> str:
    """Return the last line of a traceback; the others are not visible to programs."""
    kind = type(error)
    name = (
        kind.__name__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__name__}"
    )
    return f"{name}: {error}" if str(error) else str(name)


class TestCase:
    """A class whose `test...` methods are tests."""

    failureException = AssertionError
    longMessage = True
    maxDiff: int | None = 640
    _skip_reason: Any = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        classes.append(cls)

    def __init__(self, methodName: str = "runTest") -> None:
        self._testMethodName = methodName
        self._cleanups: list[Any] = []
        self._result: Any = None
        self._part_failed = False

    def setUp(self) -> None:
        """Run before each test."""

    def tearDown(self) -> None:
        """Run after each test."""

    @classmethod
    def setUpClass(cls) -> None:
        """Run before the tests of the class."""

    @classmethod
    def tearDownClass(cls) -> None:
        """Run after the tests of the class."""

    def id(self) -> str:
        """Return the full name of the test."""
        return f"__main__.{type(self).__qualname__}.{self._testMethodName}"

    def shortDescription(self) -> Any:
        """Return the first line of the test's docstring."""
        text = getattr(self, self._testMethodName).__doc__
        return text.strip().split("\n")[0].strip() if text else None

    def __str__(self) -> str:
        return f"{self._testMethodName} ({self.id()})"

    def __repr__(self) -> str:
        return f"<__main__.{type(self).__qualname__} testMethod={self._testMethodName}>"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._testMethodName == getattr(other, "_testMethodName", None)

    def __hash__(self) -> int:
        return hash((type(self).__qualname__, self._testMethodName))

    def countTestCases(self) -> int:
        """Return 1."""
        return 1

    def addCleanup(self, function: Any, /, *args: Any, **options: Any) -> None:
        """Call a function when the test has ended, the last one first."""
        self._cleanups.append((function, args, options))

    def doCleanups(self) -> None:
        """Call what `addCleanup` was given."""
        while self._cleanups:
            function, args, options = self._cleanups.pop()
            function(*args, **options)

    def skipTest(self, reason: Any) -> None:
        """Skip this test."""
        raise SkipTest(reason)

    def subTest(self, msg: Any = None, **params: Any) -> Any:
        """Run a part of a test that may fail by itself."""
        return _SubTest(self, msg, params)

    def _call(self, method: Any) -> None:
        if method() is not None:
            return

    def run(self, result: Any = None) -> Any:
        """Run the test and put its outcome into the result."""
        if result is None:
            raise TypeError("run() needs a result: write unittest.TestResult()")
        result.startTest(self)
        self._result, self._part_failed = result, False
        if self._skip_reason is not None:
            result.addSkip(self, self._skip_reason)
            return result
        method = getattr(self, self._testMethodName)
        expecting = getattr(method, "expecting_failure", False)
        error: Any = None
        try:
            self._call(self.setUp)
            try:
                self._call(method)
            finally:
                self._call(self.tearDown)
        except (Exception, SystemExit) as raised:
            error = raised
        try:
            self.doCleanups()
        except Exception as raised:
            error = error or raised
        if isinstance(error, SkipTest):
            result.addSkip(self, str(error))
        elif expecting:
            if error is None and not self._part_failed:
                result.addUnexpectedSuccess(self)
            else:
                result.addExpectedFailure(self, error)
        elif error is None:
            if not self._part_failed:
                result.addSuccess(self)
        elif isinstance(error, self.failureException):
            result.addFailure(self, (type(error), error, None))
        else:
            result.addError(self, (type(error), error, None))
        result.stopTest(self)
        return result

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self.run(*args, **options)

    def debug(self) -> None:
        """Run the test and let its error out."""
        self.setUp()
        getattr(self, self._testMethodName)()
        self.tearDown()
        self.doCleanups()

    # What tests assert.

    def _formatMessage(self, msg: Any, standard: str) -> str:
        if not self.longMessage:
            return str(msg or standard)
        return standard if msg is None else f"{standard} : {msg}"

    def fail(self, msg: Any = None) -> Any:
        """Fail the test."""
        raise self.failureException(msg)

    def _check(self, holds: Any, msg: Any, standard: str) -> None:
        if not holds:
            raise self.failureException(self._formatMessage(msg, standard))

    def assertTrue(self, expr: Any, msg: Any = None) -> None:
        """Fail unless the value is true."""
        if not expr:
            self._check(False, msg, f"{_shown(expr)} is not true")

    def assertFalse(self, expr: Any, msg: Any = None) -> None:
        """Fail if the value is true."""
        if expr:
            self._check(False, msg, f"{_shown(expr)} is not false")

    def assertEqual(self, first: Any, second: Any, msg: Any = None) -> None:
        """Fail unless the values are equal."""
        if first == second:
            return
        standard = f"{_shown(first)} != {_shown(second)}"
        if type(first) is type(second):
            if isinstance(first, str) and ("\n" in first or "\n" in second):
                lines = difflib.ndiff(first.splitlines(keepends=True), second.splitlines(keepends=True))
                standard += "\n" + "".join(line if line.endswith("\n") else line + "\n" for line in lines)
            elif isinstance(first, (list, tuple, dict)):
                lines = difflib.ndiff(pprint.pformat(first).splitlines(), pprint.pformat(second).splitlines())
                standard += "\n\n" + "\n".join(lines)
        self._check(False, msg, standard)

    def assertNotEqual(self, first: Any, second: Any, msg: Any = None) -> None:
        """Fail if the values are equal."""
        if not first != second:  # noqa: SIM202  # the operator is the subject
            self._check(False, msg, f"{_shown(first)} == {_shown(second)}")

    def assertIs(self, expr1: Any, expr2: Any, msg: Any = None) -> None:
        """Fail unless both are the same object."""
        if expr1 is not expr2:
            self._check(False, msg, f"{_shown(expr1)} is not {_shown(expr2)}")

    def assertIsNot(self, expr1: Any, expr2: Any, msg: Any = None) -> None:
        """Fail if both are the same object."""
        if expr1 is expr2:
            self._check(False, msg, f"unexpectedly identical: {_shown(expr1)}")

    def assertIsNone(self, obj: Any, msg: Any = None) -> None:
        """Fail unless the value is None."""
        if obj is not None:
            self._check(False, msg, f"{_shown(obj)} is not None")

    def assertIsNotNone(self, obj: Any, msg: Any = None) -> None:
        """Fail if the value is None."""
        self._check(obj is not None, msg, "unexpectedly None")

    def assertIn(self, member: Any, container: Any, msg: Any = None) -> None:
        """Fail unless the container holds the member."""
        if member not in container:
            self._check(False, msg, f"{_shown(member)} not found in {_shown(container)}")

    def assertNotIn(self, member: Any, container: Any, msg: Any = None) -> None:
        """Fail if the container holds the member."""
        if member in container:
            self._check(False, msg, f"{_shown(member)} unexpectedly found in {_shown(container)}")

    def assertIsInstance(self, obj: Any, cls: Any, msg: Any = None) -> None:
        """Fail unless the object is of the class."""
        if not isinstance(obj, cls):
            self._check(False, msg, f"{_shown(obj)} is not an instance of {cls!r}")

    def assertNotIsInstance(self, obj: Any, cls: Any, msg: Any = None) -> None:
        """Fail if the object is of the class."""
        if isinstance(obj, cls):
            self._check(False, msg, f"{_shown(obj)} is an instance of {cls!r}")

    def assertGreater(self, a: Any, b: Any, msg: Any = None) -> None:
        """Fail unless a > b."""
        if not a > b:
            self._check(False, msg, f"{_shown(a)} not greater than {_shown(b)}")

    def assertGreaterEqual(self, a: Any, b: Any, msg: Any = None) -> None:
        """Fail unless a >= b."""
        if not a >= b:
            self._check(False, msg, f"{_shown(a)} not greater than or equal to {_shown(b)}")

    def assertLess(self, a: Any, b: Any, msg: Any = None) -> None:
        """Fail unless a < b."""
        if not a < b:
            self._check(False, msg, f"{_shown(a)} not less than {_shown(b)}")

    def assertLessEqual(self, a: Any, b: Any, msg: Any = None) -> None:
        """Fail unless a <= b."""
        if not a <= b:
            self._check(False, msg, f"{_shown(a)} not less than or equal to {_shown(b)}")

    def _near(self, first: Any, second: Any, places: Any, delta: Any) -> bool:
        if places is not None and delta is not None:
            raise TypeError("specify delta or places not both")
        if first == second:
            return True
        if delta is not None:
            return bool(abs(first - second) <= delta)
        return bool(round(abs(first - second), 7 if places is None else places) == 0)

    def assertAlmostEqual(
        self, first: Any, second: Any, places: Any = None, msg: Any = None, delta: Any = None
    ) -> None:
        """Fail unless the numbers are nearly equal."""
        if not self._near(first, second, places, delta):
            within = (
                f"{_shown(delta)} delta" if delta is not None else f"{7 if places is None else places} places"
            )
            apart = f"({_shown(abs(first - second))} difference)"
            self._check(False, msg, f"{_shown(first)} != {_shown(second)} within {within} {apart}")

    def assertNotAlmostEqual(
        self, first: Any, second: Any, places: Any = None, msg: Any = None, delta: Any = None
    ) -> None:
        """Fail if the numbers are nearly equal."""
        if self._near(first, second, places, delta):
            within = (
                f"{_shown(delta)} delta" if delta is not None else f"{7 if places is None else places} places"
            )
            self._check(False, msg, f"{_shown(first)} == {_shown(second)} within {within}")

    def assertCountEqual(self, first: Any, second: Any, msg: Any = None) -> None:
        """Fail unless both have the same items, in whatever order."""
        left, right = list(first), list(second)
        try:
            same = Counter(left) == Counter(right)
        except TypeError:
            rest = right.copy()
            for item in left:
                if item in rest:
                    rest.remove(item)
                else:
                    rest.append(item)
                    break
            same = len(left) == len(right) and not rest
        if not same:
            self._check(False, msg, f"Element counts were not equal: {_shown(left)} and {_shown(right)}")

    def assertRegex(self, text: str, expected_regex: Any, msg: Any = None) -> None:
        """Fail unless the pattern is found in the text."""
        if not re.search(expected_regex, text):
            pattern = expected_regex if isinstance(expected_regex, str) else expected_regex.pattern
            self._check(False, msg, f"Regex didn't match: {pattern!r} not found in {text!r}")

    def assertNotRegex(self, text: str, unexpected_regex: Any, msg: Any = None) -> None:
        """Fail if the pattern is found in the text."""
        found = re.search(unexpected_regex, text)
        if found:
            pattern = unexpected_regex if isinstance(unexpected_regex, str) else unexpected_regex.pattern
            self._check(False, msg, f"Regex matched: {found[0]!r} matches {pattern!r} in {text!r}")

    def assertRaises(self, expected_exception: Any, *args: Any, **options: Any) -> Any:
        """Fail unless the call, or the `with` block, raises the exception."""
        return self._raising(expected_exception, None, args, options)

    def assertRaisesRegex(
        self, expected_exception: Any, expected_regex: Any, *args: Any, **options: Any
    ) -> Any:
        """Fail unless the exception is raised and the pattern is found in its text."""
        return self._raising(expected_exception, expected_regex, args, options)

    def _raising(self, expected: Any, pattern: Any, args: Any, options: Any) -> Any:
        if not args:
            return _Raises(self, expected, pattern, options.get("msg"))
        function, *rest = args
        with _Raises(self, expected, pattern, None):
            function(*rest, **options)
        return None

    assertListEqual = assertTupleEqual = assertDictEqual = assertSetEqual = assertEqual
    assertMultiLineEqual = assertSequenceEqual = assertEqual
    assertEquals = assertEqual


class FunctionTestCase(TestCase):
    """A function as a test."""

    def __init__(
        self, testFunc: Any, setUp: Any = None, tearDown: Any = None, description: Any = None
    ) -> None:
        super().__init__("runTest")
        self._function, self._before, self._after = testFunc, setUp, tearDown

    def setUp(self) -> None:
        """Call the function given for that."""
        if self._before is not None:
            self._before()

    def tearDown(self) -> None:
        """Call the function given for that."""
        if self._after is not None:
            self._after()

    def runTest(self) -> None:
        """Call the function."""
        self._function()


class IsolatedAsyncioTestCase(TestCase):
    """Tests that are coroutine functions."""

    async def asyncSetUp(self) -> None:
        """Run before each test."""

    async def asyncTearDown(self) -> None:
        """Run after each test."""

    def _call(self, method: Any) -> None:
        if method == self.setUp:
            method()
            asyncio.run(self.asyncSetUp())
        elif method == self.tearDown:
            asyncio.run(self.asyncTearDown())
            method()
        else:
            waiting = method()
            if asyncio.iscoroutine(waiting):
                asyncio.run(waiting)


# The cases above are not the program's.
classes.clear()
