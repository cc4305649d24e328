"""`dataclasses`: the decorator and its helpers, for classes of the program.

Knows: dataclasses. Does not know: the attribute rules.

The standard library writes the text of `__init__` from field names and executes it, so field names are
checked here once more before it gets them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import keyword
import re
import typing
from typing import TYPE_CHECKING, Any

from sandbox.facades.containers import deep_copy
from sandbox.guards.attributes import read
from sandbox.guards.ownership import adopt, class_dict, is_program_class, mark_class
from sandbox.policy import names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


def _check_fields(cls: type) -> None:
    annotations = class_dict(cls).get("__annotations__")
    for name in annotations if isinstance(annotations, dict) else ():
        _check_field_name(name)
        _check_inherited(cls, name)


def _check_inherited(cls: type, name: str) -> None:
    """Refuse a field that would make trusted code read a guarded attribute of a foreign base.

    The decorator takes what the class has under a field's name for the default, and the generated methods
    read it from instances, both without a guard.
    """
    guarded = name in names.GUARDED_PUBLIC or names.is_private(name) or names.is_inspection_like(name)
    metaclass: Any = type(cls)
    lookups: tuple[type, ...] = (*cls.__mro__, *metaclass.__mro__)
    if guarded and any(not is_program_class(base) and name in class_dict(base) for base in lookups):
        raise TypeError(f"a field of {cls.__name__!r} cannot be called {name!r}: a base class uses that name")


def _check_field_name(name: Any) -> None:
    if type(name) is not str or not name.isidentifier() or keyword.iskeyword(name):
        raise TypeError(f"field names must be identifiers, not {name!r}")
    if names.is_dunder(name) or names.looks_like_guard(name):
        raise TypeError(f"a field cannot be called {name!r}")


def _finish(cls: type) -> type:
    """Keep positional patterns away from names a native read must not touch."""
    args = class_dict(cls).get("__match_args__")
    if isinstance(args, tuple) and any(
        arg[:1] == "_" or arg in names.GUARDED_PUBLIC or names.is_inspection_like(arg) for arg in args
    ):
        type.__setattr__(cls, "__match_args__", ())
    adopt(cls)
    return cls


_FIRST_NAMES = re.compile(r"\s*(?:\w+\s*\.\s*)?(\w+)")
_SPECIAL: dict[str, Any] = {
    "ClassVar": typing.ClassVar, "InitVar": dataclasses.InitVar, "KW_ONLY": dataclasses.KW_ONLY
}  # fmt: skip


@contextlib.contextmanager
def _special_annotations(cls: type) -> Iterator[None]:
    """Show the decorator what is not a field although its annotation is text.

    It would look the names in the text up in the module of the class, which is none.
    """
    annotations: Any = class_dict(cls).get("__annotations__")
    texts: dict[str, str] = {}
    for name, text in annotations.items() if isinstance(annotations, dict) else ():
        match = _FIRST_NAMES.match(text) if type(text) is str else None
        if match and match[1] in _SPECIAL:
            texts[name] = text
            annotations[name] = _SPECIAL[match[1]]
    try:
        yield
    finally:
        annotations = annotations if texts else {}
        annotations.update(texts)
        found: Any = class_dict(cls).get("__dataclass_fields__", {})
        for name in texts.keys() & found.keys():
            found[name].type = texts[name]


def dataclass(cls: Any = None, /, **options: Any) -> Any:
    """Give a class `__init__`, `__repr__` and comparison made from its annotated fields."""

    def decorate(target: Any) -> type:
        if not (isinstance(target, type) and is_program_class(target)):
            raise TypeError("dataclass decorates classes of the program")
        _check_fields(target)
        with _special_annotations(target):
            made: type = dataclasses.dataclass(**options)(target)
        return _finish(made)

    return decorate if cls is None else decorate(cls)


def make_dataclass(
    cls_name: str, fields: Iterable[Any], *, bases: tuple[type, ...] = (), **options: Any
) -> type:
    """Create a data class from a list of names, (name, type) or (name, type, field)."""
    if "namespace" in options:
        raise TypeError("make_dataclass takes no namespace here; write a class statement with the methods")
    candidates: tuple[Any, ...] = bases
    if not all(isinstance(base, type) and is_program_class(base) for base in candidates):
        raise TypeError("the bases of a data class must be classes of the program")
    options.pop("module", None)
    listed: list[tuple[Any, ...]] = [(item,) if isinstance(item, str) else tuple(item) for item in fields]
    for item in listed:
        _check_field_name(item[0])
        for base in (object, *bases):
            _check_inherited(base, item[0])
    cls = dataclasses.make_dataclass(
        cls_name, [item[0] if len(item) == 1 else item for item in listed], bases=bases, **options
    )
    type.__setattr__(cls, "__module__", "__main__")
    mark_class(cls)
    return _finish(cls)


def _fields_of(obj: Any, function: str) -> tuple[dataclasses.Field[Any], ...]:
    if isinstance(obj, type) or not is_program_class(type(obj)) or not dataclasses.is_dataclass(obj):
        raise TypeError(f"{function}() should be called on dataclass instances")
    # Of the class: an instance may hold something else under the same name.
    kind: Any = type(obj)
    return dataclasses.fields(kind)


def asdict(obj: Any, *, dict_factory: Callable[..., Any] = dict) -> Any:
    """Return the fields as a dict, recursing into data classes, lists, tuples and dicts."""
    return dict_factory(
        [
            (
                field.name,
                _convert(read(obj, field.name), lambda part: asdict(part, dict_factory=dict_factory)),
            )
            for field in _fields_of(obj, "asdict")
        ]
    )


def astuple(obj: Any, *, tuple_factory: Callable[..., Any] = tuple) -> Any:
    """Return the fields as a tuple, recursing into data classes, lists, tuples and dicts."""
    return tuple_factory(
        [
            _convert(read(obj, field.name), lambda part: astuple(part, tuple_factory=tuple_factory))
            for field in _fields_of(obj, "astuple")
        ]
    )


def _convert(value: Any, nested: Callable[[Any], Any]) -> Any:
    if not isinstance(value, type) and dataclasses.is_dataclass(value):
        return nested(value)
    kind: type = type(value)
    content: Any = value
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return tuple.__new__(kind, [_convert(item, nested) for item in tuple.__iter__(value)])
    if kind in (list, tuple):
        items: list[Any] = [_convert(item, nested) for item in content]
        return items if kind is list else tuple(items)
    if kind is dict:
        return {_convert(key, nested): _convert(item, nested) for key, item in content.items()}
    return deep_copy(value)


def replace(obj: Any, /, **changes: Any) -> Any:
    """Return a copy with some fields changed."""
    for field in _fields_of(obj, "replace"):
        if not field.init:
            if field.name in changes:
                raise TypeError(
                    f"field {field.name} is declared with init=False, it cannot be specified with replace()"
                )
        elif field.name not in changes:
            changes[field.name] = read(obj, field.name)
    return type(obj)(**changes)


def dataclasses_members() -> dict[str, object]:
    """Return what `import dataclasses` offers."""
    return {
        "FrozenInstanceError": dataclasses.FrozenInstanceError,
        "Field": dataclasses.Field,
        "InitVar": dataclasses.InitVar,
        "KW_ONLY": dataclasses.KW_ONLY,
        "MISSING": dataclasses.MISSING,
        "asdict": asdict,
        "astuple": astuple,
        "dataclass": dataclass,
        "field": dataclasses.field,
        "fields": dataclasses.fields,
        "is_dataclass": dataclasses.is_dataclass,
        "make_dataclass": make_dataclass,
        "replace": replace,
    }
