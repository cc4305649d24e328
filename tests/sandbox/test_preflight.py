"""What is found before a program runs, and what is left to the run because it is in doubt."""

from __future__ import annotations

import builtins

import pytest

from sandbox.preflight.finder import MAX_ERRORS, certain_errors
from sandbox.preflight.idle import idle_hint
from sandbox.preflight.spaces import Parameters, Space

ADD = Parameters(
    ["a", "b"], ["a", "b"], is_closed=True, types={"a": ["integer"], "b": ["integer", "null"]}, choices={}
)
PICK = Parameters(
    ["kind", "more"],
    ["kind"],
    is_closed=False,
    types={"kind": ["string"]},
    choices={"kind": ["x", "y", 1]},
)
TOOLS = Space(
    {"add": "add(*, a: int, b: int) -> int", "pick": "pick(...)", "odd-name": "odd-name(...)"},
    {"add": ADD, "pick": PICK},
    positional={},
    eager=(),
    coroutines=(),
    noun="tool",
    label=lambda name: f"tools.{name}" if name.isidentifier() else f'tools["{name}"]',
    unknown=lambda name: f"unknown tool {name!r}",
)
HELP = Space(
    {"search": "search(query, limit)", "progress": "progress(done)", "batch": "batch(calls)"},
    {},
    positional={"search": ("query", "limit"), "progress": ("done",)},
    eager=("progress",),
    coroutines=("batch",),
    noun="helper",
    label=lambda name: f"codemode.{name}",
    unknown=lambda name: f"unknown helper {name!r}",
)
NAMES = {*dir(builtins), "tools", "codemode", "ToolCallError"}


def no_advice(name, bound, is_key):
    return None


def found(source):
    errors = certain_errors(source, NAMES, {"tools": TOOLS, "codemode": HELP}, no_advice)
    return [(error.line, error.error_type, error.message) for error in errors]


@pytest.mark.parametrize(
    ("source", "line", "error_type", "part"),
    [
        ("await tools.add", 1, "TypeError", "tools.add is not called"),
        ("for x in await tools['odd-name']:\n    pass", 1, "TypeError", "is not called"),
        # Names nobody binds.
        ("x = 1\nprint(y)", 2, "NameError", "'y'"),
        ("return {'a': [1, (2, y)]}", 1, "NameError", "'y'"),
        ("if y:\n    pass", 1, "NameError", "'y'"),
        ("while y:\n    pass", 1, "NameError", "'y'"),
        ("for x in y:\n    pass", 1, "NameError", "'y'"),
        ("with y as x:\n    pass", 1, "NameError", "'y'"),
        ("match y:\n    case 1:\n        pass", 1, "NameError", "'y'"),
        ("@y\ndef f():\n    pass", 1, "NameError", "'y'"),
        ("def f(x=y):\n    pass", 1, "NameError", "'y'"),
        ("class A(y):\n    pass", 1, "NameError", "'y'"),
        ("[x for x in y]", 1, "NameError", "'y'"),
        ("d = {}\nd[y] = 1", 2, "NameError", "'y'"),
        ("y += 1", 1, "NameError", "'y'"),
        ("for i in range(3):\n    pass\ny += i", 3, "NameError", "'y'"),
        ("x = 1 if y else 2", 1, "NameError", "'y'"),
        ("raise y", 1, "NameError", "'y'"),
        ("assert y", 1, "NameError", "'y'"),
        ("f'{y}'", 1, "NameError", "'y'"),
        ("if __name__ == '__main__':\n    y()", 2, "NameError", "'y'"),
        ("def f():\n    return 1\nf(y)", 3, "NameError", "'y'"),
        ("try:\n    pass\nexcept ValueError:\n    pass\ny", 5, "NameError", "'y'"),
        # Members a namespace does not have.
        ("await tools.addd(a=1, b=2)", 1, "AttributeError", "'addd'"),
        ("f = tools.addd", 1, "AttributeError", "'addd'"),
        ("await tools['addd'](a=1)", 1, "LookupError", "'addd'"),
        ("await codemode.find('x')", 1, "AttributeError", "'find'"),
        # Arguments a call cannot have.
        ("await tools.add(a=1)", 1, "ToolCallError", '"b" is missing'),
        ("await tools.add()", 1, "ToolCallError", '"a" is missing; the required argument "b" is missing'),
        ("await tools.add(a=1, b=2, c=3)", 1, "ToolCallError", 'no argument "c"'),
        ("await tools.add({'a': 1, 'b': 2, 'c': 3})", 1, "ToolCallError", 'no argument "c"'),
        ("await tools.add(a='1', b=2)", 1, "ToolCallError", "\"a\" must be an integer, not the string '1'"),
        ("await tools.add(a=1.5, b=2)", 1, "ToolCallError", "must be an integer, not the number 1.5"),
        ("await tools.add(a=True, b=2)", 1, "ToolCallError", "must be an integer"),
        ("await tools.add(a=[1], b=2)", 1, "ToolCallError", "not a list"),
        ("await tools.add(a=f'{1}', b=2)", 1, "ToolCallError", "not a string"),
        ("await tools.add(a=1, b={})", 1, "ToolCallError", '"b" must be an integer or None, not a dict'),
        ("await tools.pick(kind='z')", 1, "ToolCallError", 'must be one of "x", "y", 1'),
        ("await tools.add(1, 2)", 1, "TypeError", "by name"),
        ("await tools.add({'a': 1}, b=2)", 1, "TypeError", "by name"),
        ("await tools.add([1, 2])", 1, "TypeError", "by name"),
        ("await codemode.search('x', 1, 2)", 1, "TypeError", "by name"),
        ("import asyncio\nawait asyncio.gather(tools.add(a=1))", 2, "ToolCallError", '"b" is missing'),
        # Calls that are not awaited.
        ("tools.add(a=1, b=2)", 1, "TypeError", "tools.add(...) is not awaited"),
        ("x = tools.add(a=1, b=2)\nprint(x)", 2, "TypeError", "not awaited"),
        ("x = tools.add(a=1, b=2)\nx['a']", 2, "TypeError", "not awaited"),
        ("tools.add(a=1, b=2).x", 1, "TypeError", "not awaited"),
        ("tools.add(a=1, b=2) + 1", 1, "TypeError", "not awaited"),
        ("if tools.add(a=1, b=2) == 3:\n    pass", 1, "TypeError", "not awaited"),
        ("f'{tools.add(a=1, b=2)}'", 1, "TypeError", "not awaited"),
        ("for x in tools.add(a=1, b=2):\n    pass", 1, "TypeError", "not awaited"),
        ("return {'x': tools.add(a=1, b=2)}", 1, "TypeError", "not awaited"),
        ("tools['odd-name']()", 1, "TypeError", 'tools["odd-name"](...) is not awaited'),
        ("codemode.batch([])", 1, "TypeError", "not awaited"),
        ("async def main():\n    pass\nmain()", 3, "TypeError", "main(...) is not awaited"),
        ("async def main():\n    return 1\nreturn main()", 3, "TypeError", "main(...) is not awaited"),
    ],
)
def test_a_slip_that_is_certain_to_be_reached_is_reported_with_its_line(source, line, error_type, part):
    errors = found(source)
    assert (line, error_type) in [error[:2] for error in errors]
    assert any(part in error[2] for error in errors)
    assert len({error[0] for error in errors}) == 1


@pytest.mark.parametrize(
    "source",
    [
        # Not certain to be reached.
        "try:\n    y\nexcept NameError:\n    pass",
        "if x_known := False:\n    y",
        "while False:\n    y",
        "for i in []:\n    y",
        "def f():\n    y",
        "class A:\n    def m(self):\n        return y",
        "lambda: y",
        "[y for i in []]",
        "False and y",
        "1 if True else y",
        "1 < 0 < y",
        "assert True, y",
        "return 1\ny",
        "raise ValueError\ny",
        "if True is None:\n    return\ny",
        "for i in range(3):\n    raise ValueError\ny",
        "while True:\n    pass\ny",
        "try:\n    return 1\nfinally:\n    pass\ny",
        "with open('x') as f:\n    y",
        "import sys\nsys.exit()\ny",
        "import sys\ndef leave():\n    sys.exit(0)\nleave()\ny",
        "exit()\ny",
        "class A:\n    exit()\ny",
        "@exit\ndef f(): pass\ny",
        "def f(a=exit()): pass\ny",
        "[exit(), y]",
        "return [exit(), y]",
        "sorted([1], key=exit)\ny",
        "def stop():\n    raise SystemExit\nstop()\ny",
        "import contextlib\nwith contextlib.suppress(NameError):\n    y",
        # Bound somewhere, by something.
        "def f():\n    global y\n    y = 1\nf()\ny",
        "import y.z\ny",
        "from m import *\ny",
        "import m as y\ny",
        "for y in [1]:\n    pass\ny",
        "match 1:\n    case y:\n        pass\ny",
        "match {}:\n    case {**y}:\n        pass\ny",
        "match []:\n    case [*y]:\n        pass\ny",
        "with open('x') as y:\n    y",
        "(y := 1)\ny",
        "class y:\n    pass\ny",
        "y: int = 1\ny",
        "y = 0\ny += 1",
        "def f(y):\n    return y\nf(1)",
        "print(__name__)",
        "global y\ny = 1\ny",
        # Tools that may be what the program makes of them.
        "tools = 1\ntools.addd",
        "def f(tools):\n    return tools.addd\nf(1)",
        "for tools in []:\n    pass\ntools.addd()",
        "name = 'addd'\ntools[name]",
        "tools._private",
        # Arguments in doubt.
        "await tools.add(**{'a': 1})",
        "args = {}\nawait tools.add(args)",
        "await tools.add(*[{'a': 1}])",
        "await tools.add({'a': 1, **{'b': 2}})",
        "await tools.add({'a': 1, 'b'[:1]: 2})",
        "await tools.add(a=1.0, b=None)",
        "await tools.add(a=-1, b=2)",
        "n = '1'\nawait tools.add(a=n, b=2)",
        "await tools.add(a=int('1'), b=2)",
        "await tools.pick(kind='x', anything=1)",
        "k = 'z'\nawait tools.pick(kind=k)",
        "await tools.pick(kind='z'.lower())",
        "await tools['odd-name'](whatever=1)",
        "await codemode.search('x', limit=1)",
        "await codemode.search(query='x')",
        "await codemode.batch([('add', {'a': 1})])",
        # Calls that may still be awaited, or need not be.
        "x = tools.add(a=1, b=2)\nawait x",
        "x = tools.add(a=1, b=2)\nx = await x\nx['a']",
        "calls = [tools.add(a=1, b=2)]\ncalls[0]",
        "import asyncio\nt = asyncio.create_task(tools.add(a=1, b=2))",
        "x = tools.add(a=1, b=2)\nx is None",
        "x = tools.add(a=1, b=2)\nx in [x]",
        "codemode.progress(1)",
        "print(tools.add)",
        "def print(x):\n    return 1\nprint(tools.add(a=1, b=2))",
        "async def main():\n    yield 1\nmain()",
        "def main():\n    return 1\nmain()",
        "import functools\n@functools.cache\nasync def main():\n    return 1\nmain()",
        "async def main():\n    return 1\nmain = lambda: 1\nmain()",
        "async def main():\n    return 1\nprint(main())",
    ],
)
def test_what_is_in_doubt_is_left_to_the_run(source):
    assert [] == found(source)


def test_many_errors_come_in_the_order_of_the_text_and_are_bounded():
    source = "\n".join(f"name_{number}" for number in range(MAX_ERRORS + 5))
    assert list(range(1, MAX_ERRORS + 1)) == [line for line, *_ in found(source)]


@pytest.mark.parametrize(
    "source", ["x = " + "-" * 3000 + "1", "x = " + "[" * 90 + "]" * 90, "x = 1" + " + 1" * 5000]
)
def test_a_program_that_is_too_deep_for_it_is_left_to_the_run(source):
    assert [] == found(source)


def test_hints_come_from_the_signature_and_from_the_caller():
    errors = certain_errors(
        "await tools.add(a=1)\nmissing", NAMES, {"tools": TOOLS}, lambda name, bound, is_key: f"no {name}"
    )
    assert ["the tool is: add(*, a: int, b: int) -> int", "no missing"] == [error.hint for error in errors]


def refuse_os(module, wanted, level):
    offered = {"json": ("dumps",), "": ()}
    if level:
        return "nothing to refer to"
    if module not in offered:
        return f"no module {module!r}"
    missing = [name for name in wanted if name not in offered[module]]
    return f"no {missing[0]!r} in {module!r}" if missing else None


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import os", [(1, 8, "no module 'os'")]),
        (
            "import json, os.path as p, socket",
            [(1, 14, "no module 'os.path'"), (1, 28, "no module 'socket'")],
        ),
        ("from os import *", [(1, 1, "no module 'os'")]),
        ("from json import dumps, nope", [(1, 1, "no 'nope' in 'json'")]),
        ("from . import x", [(1, 1, "nothing to refer to")]),
        ("if True:\n    import os", [(2, 12, "no module 'os'")]),
        ("from __future__ import annotations\nfrom json import dumps\nimport json", []),
        # Not certain to be executed, or not to end the program.
        ("try:\n    import os\nexcept ImportError:\n    os = None", []),
        ("def f():\n    import os", []),
        ("return 1\nimport os", []),
    ],
)
def test_where_imports_are_judged_those_that_fail_for_certain_are_reported(source, expected):
    errors = certain_errors(source, NAMES, {}, no_advice, refuse_os)
    assert expected == [(error.line, error.column, error.message) for error in errors]
    assert {"ImportError"} >= {error.error_type for error in errors}
    assert [] == certain_errors(source, NAMES, {}, no_advice)


def test_parameters_survive_the_wire():
    assert ADD == Parameters.from_json(ADD.to_json())


@pytest.mark.parametrize(
    ("source", "call"),
    [
        ("async def main():\n    pass", "`await main()`"),
        ("import json\ndef run(n):\n    pass", "`run(...)`"),
        ("def a():\n    b()\ndef b():\n    pass\nLIMIT = 3", "`a()`"),
        ('"""Doc."""\nasync def helper(): pass\nasync def main(): await helper()', "`await main()`"),
    ],
)
def test_a_program_of_definitions_only_is_told_how_to_start(source, call):
    assert call in idle_hint(source)


@pytest.mark.parametrize(
    "source",
    [
        "",
        "x = 1",
        "def f(): pass\nf()",
        "def f(): pass\nprint(1)",
        "@print\ndef f(): pass\nf",
        "class A: pass",
    ],
)
def test_a_program_that_does_more_is_left_alone(source):
    assert None is idle_hint(source)
