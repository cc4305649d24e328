"""What a model reads of the tools: Python text, made from their schemas.

The text is deterministic: the same set of tools gives the same bytes. It is read, not run; still it
parses as Python, whatever the tools are called and described as.

Knows: names, types and docstrings of stubs.
Does not know: how a stub is bound to a call, or how much of the text a model is shown.
"""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

from sandbox.values import number_text
from tool_bindings.schema import is_array, is_record, json_text
from tool_bindings.stub_classes import Classes

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence

    from tool_bindings.definition import ToolDefinition

__all__ = ["is_attribute_name", "render_stubs", "signature"]

_SIGNATURE_CHARS: Final = 300
"""Longest one-line signature; it is repeated in errors and search results."""

_LIST_LEVELS: Final = 180
"""Nested `list[...]` written out; CPython refuses more than 200 open brackets."""

_NAME_CHARS: Final = 120
"""Characters of a name that are put in camel case; more never show."""

_SYMBOLS: Final = (
    "Annotated",
    "Any",
    "Generic",
    "Literal",
    "NotRequired",
    "Protocol",
    "TypedDict",
    "TypeVar",
)

_SCALARS: Final = {"string": "str", "number": "float", "integer": "int", "boolean": "bool", "null": "None"}


def is_attribute_name(name: str) -> bool:
    """Whether a program can write `tools.<name>`; others are reached as `tools["<name>"]`."""
    return _is_plain_identifier(name) and not name.startswith("_")


def signature(definition: ToolDefinition) -> str:
    """Write one tool as one line of at most 300 characters, for errors and search results."""
    if definition.known_signature is None:
        object.__setattr__(definition, "known_signature", _signature(definition))
    assert definition.known_signature is not None, "it was written just now"
    return definition.known_signature


def _signature(definition: ToolDefinition) -> str:
    writer = _Writer(classes=False)
    output = writer.type_text(definition.output.schema, "")
    properties = definition.output.schema.get("properties")
    keys = (
        f"  # keys: {', '.join(map(clean_text, properties))}" if is_record(properties) and properties else ""
    )
    parameters = _flat(writer.parameters(definition, "arguments"))
    text = f"{clean_text(f'{definition.name}({parameters})')} -> {output}{keys}"
    return text if len(text) <= _SIGNATURE_CHARS else text[: _SIGNATURE_CHARS - 1] + "…"


def render_stubs(definitions: Iterable[ToolDefinition]) -> str:
    """Write the stub text of a set of tools."""
    writer = _Writer(classes=True)
    members = [_read(writer, definition) for definition in sorted(definitions, key=lambda each: each.name)]
    members = _with_shared_notes(writer, members)
    writer.symbols.add("Protocol")
    body = [] if any(member.is_method for member in members) else ["  pass"]
    protocol = "\n".join(["class Tools(Protocol):", *body, *map(_member_text, members)])
    symbols = ", ".join(symbol for symbol in _SYMBOLS if symbol in writer.symbols)
    given = [text for name, text in _GIVEN_CLASSES.items() if name in writer.given]
    blocks = [f"from typing import {symbols}", _ERROR_CLASS, *given, *writer.classes.resolve([protocol])]
    blocks.append("tools: Tools")
    return "\n\n".join(blocks) + "\n"


_ERROR_CLASS: Final = "class ToolCallError(Exception):\n  tool_name: str\n  toolName: str  # the same"
_MCP_RESULT: Final = "McpResult"
_MCP_DATA: Final = "McpData"
_GIVEN_CLASSES: Final = {
    _MCP_RESULT: """\
class McpResult(TypedDict):
  content: list[Any]  # blocks, such as {"type": "text", "text": str}
  structuredContent: NotRequired[Any]""",
    _MCP_DATA: """\
T = TypeVar("T")

class McpData(TypedDict, Generic[T]):
  content: list[Any]
  structuredContent: T""",
}
"""What tools of MCP servers give, without and with a schema of their own (decision 0257)."""
_TAKEN: Final = (*_SYMBOLS, *_GIVEN_CLASSES, "T", "ToolCallError", "Tools")


class _Parameter(NamedTuple):
    """One parameter of a method, and what its schema says about it."""

    name: str
    type: str = ""
    note: str = ""
    is_optional: bool = False

    def __str__(self) -> str:
        text = f"{self.name}: {self.type}" if self.type else self.name
        return f"{text} = ..." if self.is_optional else text


class _Member(NamedTuple):
    """What is written of one tool."""

    name: str
    description: str
    parameters: list[_Parameter]
    output: str

    @property
    def is_method(self) -> bool:
        return is_attribute_name(self.name)


def _read(writer: _Writer, definition: ToolDefinition) -> _Member:
    base = _camel(definition.name)
    parameters = writer.parameters(definition, base + "Args")
    output = writer.result(definition.output.schema, base + "Output")
    return _Member(definition.name, clean_text(definition.description), parameters, output)


_INLINE_NOTE_BYTES: Final = 12
"""What a note costs behind its parameter, on a line that is broken for it, beside its text."""
_ALIAS_BYTES: Final = 18
"""What a named note costs beside its name, type and text."""


def _with_shared_notes(writer: _Writer, members: Sequence[_Member]) -> list[_Member]:
    """Declare once, with a name, what the same parameter of several tools would say each time."""
    counts = Counter(
        (parameter.name, parameter.type, parameter.note)
        for member in members
        for parameter in member.parameters
        if parameter.note
    )
    names: dict[tuple[str, str, str], str] = {}
    for (name, kind, note), count in counts.items():
        alias, quoted = _camel(name), f'"{_in_docstring(note)}"'
        cost = len(alias) + len(kind) + len(quoted) + _ALIAS_BYTES
        if count > 1 and count * (len(note) + _INLINE_NOTE_BYTES + len(kind) - len(alias)) > cost:
            _, mark = writer.classes.claim(alias)
            names[name, kind, note] = writer.classes.declare(mark, f"{mark} = Annotated[{kind}, {quoted}]")
            writer.symbols.add("Annotated")
    return [
        member._replace(
            parameters=[
                parameter._replace(type=names[parameter[:3]], note="")
                if parameter[:3] in names
                else parameter
                for parameter in member.parameters
            ]
        )
        for member in members
    ]


def _member_text(member: _Member) -> str:
    name, description, parameters, output = member
    if not member.is_method:
        lines = [f"  # tools[{json_text(name)}]({_flat(parameters)}) -> {output}"]
        if description:
            lines.append(f"  #   {description}")
        lines += [f"  #   {parameter.name}: {parameter.note}" for parameter in parameters if parameter.note]
        return "\n".join(lines)
    head = _head(f"  async def {name}(self", parameters, f") -> {output}:")
    return head + (f'\n    """{_in_docstring(description)}"""' if description else " ...")


def _flat(parameters: Sequence[_Parameter]) -> str:
    return ", ".join(map(str, parameters))


def _head(start: str, parameters: Sequence[_Parameter], end: str) -> str:
    """Write the first line of a method, or several, where parameters have notes.

    A note ends its line, and is the only parameter's on it.
    """
    lines = [start]
    is_open = True
    for number, parameter in enumerate(parameters):
        if parameter.note and number > 1 and is_open:
            lines[-1] += ","
            is_open = False
        if is_open:
            lines[-1] += f", {parameter}"
        else:
            lines.append(f"      {parameter}")
        is_open = not parameter.note
        if parameter.note:
            lines[-1] += f"{',' if number + 1 < len(parameters) else ''}  # {parameter.note}"
    return "\n".join(lines) + (end if is_open else f"\n  {end}")


def _note(schema: object) -> str:
    """Return what a schema says about its values, on one line; '' when it says nothing."""
    note = schema.get("description") if is_record(schema) else None  # type: ignore[attr-defined]  # a record
    return clean_text(note) if isinstance(note, str) else ""


def _in_docstring(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


class _Request(NamedTuple):
    """One node to be written: its class name if it needs one, and how many lists enclose it."""

    node: Any
    name: str
    lists: int


class _Writer:
    """Writes types; collects the classes and typing symbols they need."""

    def __init__(self, *, classes: bool) -> None:
        self.classes = Classes(_TAKEN)
        self.given: set[str] = set()
        """Which of the ready-made classes are used."""
        self.symbols: set[str] = set()
        self._with_classes = classes
        self._document: Any = None
        # What a reference stands for; empty while it is being written and has no class name yet.
        self._references: dict[tuple[int, str], str] = {}

    def parameters(self, definition: ToolDefinition, args_name: str) -> list[_Parameter]:
        """Write what goes between the parentheses, `self` left out."""
        schema = definition.parameters
        self._document = schema
        properties = schema.get("properties", {})
        if schema.get("type") != "object" or not is_record(properties):
            return [_Parameter("args", self._any_object())]
        if not all(_is_parameter_name(name) for name in properties):
            return [_Parameter("args", self._type_text(schema, args_name))]
        if not properties:
            return []
        required = _required(schema)
        return [
            _Parameter("*"),
            *(
                _Parameter(
                    name,
                    self._type_text(child, args_name + _camel(name)),
                    _note(child),
                    is_optional=name not in required,
                )
                for name, child in properties.items()
            ),
        ]

    def result(self, schema: Any, name: str) -> str:
        """Write what a tool gives; the frame around results of MCP servers is declared only once."""
        structured = _mcp_structured(schema)
        if structured is None:
            return self.type_text(schema, name)
        if not structured:
            self.given.add(_MCP_RESULT)
            self.symbols.update(("Any", "NotRequired", "TypedDict"))
            return _MCP_RESULT
        self.given.add(_MCP_DATA)
        self.symbols.update(("Any", "Generic", "TypedDict", "TypeVar"))
        self._document = schema
        return f"{_MCP_DATA}[{self._type_text(structured[0], name)}]"

    def type_text(self, document: Any, name: str) -> str:
        """Write a whole schema as a type; what has no Python type is `Any`."""
        self._document = document
        return self._type_text(document, name)

    def _type_text(self, node: Any, name: str) -> str:
        # Nodes are generators that yield the children they need, so that no depth overflows.
        running: list[Generator[_Request, str, str]] = [self._write(_Request(node, name, 0))]
        answer: str | None = None
        while True:
            try:
                request = running[-1].send(answer)  # type: ignore[arg-type]  # None starts a generator
            except StopIteration as done:
                running.pop()
                answer = done.value
                if not running:
                    text: str = done.value
                    return text
            else:
                running.append(self._write(request))
                answer = None

    def _any(self) -> str:
        self.symbols.add("Any")
        return "Any"

    def _any_object(self) -> str:
        return f"dict[str, {self._any()}]"

    def _write(self, request: _Request) -> Generator[_Request, str, str]:
        node, name, lists = request
        if not is_record(node):
            return self._any()
        if isinstance(node.get("$ref"), str):
            return (yield from self._write_reference(node["$ref"], name, lists))
        if _arms(node) is not None:
            texts: dict[str, None] = {}
            for index, arm in enumerate(_leaf_arms(node), 1):
                texts[(yield _Request(arm, f"{name}{index}", lists))] = None
            # A union with anything in it is anything.
            return self._any() if "Any" in texts or not texts else " | ".join(texts)
        kind = _kind(node)
        if kind == "array":
            if lists >= _LIST_LEVELS:
                return self._any()
            if not is_record(node.get("items")):
                return f"list[{self._any()}]"
            return f"list[{(yield _Request(node['items'], name, lists + 1))}]"
        if kind == "object":
            return (yield from self._write_object(node, name))
        if "const" in node or "enum" in node:
            return self._literal(node, kind)
        return _SCALARS[kind] if kind in _SCALARS else self._any()

    def _write_reference(self, reference: str, name: str, lists: int) -> Generator[_Request, str, str]:
        """Write what a reference inside the document stands for; a recursive one names its class."""
        key = (id(self._document), reference)
        if key in self._references:
            return self._references[key] or self._any()
        target = _follow(self._document, reference)
        self._references[key] = ""
        if is_record(target) and _kind(target) == "object" and "$ref" not in target and _arms(target) is None:
            text = yield from self._write_object(target, name, key)
        else:
            text = yield _Request(target, name, lists)
        self._references[key] = text
        return text

    def _literal(self, node: Mapping[str, Any], kind: str) -> str:
        if kind == "null":
            return "None"
        plain = _SCALARS.get(kind)
        literals = [node["const"]] if "const" in node else node["enum"]
        texts = [_literal_text(value) for value in literals] if is_array(literals) or "const" in node else []
        if not texts or None in texts:
            return plain or self._any()
        self.symbols.add("Literal")
        return f"Literal[{', '.join(filter(None, texts))}]"

    def _write_object(
        self, node: Mapping[str, Any], name: str, reference: tuple[int, str] | None = None
    ) -> Generator[_Request, str, str]:
        properties = node.get("properties", {})
        additional = node.get("additionalProperties", True)
        if not is_record(properties):
            return self._any_object()
        if not properties and additional is not False:
            if is_record(additional):
                return f"dict[str, {(yield _Request(additional, name + 'Value', 1))}]"
            return self._any_object()
        if not self._with_classes:
            return self._any_object()
        own_name, mark = self.classes.claim(name)
        if reference is not None:
            self._references[reference] = mark
        required = _required(node)
        as_class = all(map(_is_field_name, properties))
        lines = []
        for field, child in properties.items():
            text = yield _Request(child, own_name + _camel(field), 1)
            note = _note(child)
            if note:
                lines.append(f"  # {note}")
            if field not in required:
                self.symbols.add("NotRequired")
                text = f"NotRequired[{text}]"
            lines.append(f"  {field}: {text}" if as_class else f"  {json_text(field)}: {text},")
        if not lines:
            lines.append("  pass")
        if additional is not False and "additionalProperties" in node:
            lines.append("  # other keys are allowed")
        self.symbols.add("TypedDict")
        fields = "\n".join(lines)
        if as_class:
            return self.classes.declare(mark, f"class {mark}(TypedDict):\n{fields}")
        # Names such as "from" and "@type" can only be written as strings.
        return self.classes.declare(mark, f'{mark} = TypedDict("{mark}", {{\n{fields}\n}})')


def _kind(node: Mapping[str, Any]) -> str:
    """Return a node's one type, also where only its keywords tell; empty when nothing does."""
    kind = node.get("type")
    if isinstance(kind, str):
        return kind
    if "properties" in node:
        return "object"
    return "array" if "items" in node else ""


def _mcp_structured(schema: Any) -> list[Any] | None:
    """Return the schema of the structured content in a result of an MCP tool; None for other schemas.

    The list is empty when nothing is known of it.
    """
    properties = schema.get("properties")
    if not is_record(properties) or properties.keys() != {"content", "structuredContent"}:
        return None
    if properties["content"] != {"type": "array"} or schema.get("additionalProperties") is not False:
        return None
    required = sorted(map(str, _required(schema)))
    if required == ["content", "structuredContent"]:
        return [properties["structuredContent"]]
    return [] if required == ["content"] and properties["structuredContent"] == {} else None


def _required(node: Mapping[str, Any]) -> Sequence[Any]:
    names = node.get("required", ())
    return names if is_array(names) else ()


def _arms(node: Any) -> list[Any] | None:
    """Return the alternatives of a node that is a union in one of JSON Schema's ways, else None."""
    if not is_record(node):
        return None
    for key in ("oneOf", "anyOf"):
        if is_array(node.get(key)):
            arms: list[Any] = node[key]
            return arms
    if is_array(node.get("type")):
        return [{**node, "type": kind} for kind in node["type"]]
    return None


def _leaf_arms(node: Any) -> Iterator[Any]:
    """Yield the arms of a union with unions inside it flattened, in order."""
    todo = [node]
    while todo:
        arm = todo.pop()
        arms = _arms(arm)
        if arms is None:
            yield arm
        else:
            todo.extend(reversed(arms))


def _follow(document: Any, reference: str) -> Any:
    """Return the node that a JSON pointer inside the document leads to, or None."""
    if not reference.startswith("#"):
        return None
    node = document
    for part in unquote(reference[1:]).split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if is_record(node) and key in node:
            node = node[key]
        elif is_array(node) and key.isdecimal() and int(key) < len(node):
            node = node[int(key)]
        else:
            return None
    return node


def _literal_text(value: Any) -> str | None:
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, str):
        return json_text(value)
    if value is None:
        return "None"
    if isinstance(value, int):
        return number_text(value)
    return None  # Python has no literal type for floats.


def _is_plain_identifier(name: str) -> bool:
    return (
        name.isidentifier()
        and not keyword.iskeyword(name)
        and name != "__debug__"
        and unicodedata.normalize("NFKC", name) == name
    )


def _is_field_name(name: str) -> bool:
    # A leading double underscore would be mangled inside a class, unless it also ends in one.
    return _is_plain_identifier(name) and (not name.startswith("__") or name.endswith("__"))


def _is_parameter_name(name: str) -> bool:
    return _is_field_name(name) and name != "self"


_WORD: Final = re.compile(r"[^\W_]+")


def _camel(name: str) -> str:
    words = _WORD.findall(unicodedata.normalize("NFKC", name))
    joined = "".join(word[0].upper() + word[1:] for word in words)[:_NAME_CHARS]
    joined = "".join(char for char in joined if f"x{char}".isidentifier())
    return joined if joined.isidentifier() and not keyword.iskeyword(joined) else f"Tool{joined}"


_SPACES: Final = re.compile(r"\s+")
_HIDDEN: Final = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Controls, direction marks and lone surrogates: they would change how the text is read or encoded."""


def clean_text(text: str) -> str:
    """Put text on one line, with everything invisible written as an escape."""

    def escape(match: re.Match[str]) -> str:
        code = ord(match.group())
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"

    return _HIDDEN.sub(escape, _SPACES.sub(" ", text)).strip()
