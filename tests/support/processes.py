"""What processes of ours there are, and what they hold, read from /proc."""

from __future__ import annotations

import os
from pathlib import Path

import psutil


def ours() -> set[int]:
    """Return the numbers of all of this process's descendants."""
    return {process.pid for process in psutil.Process().children(recursive=True)}


def is_alive(process: psutil.Process) -> bool:
    """Return whether a process runs; one that only its parent has not waited for yet does not.

    An orphan's new parent may take its time, or never wait, as the first process of many containers.
    """
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def zombies() -> set[int]:
    found = set()
    for process in psutil.Process().children(recursive=True):
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                found.add(process.pid)
        except psutil.NoSuchProcess:
            pass
    return found


def descriptors(pid: int | None = None) -> dict[int, str]:
    """Return a process's open descriptors and what they point to."""
    folder = Path(f"/proc/{os.getpid() if pid is None else pid}/fd")
    found = {}
    for entry in folder.iterdir():
        try:
            found[int(entry.name)] = str(entry.readlink())
        except OSError:
            continue  # The one that reads the folder.
    return found


def fork_servers() -> list[psutil.Process]:
    """Return the processes that fork workers, one per sandbox: the last in line before the workers."""
    found = []
    for child in psutil.Process().children():
        try:
            if "sandbox.zygote" in " ".join(child.cmdline()):
                found.append(_forking(child))
        except (psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
            continue  # It ended while we looked.
    return found


def workers() -> list[psutil.Process]:
    """Return every worker there is, parked, busy, or on its way."""
    found = []
    for server in fork_servers():
        try:
            found += server.children()
        except psutil.NoSuchProcess:
            continue
    return found


def _forking(started: psutil.Process) -> psutil.Process:
    # In its own namespaces the process that was started only waits for the one that forks.
    for child in started.children():
        try:
            if _pid_namespace(started) != _pid_namespace(child):
                return child
        except (FileNotFoundError, ProcessLookupError):
            started.status()  # Raises if it is this one that ended; else it was a worker, as workers do.
    return started


def _pid_namespace(process: psutil.Process) -> Path:
    return Path(f"/proc/{process.pid}/ns/pid").readlink()
