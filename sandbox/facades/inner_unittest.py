# ruff: noqa: A002, BLE001, D102, N801, N802, N803, N815, N816 -- the names and signatures are the library's
"""`unittest` for programs: finds the tests of a program, runs them and reports as the library does.

Knows: results, suites, the runner. Does not know: how one test is run; this text runs as a program does.
"""

from __future__ import annotations

import sys
import time
from typing import Any
from unittest.case import (  # type: ignore[attr-defined]  # it is ours, `inner_unittest_case`
    FunctionTestCase,
    IsolatedAsyncioTestCase,
    SkipTest,
    TestCase,
    classes,
    described,
    expectedFailure,
    skip,
    skipIf,
    skipUnless,
)

__all__ = [
    "FunctionTestCase", "IsolatedAsyncioTestCase", "SkipTest", "TestCase", "TestLoader", "TestResult",
    "TestSuite", "TextTestResult", "TextTestRunner", "defaultTestLoader", "expectedFailure", "main",
    "makeSuite",
    "skip", "skipIf", "skipUnless",
]  # fmt: skip


class TestResult:
    """What became of the tests."""

    def __init__(self, stream: Any = None, descriptions: Any = None, verbosity: Any = 1) -> None:
        self.stream, self.verbosity = stream, verbosity
        self.failures: list[Any] = []
        self.errors: list[Any] = []
        self.skipped: list[Any] = []
        self.expectedFailures: list[Any] = []
        self.unexpectedSuccesses: list[Any] = []
        self.testsRun = 0
        self.shouldStop = False

    def mark(self, short: str, long: str) -> None:
        """Write how a test ended."""
        if self.stream is None or not self.verbosity:
            return
        self.stream.write(f"{long}\n" if self.verbosity > 1 else short)

    def startTest(self, test: Any) -> None:
        """Note that a test starts."""
        self.testsRun += 1
        if self.stream is not None and self.verbosity > 1:
            described = test.shortDescription()
            self.stream.write(f"{test}\n{described} ... " if described else f"{test} ... ")

    def stopTest(self, test: Any) -> None:
        """Note that a test has ended."""

    def addSuccess(self, test: Any) -> None:
        """Note a success."""
        self.mark(".", "ok")

    def addFailure(self, test: Any, err: Any) -> None:
        """Note a failure."""
        self.failures.append((test, described(err[1])))
        self.mark("F", "FAIL")

    def addError(self, test: Any, err: Any) -> None:
        """Note an error."""
        self.errors.append((test, described(err[1])))
        self.mark("E", "ERROR")

    def addSkip(self, test: Any, reason: Any) -> None:
        """Note a test that was skipped."""
        self.skipped.append((test, reason))
        self.mark("s", f"skipped {reason!r}")

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        """Note a failure that was expected."""
        self.expectedFailures.append((test, described(err)))
        self.mark("x", "expected failure")

    def addUnexpectedSuccess(self, test: Any) -> None:
        """Note a success where a failure was expected."""
        self.unexpectedSuccesses.append(test)
        self.mark("u", "unexpected success")

    def wasSuccessful(self) -> bool:
        """Say whether nothing failed."""
        return not (self.failures or self.errors or self.unexpectedSuccesses)

    def stop(self) -> None:
        """Run no further tests."""
        self.shouldStop = True

    def __repr__(self) -> str:
        return (
            f"<unittest.result.TestResult run={self.testsRun} errors={len(self.errors)} "
            f"failures={len(self.failures)}>"
        )


TextTestResult = TestResult


class TestSuite:
    """Several tests."""

    def __init__(self, tests: Any = ()) -> None:
        self._tests: list[Any] = []
        self.addTests(tests)

    def addTest(self, test: Any) -> None:
        """Add a test or suite."""
        self._tests.append(test)

    def addTests(self, tests: Any) -> None:
        """Add several."""
        for test in tests:
            self.addTest(test)

    def __iter__(self) -> Any:
        return iter(self._tests)

    def countTestCases(self) -> int:
        """Return how many tests there are."""
        return sum(test.countTestCases() for test in self._tests)

    def run(self, result: Any) -> Any:
        """Run every test."""
        prepared: Any = None
        broken = False
        for test in self._tests:
            if result.shouldStop:
                break
            if not isinstance(test, TestSuite) and type(test) is not prepared:
                self._finish(prepared, result, broken)
                prepared = type(test)
                broken = not self._begin(prepared, result)
            if not broken or isinstance(test, TestSuite):
                test.run(result)
        self._finish(prepared, result, broken)
        return result

    def _begin(self, cls: Any, result: Any) -> bool:
        if cls._skip_reason is not None:
            return True
        try:
            cls.setUpClass()
        except SkipTest as reason:
            result.addSkip(f"setUpClass (__main__.{cls.__qualname__})", str(reason))
            return False
        except Exception as error:
            result.addError(f"setUpClass (__main__.{cls.__qualname__})", (type(error), error, None))
            return False
        return True

    def _finish(self, cls: Any, result: Any, broken: bool) -> None:
        if cls is None or broken or cls._skip_reason is not None:
            return
        try:
            cls.tearDownClass()
        except Exception as error:
            result.addError(f"tearDownClass (__main__.{cls.__qualname__})", (type(error), error, None))

    def __call__(self, result: Any) -> Any:
        return self.run(result)

    def __repr__(self) -> str:
        return f"<unittest.suite.TestSuite tests={self._tests!r}>"


class TestLoader:
    """Finds tests."""

    testMethodPrefix = "test"

    def getTestCaseNames(self, testCaseClass: Any) -> list[str]:
        """Return the names of the tests of a class, sorted."""
        return sorted(
            name
            for name in dir(testCaseClass)
            if name.startswith(self.testMethodPrefix) and callable(getattr(testCaseClass, name))
        )

    def loadTestsFromTestCase(self, testCaseClass: Any) -> Any:
        """Return the tests of a class."""
        names = self.getTestCaseNames(testCaseClass)
        if not names and hasattr(testCaseClass, "runTest"):
            names = ["runTest"]
        return TestSuite([testCaseClass(name) for name in names])

    def loadTestsFromModule(self, module: Any = None, **_: Any) -> Any:
        """Return every test of the program."""
        found = {cls.__name__: cls for cls in classes}
        return TestSuite([self.loadTestsFromTestCase(found[name]) for name in sorted(found)])

    def loadTestsFromName(self, name: str, module: Any = None) -> Any:
        """Return the tests of a class, or one of them, by name."""
        cls_name, _, test = name.removeprefix("__main__.").partition(".")
        for cls in classes:
            if cls.__name__ == cls_name:
                return TestSuite([cls(test)]) if test else self.loadTestsFromTestCase(cls)
        raise AttributeError(f"there is no test case {cls_name!r}")


defaultTestLoader = TestLoader()


def makeSuite(testCaseClass: Any, prefix: str = "test") -> Any:
    """Return the tests of a class."""
    return defaultTestLoader.loadTestsFromTestCase(testCaseClass)


class TextTestRunner:
    """Runs tests and writes how they went."""

    def __init__(
        self, stream: Any = None, descriptions: Any = True, verbosity: int = 1, failfast: bool = False,
        buffer: bool = False, resultclass: Any = None, warnings: Any = None, *, tb_locals: bool = False,
        durations: Any = None,
    ) -> None:  # fmt: skip
        self.stream = sys.stderr if stream is None else stream
        self.verbosity = verbosity

    def run(self, test: Any) -> Any:
        """Run a test or suite; return what became of it."""
        write = self.stream.write
        result = TestResult(self.stream, None, self.verbosity)
        start = time.perf_counter()
        test.run(result)
        taken = time.perf_counter() - start
        if self.verbosity:
            write("\n")
        for kind, cases in (("ERROR", result.errors), ("FAIL", result.failures)):
            for case, text in cases:
                write(f"{'=' * 70}\n{kind}: {case}\n{'-' * 70}\n{text}\n\n")
        write(
            f"{'-' * 70}\nRan {result.testsRun} test{'' if result.testsRun == 1 else 's'} in {taken:.3f}s\n\n"
        )
        counts = [
            ("failures", len(result.failures)),
            ("errors", len(result.errors)),
            ("skipped", len(result.skipped)),
            ("expected failures", len(result.expectedFailures)),
            ("unexpected successes", len(result.unexpectedSuccesses)),
        ]
        listed = ", ".join(f"{what}={count}" for what, count in counts if count)
        write(("OK" if result.wasSuccessful() else "FAILED") + (f" ({listed})" if listed else "") + "\n")
        return result


class main:
    """Run every test of the program, report, and end the program."""

    def __init__(
        self, module: Any = "__main__", defaultTest: Any = None, argv: Any = None, testRunner: Any = None,
        testLoader: Any = defaultTestLoader, exit: bool = True, verbosity: int = 1, failfast: Any = None,
        catchbreak: Any = None, buffer: Any = None, warnings: Any = None, *, tb_locals: bool = False,
        durations: Any = None,
    ) -> None:  # fmt: skip
        if argv is None:
            argv = sys.argv
        if "-v" in argv[1:] or "--verbose" in argv[1:]:
            verbosity = 2
        if defaultTest is None:
            suite = testLoader.loadTestsFromModule()
        else:
            wanted = [defaultTest] if isinstance(defaultTest, str) else defaultTest
            suite = TestSuite([testLoader.loadTestsFromName(name) for name in wanted])
        runner: Any = TextTestRunner if testRunner is None else testRunner
        if isinstance(runner, type):
            runner = runner(verbosity=verbosity)
        self.result = runner.run(suite)
        if exit:
            sys.exit(not self.result.wasSuccessful())
