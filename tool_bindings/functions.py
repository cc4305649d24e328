"""Tools from annotated Python functions.

Knows: reading a function's signature and docstring, and passing values across its boundary: JSON
arguments become Python objects, results become JSON again.
Does not know: registries and dispatches; it makes what a `ToolDefinition` is made of.

The schema decides what is valid. `cattrs` runs after it, so its own coercions (`"5"` to `5`) never
see a value the schema would refuse. It is loaded only when some annotation needs it.
"""

from __future__ import annotations

import inspect
import typing
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, get_origin

from sandbox.values import JsonValue, NotJsonError, snapshot, thaw
from tool_bindings.annotations import DICT_ORIGINS, LIST_ORIGINS, is_json_hint, schema_of
from tool_bindings.bodies import gives_coroutine, is_async
from tool_bindings.definition import ToolRunContext
from tool_bindings.errors import ArgumentConversionError, DefinitionError, InvalidResultError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["BoundFunction", "bind_function"]


class BoundFunction(NamedTuple):
    """What registration needs to know of an annotated function.

    Attributes:
        parameters: Schema of its arguments; closed unless it takes `**kwargs`.
        output: Schema of its result.
        description: Its docstring without the `Args` section, which goes to the parameters.
        execute: The body in the form of `ToolDefinition.execute`.
    """

    parameters: dict[str, Any]
    output: dict[str, Any]
    description: str
    execute: Callable[[Mapping[str, Any], ToolRunContext], Any]


def bind_function(function: Callable[..., Any], namespace: Mapping[str, Any] | None = None) -> BoundFunction:
    """Read a function's annotations and docstring.

    Args:
        function: An async function, or a plain one, which will run in a thread.
        namespace: Names for annotations that the function's module does not hold, such as classes
            that are local to the place of registration.

    Raises:
        DefinitionError: Something about it cannot be exposed as a tool.
    """
    label = f"function {getattr(function, '__name__', function)!r}"
    try:
        signature_parameters = inspect.signature(function).parameters.values()
        hints = _resolve_hints(function, namespace, label)
    except (TypeError, ValueError) as error:
        if isinstance(error, DefinitionError):
            raise
        raise DefinitionError(
            f"{label} cannot be read as a tool; write an annotated function that calls it"
        ) from None
    summary, notes = _split_docstring(inspect.getdoc(function) or "")
    properties: dict[str, Any] = {}
    required: list[str] = []
    plan: list[_Argument] = []
    context_name: str | None = None
    is_open = False
    for parameter in signature_parameters:
        name = parameter.name
        if parameter.kind is parameter.VAR_POSITIONAL:
            raise DefinitionError(f"{label}: *{name} cannot be a tool parameter; JSON arguments have names")
        if parameter.kind is parameter.VAR_KEYWORD:
            is_open = True
            continue
        if name not in hints:
            raise DefinitionError(f"{label}: annotate the parameter {name!r}; JsonValue stands for any JSON")
        if hints[name] is ToolRunContext:
            if context_name is not None:
                raise DefinitionError(f"{label}: only one parameter may be a ToolRunContext")
            context_name = name
            continue
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise DefinitionError(f"{label}: {name!r} is positional-only; JSON arguments have names")
        schema = _schema_at(hints[name], f"{label}, parameter {name!r}")
        if name in notes:
            schema["description"] = notes[name]
        if parameter.default is parameter.empty:
            required.append(name)
        elif _is_json_default(parameter.default):
            schema["default"] = snapshot(parameter.default)
        properties[name] = schema
        plan.append(_Argument(name, _structure_hook(hints[name])))
    if "return" not in hints:
        raise DefinitionError(f"{label}: annotate what it returns (-> int, -> None, -> JsonValue ...)")
    parameters: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        parameters["required"] = required
    if not is_open:
        parameters["additionalProperties"] = False
    output = _schema_at(hints["return"], f"{label}, return value")
    execute = _make_execute(function, plan, context_name, _unstructure_hook(hints["return"]), is_open=is_open)
    return BoundFunction(parameters, output, summary, execute)


def _schema_at(hint: Any, where: str) -> dict[str, Any]:
    try:
        return schema_of(hint)
    except DefinitionError as error:
        raise DefinitionError(f"{where}: {error}") from None


def _resolve_hints(
    function: Callable[..., Any], namespace: Mapping[str, Any] | None, label: str
) -> dict[str, Any]:
    target = function if inspect.isroutine(function) else getattr(function, "func", type(function).__call__)
    try:
        return typing.get_type_hints(target, include_extras=True)
    except NameError:
        pass  # The names may be local to the place of registration.
    try:
        return typing.get_type_hints(target, localns=dict(namespace or {}), include_extras=True)
    except NameError as error:
        raise DefinitionError(
            f"{label}: cannot resolve an annotation ({error}); import the name outside TYPE_CHECKING"
        ) from None


def _is_json_default(default: object) -> bool:
    try:
        snapshot(default)
    except NotJsonError:
        return False
    return True


_SECTIONS: Final = ("Args:", "Arguments:", "Parameters:")


def _split_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Take the `Args` section of a Google docstring out; return the rest and the parameter notes."""
    kept: list[str] = []
    notes: dict[str, str] = {}
    current: str | None = None
    indent = 0
    in_section = False
    for line in text.splitlines():
        stripped = line.strip()
        depth = len(line) - len(line.lstrip())
        if stripped in _SECTIONS and depth == 0:
            in_section, current, indent = True, None, 0
        elif in_section and (not stripped or depth > 0):
            if not stripped:
                continue
            indent = indent or depth
            name, colon, rest = stripped.partition(":")
            name = name.split("(")[0].strip()
            if depth == indent and colon and name.isidentifier():
                current = name
                notes[name] = rest.strip()
            elif current is not None:
                notes[current] = f"{notes[current]} {stripped}".strip()
        else:
            if in_section and kept and kept[-1]:
                kept.append("")
            in_section = False
            kept.append(line)
    return "\n".join(kept).strip(), notes


# --- values across the boundary ---------------------------------------------------------------------


class _Argument(NamedTuple):
    name: str
    structure: Callable[[Any], Any] | None


def _make_execute(
    function: Callable[..., Any],
    plan: list[_Argument],
    context_name: str | None,
    unstructure: Callable[[Any], Any] | None,
    *,
    is_open: bool,
) -> Callable[[Mapping[str, Any], ToolRunContext], Any]:
    names = frozenset(argument.name for argument in plan)
    integers = tuple(argument.name for argument in plan if argument.structure is _to_int)
    structured = [
        (argument.name, argument.structure)
        for argument in plan
        if argument.structure is not None and argument.structure is not _to_int
    ]

    def keywords(arguments: Mapping[str, Any], context: ToolRunContext) -> dict[str, Any]:
        given = dict(arguments)
        for name in integers:
            # Most are what the function wants already.
            if type(given.get(name)) is float:
                given[name] = _structured(name, _to_int, given[name])
        for name, structure in structured:
            if name in given:
                given[name] = _structured(name, structure, given[name])
        if is_open:
            for name in given.keys() - names:
                given[name] = thaw(given[name])
        if context_name is not None:
            given[context_name] = context
        return given

    def result(value: Any) -> Any:
        if unstructure is None:
            return value
        try:
            return unstructure(value)
        except Exception as error:
            returned = _article(type(value).__name__)
            msg = f"the function returned {returned}, not what it is annotated with: {error}"
            raise InvalidResultError(msg) from error

    if is_async(function):
        if unstructure is None:
            # Nothing to do afterwards, so nothing stands between the caller and the function's coroutine.
            return gives_coroutine(lambda arguments, context: function(**keywords(arguments, context)))

        async def execute_async(arguments: Mapping[str, Any], context: ToolRunContext) -> Any:
            return result(await function(**keywords(arguments, context)))

        return execute_async

    def execute_plain(arguments: Mapping[str, Any], context: ToolRunContext) -> Any:
        return result(function(**keywords(arguments, context)))

    return execute_plain


def _article(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def _structured(name: str, structure: Callable[[Any], Any], value: Any) -> Any:
    try:
        return structure(value)
    except Exception as error:
        from tool_bindings.conversion import structure_problems  # noqa: PLC0415  # loads cattrs

        problems = "; ".join(structure_problems(error, name))
        raise ArgumentConversionError(problems) from error


def _structure_hook(hint: Any) -> Callable[[Any], Any] | None:
    """Return how to turn a JSON argument into what the annotation promises; None for no change."""
    while get_origin(hint) is Annotated and hint != JsonValue:
        hint = hint.__origin__
    if hint in (Any, None, type(None), str, bool) or hint == JsonValue or get_origin(hint) is Literal:
        return None
    if hint is int:
        return _to_int
    if hint is float:
        return float
    if hint in (*LIST_ORIGINS, *DICT_ORIGINS):
        return thaw
    from tool_bindings.conversion import structure_hook  # noqa: PLC0415  # loads cattrs

    return structure_hook(hint)


def _to_int(value: Any) -> int:
    # The schema lets 1.0 through as an integer; the function asked for an int.
    return int(value) if type(value) is float else value


def _unstructure_hook(hint: Any) -> Callable[[Any], Any] | None:
    """Return how to turn a result into JSON; None when the annotation already is JSON."""
    if is_json_hint(hint):
        return None
    from tool_bindings.conversion import unstructure_hook  # noqa: PLC0415  # loads cattrs

    return unstructure_hook(hint)
