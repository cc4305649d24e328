"""Every error of the sandbox has a translation, and none reaches our caller as it is."""

from __future__ import annotations

import sandbox.errors
import sandbox.limits
from codemode import errors


def test_every_error_of_the_sandbox_has_a_translation():
    modules = (sandbox.errors, sandbox.limits)
    defined = {
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, sandbox.errors.SandboxError)
    }
    assert set() == defined - set(errors._TRANSLATIONS)
    assert all(issubclass(target, errors.CodeModeError) for target in errors._TRANSLATIONS.values())


def test_missing_isolation_names_the_way_out():
    error = sandbox.errors.IsolationUnavailableError(("seccomp",), "mandatory isolation is not available")
    translated = errors.translate(error)
    assert isinstance(translated, errors.SandboxUnavailableError)
    assert ("seccomp",) == translated.missing
    assert "--isolation best-effort" in str(translated)
