"""`functools` and `operator`; helpers that take attribute names or write to arguments are replaced.

Knows: those two modules. Does not know: the attribute rules (the guards have them).
"""

from __future__ import annotations

import functools
import operator
import types
from typing import TYPE_CHECKING, Any

from sandbox.facades.appearance import renamed
from sandbox.guards.attributes import MISSING, read
from sandbox.guards.ownership import is_program_class, is_program_function, is_program_instance

if TYPE_CHECKING:
    from collections.abc import Callable

_COPIED = ("__module__", "__name__", "__qualname__", "__doc__")

_OPERATOR_NAMES = (
    "abs add and_ call concat contains countOf delitem eq floordiv ge getitem gt iadd iand iconcat "
    "ifloordiv ilshift imatmul imod "
    "imul index indexOf inv invert ior ipow irshift is_ is_not isub itemgetter itruediv ixor le "
    "length_hint lshift lt matmul mod "
    "mul ne neg not_ or_ pos pow rshift setitem sub truediv truth xor"
)


class _AttributeGetter:
    """`operator.attrgetter` with every part of every name read through the guard."""

    __slots__ = ("_paths",)

    def __init__(self, attr: str, /, *attrs: str) -> None:
        for name in (attr, *attrs):
            if type(name) is not str:
                raise TypeError("attribute name must be a string")
        self._paths = tuple(name.split(".") for name in (attr, *attrs))

    def __call__(self, obj: Any, /) -> Any:
        values = tuple(_follow(obj, path) for path in self._paths)
        return values[0] if len(values) == 1 else values

    def __repr__(self) -> str:
        return f"operator.attrgetter({', '.join(repr('.'.join(path)) for path in self._paths)})"


def _follow(value: Any, path: list[str]) -> Any:
    for name in path:
        value = read(value, name, literal=False)
    return value


class _MethodCaller:
    """`operator.methodcaller` with the method read through the guard."""

    __slots__ = ("_args", "_kwargs", "_name")

    def __init__(self, name: str, /, *args: Any, **kwargs: Any) -> None:
        if type(name) is not str:
            raise TypeError("method name must be a string")
        self._name, self._args, self._kwargs = name, args, kwargs

    def __call__(self, obj: Any, /) -> Any:
        return read(obj, self._name, literal=False)(*self._args, **self._kwargs)

    def __repr__(self) -> str:
        return f"operator.methodcaller({self._name!r})"


def attrgetter(attr: str, /, *attrs: str) -> Callable[[Any], Any]:
    """Return a callable that reads the attributes."""
    return _AttributeGetter(attr, *attrs)


def methodcaller(name: str, /, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """Return a callable that calls the method."""
    return _MethodCaller(name, *args, **kwargs)


def update_wrapper(wrapper: Any, wrapped: Any) -> Any:
    """Make a wrapper function of the program look like what it wraps."""
    if is_program_function(wrapper) or is_program_instance(wrapper):
        for name in _COPIED:
            try:
                value = read(wrapped, name)
            except AttributeError:
                continue
            if value is not None:
                setattr(wrapper, name, value)
        if is_program_function(wrapped):
            wrapper.__dict__.update(wrapped.__dict__)
            if is_program_function(wrapper):
                wrapper.__annotations__ = dict(wrapped.__annotations__)
        if is_program_function(wrapper):
            wrapper.__wrapped__ = wrapped
    return wrapper


def wraps(wrapped: Any) -> Callable[[Any], Any]:
    """Return a decorator that makes the wrapper look like `wrapped`."""
    return lambda wrapper: update_wrapper(wrapper, wrapped)


def total_ordering(cls: Any) -> Any:
    """Fill in the missing comparison methods of a class of the program."""
    if not (isinstance(cls, type) and is_program_class(cls)):
        raise TypeError("total_ordering decorates classes of the program")
    return functools.total_ordering(cls)


class _SingleDispatch:
    """`functools.singledispatch`, with the type to dispatch on given as a class, never as text."""

    __slots__ = ("__name__", "_dispatcher", "_function")

    def __init__(self, function: Any) -> None:
        self._function = function
        self._dispatcher = functools.singledispatch(function)
        self.__name__ = read(function, "__name__")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._dispatcher(*args, **kwargs)

    def register(self, cls: Any, func: Any = None) -> Any:
        """Register an implementation: by class, by class and function, or by an annotated function."""
        if func is not None:
            return self._dispatcher.register(_dispatch_class(cls), func)
        if not is_program_function(cls):
            target = _dispatch_class(cls)
            return lambda function: self._dispatcher.register(target, function)
        annotations = [value for name, value in cls.__annotations__.items() if name != "return"]
        if not annotations:
            raise TypeError(
                "register needs a type: write @function.register(int), or annotate the first parameter"
            )
        self._dispatcher.register(_dispatch_class(annotations[0]), cls)
        return cls

    def dispatch(self, cls: Any) -> Any:
        """Return the implementation that a class would get."""
        return self._dispatcher.dispatch(cls)

    @property
    def registry(self) -> Any:
        """The registered implementations by class."""
        return types.MappingProxyType(dict(self._dispatcher.registry))

    def __get__(self, obj: Any, cls: Any = None) -> Any:
        return self if obj is None else types.MethodType(self, obj)

    def __repr__(self) -> str:
        return f"<function {self.__name__}>"


def _dispatch_class(cls: Any) -> Any:
    if isinstance(cls, str):
        known = {
            kind.__name__: kind
            for kind in (int, float, str, list, dict, set, tuple, bool, bytes, complex, frozenset, object)
        }
        if cls in known:
            return known[cls]
        raise TypeError(f"the annotation {cls!r} is text; write @function.register({cls})")
    if isinstance(cls, types.UnionType):
        return cls
    if not isinstance(cls, type):
        raise TypeError(f"register needs a class, not {type(cls).__name__!r}")
    return cls


def singledispatch(func: Any) -> Any:
    """Return a function that chooses its implementation by the type of the first argument."""
    return _SingleDispatch(func)


class _SingleDispatchMethod:
    """`functools.singledispatchmethod` on top of the checked dispatcher."""

    __slots__ = ("_dispatch",)

    def __init__(self, func: Any) -> None:
        self._dispatch = _SingleDispatch(func)

    def register(self, cls: Any, method: Any = None) -> Any:
        """Register an implementation, as on a single-dispatch function."""
        return self._dispatch.register(cls, method)

    def __get__(self, obj: Any, cls: Any = None) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            if not args:
                raise TypeError("a single-dispatch method needs an argument to dispatch on")
            method = self._dispatch.dispatch(type(args[0]))
            return method.__get__(obj, cls)(*args, **kwargs)

        return call


renamed(
    {
        _AttributeGetter: "attrgetter",
        _MethodCaller: "methodcaller",
        _SingleDispatch: "function",
        _SingleDispatchMethod: "singledispatchmethod",
    }
)


def singledispatchmethod(func: Any) -> Any:
    """Return a method that chooses its implementation by the type of its first argument."""
    return _SingleDispatchMethod(func)


def functools_members() -> dict[str, object]:
    """Return what `import functools` offers."""
    return {
        "cache": functools.cache,
        "cached_property": functools.cached_property,
        "cmp_to_key": functools.cmp_to_key,
        "lru_cache": functools.lru_cache,
        "partial": functools.partial,
        "partialmethod": functools.partialmethod,
        "reduce": functools.reduce,
        "singledispatch": singledispatch,
        "singledispatchmethod": singledispatchmethod,
        "total_ordering": total_ordering,
        "update_wrapper": update_wrapper,
        "wraps": wraps,
    }


def operator_members() -> dict[str, object]:
    """Return what `import operator` offers."""
    members: dict[str, object] = {name: getattr(operator, name) for name in _OPERATOR_NAMES.split()}
    return {**members, "attrgetter": attrgetter, "methodcaller": methodcaller}


def guarded_getattr(ob: Any, name: Any, default: Any = MISSING, /) -> Any:
    """`getattr` for programs."""
    try:
        return read(ob, name, literal=False)
    except AttributeError:
        if default is MISSING:
            raise
        return default
