"""What a refusal says: the plain words and the way out, for every kind of refused construct and name.

Knows: text. Does not know: trees.
"""

from __future__ import annotations

from sandbox.policy import names

Problem = tuple[str, str | None]
"""What was refused, and what to write instead."""

METACLASS: Problem = (
    "metaclasses are not part of the language",
    "use __init_subclass__, a class decorator, or abc.ABC as a base",
)

CLASS_SUBSCRIPT: Problem = (
    "__class_getitem__ cannot be assigned",
    "write def __class_getitem__(cls, item): ...",
)

_CONSTRUCTS: dict[str, Problem] = {
    "TryStar": (
        "'except*' is not part of the language",
        "catch ExceptionGroup with 'except' and loop over its .exceptions",
    ),
    "TemplateStr": ("template strings are not part of the language", "use an f-string"),
    "Interpolation": ("template strings are not part of the language", "use an f-string"),
}

_DUNDER_HINTS: dict[str, str] = {
    "__class__": "use type(obj), or type(obj).__name__ for the name",
    "__bases__": "use isinstance() or issubclass()",
    "__base__": "use isinstance() or issubclass()",
    "__mro__": "use isinstance() or issubclass()",
    "__subclasses__": "keep a list of the classes, filled by __init_subclass__ or a decorator",
    "__dict__": "read the attributes by name, or dataclasses.asdict(obj)",
    "__traceback__": "print the exception itself, or type(e).__name__",
    "__cause__": "keep the first exception in a variable or attribute of your own",
    "__context__": "keep the first exception in a variable or attribute of your own",
    "__code__": "functions cannot be inspected; keep what you need in a variable",
    "__globals__": "functions cannot be inspected; keep what you need in a variable",
    "__closure__": "functions cannot be inspected; keep what you need in a variable",
    "__self__": "keep the object in a variable",
    "__func__": "call the method on its object",
    "__builtins__": "call the builtin by its name",
    "__import__": "use an import statement",
    "__loader__": "use an import statement",
    "__spec__": "use an import statement",
}


def construct(kind: str) -> Problem:
    """Problem text for a syntax node type that is not part of the language."""
    return _CONSTRUCTS.get(kind) or ("this construct is not part of the language", None)


def binding(name: str) -> Problem | None:
    """Problem of binding `name` (assigning it, or naming a function, class, parameter or import so)."""
    if name[:1] != "_":
        if name == "super":
            return ('"super" cannot be rebound: methods depend on it', "choose another name")
        return None
    if names.looks_like_guard(name) or name in names.MACHINERY_NAMES:
        return (f'the name "{name}" is reserved', f'drop an underscore: "{name.rstrip("_")}"')
    if names.is_dunder(name) and name not in names.DEFINABLE_METHODS and name not in names.MODULE_STYLE_NAMES:
        if name == "__name__":
            return ('"__name__" can be read, not assigned', "use a variable of your own")
        return (
            f'the name "{name}" cannot be defined here',
            _DUNDER_HINTS.get(name, "choose a name without the double underscores"),
        )
    return None


def reading(name: str) -> Problem | None:
    """Problem of reading a variable called `name`."""
    if names.looks_like_guard(name):
        return (f'the name "{name}" is reserved', f'drop an underscore: "{name.rstrip("_")}"')
    if names.is_dunder(name) and name not in names.READABLE_NAMES:
        return (f'the name "{name}" is not available', _DUNDER_HINTS.get(name))
    return None


def dunder_attribute(attr: str) -> Problem:
    """Problem of reading the dunder attribute `attr`."""
    return (f'the attribute "{attr}" cannot be read', _DUNDER_HINTS.get(attr))


def stored_dunder(attr: str) -> Problem:
    """Problem of assigning or deleting the dunder attribute `attr`."""
    return (f'the attribute "{attr}" cannot be set or deleted', "define it in the class body")


def frame_attribute(attr: str) -> Problem:
    """Problem of reading an attribute of frames, tracebacks and suspended functions."""
    return (f'the attribute "{attr}" cannot be read: frames and code are not visible to programs', None)
