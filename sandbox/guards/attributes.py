"""Reading, writing and deleting attributes where the name or the object is not harmless.

Knows: the run-time rule for every attribute name. Does not know: syntax, modules.

A native read in a program is one the policy found harmless by its name alone. Everything else, and every
name that arrives as a string, comes here.
"""

from __future__ import annotations

import asyncio
import decimal
import enum
import types
from abc import ABCMeta
from typing import TYPE_CHECKING, Any, NoReturn

from sandbox.facades import futures
from sandbox.guards import formatting, hardening
from sandbox.guards.exposure import expose_type
from sandbox.guards.ownership import (
    OWNED,
    class_dict,
    is_program_class,
    is_program_function,
    is_program_instance,
)
from sandbox.guards.readonly import FrozenModule, members_of, module_name
from sandbox.policy import names
from sandbox.values import FrozenDict, FrozenList

if TYPE_CHECKING:
    from collections.abc import Callable

MISSING: Any = object()
"""Stands for "no default given"."""

_INTERPRETER_TYPES = (
    types.FrameType, types.TracebackType, types.CodeType, types.GeneratorType, types.CoroutineType,
    types.AsyncGeneratorType,
)  # fmt: skip
_UNBOUND = (types.MethodDescriptorType, types.WrapperDescriptorType)
_FROZEN = (FrozenDict, FrozenList)
_PLAIN_CONTAINERS = frozenset({list, dict, set, bytearray})

_IN_PLACE = frozenset(
    f"__{name}__"
    for name in [
        "iadd",
        "isub",
        "imul",
        "imatmul",
        "itruediv",
        "ifloordiv",
        "imod",
        "ipow",
        "ilshift",
        "irshift",
        "iand",
        "ixor",
        "ior",
        "setitem",
        "delitem",
    ]
)
_SETTERS = frozenset({"__setattr__", "__delattr__"})
_CHANGING = _IN_PLACE | {"__init__", "__setattr__", "__delattr__", "__post_init__"}
_CLASS_HOOKS = frozenset(
    {"__init__", "__new__", "__setattr__", "__delattr__", "__getattr__", "__init_subclass__", "__post_init__"}
)

_super_self: Any = super.__dict__["__self__"]
_super_class: Any = super.__dict__["__thisclass__"]
_super_self_class: Any = super.__dict__["__self_class__"]


def read(ob: Any, name: str, *, literal: bool = True) -> Any:
    """Return attribute `name` of `ob` if a program may have it.

    Args:
        ob: Any object.
        name: The attribute.
        literal: The name stands in the source; False for one that arrived as a string.

    Raises:
        AttributeError: There is none, or programs may not read it.
    """
    _check_spelling(ob, name)
    if name[:1] == "_" and name != "_":
        if names.is_dunder(name):
            return _read_dunder(ob, name)
        return _read_private(ob, name, literal=literal)
    if name in names.MUTATORS:
        return _without_bypass(getattr(ob, name), name)
    if name in names.ALWAYS_DYNAMIC:
        return _read_dynamic(ob, name)
    if name in names.FRAME_ATTRIBUTES or names.is_inspection_like(name):
        if isinstance(ob, (type, *_INTERPRETER_TYPES)) and not is_program_object(ob):
            _refuse_read(ob, name)
        return getattr(ob, name)
    if name in names.RECEIVER_CHECKED:
        return _read_checked(ob, name)
    return getattr(ob, name)


def write(ob: Any, name: str, value: Any) -> None:
    """Set attribute `name` of an object that belongs to the program."""
    _check_spelling(ob, name)
    name = names.own_dunder(name)
    if names.is_dunder(name):
        if name == "__dict__":
            settable = type(ob) in OWNED and type(value) is dict
        elif name in names.FUNCTION_ATTRIBUTES:
            settable = is_program_function(ob) and (name == "__wrapped__" or type(value) is str)
        else:
            settable = name in names.SETTABLE_ATTRIBUTES and (
                is_program_function(ob) or is_program_object(ob)
            )
            settable = settable and (type(value) is str or (value is None and name == "__doc__"))
        if settable:
            setattr(ob, name, value)
            return
        raise AttributeError(f"the attribute {name!r} cannot be set; define it in the class body")
    _require_writable(ob, name)
    setattr(ob, name, value)


def delete(ob: Any, name: str) -> None:
    """Delete attribute `name` of an object that belongs to the program."""
    _check_spelling(ob, name)
    name = names.own_dunder(name)
    if names.is_dunder(name):
        raise AttributeError(f"the attribute {name!r} cannot be deleted")
    _require_writable(ob, name)
    delattr(ob, name)


def is_program_object(ob: Any) -> bool:
    """Whether `ob` is a class the program defined or an instance of one."""
    return is_program_instance(ob) or (isinstance(ob, type) and is_program_class(ob))


class Guarded:
    """Stands for an object in one attribute operation that the policy could not prove harmless.

    Programs never hold one: the policy writes it only directly before a dot.
    """

    __slots__ = ("ob",)

    def __init__(self, ob: Any) -> None:
        object.__setattr__(self, "ob", ob)

    def __getattribute__(self, name: str) -> Any:
        return read(object.__getattribute__(self, "ob"), name)

    def __setattr__(self, name: str, value: Any) -> None:
        write(object.__getattribute__(self, "ob"), name, value)

    def __delattr__(self, name: str) -> None:
        delete(object.__getattribute__(self, "ob"), name)


def guard(ob: Any) -> Any:
    """Return `ob` if every native operation on it is harmless, else its guarded stand-in."""
    return ob if type(ob) in OWNED else Guarded(ob)


# ---------------------------------------------------------------------- refusals


def _check_spelling(ob: Any, name: Any) -> None:
    if type(name) is not str:
        raise TypeError(f"attribute name must be string, not '{type(name).__name__}'")
    if name[:1] == names.HOOK_PREFIX:
        raise AttributeError(f"{_describe(ob)} has no attribute {name!r}")


def _refuse_read(ob: Any, name: str) -> NoReturn:
    raise AttributeError(f"the attribute {name!r} of {_describe(ob)} cannot be read here")


def _describe(ob: Any) -> str:
    if isinstance(ob, FrozenModule):
        return f"module {module_name(ob)!r}"
    if isinstance(ob, type):
        return f"class {type.__getattribute__(ob, '__name__')!r}"
    return f"a {type(ob).__name__!r} object"


def _require_writable(ob: Any, name: str) -> None:
    if name in names.MACHINERY_NAMES:
        raise AttributeError(f"the attribute {name!r} is reserved")
    if is_program_object(ob) or is_program_function(ob):
        return
    kind = type(ob)
    if kind is types.SimpleNamespace or kind is decimal.Context:
        return
    if isinstance(ob, _FROZEN):
        raise AttributeError(  # noqa: TRY004  # what Python raises for an attribute it cannot set
            f"tool results are read-only and have keys, not attributes: copy = dict(value); "
            f"copy[{name!r}] = ..."
        )
    if kind in (dict, list, str, int, float, tuple, type(None), bool):
        raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}")
    raise AttributeError(f"{_describe(ob)} is read-only; attribute {name!r} cannot be set or deleted")


# ---------------------------------------------------------------------- public names


def _without_bypass(result: Any, name: str) -> Any:
    """Keep a C method from changing a frozen value past the method that refuses."""
    kind = type(result)
    if kind is types.MethodDescriptorType:

        def unbound(self: Any, /, *args: Any, **kwargs: Any) -> Any:
            if isinstance(self, _FROZEN):
                return getattr(self, name)(*args, **kwargs)
            return result(self, *args, **kwargs)

        unbound.__name__ = unbound.__qualname__ = name
        return unbound
    if kind is types.BuiltinMethodType and isinstance(result.__self__, _FROZEN):
        return getattr(result.__self__, name)
    return result


def _read_dynamic(ob: Any, name: str) -> Any:
    if name == "obj":
        if isinstance(ob, BaseException | memoryview) or ob is memoryview:
            _refuse_read(ob, name)
        result = getattr(ob, name)
        if isinstance(result, types.MemberDescriptorType) and issubclass(result.__objclass__, BaseException):
            # Under another name in a class of the program it would read natively.
            _refuse_read(ob, name)
        return result
    if name in names.DONE_CALLBACKS and isinstance(ob, asyncio.Future):
        return futures.callback_method(ob, name)
    result = getattr(ob, name)
    kind = type(result)
    if kind is types.MappingProxyType:
        return _detached(result)
    if kind is types.BuiltinMethodType and isinstance(result.__self__, str):
        return formatting.bound(result.__self__, name, read)
    if kind is types.MethodDescriptorType and result.__objclass__ is str:
        return formatting.unbound(name, read)
    return result


def _read_checked(ob: Any, name: str) -> Any:
    if name == "mro":
        if not isinstance(ob, type):
            result = getattr(ob, name)
            if isinstance(result, (*_UNBOUND, types.BuiltinMethodType)):
                _refuse_read(ob, name)
            return result
        if not is_program_class(ob):
            _refuse_read(ob, name)
        if any(name in class_dict(base) for base in ob.__mro__):
            return getattr(ob, name)
        return lambda: [expose_type(base) for base in ob.__mro__]
    if name == "register":
        result = getattr(ob, name)
        if getattr(result, "__func__", None) is ABCMeta.register:
            raise AttributeError("abstract classes have no register() here: inherit from the class instead")
        return result
    if name in names.ACCESSORS:
        result = getattr(ob, name)
        if type(result) is types.FunctionType and not is_program_function(result):
            _refuse_read(ob, name)
        return result
    if is_program_object(ob) or (name in ("send", "throw") and type(ob) is types.GeneratorType):
        return getattr(ob, name)
    if type(ob) is super and is_program_class(_super_class.__get__(ob)):
        return getattr(ob, name)
    if not hasattr(ob, name):
        return getattr(ob, name)
    return _refuse_read(ob, name)


# ---------------------------------------------------------------------- private names


def _read_private(ob: Any, name: str, *, literal: bool) -> Any:
    if isinstance(ob, FrozenModule) and name in members_of(ob):
        return getattr(ob, name)
    if isinstance(ob, type):
        owner, first, found = is_program_class(ob), ob, _find(ob.__mro__, name)
        if owner and found is None:
            raise AttributeError(f"type object {ob.__name__!r} has no attribute {name!r}")
    elif type(ob) is super:
        start = _super_class.__get__(ob)
        mro = _super_self_class.__get__(ob).__mro__
        found = _find(mro[mro.index(start) + 1 :], name)
        owner, first = is_program_class(start) and found is not None, start
    else:
        first = type(ob)
        owner, found = is_program_class(first), _find(first.__mro__, name)
    if owner and (found is None or is_program_class(found)) and not _set_by_machinery(first, name):
        return getattr(ob, name)
    if name in names.NAMED_TUPLE_NAMES and issubclass(first, tuple) and (literal or owner):
        return getattr(ob, name)
    if name in names.ENUM_NAMES and owner and issubclass(first, enum.Enum) and name in ("_value_", "_name_"):
        return getattr(ob, name)
    return _refuse_read(ob, name)


def _set_by_machinery(cls: type, name: str) -> bool:
    """Whether a metaclass of the standard library put `name` on a program's class for its own use."""
    if name in names.MACHINERY_NAMES:
        return True
    return isinstance(cls, enum.EnumMeta) and (names.looks_like_guard(name) or name in names.ENUM_NAMES)


def _find(mro: tuple[type, ...], name: str) -> type | None:
    for base in mro:
        if name in class_dict(base):
            return base
    return None


# ---------------------------------------------------------------------- dunder names


def _read_dunder(ob: Any, name: str) -> Any:
    if names.is_own_dunder(name):
        return getattr(ob, names.own_dunder(name))
    if name in names.TEXT_ATTRIBUTES:
        return _read_text(ob, name)
    special = _SPECIAL.get(name)
    if special is not None:
        return special(ob, name)
    return _read_method(ob, name)


def _read_method(ob: Any, name: str) -> Any:
    if name not in names.READABLE_ATTRIBUTES:
        _refuse_read(ob, name)
    if type(ob) is super:
        return _read_super(ob, name)
    if isinstance(ob, type):
        return _read_class_method(ob, name)
    found = _find(type(ob).__mro__, name)
    if is_program_instance(ob):
        return _callable_by_program(getattr(ob, name), name, found or type(ob))
    if found is None or name in _CLASS_HOOKS:
        # Found by forwarding (`list[int].__setitem__`), or more than an operator would do.
        _refuse_read(ob, name)
    # Equal to the operator or builtin that calls it.
    return getattr(ob, name)


def _read_text(ob: Any, name: str) -> Any:
    if isinstance(ob, FrozenModule):
        if name == "__name__":
            return module_name(ob)
        if name == "__doc__":
            return None
        _refuse_read(ob, name)
    result = getattr(ob, name)
    if result is not None and type(result) is not str:
        _refuse_read(ob, name)
    # A function made inside one of ours is called after the file it was written in.
    return "builtins" if name == "__module__" and str(result).startswith("sandbox.") else result


def _read_super(ob: Any, name: str) -> Any:
    start = _super_class.__get__(ob)
    mro = _super_self_class.__get__(ob).__mro__
    found = _find(mro[mro.index(start) + 1 :], name)
    return _callable_by_program(getattr(ob, name), name, found or start)


def _read_class_method(ob: type, name: str) -> Any:
    found = _find(ob.__mro__, name)
    if found is None:
        raise AttributeError(f"type object {ob.__name__!r} has no attribute {name!r}")
    return _callable_by_program(getattr(ob, name), name, found)


def _callable_by_program(result: Any, name: str, owner: type) -> Any:
    """Return a special method in the form in which a program may call it.

    A function of the program is returned as it is. Of any other, also one that a decorator of the standard
    library put into a class of the program, the receiver and the attribute names are checked.
    """
    kind = type(result)
    if is_program_function(result) or (kind is types.MethodType and is_program_function(result.__func__)):
        return result
    if name == "__new__":
        return _checked_new(result)
    if kind in (types.MethodWrapperType, types.BuiltinMethodType, types.MethodType):
        return _named_setter(result, name) if name in _SETTERS else result
    if kind is types.FunctionType:
        result = hardening.checked(result, owner)
    return _checked_unbound(result, name) if name in _CHANGING and callable(result) else result


def _checked_unbound(result: Any, name: str) -> Any:
    """Let a base's changing method act on the program's own objects and on plain containers only."""

    def changing(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        if not (is_program_instance(self) or (type(self) in _PLAIN_CONTAINERS and name not in _SETTERS)):
            raise TypeError(
                f"{name} can be called on objects of this program's classes, not on {_describe(self)}"
            )
        if name in _SETTERS:
            _check_settable(args)
        return result(self, *args, **kwargs)

    changing.__name__ = changing.__qualname__ = name
    return changing


def _named_setter(result: Any, name: str) -> Any:
    def setter(*args: Any) -> Any:
        _check_settable(args)
        return result(*args)

    setter.__name__ = setter.__qualname__ = name
    return setter


def _check_settable(args: tuple[Any, ...]) -> None:
    if args and (type(args[0]) is not str or names.is_dunder(args[0])):
        raise AttributeError(f"the attribute {args[0]!r} cannot be set; define it in the class body")


def _checked_new(result: Callable[..., Any]) -> Any:
    def new(cls: Any, /, *args: Any, **kwargs: Any) -> Any:
        if not (
            isinstance(cls, type)
            and (is_program_class(cls) or cls in (object, int, float, str, tuple, frozenset, bytes, complex))
        ):
            raise TypeError(
                "__new__ can create objects of this program's classes only; call the class itself"
            )
        return result(cls, *args, **kwargs)

    new.__name__ = new.__qualname__ = "__new__"
    return new


def _read_dict(ob: Any, name: str) -> Any:
    if isinstance(ob, type):
        if is_program_class(ob):
            return {
                key: value
                for key, value in class_dict(ob).items()
                if key[:1] != names.HOOK_PREFIX and not names.is_dunder(key)
            }
    elif type(ob) in OWNED or type(ob) is types.SimpleNamespace:
        return ob.__dict__
    elif is_program_instance(ob):
        return {key: value for key, value in ob.__dict__.items() if key[:1] != "_"}
    elif is_program_function(ob):
        return ob.__dict__
    return _refuse_read(ob, name)


def _read_annotations(ob: Any, name: str) -> Any:
    if is_program_object(ob) or is_program_function(ob):
        return dict(getattr(ob, name))
    return _refuse_read(ob, name)


def _read_of_function(ob: Any, name: str) -> Any:
    if is_program_function(ob):
        result = getattr(ob, name)
        return dict(result) if isinstance(result, dict) else result
    return _refuse_read(ob, name)


def _read_wrapped(ob: Any, name: str) -> Any:
    if is_program_function(ob):
        return getattr(ob, name)
    return _refuse_read(ob, name)


def _read_members(ob: Any, name: str) -> Any:
    if isinstance(ob, enum.EnumMeta):
        return _detached(getattr(ob, name))
    return _refuse_read(ob, name)


def _detached(view: Any) -> types.MappingProxyType[Any, Any]:
    """Return a view of a copy: a view hands what it shows to the other operand's reflected operators."""
    return types.MappingProxyType(dict(view))


def _read_dir(ob: Any, name: str) -> Any:
    result = _read_method(ob, name)
    if is_program_function(getattr(result, "__func__", result)):
        return result

    def listing(*args: Any) -> list[str]:
        shown = args[0] if args else ob
        private = is_program_object(shown) or type(shown) is super
        return [
            item
            for item in result(*args)
            if type(item) is str and item[:1] != names.HOOK_PREFIX and (private or item[:1] != "_")
        ]

    listing.__name__ = listing.__qualname__ = name
    return listing


def _read_notes(ob: Any, name: str) -> Any:
    if isinstance(ob, BaseException):
        return list(getattr(ob, name))
    return _refuse_read(ob, name)


def _read_bases(ob: Any, name: str) -> Any:
    if isinstance(ob, type) and is_program_class(ob):
        return tuple(expose_type(base) for base in getattr(ob, name))
    return _refuse_read(ob, name)


def _read_version(ob: Any, name: str) -> Any:
    if isinstance(ob, FrozenModule) or is_program_object(ob):
        return getattr(ob, name)
    return _refuse_read(ob, name)


_SPECIAL: dict[str, Callable[[Any, str], Any]] = {
    "__dict__": _read_dict,
    "__dir__": _read_dir,
    "__annotations__": _read_annotations,
    "__wrapped__": _read_wrapped,
    "__members__": _read_members,
    "__notes__": _read_notes,
    "__defaults__": _read_of_function,
    "__kwdefaults__": _read_of_function,
    "__mro__": _read_bases,
    "__bases__": _read_bases,
    "__version__": _read_version,
}
