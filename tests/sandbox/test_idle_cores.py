"""Whether a core is idle is read from the kernel, and not assumed where it does not say."""

from __future__ import annotations

import os

import pytest

from sandbox import idle_cores

pytestmark = pytest.mark.needs_linux

CORES = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("0.00 0.01 0.05 0/70 99\n", True),
        (f"0.00 0.01 0.05 {CORES - 1}/70 99\n", True),
        (f"0.00 0.01 0.05 {CORES}/70 99\n", False),
        (f"0.00 0.01 0.05 {CORES + 7}/70 99\n", False),
        ("0.00 0.01 0.05 many/70 99\n", False),
        ("0.00 0.01 0.05", False),
        ("", False),
        (None, False),
    ],
    ids=["nothing", "all but one", "all", "more", "no number", "too little", "empty", "no such file"],
)
def test_a_core_is_idle_when_fewer_tasks_have_work_than_there_are_cores(
    monkeypatch, tmp_path, said, expected
):
    path = tmp_path / "loadavg"
    if said is not None:
        path.write_text(said)
    monkeypatch.setattr(idle_cores, "_LOAD", path)
    assert expected is idle_cores.is_core_idle()


def test_this_kernel_says_something_that_is_understood():
    assert int(idle_cores._LOAD.read_text().split()[3].partition("/")[0]) >= 1
