"""Nothing that a child started is left, wherever it hides."""

from __future__ import annotations

import signal
import subprocess
import sys

import psutil
import pytest

from tool_bindings.mcp.family import Family

LEADER = r"""
import os, sys, time
for begin in (os.getpid, os.setpgrp, os.setsid):
    began, begun = os.pipe()
    if os.fork() == 0:
        begin()
        os.write(1, b"%d\n" % os.getpid())
        os.write(begun, b".")
        time.sleep(3600)
    os.read(began, 1)
sys.stdin.read()
"""
KILL_SECONDS = 20
"""For a test that hangs; a killed process is gone within milliseconds."""


def runs(process):
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture
def leader():
    """Give a process with three children: in its group, in a group of its own, in a session of its own."""
    process = subprocess.Popen(
        [sys.executable, "-c", LEADER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    process.children = [psutil.Process(int(process.stdout.readline())) for _ in range(3)]
    yield process
    for left in process.children:
        if left.is_running():
            left.kill()
    process.kill()
    process.communicate()


async def test_groups_and_sessions_of_their_own_hide_nobody(leader):
    family = Family(leader.pid)
    await family.kill(KILL_SECONDS)
    assert [] == [child for child in leader.children if runs(child)]
    assert -signal.SIGKILL == leader.wait()


async def test_members_of_the_session_are_found_when_their_parent_is_gone(leader):
    in_group, in_session, elsewhere = leader.children
    leader.kill()
    # Not waited for: its id must stay its own.
    while runs(psutil.Process(leader.pid)):
        pass
    await Family(leader.pid).kill(KILL_SECONDS)
    assert (False, False, True) == (runs(in_group), runs(in_session), runs(elsewhere))


@pytest.fixture
def stranger():
    """Give a process of another session, which ends when it reads a line."""
    process = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True
    )
    yield process
    process.kill()
    process.communicate()


async def test_who_belongs_to_somebody_else_is_left_alone(leader, stranger):
    await Family(leader.pid).kill(KILL_SECONDS)
    stranger.communicate(b"\n")
    assert 0 == stranger.returncode
