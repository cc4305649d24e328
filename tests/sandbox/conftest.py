"""What this machine cannot run is skipped by its marker."""

from __future__ import annotations

import os
import sys

import pytest


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("needs_linux") and sys.platform != "linux":
            item.add_marker(pytest.mark.skip(reason="starts a real worker, which needs Linux"))
        if item.get_closest_marker("needs_root") and os.geteuid() != 0:
            item.add_marker(pytest.mark.skip(reason="needs root, to become another user"))
