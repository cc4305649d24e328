"""The compile-time rules: what is refused, where, in which words, and how everything else is compiled."""

from __future__ import annotations

import sys

import pytest

from sandbox.guards import build_globals
from sandbox.policy import ProgramRefusedError, ProgramResult, compile_program

TWELVE = sys.version_info >= (3, 12)
ABSENT = object()


def refusals_of(source):
    with pytest.raises(ProgramRefusedError) as caught:
        compile_program(source)
    return caught.value.refusals


def run(source, **bindings):
    """Return (value or ABSENT, whether it is implicit, what was printed)."""
    printed = []
    compiled = compile_program(source, provided=frozenset(bindings))
    names = build_globals(bindings=bindings, stdout_write=lambda stream, text: printed.append(text))
    exec(compiled.code, names)
    with pytest.raises(StopIteration) as stop:
        names[compiled.entry_name]().send(None)
    result = stop.value.value
    if result is None:
        return ABSENT, False, "".join(printed)
    assert isinstance(result, ProgramResult)
    return result.value, result.implicit, "".join(printed)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("return 5", (5, False)),
        ("return None", (None, False)),
        ("return", (ABSENT, False)),
        ("x = 1\nif x:\n    return\nx", (ABSENT, False)),
        ("1 + 1", (2, True)),
        ("x = 7", (7, True)),
        ("x: int = 7", (7, True)),
        ("print = 3", (3, True)),
        ("None", (None, False)),
        ("x = None", (ABSENT, False)),
        ("print(1)", (ABSENT, False)),
        ("x = y = 2", (ABSENT, False)),
        ("x = [1]\nx += [2]", (ABSENT, False)),
        ("a, b = 1, 2", (ABSENT, False)),
        ("def f(): return 3", (ABSENT, False)),
        ("", (ABSENT, False)),
        ("# only a comment", (ABSENT, False)),
        ("'text'", ("text", True)),
        ("if True:\n    5", (ABSENT, False)),
        ("try:\n    pass\nfinally:\n    x = 1\nx", (1, True)),
    ],
)
def test_the_result_rule(source, expected):
    assert expected == run(source)[:2]


@pytest.mark.parametrize(
    ("source", "line", "column", "words"),
    [
        ("x = 1\ny = x.__globals__", 2, 5, '"__globals__" cannot be read'),
        ("try:\n    pass\nexcept* ValueError:\n    pass", 1, 1, "'except*' is not part of the language"),
        ("class A(metaclass=M):\n    pass", 1, 9, "metaclasses are not part of the language"),
        ("class M(type):\n    pass", 1, 9, "metaclasses are not part of the language"),
        ("é = eval('1')", 1, 5, "eval() is not part of the language"),
        ("exec('1')", 1, 1, "exec() is not part of the language"),
        ("compile('1', 'x', 'exec')", 1, 1, "compile() is not part of the language"),
        ("globals()", 1, 1, "globals() is not part of the language"),
        ("vars(1)", 1, 1, "vars() is not part of the language"),
        ("breakpoint()", 1, 1, "breakpoint() is not part of the language"),
        ("__name__ = 'x'", 1, 1, '"__name__" can be read, not assigned'),
        ("from . import x", 1, 1, "relative imports have nothing to refer to"),
        ("def f():\n    yield 1\nyield 2", 3, 1, "'yield' outside function"),
        ("class A(B, **kw):\n    pass", 1, 12, "takes no ** keywords"),
    ],
)
def test_a_refusal_names_the_place_and_what_was_refused(source, line, column, words):
    first = refusals_of(source)[0]
    assert (line, column) == (first.line, first.column)
    assert words in first.message


@pytest.mark.parametrize(
    "source",
    [
        "def NAME(): pass",
        "async def NAME(): pass",
        "class NAME: pass",
        "def f(NAME): pass",
        "def f(NAME, /): pass",
        "def f(*, NAME=1): pass",
        "def f(*NAME): pass",
        "def f(**NAME): pass",
        "async def f(NAME): pass",
        "lambda NAME: 1",
        "lambda *NAME, **k: 1",
        "def f():\n    global NAME",
        "def f():\n    x = 1\n    def g():\n        nonlocal NAME",
        "try:\n    pass\nexcept ValueError as NAME:\n    pass",
        "with open('x') as NAME:\n    pass",
        "async with x as NAME:\n    pass",
        "import json as NAME",
        "from json import loads as NAME",
        "import NAME",
        "for NAME in []:\n    pass",
        "async for NAME in x:\n    pass",
        "[1 for NAME in []]",
        "{1: 2 for NAME in []}",
        "(1 for (a, NAME) in [])",
        "(NAME := 1)",
        "NAME = 1",
        "NAME: int = 1",
        "NAME: int",
        "NAME += 1",
        "a, *NAME = 1, 2",
        "del NAME",
        "match 1:\n    case NAME:\n        pass",
        "match 1:\n    case [*NAME]:\n        pass",
        "match 1:\n    case {'a': 1, **NAME}:\n        pass",
        "match 1:\n    case int(NAME):\n        pass",
        "match 1:\n    case int() as NAME:\n        pass",
        "class A:\n    NAME = 1",
        "class A:\n    def NAME(self): pass",
        pytest.param("def f[NAME](x): pass", marks=pytest.mark.skipif(not TWELVE, reason="3.12 syntax")),
        pytest.param("class A[NAME]: pass", marks=pytest.mark.skipif(not TWELVE, reason="3.12 syntax")),
        pytest.param("def f[*NAME](x): pass", marks=pytest.mark.skipif(not TWELVE, reason="3.12 syntax")),
        pytest.param("def f[**NAME](x): pass", marks=pytest.mark.skipif(not TWELVE, reason="3.12 syntax")),
        pytest.param("type NAME = int", marks=pytest.mark.skipif(not TWELVE, reason="3.12 syntax")),
        pytest.param("type X[NAME] = int", marks=pytest.mark.skipif(not TWELVE, reason="3.12 syntax")),
    ],
)
@pytest.mark.parametrize("name", ["_getattr_", "_write_", "__import__", "__builtins__", "__class__", "super"])
def test_every_binding_position_is_checked(source, name):
    assert any(name in refusal.message for refusal in refusals_of(source.replace("NAME", name)))


@pytest.mark.parametrize(
    "attr",
    ["gi_frame", "__class__", "_private", "format", "append", "get_loop", "register", "f_cost", "tb_x"],
)
def test_a_class_pattern_reads_harmless_attributes_only(attr):
    first = refusals_of(f"match 1:\n    case object({attr}=x):\n        pass")[0]
    assert (2, True) == (first.line, attr in first.message)


def test_all_refusals_are_reported_at_most_ten_in_source_order():
    found = refusals_of("x.__code__\n" * 12)
    assert list(range(1, 11)) == [refusal.line for refusal in found]


def test_several_kinds_of_refusal_are_reported_together():
    assert [1, 2, 3] == [refusal.line for refusal in refusals_of("eval('1')\nx.__code__\n_getattr_ = 1")]


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("return " + "(" * 10_000 + "1" + ")" * 10_000, 1),
        ("return " + "-" * 100_000 + "1", 1),
        ("return 0" + "+0" * 200_000, 1),
        ("a = 1\nreturn a" + ".real" * 100_000, None),
        ("return " + "lambda:" * 20_000 + "1", 1),
        ("if 0: pass\n" + "elif 0: pass\n" * 20_000, None),
        ("x = 'a\0b'", 1),
        ("x = 1\ny = '\ud800'", 2),
        ("return " + "9" * 1_000_000, 1),
        ("x = 1\n" * 5 + "if x == 1\n    pass", 6),
        ("\n\n  x = 1", 3),
        ("x = 1\r\ny = = 2", 2),
        ("def f():\n    break", 2),
        ("def f():\n    await x", 2),
        ("class A:\n    return 1", 2),
        ("nonlocal x", None),
        ("from __future__ import nothing", 1),
        ("# -*- coding: rot13 -*-\nerghea 1", 2),
    ],
)
def test_text_that_is_no_program_is_refused_with_its_line(source, line):
    with pytest.raises(ProgramRefusedError) as caught:
        compile_program(source)
    if line is not None:
        assert line == caught.value.refusals[0].line


def test_a_megabyte_of_source_is_compiled():
    compile_program("x = 1\n" * 170_000)


def test_a_byte_order_mark_is_ignored():
    assert 1 == run("\ufeffreturn 1")[0]


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("```python\nx\n```", "without the ``` fences"),
        ("x = “a”", "plain quotes"),
        ("const x = 1", "without a keyword"),
        ("if a && b:\n    pass", "'and' / 'or'"),
        ("def f():\n    return await g()", "async def"),
        ("print 'x'", "print(...)"),
        ("x = 'abc", "close the quote"),
        ("x++", "name += 1"),
    ],
)
def test_typical_slips_get_a_hint(source, hint):
    assert hint in refusals_of(source)[0].hint


@pytest.mark.parametrize(
    "source", ["x.__class__", "_getattr_", "try:\n    x\nexcept* A:\n    pass", "yield 1", "x.gi_frame"]
)
def test_no_refusal_uses_the_wording_of_restrictedpython(source):
    for refusal in refusals_of(source):
        assert "RestrictedPython" not in str(refusal)
        assert "statements are not allowed" not in str(refusal)
        assert "invalid attribute name" not in str(refusal)


def test_an_unknown_syntax_node_is_refused():
    import ast

    from sandbox.policy.scopes import ScopeTree
    from sandbox.policy.transform import PolicyTransformer

    class NewStatement(ast.stmt):
        _fields = ()

    node = NewStatement(lineno=3, col_offset=0)
    transformer = PolicyTransformer(ScopeTree([], frozenset()), ["", "", ""], keep_annotations=False)
    transformer.visit_program([node])
    assert [3] == [refusal.line for refusal in transformer.refusals]


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("list = [1]\nlist.append(2)\nreturn list", [1, 2]),
        ("def f():\n    global late\n    late = 4\nf()\nreturn late", 4),
        ("x = 1\nclass A:\n    x = x\nreturn A.x", 1),
        ("sum = 0\ndef f():\n    nonlocal sum\n    sum += 2\nf()\nreturn sum", 2),
        ("max: int = 3\nreturn max", 3),
        (
            "class A:\n    class B:\n        def m(self): pass\nreturn [A.__qualname__, A.B.m.__qualname__]",
            ["A", "A.B.m"],
        ),
        (
            "from __future__ import annotations\ndef f(a: Nope) -> Nope: return 1\nreturn f.__annotations__",
            {"a": "Nope", "return": "Nope"},
        ),
        ("from math import *\nreturn [floor(1.5), int(pi)]", [1, 3]),
        ("'''doc'''\nfrom __future__ import division\nreturn 3 / 2", 1.5),
        (
            "class A:\n    _z = 5\n    def f(self, o):\n        return [o._z, o._z]\nreturn A().f(A())",
            [5, 5],
        ),
        ("def f(a):\n    '''doc'''\n    a._x\n    a._x\nreturn f.__doc__", "doc"),
        ("tools = tools + 1\nreturn tools", 2),
    ],
)
def test_ordinary_code_means_what_it_means_at_module_level(source, value):
    assert value == run(source, tools=1)[0]


def test_traceback_lines_are_the_programs_own():
    compiled = compile_program("x = 1\n\ndef f():\n    return 1 / 0\n\nf()")
    names = build_globals(stdout_write=lambda stream, text: None)
    exec(compiled.code, names)
    with pytest.raises(ZeroDivisionError) as caught:
        names[compiled.entry_name]().send(None)
    lines = []
    traceback = caught.value.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == "<program>":
            lines.append((traceback.tb_lineno, traceback.tb_frame.f_code.co_qualname))
        traceback = traceback.tb_next
    assert [(6, "<module>"), (4, "f")] == lines


@pytest.mark.skipif(not TWELVE, reason="3.12 syntax")
def test_type_parameters_and_aliases_work():
    source = """
type Pair[T] = tuple[T, T]
def first[T: (int, str), *Ts, **P](xs: list[T]) -> T:
    return xs[0]
class Box[T]:
    def __init__(self, v: T):
        self._v = v
    def map[U](self, f) -> "Box[U]":
        return Box(f(self._v))
class Sub[K](Box[K]):
    def get(self):
        return self._v
return [first([1]), Sub[int](3).get(), Box(2).map(str)._v, Box.__qualname__]
"""
    assert [1, 3, "2", "Box"] == run(source)[0]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("class A:\n    def __heapify__(self):\n        return 7\nreturn A().__heapify__()", 7),
        ("__mine__ = 3\ndef f(__its__=1):\n    return __mine__ + __its__\nreturn f(__its__=4)", 7),
        ("class A:\n    __mine__ = 2\nreturn getattr(A, '__mine__')", 2),
        ("class A:\n    pass\nsetattr(A, '__mine__', 5)\nreturn A.__mine__", 5),
        ("class A:\n    __mine__ = 2\nreturn [n for n in dir(A) if 'mine' in n]", ["__mine__"]),
        ("class A:\n    __mine__ = 2\nreturn '{0.__mine__}'.format(A)", "2"),
    ],
)
def test_a_dunder_name_that_means_nothing_to_python_is_the_programs_own(source, expected):
    assert expected == run(source)[0]


def test_an_own_dunder_name_is_kept_where_no_library_looks():
    own = run("class A:\n    pass\na = A()\na.__mine__ = 2\nreturn list(a.__dict__)")[0]
    assert ["__mine__"] == [name.removeprefix("\u2063") for name in own]
    assert "__mine__" not in own


def test_a_class_subscript_is_written_with_def():
    source = (
        "class A:\n    def __class_getitem__(cls, item):\n        return [cls, item]\nreturn A[int][1] is int"
    )
    assert run(source)[0] is True
    (refusal,) = refusals_of("class A:\n    __class_getitem__ = str")
    assert "__class_getitem__ cannot be assigned" == refusal.message


@pytest.mark.parametrize("value", ["x", "x.left", "A()", "x.make().left", "x.itself()"])
def test_the_class_of_a_value_that_comes_from_an_own_class_is_read(value):
    source = (
        "class A:\n    def make(self): return self\n    def itself(self): return self.left.__class__()\n"
        f"x = A()\nx.left = x\nreturn {value}.__class__.__name__"
    )
    assert "A" == run(source)[0]


@pytest.mark.parametrize("value", ["()", "''", "[1]", "json", "(1).real", "t"])
def test_the_class_of_anything_else_is_not(value):
    (refusal,) = refusals_of(f"import json\nt = ()\nreturn {value}.__class__")
    assert 'the attribute "__class__" cannot be read' == refusal.message


def test_the_docstring_of_a_program_is_its_doc():
    assert "About\nme." == run('"""About\nme."""\ndef f():\n    return __doc__\nreturn f()')[0]


def test_a_star_import_may_stand_in_a_block():
    assert 2 == run("try:\n    from math import *\nexcept ImportError:\n    pass\nreturn floor(2.5)")[0]


def test_a_deleted_name_is_not_defined():
    source = "x = 1\ndel x\ntry:\n    x\nexcept NameError as error:\n    return str(error)"
    assert "name 'x' is not defined" == run(source)[0]
