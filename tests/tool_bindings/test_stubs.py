"""Stub text: what a model reads, and that it always parses."""

from __future__ import annotations

import ast
import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tool_bindings import JsonValue, Output, ToolDefinition, render_stubs, signature


def tool(name="t", parameters=None, output=None, description=""):
    return ToolDefinition(
        name, description, parameters or {"type": "object"}, Output({} if output is None else output), print
    )


def obj(properties, required=(), closed=True):
    schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = list(required)
    if closed:
        schema["additionalProperties"] = False
    return schema


INT = {"type": "integer"}
STR = {"type": "string"}


LINE = obj({"number": INT, "text": STR}, ["number", "text"])


def stubs(*definitions):
    text = render_stubs(definitions)
    ast.parse(text)
    return text


def method_line(definition):
    return next(
        line.strip() for line in stubs(definition).splitlines() if "def " in line or "# tools[" in line
    )


WORDS = [
    *(None, True, "object", "array", "string", "null", "integer", "a", "class", "__x", '"'),
    *("#", "#/x", "#/x/properties/a"),
]
KEYS = [
    *("type", "properties", "items", "oneOf", "anyOf", "enum", "const", "$ref", "required"),
    *("additionalProperties", "description", "a", "class"),
]


def grow(inner):
    return st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)


class TestMethods:
    def test_a_small_set_reads_like_this(self):
        read = tool(
            "read",
            obj({"path": {**STR, "description": "file to read"}, "offset": INT}, ["path"]),
            obj({"path": STR, "lines": {"type": "array", "items": LINE}}, ["path", "lines"]),
            "Read a text file.",
        )  # fmt: skip
        add = tool("add", obj({"a": INT, "b": INT}, ["a", "b"]), INT)
        exotic = tool("exotic-name", obj({"x": {"description": "what it says"}}, ["x"]), {}, 'Says "hi".')
        assert """\
from typing import Any, Protocol, TypedDict

class ToolCallError(Exception):
  tool_name: str
  toolName: str  # the same

class ReadOutputLines(TypedDict):
  number: int
  text: str

class ReadOutput(TypedDict):
  path: str
  lines: list[ReadOutputLines]

class Tools(Protocol):
  async def add(self, *, a: int, b: int) -> int: ...
  # tools["exotic-name"](*, x: Any) -> Any
  #   Says "hi".
  #   x: what it says
  async def read(self, *, path: str,  # file to read
      offset: int = ...) -> ReadOutput:
    \"\"\"Read a text file.\"\"\"

tools: Tools
""" == stubs(read, exotic, add)

    def test_the_text_does_not_depend_on_the_order_of_registration(self):
        tools = [tool(name) for name in ("b", "a", "z-z", "Z")]
        assert stubs(*tools) == stubs(*reversed(tools))

    @pytest.mark.parametrize(
        "name", ["_private", "__init__", "class", "a-b", "1st", "ﬁ", "a b", 'x"y', "__debug__"]
    )
    def test_names_that_are_no_attributes_are_reached_by_subscript(self, name):
        """spec/tests 129, 131."""
        text = stubs(tool(name))
        assert "async def" not in text
        assert "  pass\n  # tools[" in text

    @pytest.mark.parametrize("name", ["match", "type", "case", "read", "naïve"])
    def test_soft_keywords_and_letters_of_any_script_are_attributes(self, name):
        """spec/tests 131."""
        assert f"async def {name}(self)" in stubs(tool(name))

    def test_an_empty_set_has_an_empty_class(self):
        assert stubs().endswith("class Tools(Protocol):\n  pass\n\ntools: Tools\n")

    @pytest.mark.parametrize("name", ["self", "class", "a-b", "__token", "__debug__"])
    def test_parameters_that_are_no_keyword_arguments_give_the_one_dict_form(self, name):
        """DESIGN section 8; spec/tests 128."""
        line = method_line(tool(parameters=obj({name: STR, "ok": INT}, [name])))
        assert "async def t(self, args: TArgs) -> Any: ..." == line

    def test_notes_stand_behind_their_parameters_and_nothing_else_does(self):
        noted = {**STR, "description": "says\nmuch"}
        parameters = obj({"a": INT, "b": noted, "c": INT, "d": INT, "e": noted}, ["a", "b", "c"])
        assert """\
  async def t(self, *, a: int,
      b: str,  # says much
      c: int, d: int = ...,
      e: str = ...  # says much
  ) -> Any: ...
""" in stubs(tool(parameters=parameters))
        assert "  async def t(self, *, b: str = ...  # says much\n  ) -> Any: ...\n" in stubs(
            tool(parameters=obj({"b": noted}))
        )

    def test_every_tool_of_a_set_appears(self):
        names = ["a", "a-b", "a_b", "A_B", "_a", "class"]
        text = stubs(*map(tool, names))
        assert 3 == text.count("async def")
        assert all(f'tools["{name}"]' in text for name in ("a-b", "_a", "class"))


class TestTypes:
    @pytest.mark.parametrize(
        ("schema", "expected"),
        [
            (STR, "str"),
            ({"type": "number"}, "float"),
            (INT, "int"),
            ({"type": "boolean"}, "bool"),
            ({"type": "null"}, "None"),
            ({}, "Any"),
            ({"type": "array"}, "list[Any]"),
            ({"type": "array", "items": STR}, "list[str]"),
            ({"type": "object"}, "dict[str, Any]"),
            ({"type": "object", "additionalProperties": INT}, "dict[str, int]"),
            ({"type": "string", "enum": ["a", 'b"']}, 'Literal["a", "b\\""]'),
            ({"type": "boolean", "const": True}, "Literal[True]"),
            ({"type": "integer", "enum": [2**60]}, "Literal[1152921504606846976]"),
            ({"type": "number", "enum": [1.5]}, "float"),
            ({"type": "null", "enum": [None]}, "None"),
            ({"oneOf": [INT, {"type": "null"}]}, "int | None"),
            ({"oneOf": [INT, {"oneOf": [STR, INT]}]}, "int | str"),
            ({"anyOf": [INT, {"type": "null"}]}, "int | None"),
            ({"anyOf": [INT, {}]}, "Any"),
            ({"type": ["string", "null"]}, "str | None"),
            ({"enum": ["a", 1, None]}, 'Literal["a", 1, None]'),
            ({"properties": {"a": INT}, "required": ["a"]}, "TOutput"),
            ({"$ref": "#/$defs/x", "$defs": {"x": {"type": "array", "items": INT}}}, "list[int]"),
            ({"$ref": "#/$defs/x"}, "Any"),
            ({"$ref": "#"}, "Any"),
            ({"allOf": [INT]}, "Any"),
        ],
    )
    def test_each_schema_has_its_type(self, schema, expected):
        assert f"async def t(self) -> {expected}: ..." == method_line(tool(output=schema))

    def test_union_arms_get_numbered_classes_and_nested_ones_come_first(self):
        """spec/tests 126."""
        inner = obj({"deep": obj({"x": INT}, ["x"])}, ["deep"])
        text = stubs(tool(output={"oneOf": [inner, obj({"b": STR}, ["b"])]}))
        order = [line.split("(")[0] for line in text.splitlines() if line.startswith("class TO")]
        assert ["class TOutput1Deep", "class TOutput1", "class TOutput2"] == order
        assert "-> TOutput1 | TOutput2" in text

    def test_empty_objects(self):
        """spec/tests 127."""
        assert "class TOutput(TypedDict):\n  pass\n" in stubs(tool(output=obj({})))
        assert "-> dict[str, Any]" in stubs(tool(output=obj({}, closed=False)))

    @pytest.mark.parametrize("field", ["__token", "__debug__", "class", "a-b", "ﬁ"])
    def test_a_field_that_is_no_class_attribute_is_written_as_a_string(self, field):
        """Decision 0257, against spec/tests 128: what a server says about such a field is not lost."""
        noted = {**STR, "description": "its note"}
        text = stubs(tool(output=obj({field: noted, "ok": INT}, [field])))
        name = json.dumps(field)
        fields = f'{{\n  # its note\n  {name}: str,\n  "ok": NotRequired[int],\n}}'
        assert f'\nTOutput = TypedDict("TOutput", {fields})\n' in text
        assert "-> TOutput: ..." in text
        assert "-> dict[str, Any]" in signature(tool(output=obj({field: STR})))

    @pytest.mark.parametrize("field", ["__meta__", "match", "type", "_x"])
    def test_dunder_and_soft_keyword_fields_stay(self, field):
        """spec/tests 128, 131."""
        assert f"  {field}: str\n" in stubs(tool(output=obj({field: STR}, [field])))

    @pytest.mark.parametrize(
        "schema",
        [
            {"type": "object", "properties": {"a": True, "b": False}},
            {"type": "array", "items": [INT, STR]},
            {"enum": []},
            {"type": "string", "enum": "abc"},
            {"type": {"not": "a name"}},
            {"type": "object", "properties": [1]},
            {"type": "object", "properties": {"a": INT}, "required": 5},
            {"oneOf": 3},
            {"oneOf": []},
            {"$ref": 1},
            {"$ref": "https://example.invalid/x"},
            {"$ref": "#/%zz/~2"},
            {"description": ["not text"]},
        ],
    )
    def test_no_schema_at_all_breaks_the_text(self, schema):
        """Field report F052: whatever a server sends, the stubs parse."""
        stubs(tool(output=schema), tool("u", parameters=schema))
        signature(tool(output=schema, parameters={"type": "object", "properties": {"a": schema}}))

    @settings(max_examples=300)
    @given(st.recursive(st.sampled_from(WORDS) | st.integers(0, 3), grow, max_leaves=12))
    def test_any_json_as_a_schema_gives_text_that_parses(self, document):
        """Field report F052."""
        stubs(tool(output={"x": document, **(document if isinstance(document, dict) else {})}))
        signature(tool(parameters=document if isinstance(document, dict) else {"properties": document}))

    def test_local_references_show_the_fields_they_lead_to(self):
        """Field report F054: both spellings of definitions, and an escaped key."""
        parameters = {
            "type": "object",
            "properties": {
                "filter": {"$ref": "#/$defs/Filter"},
                "sort": {"$ref": "#/definitions/a~1b"},
                "again": {"$ref": "#/$defs/Filter"},
            },
            "$defs": {"Filter": obj({"field": STR}, ["field"])},
            "definitions": {"a/b": obj({"by": STR}, ["by"])},
        }
        text = stubs(tool(parameters=parameters))
        assert "filter: TArgsFilter = ..., sort: TArgsSort = ..., again: TArgsFilter = ..." in text
        assert "  field: str\n" in text
        assert "  by: str\n" in text

    def test_a_recursive_schema_names_its_own_class(self):
        """Field report F050."""
        node = obj(
            {"name": STR, "kids": {"type": "array", "items": {"$ref": "#/$defs/Node"}}}, ["name", "kids"]
        )
        text = stubs(tool(output={"$ref": "#/$defs/Node", "$defs": {"Node": node}}))
        assert "class TOutput(TypedDict):\n  name: str\n  kids: list[TOutput]\n" in text
        assert 1 == text.count("(TypedDict)")

    def test_optional_fields_and_notes(self):
        text = stubs(tool(output=obj({"a": {**INT, "description": "how\nmany"}})))
        assert "class TOutput(TypedDict):\n  # how many\n  a: NotRequired[int]\n\n" in text

    @pytest.mark.parametrize("extra", [True, INT])
    def test_other_keys_are_named_where_the_schema_speaks_of_them(self, extra):
        """Decision 0257: a schema that is merely silent gets no line."""
        schema = obj({"a": INT}, ["a"], closed=False)
        assert "  a: int\n\n" in stubs(tool(output=schema))
        assert "  a: int\n  # other keys are allowed\n\n" in stubs(
            tool(output={**schema, "additionalProperties": extra})
        )

    def test_deep_lists_stop_at_what_the_parser_can_take(self):
        """spec/tests 130."""
        schema: dict = STR
        for _ in range(20_000):
            schema = {"type": "array", "items": schema}
        line = method_line(tool(output=schema))
        assert "list[" * 180 + "Any" + "]" * 180 in line
        inside = stubs(tool(output=obj({"a": schema})))
        assert "list[" * 179 + "Any" in inside

    def test_deep_unions_take_linear_time(self):
        """spec/tests 130: a quadratic writer would need minutes for depth 100 000."""
        schema: dict = STR
        for level in range(100_000):
            schema = {"oneOf": [{"type": "integer", "const": level}, schema]}
        started = time.process_time()
        text = render_stubs([tool(output=schema)])
        assert 100_000 == text.count("Literal[")
        assert time.process_time() - started < 30

    def test_deep_objects_become_one_class_each(self):
        schema: dict = STR
        for _ in range(3_000):
            schema = obj({"a": schema}, ["a"])
        assert 3_000 == stubs(tool(output=schema)).count("(TypedDict):")


class TestText:
    @pytest.mark.parametrize(
        "description",
        [
            'say "hi"',
            'ends with quote"',
            "ends with backslash\\",
            '"""',
            "nul\x00",
            "lone \ud800",
            "bidi \u202e x",
            "a\n\n b\t c",
        ],
    )
    @pytest.mark.parametrize("name", ["t", "t-t"])
    def test_any_description_keeps_the_text_parseable(self, name, description):
        """spec/tests 132."""
        parameters = obj({"a": {**STR, "description": description}})
        text = stubs(tool(name, parameters, obj({"b": {**STR, "description": description}}), description))
        text.encode("utf-8")
        assert "\x00" not in text
        assert "\u202e" not in text

    def test_a_docstring_reads_as_the_description(self):
        text = stubs(tool(description='a "quoted" \\ word'))
        docstring = ast.get_docstring(ast.parse(text).body[2].body[0])
        assert 'a "quoted" \\ word' == docstring

    def test_only_used_symbols_are_imported_and_collisions_get_numbers(self):
        """spec/tests 133."""
        assert stubs(tool(output=INT)).startswith("from typing import Protocol\n")
        one, two = tool("a_b", output=obj({"x": INT})), tool("aB", output=obj({"y": INT}))
        text = stubs(one, two)
        assert "class ABOutput(TypedDict)" in text
        assert "class ABOutput2(TypedDict)" in text
        assert text.startswith("from typing import NotRequired, Protocol, TypedDict\n")

    def test_odd_names_give_class_names(self):
        text = stubs(tool("1st-tool", output=obj({"x": INT}, ["x"])), tool("日本", output=obj({"ÿ-ÿ": INT})))
        assert "class Tool1stToolOutput(TypedDict)" in text


class TestSharedClasses:
    """Decision 0257."""

    def names(self, *definitions):
        text = stubs(*definitions)
        return [line[6:].split("(")[0] for line in text.splitlines() if line.endswith("(TypedDict):")], text

    def test_one_declaration_serves_all_tools_that_give_the_same(self):
        graph = obj({"nodes": {"type": "array", "items": LINE}}, ["nodes"])
        names, text = self.names(
            tool("graph_read", output=graph), tool("graph_find_all", output=graph), tool("other", output=LINE)
        )
        # Nothing is common to "other" and "nodes of a graph", so the shortest of their names has to do.
        assert ["OtherOutput", "GraphOutput"] == names
        assert 2 == text.count("-> GraphOutput: ...")

    def test_a_shared_part_has_the_name_of_its_field(self):
        lines = {"type": "array", "items": LINE}
        read = tool("read", output=obj({"path": STR, "lines": lines}))
        grep = tool("grep", obj({"lines": lines}), output=obj({"lines": lines}))
        names, _ = self.names(read, grep)
        assert ["Lines", "GrepOutput", "ReadOutput"] == names

    def test_a_note_that_differs_makes_another_class(self):
        noted = obj({"x": {**INT, "description": "of a"}}, ["x"])
        names, _ = self.names(tool("a", output=noted), tool("b", output=obj({"x": INT}, ["x"])))
        assert ["AOutput", "BOutput"] == names

    def test_recursive_classes_of_two_tools_stay_apart_and_name_themselves(self):
        def tree(name):
            schema = obj({"kids": {"type": "array", "items": {"$ref": "#"}}}, ["kids"])
            return tool(name, output=schema)

        names, text = self.names(tree("a"), tree("b"))
        for name in names:
            assert f"class {name}(TypedDict):\n  kids: list[" in text

    @pytest.mark.parametrize("word", ["Any", "T", "Tools", "None", "McpResult"])
    def test_shared_names_never_hide_what_the_text_uses(self, word):
        first, second = obj({"x": LINE}, ["x"]), obj({"y": LINE}, ["y"])
        definitions = [tool(f"{word}_one", output={"oneOf": [LINE, INT]}), tool(f"{word}_two", LINE)]
        text = stubs(*definitions, tool(f"{word}_a", output=first), tool(f"{word}_b", output=second))
        assert f"class {word}(TypedDict)" not in text

    def test_a_note_that_several_tools_repeat_has_a_name(self):
        owner = {**STR, "description": "Who owns the repository, with or without an @"}
        one, two = tool("one", obj({"owner": owner}, ["owner"])), tool("two", obj({"owner": owner, "n": INT}))
        text = stubs(one, two, tool("a-b", obj({"owner": owner})), tool("other", obj({"owner": STR})))
        assert '\nOwner = Annotated[str, "Who owns the repository, with or without an @"]\n' in text
        assert "async def one(self, *, owner: Owner) -> Any: ..." in text
        assert "async def two(self, *, owner: Owner = ..., n: int = ...) -> Any: ..." in text
        assert '# tools["a-b"](*, owner: Owner = ...) -> Any' in text
        assert "async def other(self, *, owner: str = ...) -> Any: ..." in text
        assert text.startswith("from typing import Annotated, Any, Protocol\n")

    def test_a_note_of_one_tool_or_of_few_letters_has_none(self):
        noted = {**STR, "description": "x"}
        assert "Annotated" not in stubs(tool("a", obj({"owner_of_it": noted})), tool("b", obj({"c": noted})))
        assert "Annotated" not in stubs(
            tool("a", obj({"longer_name": noted})), tool("b", obj({"longer_name": noted}))
        )

    @pytest.mark.parametrize("name", ["any", "none", "tools", "t", "typed_dict", "a_output"])
    def test_the_name_of_a_note_hides_nothing(self, name):
        noted = {**STR, "description": 'a "long" \\ note that is repeated'}
        a = tool("a", obj({name: noted}), obj({"x": INT}, ["x"]))
        text = stubs(a, tool("b", obj({name: noted})))
        (line,) = [line for line in text.splitlines() if " = Annotated[str, " in line]
        defined = line.split(" = ")[0]
        assert defined not in {"Any", "None", "Tools", "T", "TypedDict", "AOutput"}
        assert f"{name}: {defined} = ..." in text
        assert line.endswith('"a \\"long\\" \\\\ note that is repeated"]')

    def test_results_of_mcp_servers_share_one_frame(self):
        def result(structured, *required):
            return {
                "type": "object",
                "properties": {"content": {"type": "array"}, "structuredContent": structured},
                "required": ["content", *required],
                "additionalProperties": False,
            }

        text = stubs(
            tool("a", output=result({})),
            tool("b", output=result(obj({"x": INT}, ["x"]), "structuredContent")),
            tool("c", output=result({"type": "array", "items": INT}, "structuredContent")),
        )
        assert "async def a(self) -> McpResult: ..." in text
        assert "async def b(self) -> McpData[BOutput]: ..." in text
        assert "async def c(self) -> McpData[list[int]]: ..." in text
        assert "class BOutput(TypedDict):\n  x: int\n" in text
        near = stubs(tool("d", output=result(INT)))
        assert "-> DOutput: ..." in near


class TestSignature:
    def test_it_is_one_short_line(self):
        read = tool("read", obj({"path": STR, "offset": INT}, ["path"]), obj({"lines": {"type": "array"}}))
        assert "read(*, path: str, offset: int = ...) -> dict[str, Any]  # keys: lines" == signature(read)
        long = tool("x", obj({f"parameter_{n}": {"type": "string", "enum": ["a" * 50]} for n in range(50)}))
        assert 300 == len(signature(long))
        assert "\n" not in signature(tool("a\nb"))

    def test_annotated_functions_have_one_too(self, registry):
        @registry.tool
        async def pick(items: list[int], mode: str | None = None) -> JsonValue: ...

        assert "pick(*, items: list[int], mode: str | None = ...) -> Any" == signature(registry.get("pick"))
