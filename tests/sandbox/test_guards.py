"""The run-time rules: attributes, writes, classes, formatting, builtins, imports."""

from __future__ import annotations

import builtins
import collections

import pytest

from sandbox.guards import attributes, build_globals, builtin_names, exposure
from sandbox.policy import compile_program, names
from sandbox.values import freeze


class HostError(Exception):
    """An exception class the worker binds."""


def run(source, **bindings):
    """Run a program that awaits nothing; return its value."""
    compiled = compile_program(source, provided=frozenset(bindings))
    namespace = build_globals(
        bindings={"HostError": HostError, **bindings}, stdout_write=lambda stream, text: None
    )
    exec(compiled.code, namespace)
    with pytest.raises(StopIteration) as stop:
        namespace[compiled.entry_name]().send(None)
    return stop.value.value.value


def error_of(source, **bindings):
    """Return (type name, text) of the exception a program catches from `source`."""
    body = "\n".join("    " + line for line in source.splitlines())
    return tuple(
        run(
            f"try:\n{body}\nexcept Exception as e:\n    return [type(e).__name__, str(e)]\nreturn "
            "['none', '']",
            **bindings,
        )
    )


# ---- reading


@pytest.mark.parametrize(
    "read",
    [
        "random.Random()._randbelow",
        "collections.Counter._keep_positive",
        "statistics.NormalDist()._mu",
        "(1)._x",
        "print._x",
        "json._default_decoder",
        "(lambda: 1).__wrapped__",
        "int.mro()",
        "json.dumps.__annotations__",
        "type(x for x in []).throw",
        "memoryview(b'a').obj",
        "(1).__init__",
    ],
)
def test_private_and_internal_attributes_of_foreign_objects_are_refused(read):
    kind, _ = error_of(f"import random, collections, statistics, json\n{read}")
    assert "AttributeError" == kind


@pytest.mark.parametrize(
    "how", ["o._x", "getattr(o, '_x')", "operator.attrgetter('_x')(o)", "'{0._x}'.format(o)", "o.m()", "O._x"]
)
def test_private_attributes_of_own_objects_are_read_by_every_road(how):
    source = (
        f"import operator\nclass O:\n    _x = 5\n    def m(self): return self._x\no = O()\nreturn str({how})"
    )
    assert "5" == run(source)


def test_a_refused_attribute_counts_as_missing():
    assert [False, "d"] == run("return [hasattr(len, '__self__'), getattr(len, '__self__', 'd')]")


@pytest.mark.parametrize(
    "name", ["__class__", "__globals__", "__reduce_ex__", ":owned", "gi_frame", "__mro__"]
)
def test_names_that_arrive_as_strings_meet_the_same_rule(name):
    generator = (x for x in [])
    for value in (1, generator, attributes.read, int):
        with pytest.raises(AttributeError):
            attributes.read(value, name, literal=False)


def test_an_attribute_name_must_be_exactly_a_string():
    class Name(str):
        __slots__ = ()

    for operation in (
        lambda: attributes.read(1, Name("real")),
        lambda: attributes.write(1, Name("x"), 1),
        lambda: attributes.delete(1, 5),
    ):
        with pytest.raises(TypeError):
            operation()


def test_documented_named_tuple_attributes_are_read_in_source_and_not_by_string():
    source = """\
from collections import namedtuple
P = namedtuple('P', 'x')
return [P(1)._asdict(), hasattr(P, '_make')]"""
    assert [{"x": 1}, False] == run(source)


# ---- writing


@pytest.mark.parametrize(
    "target",
    [
        "json.dumps",
        "json.JSONEncoder.x",
        "int.x",
        "print.x",
        "HostError.x",
        "collections.Counter.x",
        "len.x",
        "json.loads.x",
        "host.x",
    ],
)
@pytest.mark.parametrize(
    "form",
    [
        "T = 1",
        "T += 1",
        "T: int = 1",
        "del T",
        "for T in [1]:\n    pass",
        "[0 for T in [1]]",
        "a, T = 1, 2",
        "*T, = [1]",
        "import contextlib\nwith contextlib.nullcontext(1) as T:\n    pass",
    ],
)
def test_nothing_of_the_sandbox_can_be_written_or_deleted(target, form):
    kind, _ = error_of("import json, collections\n" + form.replace("T", target), host=object())
    assert kind in ("AttributeError", "TypeError")


@pytest.mark.parametrize(
    ("setup", "write", "read", "value"),
    [
        ("class A: pass\na = A()", "a.x = 1", "a.x", 1),
        ("class A: pass\na = A()", "a._x = 1", "a._x", 1),
        ("class A: pass", "A.x = 1", "A.x", 1),
        ("def f(): pass", "f.calls = 2", "f.calls", 2),
        ("def f(): pass", "f.__name__ = 'g'", "f.__name__", "g"),
        ("from types import SimpleNamespace\nn = SimpleNamespace()", "n.x = 3", "n.x", 3),
        ("import decimal\nc = decimal.getcontext()", "c.prec = 7", "c.prec", 7),
        ("class E(Exception): pass\ne = E()", "e.code = 4", "e.code", 4),
        ("class A:\n    n = 1\na = A()", "a.n += 4", "a.n", 5),
        ("class S(str): pass\ns = S('x')", "s.format = 'y'", "s.format", "y"),
    ],
)
def test_own_objects_can_be_written(setup, write, read, value):
    assert value == run(f"{setup}\n{write}\nreturn {read}")


FROZEN_ATTACKS = """
d.update({"k": 2})
dict.update(d, {"k": 2})
dict.setdefault(d, "z", 2)
dict.pop(d, "k")
dict.popitem(d)
dict.clear(d)
dict.__setitem__(d, "k", 2)
dict.__delitem__(d, "k")
dict.__init__(d, {"z": 1})
dict.__ior__(d, {"z": 1})
d.__init__({"z": 1})
list.append(l, 1)
list.extend(l, [1])
list.insert(l, 0, 1)
list.pop(l)
list.remove(l, 3)
list.clear(l)
list.sort(l)
list.reverse(l)
list.__setitem__(l, 0, 1)
list.__delitem__(l, 0)
list.__iadd__(l, [1])
list.__imul__(l, 2)
list.__init__(l, [])
list[int].__setitem__(l, 0, 1)
heapq.heapify(l)
heapq.heappush(l, 1)
heapq.heappop(l)
heapq.heapreplace(l, 1)
heapq.heappushpop(l, 9)
bisect.insort(l, 1)
random.shuffle(l)
operator.setitem(d, "k", 2)
operator.iadd(l, [1])
operator.imul(l, 2)
operator.ior(d, {"z": 1})
operator.delitem(l, 0)
collections.defaultdict.update(d, {"z": 1})
collections.OrderedDict.update(d, {"z": 1})
collections.OrderedDict.move_to_end(d, "k")
collections.Counter.update(d, {"k": 1})
MyDict.update(d, {"k": 2})
MyList.append(l, 1)
MyDict.low(d, {"k": 2})
super(type(d), d).update({"k": 2})
super(type(l), l).append(1)
dict[str, int].update(d, {"k": 2})
functools.partial(list.append, l)(1)
list(map(list.append, [l], [1]))
methodcaller("append", 1)(l)
getattr(list, "append")(l, 1)
d.k.x
l.__iadd__([1])
setattr(d, "k", 1)
delattr(l, "x")
MutableSequence.append(l, 1)
MutableMapping.pop(d, "k")
""".strip().splitlines()


@pytest.mark.parametrize("attack", FROZEN_ATTACKS)
def test_a_frozen_value_cannot_be_changed(attack):
    before = {"k": 1}, [3, 1, 2]
    d, listed = freeze(before[0]), freeze(before[1])
    setup = (
        "import heapq, bisect, random, operator, collections, functools\nfrom operator import methodcaller\n"
        "from collections.abc import MutableSequence, MutableMapping\nclass MyList(list): pass\nclass "
        "MyDict(dict):\n"
        "    @classmethod\n    def low(cls, *a): return super().update(*a)\n"
    )
    kind, text = error_of(f"{setup}{attack}", d=d, l=listed)
    assert before == (dict(d), list(listed))
    assert "none" != kind, f"{attack} did nothing and said nothing: {text}"


# ---- classes


@pytest.mark.parametrize(
    "base",
    ["type(len)", "type(type(1))", "asyncio.Queue", "asyncio.Task", "type(json)", "ExceptionGroup", "bool"],
)
def test_a_class_cannot_inherit_from_what_is_not_open(base):
    assert "TypeError" == error_of(f"import asyncio, json\nclass A({base}): pass")[0]


def test_an_exception_class_the_worker_binds_may_be_inherited():
    assert "mine" == run(
        "class Mine(HostError): pass\ntry:\n    raise Mine('mine')\nexcept HostError as e:\n    return str(e)"
    )


def test_type_has_one_argument_and_still_recognises_classes():
    source = (
        "return [isinstance(int, type), isinstance(1, type), type(int) is type(str), type"
        "(1) is int, issubclass(int, object), type(type) is type]"
    )
    assert [True, False, True, True, True, True] == run(source)


def test_type_of_a_frozen_value_is_the_plain_type():
    assert [True, True] == run("return [type(d) is dict, type(l) is list]", d=freeze({}), l=freeze([]))


def test_a_stand_in_recognises_instances_and_refuses_everything_else():
    kind = exposure.type_of(len)
    assert isinstance(print, kind)
    assert "builtin_function_or_method" == kind.__name__
    with pytest.raises(TypeError):
        kind()
    with pytest.raises(AttributeError):
        kind.x = 1


def test_stdlib_methods_refuse_a_receiver_of_another_kind():
    build_globals(stdout_write=lambda stream, text: None)
    with pytest.raises(TypeError, match="needs a 'UserList' object"):
        collections.UserList.copy(int)
    assert [1] == collections.UserList([1]).copy()


# ---- formatting, builtins


@pytest.mark.parametrize(
    "template",
    ["{} {}", "{1}{0}", "{0:>5}|{1:<5}", "{0!r:^9}", "{0:{1}}", "{{}}{0}{1}", "{0:,}", "{0:.3f} {1}"],
)
def test_formatting_is_cpythons(template):
    assert template.format(1234, 7) == run("return t.format(1234, 7)", t=template)


@pytest.mark.parametrize(
    "template",
    ["{0.__class__}", "{0:{0.__class__}}", "{0[0].__class__}", "{a.__class__}", "{0.real.__class__}"],
)
def test_no_format_field_reads_a_dunder(template):
    for how in ("t.format([1], a=1)", "str.format(t, [1], a=1)", "(t + '').format([1], a=1)", "f([1], a=1)"):
        assert (
            "AttributeError"
            == error_of(
                f"f = t.format\n{how}", t=template.replace("0.", "0[0].", 1) if "0." in template else template
            )[0]
        )


def test_unavailable_builtins_say_what_to_do():
    for source, words in (
        ("open('x')", "programs have no file system"),
        ("input()", "Put the value into a variable"),
        ("help()", "print(obj.__doc__)"),
    ):
        assert words in error_of(source)[1]


def test_hints_of_the_host_replace_our_own():
    namespace = build_globals(stdout_write=lambda stream, text: None, hints={"open": "use await tools.cat"})
    with pytest.raises(PermissionError, match=r"use await tools\.cat"):
        namespace["__builtins__"]["open"]("x")


def test_no_dangerous_builtin_is_offered():
    namespace = build_globals(stdout_write=lambda stream, text: None)["__builtins__"]
    for name in (
        "open",
        "exec",
        "eval",
        "compile",
        "input",
        "globals",
        "locals",
        "vars",
        "breakpoint",
        "type",
        "getattr",
        "setattr",
        "delattr",
        "dir",
        "hasattr",
        "print",
        "__import__",
        "help",
    ):
        assert namespace[name] is not getattr(builtins, name)
    assert not {"copyright", "credits", "license"} & set(builtin_names())


def test_hook_names_cannot_be_spelled_in_source():
    namespace = build_globals(stdout_write=lambda stream, text: None)
    hooks = [name for name in namespace if name not in ("__builtins__", "__name__", "__doc__")]
    assert hooks
    assert all(name[0] == names.HOOK_PREFIX and not name.isidentifier() for name in hooks)


def test_print_goes_to_the_named_stream():
    written = []
    compiled = compile_program(
        "import sys\nprint('a', 1, sep='-')\nprint('b', file=sys.stderr)\nsys.stdout.write('c')"
    )
    namespace = build_globals(stdout_write=lambda stream, text: written.append((stream, text)))
    exec(compiled.code, namespace)
    with pytest.raises(StopIteration):
        namespace[compiled.entry_name]().send(None)
    assert [("stdout", "a-1\n"), ("stderr", "b\n"), ("stdout", "c")] == written


# ---- imports


def test_a_refused_import_lists_what_there_is_and_what_to_use():
    kind, text = error_of("import requests")
    assert "ImportError" == kind
    assert "'requests'" in text
    assert "programs have no network" in text
    assert "asyncio, base64" in text


@pytest.mark.parametrize(
    "statement",
    [
        "import os",
        "import os.path",
        "from os import *",
        "from json import codecs",
        "import json.decoder",
        "from asyncio import subprocess",
        "import urllib.request",
        "import sandbox",
    ],
)
def test_what_is_not_offered_cannot_be_imported(statement):
    if "*" in statement:
        assert "ImportError" == run(
            "def f():\n    import os\ntry:\n    f()\nexcept ImportError as e:\n    r = "
            "type(e).__name__\nreturn r"
        )
    else:
        assert "ImportError" == error_of(statement)[0]


def test_except_module_not_found_catches_a_refused_import():
    assert "caught" == run("try:\n    import numpy\nexcept ModuleNotFoundError:\n    return 'caught'")


def test_a_module_the_worker_passes_is_importable():
    namespace = build_globals(stdout_write=lambda stream, text: None, modules={"codemode": "the object"})
    assert "the object" == namespace["__builtins__"]["__import__"]("codemode", {}, {}, None, 0)


def test_a_function_may_be_told_where_it_comes_from_and_a_class_may_not():
    source = """\
def wrap(f):
    def inner():
        return f()
    inner.__module__ = "elsewhere"
    inner.__wrapped__ = f
    inner.__dict__.update(f.__dict__)
    return inner
def one():
    return 1
one.tag = "t"
both = wrap(one)
class A:
    pass
try:
    A.__module__ = "sys"
except AttributeError as error:
    return [both.__module__, both.__wrapped__(), both.tag, str(error)]"""
    refused = "the attribute '__module__' cannot be set; define it in the class body"
    assert ["elsewhere", 1, "t", refused] == run(source)


def test_the_dict_of_an_own_object_can_be_replaced_by_a_dict():
    source = """\
class Borg:
    shared = {}
    def __init__(self):
        self.__dict__ = self.shared
a, b = Borg(), Borg()
a.x = 5
try:
    a.__dict__ = [1]
except AttributeError:
    return b.x"""
    assert 5 == run(source)
