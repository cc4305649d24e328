"""Bring a virtual environment up to date: this project, editable, with every extra.

usage: python scripts/make_venv.py VENV [--keep-interpreter]

Does nothing when the environment was made from the same pyproject.toml by the same interpreter in the same
place. Run by the interpreter the environment is for; with --keep-interpreter an environment of another
supported interpreter is left as it is.

Standard library only, and nothing newer than pip 23.2 needs to be installed.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
PYPROJECT = PROJECT / "pyproject.toml"
STAMP = ".codemode-installed.json"
PACKAGES = ("codemode", "sandbox", "tool_bindings")


def main(arguments: list[str]) -> int:
    """Check, and where needed rebuild, the environment named on the command line."""
    keep_interpreter = "--keep-interpreter" in arguments
    (venv,) = (Path(argument).absolute() for argument in arguments if argument != "--keep-interpreter")
    # Two makes at a time would build into each other; the file every build reads serves as the lock.
    with PYPROJECT.open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return update(venv, keep_interpreter=keep_interpreter)


def update(venv: Path, *, keep_interpreter: bool) -> int:
    """Make the environment match, doing as little as possible."""
    wanted = fingerprint(venv)
    found = installed(venv)
    same_interpreter = found.get("interpreter") == wanted["interpreter"]
    usable = same_interpreter or keep_interpreter
    if usable and found == {**wanted, "interpreter": found.get("interpreter")}:
        return 0
    if venv.exists() and not (venv / "pyvenv.cfg").exists() and any(venv.iterdir()):
        print(
            f"make_venv: {venv} exists and is no virtual environment; remove it or give VENV=...",
            file=sys.stderr,
        )
        return 1
    reusable = usable and found.get("place") == wanted["place"]
    python = venv / "bin" / "python"
    if not reusable:
        version = ".".join(map(str, sys.version_info[:3]))
        print(f"Creating {venv.name} with Python {version}; this takes about a minute.", flush=True)
        shutil.rmtree(venv, ignore_errors=True)
        # In an activated environment we run inside what was just removed; its base interpreter stays.
        run([getattr(sys, "_base_executable", sys.executable), "-m", "venv", str(venv)])
    else:
        print(f"Updating {venv.name}: pyproject.toml has changed.", flush=True)
    (venv / STAMP).unlink(missing_ok=True)
    extras = ",".join(
        tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    )
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    # One path for the whole project instead of a module that maps names: every start of Python is 15 ms
    # faster, and a new package can be imported without installing again.
    run([*pip, "--config-settings", "editable_mode=compat", "--editable", f"{PROJECT}[{extras}]"])
    # Where Python is told to write no bytecode, every start would compile these again: a fifth of a second.
    run([str(python), "-m", "compileall", "-q", *(str(PROJECT / package) for package in PACKAGES)])
    kept = found if reusable else wanted
    (venv / STAMP).write_text(json.dumps({**wanted, "interpreter": kept["interpreter"]}), encoding="utf-8")
    return 0


def fingerprint(venv: Path) -> dict[str, str]:
    """Return what the environment must have been made of."""
    return {
        "pyproject": hashlib.sha256(PYPROJECT.read_bytes()).hexdigest(),
        "interpreter": f"{Path(sys.executable).resolve()} {sys.version}",
        # Scripts and the editable install hold absolute paths: a moved copy must be rebuilt.
        "place": f"{venv} {PROJECT}",
    }


def installed(venv: Path) -> dict[str, str]:
    """Return what the environment was made of, as far as it says."""
    try:
        found = json.loads((venv / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and works(venv / "bin" / "python") else {}


def works(python: Path) -> bool:
    """Say whether the environment's interpreter is still there."""
    try:
        return subprocess.run([str(python), "-c", ""], check=False, capture_output=True).returncode == 0  # noqa: S603
    except OSError:
        return False


def run(command: list[str]) -> None:
    """Run one step; its own messages are the explanation when it fails."""
    subprocess.run(command, check=True)  # noqa: S603  # our own words


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except subprocess.CalledProcessError as error:
        print(f"make_venv: this step failed: {' '.join(error.cmd)}", file=sys.stderr)
        sys.exit(1)
