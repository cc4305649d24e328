"""Creation of the program's classes.

Knows: which bases are open, what a class body may define. Does not know: attribute access.
"""

from __future__ import annotations

import types
import typing
from abc import ABCMeta
from typing import Any

from sandbox.facades.futures import CheckedSteps
from sandbox.facades.protocols import CheckedProtocolType
from sandbox.guards.exposure import PUBLISHED, type_stand_in
from sandbox.guards.ownership import adopt, is_program_class, is_program_function, mark_namespace
from sandbox.policy import names

if typing.TYPE_CHECKING:
    from collections.abc import Mapping

_ProtocolType: type = type(typing.Protocol)

OPEN_BASES: set[type] = set()
"""Foreign classes a program may inherit from. Filled when the builtins and facades are built."""


def open_class(cls: type) -> None:
    """Let the program hold and extend a class that the library made for it."""
    OPEN_BASES.add(cls)
    PUBLISHED.add(cls)


class ClassBuilder:
    """Stands where a class statement names its metaclass, and calls the real one.

    Args:
        floor: The least derived metaclass to use; `ABCMeta` for `metaclass=ABCMeta`.
    """

    __slots__ = ("_floor",)

    def __init__(self, floor: type[type]) -> None:
        self._floor = floor

    def _metaclass(self, name: str, bases: tuple[Any, ...]) -> Any:
        winner: type[type] = self._floor
        for base in bases:
            kind = type(base)
            if base is type_stand_in or (isinstance(base, type) and issubclass(base, type)):
                raise TypeError(
                    f"class {name!r}: metaclasses are not part of the language; use __init_subclass__ or "
                    "a decorator"
                )
            if not isinstance(base, type) or not (is_program_class(base) or base in OPEN_BASES):
                shown = base.__name__ if isinstance(base, type) else kind.__name__
                raise TypeError(
                    f"class {name!r} cannot inherit from {shown!r} here; keep an object of it in an "
                    "attribute instead"
                )
            if issubclass(winner, kind):
                continue
            if not issubclass(kind, winner):
                raise TypeError(f"class {name!r}: its bases cannot be combined (their metaclasses conflict)")
            winner = kind
        return CheckedProtocolType if winner is _ProtocolType else winner

    def __prepare__(self, name: str, bases: tuple[Any, ...], /, **keywords: Any) -> Mapping[str, object]:
        """Return the namespace the real metaclass wants."""
        namespace: Mapping[str, object] = self._metaclass(name, bases).__prepare__(name, bases, **keywords)
        return namespace

    def __call__(
        self, name: str, bases: tuple[Any, ...], namespace: dict[str, Any], /, **keywords: Any
    ) -> type:
        """Create the class."""
        _check_namespace(name, namespace)
        mark_namespace(namespace)
        cls: type = self._metaclass(name, bases)(name, bases, namespace, **keywords)
        adopt(cls)
        return cls


def _check_namespace(name: str, namespace: dict[str, Any]) -> None:
    for key in namespace:
        # The policy has checked every name; these two are set by the interpreter, the rest is a second look.
        if (
            names.is_dunder(key)
            and key not in names.DEFINABLE_METHODS
            and key not in _SET_BY_INTERPRETER
            and key not in names.MODULE_STYLE_NAMES
        ):
            raise TypeError(f"class {name!r} cannot define {key!r}")
    if "__slots__" in namespace:
        dict.__setitem__(namespace, "__slots__", _checked_names(name, "__slots__", namespace["__slots__"]))
    if "__match_args__" in namespace:
        wanted = _checked_names(name, "__match_args__", namespace["__match_args__"])
        for attr in wanted:
            if attr[:1] == "_" or attr in names.GUARDED_PUBLIC or names.is_inspection_like(attr):
                raise TypeError(f"class {name!r}: __match_args__ cannot name {attr!r}")
        dict.__setitem__(namespace, "__match_args__", wanted)
    if "__class_getitem__" in namespace:
        function = namespace["__class_getitem__"]
        if not is_program_function(function.__func__ if type(function) is classmethod else function):
            raise TypeError("__class_getitem__ must be defined with def")
    if "__getattr__" in namespace:
        dict.__setitem__(namespace, "__getattr__", getattr_method(namespace["__getattr__"]))
    if "__await__" in namespace:
        dict.__setitem__(namespace, "__await__", await_method(namespace["__await__"]))


_SET_BY_INTERPRETER = frozenset(
    {
        "__module__", "__qualname__", "__annotations__", "__orig_bases__", "__classcell__", "__type_params__",
        "__firstlineno__", "__static_attributes__", "__classdict__", "__classdictcell__", "__annotate__",
        "__conditional_annotations__",
    }
)  # fmt: skip
"""Names the interpreter itself puts into a class namespace."""


_ALLOWED_SLOTS = (("__slots__", "__weakref__"),)


def _checked_names(cls: str, what: str, value: Any) -> tuple[str, ...]:
    items = (value,) if type(value) is str else tuple(value)
    for item in items:
        if type(item) is not str or (names.is_dunder(item) and (what, item) not in _ALLOWED_SLOTS):
            raise TypeError(f"class {cls!r}: {what} holds plain attribute names, not {item!r}")
    return items


def getattr_method(function: Any) -> Any:
    """Wrap a program's `__getattr__` so that it is asked for ordinary names only.

    Trusted code probes objects for protocols (`__deepcopy__`, `__dataclass_fields__`); an object that
    answers every name would claim them all.
    """
    if type(function) is not types.FunctionType:
        raise TypeError("__getattr__ must be defined with def")

    def __getattr__(self: Any, name: str) -> Any:  # noqa: N807  # it becomes that method
        if names.is_dunder(name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return function(self, name)

    __getattr__.__qualname__ = function.__qualname__
    __getattr__.__doc__ = function.__doc__
    return __getattr__


def await_method(function: Any) -> Any:
    """Wrap a program's `__await__` so that it yields to the event loop only what the loop may trust."""
    if type(function) is not types.FunctionType:
        raise TypeError("__await__ must be defined with def")

    def __await__(self: Any) -> Any:  # noqa: N807  # it becomes that method
        return CheckedSteps(function(self))

    __await__.__qualname__ = function.__qualname__
    __await__.__doc__ = function.__doc__
    return __await__


plain_builder = ClassBuilder(type)
abstract_builder = ClassBuilder(ABCMeta)
