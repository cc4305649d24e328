"""The public names. Adding or removing one is a decision, so it has to be made here as well."""

from __future__ import annotations

import importlib

import pytest

EXPORTS: dict[str, list[str]] = {}


@pytest.mark.parametrize("package", EXPORTS)
def test_a_package_exports_exactly_these_names(package):
    module = importlib.import_module(package)
    assert EXPORTS[package] == sorted(module.__all__)


@pytest.mark.parametrize("package", EXPORTS)
def test_every_exported_name_is_there(package):
    module = importlib.import_module(package)
    missing = [name for name in module.__all__ if not hasattr(module, name)]
    assert [] == missing
