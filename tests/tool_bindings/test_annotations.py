"""Tools from annotated functions: schemas, values in, values out, and what is refused."""

from __future__ import annotations

import base64
import collections.abc
import dataclasses
import datetime as dt
import decimal
import enum
import functools
import pathlib
import sys
import typing
import uuid
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict

import attrs
import pytest

from sandbox.values import FrozenList
from tool_bindings import DefinitionError, JsonValue, ToolRunContext, signature
from tool_bindings.annotations import schema_of


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Mixed(enum.Enum):
    ONE = 1
    TEXT = "text"
    NOTHING = None


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Row(TypedDict):
    id: int
    tags: NotRequired[list[str]]


class Partial(TypedDict, total=False):
    a: int
    b: typing.Required[str]


class Pair(NamedTuple):
    left: str
    right: int = 1


@attrs.define
class Event:
    when: dt.datetime
    cost: decimal.Decimal
    kind: Color = Color.RED
    parts: list[Point] = attrs.field(factory=list)


@dataclasses.dataclass
class Node:
    children: list[Node]


STRING = {"type": "string"}
INTEGER = {"type": "integer"}


class TestSchemas:
    @pytest.mark.parametrize(
        ("hint", "expected"),
        [
            (str, STRING),
            (int, INTEGER),
            (float, {"type": "number"}),
            (bool, {"type": "boolean"}),
            (None, {"type": "null"}),
            (Any, {}),
            (JsonValue, {}),
            (JsonValue | None, {}),
            (list, {"type": "array"}),
            (list[str], {"type": "array", "items": STRING}),
            (list[JsonValue], {"type": "array"}),
            (set[int], {"type": "array", "items": INTEGER}),
            (tuple[int, ...], {"type": "array", "items": INTEGER}),
            (tuple[int, str], {"type": "array", "items": {"oneOf": [INTEGER, STRING]}}),
            (collections.abc.Sequence[str], {"type": "array", "items": STRING}),
            (dict, {"type": "object"}),
            (dict[str, Any], {"type": "object"}),
            (dict[str, int], {"type": "object", "additionalProperties": INTEGER}),
            (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
            (
                Literal["a", 1],
                {"oneOf": [{"type": "string", "enum": ["a"]}, {"type": "integer", "enum": [1]}]},
            ),
            (Color, {"type": "string", "enum": ["red", "blue"]}),
            (Literal["c"] | Color, {"type": "string", "enum": ["c", "red", "blue"]}),
            (typing.Union[int, None], {"oneOf": [INTEGER, {"type": "null"}]}),  # noqa: UP007  # the other spelling
            (
                Mixed,
                {
                    "oneOf": [
                        {"type": t, "enum": [v]}
                        for t, v in (("integer", 1), ("string", "text"), ("null", None))
                    ]
                },
            ),
            (int | float, {"type": "number"}),
            (Level | int, INTEGER),
            (list[int] | list[str], {"type": "array", "items": {"oneOf": [INTEGER, STRING]}}),
            (int | str | int | None, {"oneOf": [INTEGER, STRING, {"type": "null"}]}),
            (int | JsonValue, {}),
            (Annotated[int, "how many"], {"type": "integer", "description": "how many"}),
            (bytes, {"type": "string", "description": "base64 text"}),
            (pathlib.Path, {"type": "string", "description": "file path"}),
            (
                Point,
                {
                    "type": "object",
                    "properties": {"x": INTEGER, "y": INTEGER},
                    "required": ["x"],
                    "additionalProperties": False,
                },
            ),
            (
                Row,
                {
                    "type": "object",
                    "properties": {"id": INTEGER, "tags": {"type": "array", "items": STRING}},
                    "required": ["id"],
                    "additionalProperties": False,
                },
            ),
            (
                Partial,
                {
                    "type": "object",
                    "properties": {"a": INTEGER, "b": STRING},
                    "required": ["b"],
                    "additionalProperties": False,
                },
            ),
            (
                Pair,
                {
                    "type": "object",
                    "properties": {"left": STRING, "right": INTEGER},
                    "required": ["left"],
                    "additionalProperties": False,
                },
            ),
        ],
    )
    def test_each_annotation_has_its_schema(self, hint, expected):
        """DESIGN section 3."""
        assert expected == schema_of(hint)

    @pytest.mark.parametrize(
        ("hint", "message"),
        [
            (object, "object has no JSON form; use JSON types"),
            (complex, "complex has no JSON form"),
            (dt.timedelta, "timedelta has no JSON form"),
            (dict[int, str], r"dict\[int, str\]: JSON objects have string keys"),
            (Node, "field 'children' of Node: Node contains itself; use JsonValue"),
            (list[type], "type has no JSON form"),
            (Literal[b"x"], "the literal b'x' has no JSON form"),
            (collections.abc.Callable[[], int], "has no JSON form"),
        ],
    )
    def test_anything_else_is_refused(self, hint, message):
        with pytest.raises(DefinitionError, match=message):
            schema_of(hint)


class TestFunctions:
    def test_parameters_come_from_the_signature(self, registry):
        @registry.tool
        async def search(
            query: str, page: int = 1, *, deep: bool = False, context: ToolRunContext
        ) -> list[str]:
            """Search the index.

            Looks everywhere.

            Args:
                query: What to look for,
                    in plain words.
                page (int): Page number, from 1.

            Returns:
                Titles.
            """
            return []

        assert {
            "name": "search",
            "description": "Search the index.\n\nLooks everywhere.\n\nReturns:\n    Titles.",
            "parameters": {
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "What to look for, in plain words."},
                    "page": {"type": "integer", "description": "Page number, from 1.", "default": 1},
                    "deep": {"type": "boolean", "default": False},
                },
                "required": ["query"],
                "additionalProperties": False,
            },
        } == registry.schemas()[0]

    def test_options_override_what_the_function_says(self, registry):
        @registry.tool(name="other-name", description="Other.", concurrency_safe=True)
        async def original() -> None:
            """Original."""

        assert ("other-name", "Other.") == (
            registry.schemas()[0]["name"],
            registry.schemas()[0]["description"],
        )
        assert "parallel" == registry.execution_mode("other-name", {})

    async def test_the_function_itself_stays_usable(self, registry):
        @registry.tool
        async def double(n: int) -> int:
            return 2 * n

        assert 6 == await double(3)

    @pytest.mark.parametrize(
        ("source", "message"),
        [
            ("async def f(a) -> None: ...", "annotate the parameter 'a'"),
            ("async def f(a: int): ...", "annotate what it returns"),
            ("async def f(*a: int) -> None: ...", r"\*a cannot be a tool parameter"),
            ("async def f(a: int, /) -> None: ...", "'a' is positional-only"),
            ("async def f(a: object) -> None: ...", "parameter 'a': object has no JSON form"),
            ("async def f() -> object: ...", "return value: object has no JSON form"),
            ("async def f(a: 'Nowhere') -> None: ...", "cannot resolve an annotation"),
            ("async def f(a: C, b: C) -> None: ...", "only one parameter may be a ToolRunContext"),
        ],
    )
    def test_what_cannot_be_a_tool_is_refused_by_name(self, registry, source, message):
        namespace = {"C": ToolRunContext}
        exec(source, namespace)
        with pytest.raises(DefinitionError, match=f"function 'f'.*{message}"):
            registry.tool(namespace["f"])
        assert [] == registry.names()

    async def test_names_local_to_the_place_of_registration_are_found(self, registry):
        class Local(TypedDict):
            n: int

        @registry.tool
        async def local(value: Local) -> Local:
            return value

        assert {"n": 1} == (await registry.dispatch("local", {"value": {"n": 1}})).value

    async def test_extra_missing_and_wrong_arguments_are_named(self, registry):
        @registry.tool
        async def add(a: int, b: int) -> int:
            return a + b

        cases = {
            '"a" must be an integer': {"a": "one", "b": 2},
            '"b" must be an integer': {"a": 1, "b": True},
            'missing required property "b"': {"a": 1},
            '"c" is not a declared property': {"a": 1, "b": 2, "c": 3},
        }
        for expected, arguments in cases.items():
            message = (await registry.dispatch("add", arguments)).error.message
            assert expected in message
            assert message.endswith("The tool is: add(*, a: int, b: int) -> int")

    async def test_keyword_arguments_open_the_tool(self, registry):
        @registry.tool
        async def anything(a: int, **others: JsonValue) -> JsonValue:
            others["list"].append(a)
            return others

        assert {"list": [1]} == (await registry.dispatch("anything", {"a": 1, "list": []})).value

    async def test_a_callable_object_is_a_tool(self, registry):
        class Adder:
            async def __call__(self, a: int) -> int:
                return a + 1

        registry.tool(name="adder")(Adder())
        assert 2 == (await registry.dispatch("adder", {"a": 1})).value

    def test_a_callable_without_a_name_must_be_given_one(self, registry):
        async def twice(n: int, times: int) -> int:
            return n * times

        for nameless in (functools.partial(twice, times=2), lambda: None):
            with pytest.raises(DefinitionError, match=r"write @registry\.tool\(name=\.\.\.\)"):
                registry.tool(nameless)
        registry.tool(name="twice")(functools.partial(twice, times=2))
        assert "twice(*, n: int, times: int = ...) -> int" == signature(registry.get("twice"))
        with pytest.raises(DefinitionError, match="cannot be read as a tool"):
            registry.tool(name="number")(int)

    async def test_the_context_reaches_the_function(self, registry):
        @registry.tool
        async def who(context: ToolRunContext) -> list[JsonValue]:
            return [context.call_id, context.root_call_id, context.parent_call_id, context.session]

        result = await registry.dispatch(
            "who", {}, call_id="c:1", root_call_id="c", parent_call_id="c", session="s", parent=None
        )
        assert ["c:1", "c", "c", "s"] == result.value

    async def test_a_plain_function_works_too(self, registry):
        @registry.tool
        def plain(a: int) -> int:
            return a

        assert 1 == (await registry.dispatch("plain", {"a": 1})).value


class TestConversion:
    @pytest.mark.parametrize(
        ("hint", "sent", "received"),
        [
            (int, 2.0, 2),
            (float, 2, 2.0),
            (list[int], [1.0, 2], [1, 2]),
            (list, [1], [1]),
            (tuple[int, ...], [1, 2], (1, 2)),
            (tuple[int, str], [1, "a"], (1, "a")),
            (set[str], ["a", "a"], {"a"}),
            (frozenset[int], [1], frozenset({1})),
            (collections.abc.Sequence[int], [1], (1,)),
            (dt.date, "2024-05-17", dt.date(2024, 5, 17)),
            (
                dt.datetime,
                "2024-05-17T09:30:00+02:00",
                dt.datetime.fromisoformat("2024-05-17T09:30:00+02:00"),
            ),
            (dt.time, "09:30:00", dt.time(9, 30)),
            (decimal.Decimal, "12.50", decimal.Decimal("12.50")),
            (
                uuid.UUID,
                "123e4567-e89b-12d3-a456-426614174000",
                uuid.UUID("123e4567-e89b-12d3-a456-426614174000"),
            ),
            (pathlib.Path, "a/b", pathlib.Path("a/b")),
            (bytes, base64.b64encode(b"\x00\xff").decode(), b"\x00\xff"),
            (Color, "blue", Color.BLUE),
            (Mixed, None, Mixed.NOTHING),
            (Level, 2, Level.HIGH),
            (Point, {"x": 1}, Point(1, 0)),
            (Row, {"id": 1.0}, {"id": 1}),
            (Pair, {"left": "a"}, Pair("a", 1)),
            (Point | None, None, None),
            (Point | None, {"x": 1, "y": 2}, Point(1, 2)),
            (int | str, "5", "5"),
            (dt.date | int, 5, 5),
            (dict[str, dt.date], {"a": "2024-05-17"}, {"a": dt.date(2024, 5, 17)}),
            (list[Point], [{"x": 1}], [Point(1, 0)]),
            (
                Event,
                {"when": "2024-05-17T00:00:00", "cost": "1.0", "parts": [{"x": 1}]},
                Event(dt.datetime(2024, 5, 17), decimal.Decimal("1.0"), Color.RED, [Point(1)]),  # noqa: DTZ001
            ),
        ],
    )
    async def test_arguments_become_what_the_annotation_promises(self, registry, hint, sent, received):
        got = []

        async def take(value) -> None:
            got.append(value)

        take.__annotations__ = {"value": hint, "return": None}
        registry.tool(take)
        result = await registry.dispatch("take", {"value": sent})
        assert not result.is_error, result
        assert [received] == got
        assert type(received) is type(got[0])

    @pytest.mark.parametrize(
        ("hint", "returned", "canonical"),
        [
            (dt.date, dt.date(2024, 5, 17), "2024-05-17"),
            (list[dt.time], [dt.time(9, 30)], ["09:30:00"]),
            (decimal.Decimal, decimal.Decimal("12.50"), "12.50"),
            (uuid.UUID, uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
            (pathlib.Path, pathlib.Path("a/b"), "a/b"),
            (bytes, b"\x00\xff", "AP8="),
            (set[str], {"b", "a", "c"}, ["a", "b", "c"]),
            (tuple[int, str], (1, "a"), [1, "a"]),
            (tuple[dt.date, ...], (dt.date(2024, 5, 17),), ["2024-05-17"]),
            (Color, Color.RED, "red"),
            (Point, Point(1, 2), {"x": 1, "y": 2}),
            (Pair, Pair("a", 2), {"left": "a", "right": 2}),
            (Row, {"id": 1}, {"id": 1}),
            (Point | None, None, None),
            (Point | int, Point(1, 2), {"x": 1, "y": 2}),
            (dict[str, Point], {"a": Point(1, 2)}, {"a": {"x": 1, "y": 2}}),
            (list[Pair | None], [Pair("a"), None], [{"left": "a", "right": 1}, None]),
            (collections.abc.Sequence[int], (1, 2), [1, 2]),
        ],
    )
    async def test_results_become_json(self, registry, hint, returned, canonical):
        async def give():
            return returned

        give.__annotations__ = {"return": hint}
        registry.tool(give)
        result = await registry.dispatch("give", {})
        assert not result.is_error, result
        assert canonical == result.value

    @pytest.mark.parametrize(
        ("hint", "sent", "message"),
        [
            (
                dt.date,
                "2024-13-01",
                "\"value\" must be an ISO 8601 date, for example 2024-05-17 (got '2024-13-01')",
            ),
            (list[dt.date], ["x"], '"value[0]" must be an ISO 8601 date'),
            (decimal.Decimal, "abc", '"value" must be a decimal number as a string'),
            (uuid.UUID, "abc", '"value" must be a UUID'),
            (bytes, "a", '"value" must be base64 text'),
            (tuple[int, str], [1], '"value" must have exactly 2 items (got 1)'),
            (tuple[int, str], ["a", 1], '"value" has an item of the wrong type at position 0'),
            (dict[str, int], {"k": "x"}, '"value.k" must be an integer'),
            (Point, {"x": "1"}, '"value.x" must be an integer'),
            (Point, {"x": 1, "z": 1}, '"value.z" is not a declared property'),
            (Color, "green", '"value" must be one of ["red", "blue"]'),
        ],
    )
    async def test_arguments_that_fit_no_object_are_named_and_the_function_does_not_run(
        self, registry, hint, sent, message
    ):
        ran = []

        async def take(value) -> None:
            ran.append(value)

        take.__annotations__ = {"value": hint, "return": None}
        registry.tool(take)
        call = registry.begin("take", {"value": sent})
        await call.prepare()
        await call.execute()
        result = await call.finish()
        assert "INVALID_ARGS" == result.error.info.code
        assert message in result.error.message
        assert ([], False) == (ran, call.executed)

    async def test_a_result_that_is_not_what_was_annotated_is_the_tools_failure(self, registry):
        @registry.tool
        async def liar() -> Point:
            return "no point"  # type: ignore[return-value]  # the subject of the test

        @registry.tool
        async def tuples() -> list[int]:
            return (1, 2)  # type: ignore[return-value]  # the subject of the test

        for name in ("liar", "tuples"):
            assert "INVALID_TOOL_OUTPUT" == (await registry.dispatch(name, {})).error.info.code

    async def test_untyped_json_arrives_frozen_and_containers_arrive_as_copies(self, registry):
        seen = []

        @registry.tool
        async def look(free: JsonValue, items: list[int]) -> None:
            seen.append((type(free), type(items)))
            items.append(1)

        assert not (await registry.dispatch("look", {"free": [1], "items": [1]})).is_error
        assert [(FrozenList, list)] == seen


def test_cattrs_and_jsonschema_are_loaded_only_when_needed():
    """Importing the package, and tools with JSON annotations, must stay quick."""
    import subprocess

    code = (
        "import sys, tool_bindings\n"
        "r = tool_bindings.ToolRegistry()\n"
        "@r.tool\nasync def add(a: int, b: str = '') -> dict[str, int]: ...\n"
        "print([m for m in ('cattrs', 'jsonschema', 'pydantic') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "[]" == done.stdout.strip()
