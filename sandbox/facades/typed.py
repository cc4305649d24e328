"""`typing`, `types` and `abc`: names for annotations and bases, nothing that evaluates text.

Knows: those modules. Does not know: the attribute rules.
"""

from __future__ import annotations

import abc
import types
import typing
from typing import Any

from sandbox.facades.appearance import renamed
from sandbox.facades.exact import exact
from sandbox.facades.protocols import runtime_checkable
from sandbox.guards.classes import open_class
from sandbox.guards.exposure import expose_type, stand_in

_TYPING = (
    "AbstractSet Annotated Any AnyStr AsyncContextManager AsyncGenerator AsyncIterable AsyncIterator "
    "Awaitable BinaryIO ByteString "
    "Callable ChainMap ClassVar Collection Concatenate Container ContextManager Coroutine Counter "
    "DefaultDict Deque Dict Final "
    "FrozenSet Generator Generic Hashable IO ItemsView Iterable Iterator KeysView List Literal "
    "LiteralString Mapping MappingView "
    "Match MutableMapping MutableSequence MutableSet NamedTuple Never NewType NoReturn NotRequired "
    "Optional OrderedDict ParamSpec "
    "ParamSpecArgs ParamSpecKwargs Pattern Protocol ReadOnly Required Reversible Self Sequence Set Sized "
    "SupportsAbs SupportsBytes "
    "SupportsComplex SupportsFloat SupportsIndex SupportsInt SupportsRound Text TextIO Tuple Type "
    "TypeAlias TypeAliasType TypeGuard "
    "TypeIs TypeVar TypeVarTuple TypedDict Union Unpack ValuesView assert_never assert_type cast "
    "dataclass_transform final "
    "get_args get_origin is_typeddict no_type_check overload override"
)


class _AbstractMeta:
    """What the name `ABCMeta` means: the policy understands `metaclass=ABCMeta`, and that is all."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<class 'abc.ABCMeta'>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("write a class statement with the base abc.ABC to create an abstract class")


class NamedTupleEntry:
    """`typing.NamedTuple`: a base in a class statement, or called for a class of the program's own."""

    __slots__ = ()

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        del bases
        return NAMED_TUPLE_BASES

    def __call__(self, typename: Any, fields: Any = (), /, **named: Any) -> type:
        """Create a named tuple class."""
        # The library writes code from the names.
        listed = [(exact(name), kind) for name, kind in fields] or list(named.items())
        if not all(type(name) is str for name, _ in listed):
            raise TypeError("field names must be strings")
        created: type = typing.NamedTuple(exact(typename), listed)  # type: ignore[misc]  # not a literal
        type.__setattr__(created, "__module__", "__main__")
        open_class(created)
        return created

    def __repr__(self) -> str:
        return "<function NamedTuple>"


_NAMED_TUPLE: Any = typing.NamedTuple
NAMED_TUPLE_BASES: tuple[type, ...] = _NAMED_TUPLE.__mro_entries__((_NAMED_TUPLE,))
"""The hidden class that `class X(NamedTuple)` really inherits from."""

renamed({_AbstractMeta: "ABCMeta", NamedTupleEntry: "function"})


def typing_members() -> dict[str, object]:
    """Return what `import typing` offers."""
    members: dict[str, object] = {
        name: getattr(typing, name) for name in _TYPING.split() if hasattr(typing, name)
    }
    # These write marks on whatever they are given.
    marks = ("final", "no_type_check", "overload", "override")
    members.update({name: _unmarked for name in marks if name in members})
    return {
        **members,
        "TYPE_CHECKING": False,
        "dataclass_transform": _dataclass_transform,
        "get_origin": get_origin,
        "runtime_checkable": runtime_checkable,
        "NamedTuple": NamedTupleEntry(),
    }


def _unmarked(arg: Any) -> Any:
    return arg


def _dataclass_transform(**options: Any) -> Any:
    del options
    return _unmarked


def get_origin(tp: Any) -> Any:
    """Return the class behind a generic alias, as programs know it."""
    origin = typing.get_origin(tp)
    return expose_type(origin) if isinstance(origin, type) else origin


def types_members() -> dict[str, object]:
    """Return what `import types` offers: a plain namespace, and names for isinstance."""
    members: dict[str, object] = {
        "SimpleNamespace": types.SimpleNamespace,
        "MappingProxyType": types.MappingProxyType,
    }
    named = (
        "AsyncGeneratorType BuiltinFunctionType BuiltinMethodType CoroutineType FunctionType "
        "GeneratorType LambdaType MethodType "
        "ModuleType TracebackType FrameType CodeType"
    )
    for name in named.split():
        members[name] = stand_in(getattr(types, name))
    members["NoneType"] = types.NoneType
    members["EllipsisType"] = types.EllipsisType
    members["NotImplementedType"] = types.NotImplementedType
    members["UnionType"] = stand_in(types.UnionType)
    members["GenericAlias"] = stand_in(types.GenericAlias)
    return members


def abc_members() -> dict[str, object]:
    """Return what `import abc` offers."""
    return {
        "ABC": abc.ABC,
        "ABCMeta": _AbstractMeta(),
        "abstractclassmethod": abc.abstractclassmethod,
        "abstractmethod": abc.abstractmethod,
        "abstractproperty": abc.abstractproperty,
        "abstractstaticmethod": abc.abstractstaticmethod,
    }
