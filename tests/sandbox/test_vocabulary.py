"""What a sandbox's user may call the globals of a program (spec fact 123)."""

from __future__ import annotations

import pytest

from sandbox.vocabulary import ErrorClass, Namespace, Program


async def nothing(_call):
    return None


def space(name, error=None):
    return Namespace(name, {}, nothing, error)


@pytest.mark.parametrize(
    "name",
    ["$tools", "lambda", "match", "_", "__builtins__", "__name__", "print", "a-b", "", "é", "1a", "None"],
)
def test_a_namespace_or_error_class_needs_a_plain_name_of_its_own(name):
    with pytest.raises(ValueError, match="cannot be a global"):
        space(name)
    with pytest.raises(ValueError, match="cannot be a global"):
        ErrorClass(name)


@pytest.mark.parametrize("attribute", ["args", "message", "name", "__dict__", "", "add_note", "class", "_x"])
def test_an_error_class_cannot_hide_what_exceptions_have(attribute):
    with pytest.raises(ValueError, match="cannot hold"):
        ErrorClass("HostError", (attribute,))


def test_two_globals_of_one_name_are_refused():
    with pytest.raises(ValueError, match="'host'"):
        Program("return 1", (space("host"), space("host")))
    with pytest.raises(ValueError, match="'host'"):
        Program("return 1", (space("host"), space("other", ErrorClass("host"))))
    with pytest.raises(ValueError, match="'E'"):
        Program("return 1", (space("a", ErrorClass("E", ("x",))), space("b", ErrorClass("E", ("y",)))))


def test_two_namespaces_may_share_one_error_class():
    shared = ErrorClass("HostError", ("member",))
    assert 2 == len(Program("return 1", (space("a", shared), space("b", shared))).namespaces)
