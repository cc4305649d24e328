"""Generated programs that mix attribute reads, patterns, formatting and calls never reach a forbidden
object."""

from __future__ import annotations

import signal

import harness
import probe
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sandbox.guards import build_globals
from sandbox.policy import ProgramRefusedError, compile_program, names

SETUP = """
import json, re, math, enum, functools, operator, collections, collections.abc, typing, asyncio, datetime
import random, io, contextlib, dataclasses, types, sys, copy, string, abc, decimal, csv, statistics
class Own:
    __slots__ = ("a", "_b")
    def __init__(self):
        self.a = 1
        self._b = 2
class Text(str):
    def go(self, *a):
        return super().format(*a)
class Kind(enum.Enum):
    ONE = 1
class Table(dict):
    @classmethod
    def up(cls, *a):
        return super().update
    def down(self):
        return super()
@dataclasses.dataclass
class Row:
    x: int = 1
def gen():
    got = yield 1
async def coro():
    return 1
async def agen():
    yield 1
g = gen()
next(g)
c = coro()
ag = agen()
try:
    (1).nothing
except AttributeError as error:
    err = error
"""
ROOTS = (
    "g",
    "c",
    "ag",
    "err",
    "Own()",
    "Own",
    "Text('{0.a}')",
    "Text",
    "Kind.ONE",
    "Kind",
    "Table()",
    "Table",
    "Table().down()",
    "Row()",
    "Row",
    "gen",
    "(lambda: 0)",
    "tools",
    "tools.add",
    "ToolCallError",
    "json",
    "json.dumps",
    "re.compile('a')",
    "typing.List[int]",
    "typing.Type",
    "collections.UserList",
    "collections.ChainMap",
    "operator.attrgetter('real')",
    "functools.partial(int)",
    "type(1)",
    "type(g)",
    "type(Own)",
    "int",
    "dict",
    "list",
    "str.format",
    "'{0}'.format",
    "print",
    "sys",
    "sys.stdout",
    "asyncio",
    "io.StringIO()",
    "contextlib.ExitStack()",
    "random.Random()",
    "decimal.getcontext()",
    "property(len)",
    "Own().__init__",
    "super",
    "abc.ABC",
    "collections.abc.Generator",
    "datetime.datetime",
    "string.Template('a')",
    "types.SimpleNamespace(a=1)",
    "functools.lru_cache(len)",
)
ATTRIBUTES = sorted(
    {
        *names.FRAME_ATTRIBUTES,
        *names.GUARDED_PUBLIC,
        *names.READABLE_ATTRIBUTES,
        "__class__",
        "__base__",
        "__bases__",
        "__mro__",
        "__subclasses__",
        "__globals__",
        "__code__",
        "__closure__",
        "__self__",
        "__func__",
        "__builtins__",
        "__traceback__",
        "__context__",
        "__cause__",
        "__reduce_ex__",
        "__getattribute__",
        "__loader__",
        "__spec__",
        "__origin__",
        "__args__",
        "__objclass__",
        "_loop",
        "_abc_impl",
        "_member_map_",
        "_fields",
        "a",
        "_b",
        "copy",
        "new_child",
        "func",
        "args",
        "name",
        "value",
        "data",
        "maps",
        "real",
        "__supertype__",
        "__wrapped__",
        "__get__",
        "fget",
        "cache_info",
        "gen",
        "x",
        "__thisclass__",
        "down",
        "go",
        "up",
        ":owned",
    }
)

attribute = st.sampled_from(ATTRIBUTES)
step = st.one_of(
    st.tuples(st.just("dot"), attribute),
    st.tuples(st.just("getattr"), attribute),
    st.tuples(st.just("attrgetter"), attribute),
    st.tuples(st.just("caller"), attribute),
    st.tuples(st.just("match"), attribute),
    st.tuples(st.just("format"), attribute),
    st.tuples(
        st.just("call"), st.sampled_from(["", "int", "Own", "Own()", "Own, 'X'", "'X', (), {}", "[1]", "'a'"])
    ),
    st.tuples(st.just("index"), st.sampled_from(["0", "'a'", "int"])),
)


def program(root, steps):
    lines = [f"    x = {root}", "    probe(x)"]
    for kind, what in steps:
        if kind == "dot":
            lines.append(f"    x = x.{what}" if what.isidentifier() else "    pass")
        elif kind == "getattr":
            lines.append(f"    x = getattr(x, {what!r})")
        elif kind == "attrgetter":
            lines.append(f"    x = operator.attrgetter({what!r})(x)")
        elif kind == "caller":
            lines.append(f"    x = operator.methodcaller({what!r})(x)")
        elif kind == "match":
            if what.isidentifier():
                lines += ["    match x:", f"        case object({what}=y):", "            x = y"]
        elif kind == "format":
            lines.append(f"    probe('{{0.{what}}}'.format(x))")
        elif kind == "call":
            lines.append(f"    x = x({what})")
        else:
            lines.append(f"    x = x[{what}]")
        lines.append("    probe(x)")
    body = "\n".join(lines)
    end = "try:\n    attack()\nexcept Exception as e:\n    probe(e)\nc.close()\nreturn 1"
    return f"{SETUP}\ndef attack():\n{body}\n{end}"


class StuckError(BaseException):
    pass


def stuck(signum, frame):
    raise StuckError


# The alarm may fall into a callback of the garbage collector, which cannot pass an exception on.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))
@given(root=st.sampled_from(ROOTS), steps=st.lists(step, min_size=1, max_size=5))
def test_no_generated_program_reaches_a_forbidden_object(root, steps):
    found = []

    def look(value):
        reason = probe.forbidden(value)
        if reason is not None:
            found.append(reason)

    try:
        compiled = compile_program(program(root, steps), provided=frozenset({"tools", "probe"}))
    except ProgramRefusedError:
        return
    bindings = {
        "tools": harness._Tools(harness._Host()),
        "ToolCallError": harness.ToolCallError,
        "probe": look,
    }
    namespace = build_globals(bindings=bindings, stdout_write=lambda stream, text: None)
    exec(compiled.code, namespace)
    old = signal.signal(signal.SIGALRM, stuck)
    signal.setitimer(signal.ITIMER_REAL, 2, 0.5)
    try:
        harness._drive(namespace[compiled.entry_name]())
    except (StuckError, SystemExit):
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert [] == found


def test_the_frame_of_the_generated_programs_is_itself_a_program():
    for root in ROOTS:
        compile_program(program(root, [("call", "")]), provided=frozenset({"tools", "probe"}))


def check_compile(source):
    try:
        compile_program(source)
    except ProgramRefusedError as error:
        return error.refusals
    return ()


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_compiled_or_refused(source):
    refusals = check_compile(source)
    assert len(refusals) <= 10
    assert all(refusal.line >= 1 and refusal.column >= 1 and refusal.message for refusal in refusals)


TOKENS = [
    "def",
    "class",
    "async",
    "await",
    "match",
    "case",
    "x",
    "_x",
    "__x__",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ":",
    ",",
    ".",
    "=",
    ":=",
    "+",
    "*",
    "**",
    "@",
    "->",
    "return",
    "yield",
    "lambda",
    "import",
    "from",
    "global",
    "nonlocal",
    "try",
    "except",
    "with",
    "as",
    "if",
    "else",
    "for",
    "in",
    "not",
    "1",
    "0x",
    "f'{x}'",
    "'a'",
    ";",
]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(TOKENS), max_size=40))
def test_any_mixture_of_tokens_is_compiled_or_refused(tokens):
    assert len(check_compile(" ".join(tokens).replace(" ; ", "\n"))) <= 10
