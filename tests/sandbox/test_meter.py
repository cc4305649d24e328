"""CPU time of another process: by the kernel's clock, and by psutil where there is none."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from sandbox import meter

pytestmark = pytest.mark.needs_linux
BUSY = "import time\nwhile time.process_time() < 0.3: pass\nprint(time.process_time(), flush=True)\ninput()"


@pytest.fixture
def busy():
    with subprocess.Popen(
        [sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        used = float(process.stdout.readline())
        yield process, used
        process.kill()


def without_clock(monkeypatch):
    def refuse(_):
        raise OSError

    monkeypatch.setattr(time, "clock_gettime", refuse)


def test_the_clock_reads_what_the_process_reads_of_itself(busy):
    process, used = busy
    assert used <= meter.CpuMeter(process.pid).read() < used + 0.1


def test_psutil_reads_the_same_to_its_resolution(busy, monkeypatch):
    process, used = busy
    without_clock(monkeypatch)
    assert used - 0.03 <= meter.CpuMeter(process.pid).read() < used + 0.1


@pytest.mark.parametrize("clock", [True, False], ids=["clock", "psutil"])
def test_of_a_process_that_is_gone_there_is_no_reading(busy, monkeypatch, clock):
    process, _ = busy
    if not clock:
        without_clock(monkeypatch)
    reader = meter.CpuMeter(process.pid)
    assert reader.read() > 0
    process.kill()
    process.wait()
    assert reader.read() is None


def test_of_a_process_that_never_was_there_is_no_reading(monkeypatch):
    without_clock(monkeypatch)
    assert None is meter.CpuMeter(2**22 + 5).read()


def test_a_pidfd_leads_to_the_process_until_it_was_waited_for():
    process = subprocess.Popen(["true"])
    pidfd = os.pidfd_open(process.pid)
    assert process.pid == meter.pid_of(pidfd)
    process.wait()
    assert meter.pid_of(pidfd) is None
    os.close(pidfd)
