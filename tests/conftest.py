"""What holds for every test."""

from __future__ import annotations

from collections import Counter

import pytest
import trio.testing
from hypothesis import HealthCheck, settings

# Time is never asserted: a busy machine must not turn a right answer into a failure.
# The same examples every time: a suite that must pass is no place for chance. For chance, and for examples
# that failed before: pytest --hypothesis-profile=explore
_PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", _PATIENT)
settings.register_profile("patient", _PATIENT, derandomize=True, database=None)
settings.load_profile("patient")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """End the run after a test that hung: it is torn out of its event loop, and no other can be opened."""
    report = yield
    if report.failed and "from pytest-timeout" in report.longreprtext:
        item.session.shouldfail = "a test hung"
    return report


def pytest_terminal_summary(terminalreporter):
    """Say of what needs something of the machine how much was not run: skipped tests are no evidence."""
    ran, skipped = Counter(), Counter()
    for category, counter in (("passed", ran), ("failed", ran), ("skipped", skipped)):
        for report in terminalreporter.getreports(category):
            counter.update(name for name in report.keywords if name.startswith("needs_"))
    for name, count in sorted(skipped.items()):
        if name in ran:
            terminalreporter.write_line(f"{name}: {count} tests were skipped")
        else:
            terminalreporter.write_line(f"{name}: none of {count} tests was run")


@pytest.fixture
def movable_clock():
    """Give a clock at the pace of the real one, on which a test can let any time pass: `jump(seconds)`.

    For deadlines of real processes: the clock moves on when a process is known to have got somewhere, and
    so the deadline comes neither too early on a busy machine nor too late for the patience of a person.
    A sandbox waits for its processes by the same clock: with `parked_workers=0` none is on its way
    during a run.
    """
    return trio.testing.MockClock(rate=1.0)
