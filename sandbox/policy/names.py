"""The vocabulary of names: which ones a program may bind, which attributes it may read, and how.

Knows: name strings. Does not know: syntax trees, objects. Both the policy (compile time) and the guards
(run time) decide from these tables, so that a name written in the source and the same name in a string meet
one rule.
"""

from __future__ import annotations

from RestrictedPython.transformer import INSPECT_ATTRIBUTES

HOOK_PREFIX = ":"
"""First character of every name the policy itself adds to a program. No source text can spell such a name,
so no binding position can shadow a guard, whatever construct a later Python adds."""

ENTRY_NAME = "<module>"
"""Name of the coroutine function a program becomes; what a traceback shows for the program's own level."""

FRAME_ATTRIBUTES = frozenset(INSPECT_ATTRIBUTES) | {
    "f_trace_lines",
    "f_trace_opcodes",
    "gi_suspended",
    "cr_suspended",
}
"""Attributes of frames, tracebacks, code objects and suspended functions. Refused wherever they are
written."""

INSPECTION_PREFIXES = ("tb_", "f_", "co_", "gi_", "cr_", "ag_")
"""Any other attribute that starts so is read through a guard, which refuses it on interpreter objects."""

MUTATORS = frozenset(
    {
        "append",
        "extend",
        "insert",
        "remove",
        "pop",
        "clear",
        "sort",
        "reverse",
        "update",
        "setdefault",
        "popitem",
        "move_to_end",
    }
)
"""Methods of list, dict and OrderedDict that change the receiver. Taken from the class instead of the
object they would change a frozen value as well, since C code writes past an overriding method."""

LOOP_INTERNALS = frozenset({"get_loop", "get_coro", "get_stack", "print_stack", "get_context"})
"""Methods of asyncio tasks and futures that lead to the event loop, to frames or to host state."""

ACCESSORS = frozenset({"fget", "fset", "fdel"})
"""The functions behind a property; of a property of the standard library they are functions without a
receiver check."""

RECEIVER_CHECKED = LOOP_INTERNALS | ACCESSORS | {"send", "throw", "register", "mro"}
"""Public attributes that are dangerous on some objects of the interpreter and ordinary on objects of a
program."""

DONE_CALLBACKS = frozenset({"add_done_callback", "remove_done_callback"})
"""Methods of asyncio futures through which a program could meet callbacks that are not its own."""

ALWAYS_DYNAMIC = DONE_CALLBACKS | {"format", "format_map", "groupindex", "obj"}
"""Public attributes whose *result* decides: a str subclass of the program still has the C `format`."""

GUARDED_PUBLIC = MUTATORS | RECEIVER_CHECKED | ALWAYS_DYNAMIC

ENUM_NAMES = frozenset(
    {
        "_missing_",
        "_generate_next_value_",
        "_ignore_",
        "_order_",
        "_value_",
        "_name_",
        "_value2member_map_",
        "_member_map_",
        "_member_names_",
    }
)
"""Documented single-underscore names of enum bodies; they look like guard names and are not."""

MACHINERY_NAMES = frozenset({"_abc_impl", "_is_protocol", "_is_runtime_protocol", "_paramspec_tvars"})
"""Private names by which `abc` and `typing` keep state on the classes they make; a program neither sets nor
reads them."""

NAMED_TUPLE_NAMES = frozenset({"_fields", "_asdict", "_replace", "_make", "_field_defaults"})
"""Documented leading-underscore attributes of named tuples."""

DEFINABLE_METHODS = frozenset(
    f"__{name}__"
    for line in (
        # Life of an object.
        "init new del post_init repr str bytes format hash bool sizeof dir doc",
        # Comparison.
        "lt le eq ne gt ge",
        # Attributes. `__getattribute__` and `__class__` are left out: they would let an object lie about
        # its type.
        "getattr setattr delattr get set delete set_name slots match_args",
        # Classes. Hooks that answer for *other* objects (instancecheck, subclasshook, mro_entries) are left
        # out.
        "init_subclass class_getitem",
        # Calls and containers.
        "call len length_hint getitem setitem delitem missing iter next reversed contains",
        # Numbers.
        "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and xor or",
        "radd rsub rmul rmatmul rtruediv rfloordiv rmod rdivmod rpow rlshift rrshift rand rxor ror",
        "iadd isub imul imatmul itruediv ifloordiv imod ipow ilshift irshift iand ixor ior",
        "neg pos abs invert complex int float index round trunc floor ceil",
        # Contexts and awaiting.
        "enter exit await aiter anext aenter aexit",
        # Copying: our own copy functions call these.
        "copy deepcopy replace reduce reduce_ex getstate setstate getnewargs getnewargs_ex",
        # What nothing calls here, and older code still defines.
        "div rdiv idiv nonzero cmp unicode hex oct long coerce getslice setslice delslice fspath",
    )
    for name in line.split()
)
"""Dunder names a class of the program may define, as a method or by assignment."""

MODULE_STYLE_NAMES = frozenset(
    f"__{name}__"
    for name in [
        "author",
        "authors",
        "version",
        "version_info",
        "all",
        "license",
        "licence",
        "copyright",
        "credits",
        "maintainer",
        "email",
        "status",
        "date",
        "title",
        "description",
        "url",
        "uri",
        "contact",
        "revision",
        "created",
        "updated",
        "program",
        "docformat",
        "summary",
        "project",
        "doc",
        "updated_at",
        "about",
        "build",
        "changelog",
        "contributor",
        "contributors",
        "credit",
        "deprecated",
        "doc_url",
        "docs",
        "emails",
        "history",
        "homepage",
        "id",
        "keywords",
        "maintainers",
        "note",
        "notes",
        "problem",
        "reference",
        "references",
        "release",
        "release_date",
        "repo",
        "requires",
        "source",
        "svnid",
        "tags",
        "test",
        "tests",
        "todo",
        "type",
        "usage",
        "uuid",
        "web",
        "website",
        "year",
    ]
)
"""Dunder variables by which files describe themselves; plain variables here."""

READABLE_NAMES = MODULE_STYLE_NAMES | DEFINABLE_METHODS | {"__name__", "__debug__", "__file__"}
"""Dunder names that may be read as variables. `__file__` is not bound; reading it is a NameError, as in a
console."""

TEXT_ATTRIBUTES = frozenset({"__name__", "__qualname__", "__doc__", "__module__"})
"""Dunder attributes that are text about an object."""

COPY_PROTOCOL = frozenset(
    f"__{name}__" for name in ["reduce", "reduce_ex", "getstate", "setstate", "getnewargs", "getnewargs_ex"]
)
"""What a class defines to say how it is copied. Not readable: the methods of `object` answer with functions
of the library."""

READABLE_ATTRIBUTES = (
    TEXT_ATTRIBUTES
    | (
        DEFINABLE_METHODS
        - {
            "__del__",
            "__get__",
            "__set__",
            "__delete__",
            "__set_name__",
            "__await__",
            "__slots__",
            "__match_args__",
        }
        - COPY_PROTOCOL
    )
    | {
        "__dict__",
        "__annotations__",
        "__wrapped__",
        "__members__",
        "__notes__",
        "__defaults__",
        "__kwdefaults__",
        "__version__",
    }
)
"""Dunder attributes that may be written in source text; a guard decides at run time what each yields."""

CLASS_ONLY_ATTRIBUTES = frozenset({"__mro__", "__bases__"})
"""Dunder attributes readable on names bound by a `class` statement of the same program."""

SETTABLE_ATTRIBUTES = frozenset({"__name__", "__qualname__", "__doc__", "__module__", "__wrapped__"})
"""Dunder attributes a plain assignment may set: texts on functions and classes of the program, and on
functions where they come from."""

FUNCTION_ATTRIBUTES = frozenset({"__module__", "__wrapped__"})
"""Those of them that only a function may be given: of a class the library takes `__module__` for the place
where its annotations are looked up."""

REFUSED_CALLS: dict[str, tuple[str, str]] = {
    "exec": (
        "exec() is not part of the language: text never becomes code here",
        "write the statements directly, or keep functions in a dict and pick one by name",
    ),
    "eval": (
        "eval() is not part of the language: text never becomes code here",
        "use json.loads for data, int()/float() for numbers, or a dict of functions for a choice",
    ),
    "compile": (
        "compile() is not part of the language: text never becomes code here",
        "write the code directly; for regular expressions use re.compile",
    ),
    "breakpoint": (
        "breakpoint() is not part of the language: no debugger is attached",
        "use print() to see a value",
    ),
    "globals": ("globals() is not part of the language", "keep your own values in a dict"),
    "locals": ("locals() is not part of the language", "keep your own values in a dict"),
    "vars": (
        "vars() is not part of the language",
        "read obj.__dict__ of your own object, or dataclasses.asdict(obj)",
    ),
}
"""Builtins refused at compile time unless the program binds the name itself: what was refused, what to
write instead."""


_OF_PYTHON = frozenset(
    f"__{name}__"
    for line in (
        "abc_tpflags abstractmethods annotate annotations args base bases basicsize bound breakpointhook",
        "buffer build_class builtin builtins cached callback cantrace cause class classcell classdict",
        "classdictcell closure code conditional_annotations constraints context contravariant covariant",
        "dataclass_fields dataclass_params dataclass_transform debug default defaults dict dictoffset",
        "displayhook excepthook file final firstlineno flags forward_arg forward_code forward_evaluated",
        "forward_module forward_value func future getattribute getformat getinitargs globals import",
        "infer_variance instancecheck interactivehook isabstractmethod issubclass itemsize kwdefaults",
        "loader main members metadata module mro mro_entries name newobj newobj_ex no_type_check",
        "non_callable_proto_members objclass optional_keys orig_bases orig_class origin override package",
        "parameters partialmethod path prepare protocol_attrs pycache qualname readonly_keys release_buffer",
        "required_keys return safe_for_unpickling self self_class signature slotnames spec",
        "static_attributes stderr stdin stdout subclasscheck subclasses subclasshook supertype",
        "suppress_context text_signature thisclass total traceback type_params",
        "typing_is_unpacked_typevartuple typing_prepare_subst typing_subst typing_unpacked_tuple_args",
        "lltrace unpacked unraisablehook value",
        "vectorcalloffset warningregistry weaklistoffset weakref weakrefoffset wrapped",
    )
    for name in line.split()
)
"""The other dunder names that Python or its library gives a meaning. A program that writes one of them is
told; whatever else it writes is a name of its own."""

_KNOWN_DUNDERS = _OF_PYTHON | READABLE_NAMES | READABLE_ATTRIBUTES | DEFINABLE_METHODS

_OWN_DUNDER = "\u2063"
"""Stands before a dunder name that only the program knows. No source text can spell it, so that such a name
means nothing to Python, whatever meaning a later Python may give the name itself."""


def is_own_dunder(name: str) -> bool:
    """Whether `name` is a dunder name that means nothing to Python."""
    return is_dunder(name) and name not in _KNOWN_DUNDERS


def own_dunder(name: str) -> str:
    """Return the name under which a dunder name of the program's own is kept; any other as it is."""
    return _OWN_DUNDER + name if is_own_dunder(name) else name


def as_written(name: str) -> str:
    """Return a name as the program wrote it."""
    return name.removeprefix(_OWN_DUNDER)


def is_dunder(name: str) -> bool:
    """Whether `name` has two underscores at both ends."""
    return len(name) > 4 and name[:2] == "__" and name[-2:] == "__"


def is_private(name: str) -> bool:
    """Whether `name` is a private attribute: a leading underscore, not a dunder, not `_` alone."""
    return name[:1] == "_" and name != "_" and not is_dunder(name)


def looks_like_guard(name: str) -> bool:
    """Whether `name` is spelled like a hook of RestrictedPython (`_getattr_`), which is reserved."""
    return (
        len(name) > 2
        and name[0] == "_"
        and name[-1] == "_"
        and name[1] != "_"
        and name[-2] != "_"
        and name not in ENUM_NAMES
    )


def is_inspection_like(name: str) -> bool:
    """Whether `name` starts like an attribute of frames, code objects and suspended functions."""
    return name.startswith(INSPECTION_PREFIXES)


def needs_owner(name: str) -> bool:
    """Whether reading attribute `name` is free on objects of the program and guarded on all others."""
    return is_private(name) or is_inspection_like(name) or name in RECEIVER_CHECKED


def mangle(name: str, class_name: str | None) -> str:
    """Return the name Python stores for `name` written inside `class_name` (class-private names)."""
    if class_name is None or name[:2] != "__" or name[-2:] == "__":
        return name
    stripped = class_name.lstrip("_")
    return f"_{stripped}{name}" if stripped else name
