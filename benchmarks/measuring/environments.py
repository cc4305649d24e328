"""Virtual environments for other systems: made when first needed, kept in the user's cache directory.

Nothing of ours is installed there, and nothing of theirs here.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

STAMP = "installed"
INSTALL_SECONDS = 900.0


class InstallError(Exception):
    """A requirement could not be installed."""


def cache_folder() -> Path:
    """Return where the environments are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "codemode" / "benchmarks"


def python_for(requirements: tuple[str, ...]) -> str:
    """Return the interpreter of an environment that has the requirements; for none of them, our own.

    Raises:
        InstallError: They could not be installed; the text is what pip said last.
    """
    if not requirements:
        return sys.executable
    folder = cache_folder() / folder_name(requirements)
    python = folder / "bin" / "python"
    if (folder / STAMP).exists() and python.exists():
        return str(python)
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    _run([getattr(sys, "_base_executable", sys.executable), "-m", "venv", str(folder)])
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    _run([*pip, *requirements])
    (folder / STAMP).write_text("\n".join(requirements), encoding="utf-8")
    return str(python)


def folder_name(requirements: tuple[str, ...]) -> str:
    """Return a name that changes with the requirements and with the version of Python."""
    facts = "\n".join((*requirements, platform.python_version()))
    name = re.match(r"[A-Za-z0-9_.-]+", requirements[0])
    assert name is not None
    return f"{name[0]}-{hashlib.sha256(facts.encode()).hexdigest()[:12]}"


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InstallError(str(error)) from error
    if done.returncode:
        lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        raise InstallError(lines[-1].strip() if lines else f"exit status {done.returncode}")
