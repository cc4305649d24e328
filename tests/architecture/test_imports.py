"""Who may import whom."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


def test_the_import_contracts_hold():
    # As its own process: the linter imports the packages it looks at.
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-cache"], cwd=PROJECT, capture_output=True, text=True)
    assert 0 == done.returncode, done.stdout + done.stderr
    assert " 0 broken" in done.stdout


def test_importing_the_package_alone_loads_nothing_heavy():
    program = "import sys, codemode; print(sorted({'trio', 'cattrs', 'jsonschema'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], cwd=PROJECT, capture_output=True, text=True)
    assert ("[]\n", "") == (done.stdout, done.stderr)
