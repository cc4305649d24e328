"""What processes of ours there are, and what they hold, read from /proc."""

from __future__ import annotations

import os
from pathlib import Path

import psutil


def ours() -> set[int]:
    """Return the numbers of all of this process's descendants."""
    return {process.pid for process in psutil.Process().children(recursive=True)}


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
        if "sandbox.zygote" not in " ".join(child.cmdline()):
            continue
        grandchildren = child.children()
        # In its own namespaces the one that was started only waits for the one that forks.
        waits = len(grandchildren) == 1 and _pid_namespace(child) != _pid_namespace(grandchildren[0])
        found.append(grandchildren[0] if waits else child)
    return found


def workers() -> list[psutil.Process]:
    return [worker for server in fork_servers() for worker in server.children()]


def _pid_namespace(process: psutil.Process) -> Path:
    return Path(f"/proc/{process.pid}/ns/pid").readlink()
