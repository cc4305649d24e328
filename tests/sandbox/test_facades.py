"""What programs import: the listed names, frozen, with the dangerous ones replaced or left out."""

from __future__ import annotations

import asyncio
import types
import zoneinfo

import pytest

from sandbox.facades import asyncio_facade, catalogue, zones
from sandbox.facades.console import Console
from sandbox.guards import build_globals
from sandbox.guards.readonly import FrozenModule, members_of
from sandbox.policy import compile_program

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


def run(source, drive=None):
    compiled = compile_program(source)
    namespace = build_globals(stdout_write=lambda stream, text: None)
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
