"""Nothing decides from a value's text or keys that the value is an envelope.

Known limit: this reads source, so it finds the ways it knows of; the property tests try lookalikes.
"""

import ast
import inspect
from pathlib import Path

import pytest

import codemode
import tool_bindings
from tool_bindings import annotated
from tool_bindings.annotated import intercepts, mcp, records

PACKAGES = (Path(tool_bindings.__file__).parent, Path(codemode.__file__).parent)
SOURCES = sorted(path for package in PACKAGES for path in package.rglob("*.py"))
OWN = Path(annotated.__file__).parent

PARSERS = {"loads", "load", "decode", "decode_json", "literal_eval", "eval", "raw_decode", "match", "search"}
GUESSES = {"startswith", "endswith", "find", "index", "fullmatch", "issuperset", "issubset"}
ENVELOPE_WORDS = {
    "codemode.annotated-tool-result/1",
    "codemode.annotated-tool-result/",
    "dev.codemode/annotation",
}
TELLTALE_KEYS = {"schema", "annotation", "relation", "raw", "dataSchema", "structuredContent"}


def tree_of(path):
    return ast.parse(path.read_text("utf-8"))


def called_names(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            function = node.func
            yield function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


@pytest.mark.parametrize("path", sorted(OWN.glob("*.py")), ids=lambda path: path.name)
def test_the_envelope_code_parses_and_searches_no_text(path):
    tree = tree_of(path)
    found = {name for name in called_names(tree) if name in PARSERS | GUESSES}
    # The one exception reads the published schema from the package, and no result.
    assert ({"loads"} if path.name == "envelope.py" else set()) == found
    assert not [
        node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom)) and imports_re(node)
    ]


def imports_re(node):
    names = [alias.name for alias in node.names]
    return "re" in names or getattr(node, "module", None) == "re"


@pytest.mark.parametrize(
    "path", [path for path in SOURCES if OWN not in path.parents], ids=lambda path: path.name
)
def test_no_other_code_spells_the_envelope_id(path):
    words = {
        node.value
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert set() == words & ENVELOPE_WORDS


@pytest.mark.parametrize(
    "path", [path for path in SOURCES if OWN not in path.parents], ids=lambda path: path.name
)
def test_no_other_code_compares_with_the_envelope_id(path):
    names = {node.id for node in ast.walk(tree_of(path)) if isinstance(node, ast.Name)}
    attributes = {node.attr for node in ast.walk(tree_of(path)) if isinstance(node, ast.Attribute)}
    imported = {
        alias.name
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tool_bindings.annotated")
        for alias in node.names
    }
    assert "SCHEMA" not in imported & (names | attributes)


@pytest.mark.parametrize("function", [records.wrap_raw, records.raw_envelope, intercepts.carry_over])
def test_what_annotates_a_raw_value_looks_at_no_key(function):
    """A raw value is asked one thing: whether it is a string."""
    tree = ast.parse(inspect.getsource(function))
    looked_up = [
        node
        for node in ast.walk(tree)
        if (
            isinstance(node, ast.Subscript)
            and isinstance(node.value, ast.Name)
            and node.value.id in RAW_NAMES
        )
        or (isinstance(node, ast.Compare) and any(isinstance(op, (ast.In, ast.NotIn)) for op in node.ops))
        or (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("get", "keys", "items", "values")
        )
    ]
    assert [] == looked_up


RAW_NAMES = {"value", "result", "before", "after"}


def test_an_intercept_is_told_apart_by_identity_and_type_only():
    tree = ast.parse(inspect.getsource(intercepts.apply_intercept))
    conditions = [ast.unparse(node.test) for node in ast.walk(tree) if isinstance(node, (ast.If, ast.IfExp))]
    assert [
        "after is before",
        "isinstance(after, AnnotatedOutcome)",
        "isinstance(given, AnnotatedToolResult)",
    ] == sorted(conditions)


def test_an_mcp_answer_is_read_by_the_names_of_the_protocol_only():
    tree = ast.parse(inspect.getsource(mcp._read_answer))
    keys = {
        node.args[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) == "raw.get"
        and isinstance(node.args[0], ast.Constant)
    }
    assert {"resultType", "content", "isError", "structuredContent", "_meta"} == keys
    assert set() == (keys & TELLTALE_KEYS) - {"structuredContent"}
