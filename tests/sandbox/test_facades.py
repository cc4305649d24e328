"""What programs import: the listed names, frozen, with the dangerous ones replaced or left out."""

from __future__ import annotations

import asyncio
import types
import zoneinfo

import pytest

from sandbox.facades import asyncio_facade, catalogue, inner, zones
from sandbox.facades.console import Console
from sandbox.guards import build_globals
from sandbox.guards.readonly import FrozenModule, members_of
from sandbox.policy import compile_program
from sandbox.values import frozen_list

REQUIRED = [
    "json",
    "re",
    "math",
    "cmath",
    "datetime",
    "calendar",
    "time",
    "zoneinfo",
    "collections",
    "collections.abc",
    "itertools",
    "functools",
    "statistics",
    "textwrap",
    "string",
    "random",
    "decimal",
    "fractions",
    "dataclasses",
    "typing",
    "enum",
    "heapq",
    "bisect",
    "operator",
    "base64",
    "binascii",
    "hashlib",
    "hmac",
    "uuid",
    "urllib.parse",
    "csv",
    "io",
    "copy",
    "asyncio",
    "contextlib",
    "abc",
    "numbers",
    "difflib",
    "html",
    "unicodedata",
    "pprint",
    "types",
    "secrets",
    "struct",
    "zlib",
    "sys",
]


def every_module():
    return {**catalogue.shared_modules(), **catalogue.program_modules(Console(lambda stream, text: None))}


def error_of(source, **bindings):
    """Return the type and text of what a program raises."""
    with pytest.raises(Exception) as caught:  # noqa: PT011  # which one is the subject
        run(source, **bindings)
    return type(caught.value).__name__, str(caught.value)


def run(source, drive=None, **bindings):
    compiled = compile_program(source, provided=frozenset(bindings))
    namespace = build_globals(stdout_write=lambda stream, text: None, bindings=bindings)
    exec(compiled.code, namespace)
    coroutine = namespace[compiled.entry_name]()
    if drive is not None:
        return drive(coroutine).value
    with pytest.raises(StopIteration) as stop:
        coroutine.send(None)
    return None if stop.value.value is None else stop.value.value.value


@pytest.mark.parametrize("name", REQUIRED)
def test_every_required_module_is_importable(name):
    assert name in catalogue.module_names()
    run(f"import {name}")


MAX_HEAPS = {"heapq": {"_heapify_max", "_heappop_max", "_heapreplace_max", "_siftdown", "_siftup"}}


def test_no_facade_holds_a_module_or_a_private_name():
    for name, module in every_module().items():
        for member in members_of(module):
            value = getattr(module, member)
            assert not isinstance(value, types.ModuleType), f"{name}.{member}"
            assert member[:1] != "_" or member in MAX_HEAPS.get(name, ()), f"{name}.{member}"


@pytest.mark.parametrize(
    "name",
    [
        "re.DEBUG",
        "re.Scanner",
        "string.Formatter",
        "typing.get_type_hints",
        "typing.ForwardRef",
        "collections.UserString",
        "io.open",
        "uuid.uuid1",
        "uuid.getnode",
        "asyncio.get_event_loop",
        "asyncio.to_thread",
        "asyncio.all_tasks",
        "decimal.DefaultContext",
        "sys.modules",
        "sys.settrace",
        "types.FrameworkType",
        "types.new_class",
        "time.tzset",
        "json.codecs",
        "functools.WRAPPER_ASSIGNMENTS",
        "copy.dispatch_table",
        "hashlib.file_digest",
        "csv.StringIO",
        "contextlib.chdir",
        "enum.EnumType",
    ],
)
def test_dangerous_names_are_left_out(name):
    module, _, path = name.partition(".")
    value = every_module()[module]
    assert not hasattr(value, path)


def test_a_facade_cannot_be_changed_subclassed_or_pickled():
    module = every_module()["math"]
    with pytest.raises(AttributeError):
        module.pi = 3
    with pytest.raises(AttributeError):
        del module.pi
    with pytest.raises(TypeError):
        type("Other", (FrozenModule,), {})
    with pytest.raises(TypeError):
        module.__reduce_ex__(4)


def test_a_missing_name_suggests_the_nearest():
    with pytest.raises(AttributeError, match="did you mean 'sqrt'"):
        every_module()["math"].sqr  # noqa: B018  # reading it is the test


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # 3.13 wants flags by keyword
def test_debug_output_of_a_pattern_goes_nowhere(capfd):
    run(
        "import re\nre.compile('(a|b)+', 128)\nre.search('a', 'a', flags=128)\nre.sub('a', 'b', 'a', 0, "
        "128)\nre.split('a', 'b', 0, 128)"
    )
    assert ("", "") == capfd.readouterr()


@pytest.mark.parametrize(
    "call", ["wraps(f, assigned=())", "update_wrapper(f, f, ('x',))", "update_wrapper(f, f, updated=('x',))"]
)
def test_wrappers_take_no_attribute_lists(call):
    assert "TypeError" == run(
        f"import functools\ndef f(): pass\ntry:\n    functools.{call}\nexcept Exception as e:\n    return "
        "type(e).__name__"
    )


def test_dispatch_annotations_are_not_evaluated():
    source = """\
import functools
@functools.singledispatch
def f(x): return 0
try:
    @f.register
    def _(x: '1/0'): pass
except TypeError as e:
    return str(e)"""
    assert "write @function.register(1/0)" in run(source)


@pytest.mark.parametrize("names", ["{'__class__': 1}", "'__eq__ x'", "[('__init__', 1)]", "['_hook_']"])
def test_enum_members_cannot_have_dunder_names(names):
    assert "ValueError" == run(
        f"import enum\ntry:\n    enum.Enum('E', {names})\nexcept Exception as e:\n    return type(e).__name__"
    )


def test_each_program_has_a_random_generator_of_its_own():
    seeded = "import random\nrandom.seed(5)\nreturn random.random()"
    first = run(seeded)
    assert first == run(seeded)
    assert first != run("import random\nreturn random.random()")


def test_every_zone_of_the_database_is_there_and_no_other_key():
    assert len(zones.available_timezones()) > 500
    assert "UTC" == zones.ZoneInfo("UTC").key
    assert zones.ZoneInfo("Europe/Paris") is zones.ZoneInfo("Europe/Paris")
    for key in ("../../etc/passwd", "/etc/localtime", "Nowhere/Town", ""):
        with pytest.raises(zoneinfo.ZoneInfoNotFoundError):
            zones.ZoneInfo(key)


def test_decimal_precision_of_one_program_does_not_reach_the_host():
    import contextvars
    import decimal

    contextvars.copy_context().run(run, "import decimal\ndecimal.getcontext().prec = 3\nreturn 1")
    assert 28 == decimal.DefaultContext.prec


def test_standard_input_is_at_its_end():
    assert ["", "", [], []] == run(
        "import sys\nreturn [sys.stdin.read(), sys.stdin.readline(), sys.stdin.readlines(), list(sys.stdin)]"
    )


def test_the_recursion_limit_is_raised_to_a_ceiling_only(monkeypatch):
    import sys

    before = sys.getrecursionlimit()
    try:
        run("import sys\nsys.setrecursionlimit(10**9)\nsys.setrecursionlimit(5)")
        assert 20_000 == sys.getrecursionlimit()
    finally:
        sys.setrecursionlimit(before)


def test_the_adapter_is_asked_before_asyncio_schedules(monkeypatch):
    asked = []

    async def value(number):
        return number

    def adapt(awaitable):
        asked.append(awaitable)
        return value(awaitable) if isinstance(awaitable, int) else awaitable

    monkeypatch.setattr(asyncio_facade._Installed, "adapt", staticmethod(adapt))
    source = """
import asyncio
async with asyncio.TaskGroup() as group:
    first = group.create_task(1)
rest = [
    await asyncio.gather(2, 3), await asyncio.create_task(4), await asyncio.ensure_future(5), await
    asyncio.wait_for(6, 1), await asyncio.shield(7), [await x for x in asyncio.as_completed([8])],
]
done, pending = await asyncio.wait([asyncio.create_task(9)])
return [first.result(), rest, [task.result() for task in done]]
"""
    assert [1, [[2, 3], 4, 5, 6, 7, [8]], [9]] == run(source, asyncio.run)
    assert {1, 2, 3, 4, 5, 6, 7, 8, 9} <= {item for item in asked if isinstance(item, int)}


@pytest.mark.parametrize("name", sorted(asyncio_facade.MISSING))
def test_what_asyncio_leaves_out_says_what_to_write(name):
    with pytest.raises(AttributeError, match=r"; "):
        getattr(every_module()["asyncio"], name)


def test_deepcopy_refuses_what_is_not_data():
    source = """\
import copy
out = []
for x in ([print], (c for c in 'a'), [tools_like]):
    try:
        copy.deepcopy(x)
        out.append('copied')
    except TypeError:
        out.append('refused')
return out"""
    compiled = compile_program(source, provided=frozenset({"tools_like"}))
    namespace = build_globals(
        bindings={"tools_like": Console(lambda stream, text: None)}, stdout_write=lambda stream, text: None
    )
    exec(compiled.code, namespace)
    with pytest.raises(StopIteration) as stop:
        namespace[compiled.entry_name]().send(None)
    assert ["copied", "refused", "refused"] == stop.value.value.value


async def _run(source):
    compiled = compile_program(source)
    namespace = build_globals(stdout_write=lambda stream, text: None)
    exec(compiled.code, namespace)
    result = await namespace[compiled.entry_name]()
    return result.value


def test_a_done_callback_is_called_and_can_be_removed_like_any_other():
    source = """\
import asyncio
got = []
async def five():
    return 5
task = asyncio.create_task(five())
task.add_done_callback(got.append)
removed = [task.remove_done_callback(got.append), task.remove_done_callback(got.append)]
task.add_done_callback(lambda done: got.append(done.result()))
await task
await asyncio.sleep(0)
return removed, got"""
    assert ([1, 0], [5]) == asyncio.run(_run(source))


def test_the_text_of_a_task_tells_its_state_and_its_name_only():
    source = """\
import asyncio
async def five():
    return 5
task = asyncio.create_task(five(), name='n')
before = repr(task)
await task
return before, repr(task)"""
    expected = ("<Task pending name='n'>", "<Task finished name='n' result=5>")
    assert expected == asyncio.run(_run(source))


def test_an_awaitable_of_the_program_that_yields_nothing_gives_way_and_returns():
    source = """\
class A:
    def __await__(self):
        yield
        return 5
return await A()"""
    assert 5 == asyncio.run(_run(source))


def test_a_calendar_prints_where_print_does():
    source = """\
import calendar, contextlib, io
text = io.StringIO()
with contextlib.redirect_stdout(text):
    calendar.TextCalendar().prmonth(2024, 1)
return text.getvalue().split()[:2]"""
    assert ["January", "2024"] == asyncio.run(_run(source))


COPIES = """\
import copy
class A:
    def __init__(self, x):
        self.x = x
        self.cache = 1
    def __getstate__(self):
        return {"x": self.x}
    def __setstate__(self, state):
        self.x = state["x"]
        self.cache = 0
class B:
    def __init__(self, x):
        self.x = x
    def __reduce__(self):
        return (B, (self.x,))
a, b = A([1]), B([2])
return [copy.copy(a).cache, copy.copy(a).x is a.x, copy.deepcopy(a).x is a.x, copy.deepcopy(b).x is b.x]"""


def test_a_class_says_how_it_is_copied():
    assert [0, True, False, False] == run(COPIES)


@pytest.mark.parametrize("copier", ["copy", "deepcopy"])
def test_the_state_of_a_copy_cannot_make_it_an_object_of_another_class(copier):
    source = f"""\
import asyncio, copy
class A:
    pass
a = A()
a.__dict__["__getstate__"] = lambda: (None, {{"__class__": asyncio.Queue}})
try:
    a = copy.{copier}(a)
except AttributeError:
    pass
return type(a).__name__"""
    assert "A" == run(source)


def test_a_named_tuple_made_by_a_call_is_a_class_of_the_program():
    source = """\
from collections import namedtuple
from typing import NamedTuple
P = namedtuple("P", "x y")
Q = NamedTuple("Q", [("z", int)])
class R(P):
    def total(self):
        return self.x + self.y
return [type(P(1, 2)) is P, type(Q(1)) is Q, R(1, 2).total(), type(R(1, 2)).__name__]"""
    assert [True, True, 3, "R"] == run(source)


def test_a_protocol_asks_only_for_what_the_program_could_read():
    source = """\
from typing import Protocol, runtime_checkable
@runtime_checkable
class Sized(Protocol):
    def __len__(self): ...
@runtime_checkable
class Private(Protocol):
    _fields: tuple
@runtime_checkable
class Suspended(Protocol):
    gi_running: bool
from collections import namedtuple
return [isinstance([], Sized), isinstance(3, Sized), issubclass(dict, Sized),
        isinstance(namedtuple("P", "x")(1), Private), isinstance((i for i in []), Suspended)]"""
    assert [True, False, True, False, False] == run(source)


def test_a_protocol_that_is_not_runtime_checkable_is_not_asked():
    source = "from typing import Protocol\nclass P(Protocol):\n    def f(self): ...\nreturn isinstance(1, P)"
    assert "TypeError" == error_of(source)[0]


def test_text_annotations_of_a_data_class_tell_fields_from_class_variables():
    source = """\
from __future__ import annotations
import typing
from dataclasses import InitVar, dataclass, fields
@dataclass
class A:
    n: int = 1
    count: typing.ClassVar[int] = 0
    more: InitVar[int] = 5
    def __post_init__(self, more):
        self.n += more
return [A().n, [f.name for f in fields(A)], A.__annotations__["count"]]"""
    assert [6, ["n"], "typing.ClassVar[int]"] == run(source)


EXAMPLES = '''\
"""The program.

>>> double(4)
8
"""
import doctest, io, contextlib
LIMIT = 3
def double(x):
    """
    >>> double(LIMIT)
    6
    >>> double(None)
    Traceback (most recent call last):
        ...
    TypeError: unsupported operand type(s) for *: 'NoneType' and 'int'
    >>> list(range(20))  # doctest: +ELLIPSIS
    [0, 1, ..., 19]
    >>> import os
    """
    return x * 2
output = io.StringIO()
with contextlib.redirect_stdout(output):
    result = doctest.testmod()
return [result.failed, result.attempted, "line 18, in __main__.double" in output.getvalue(),
        "ImportError: No module named 'os' here" in output.getvalue()]
'''


def test_the_examples_of_docstrings_are_run_under_the_policy():
    assert [1, 5, True, True] == run(EXAMPLES)


def test_an_example_that_is_not_the_language_fails_with_the_refusal():
    source = '''\
"""
>>> (lambda: 0).__globals__
"""
import doctest, io, contextlib
output = io.StringIO()
with contextlib.redirect_stdout(output):
    doctest.testmod()
return 'the attribute "__globals__" cannot be read' in output.getvalue()
'''
    assert run(source) is True


@pytest.mark.parametrize("name", [":getattr", "__builtins__", "super", "a b"])
def test_examples_cannot_be_given_a_name_that_no_program_may_bind(name):
    assert "ValueError" == error_of(f"import doctest\ndoctest.testmod(extraglobs={{{name!r}: 1}})")[0]


@pytest.mark.parametrize("name", inner.NAMES)
def test_what_a_module_written_in_the_language_offers_leads_nowhere(name):
    module = build_globals(stdout_write=lambda stream, text: None)["__builtins__"]["__import__"](
        name, {}, {}, inner.offered(name), 0
    )
    assert type(module) is FrozenModule
    assert list(inner.offered(name)) == members_of(module)
    assert not any(isinstance(getattr(module, member), types.ModuleType) for member in members_of(module))


def test_a_lock_that_nobody_could_release_is_not_waited_for():
    source = "import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()"
    assert ("RuntimeError", True) == (error_of(source)[0], "for ever" in error_of(source)[1])


def test_a_heap_function_for_maxima_leaves_a_tool_result_alone():
    source = "import heapq\nheapq._heapify_max(values)"
    assert "TypeError" == error_of(source, values=frozen_list([1, 2]))[0]
