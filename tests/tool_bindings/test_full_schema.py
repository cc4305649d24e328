"""Schemas outside the vocabulary: jsonschema decides, and nothing is fetched or silently accepted."""

from __future__ import annotations

import pytest
import trio

from tool_bindings import UnsupportedSchemaError, schema_process
from tool_bindings.validation import InvalidValueError, compile_schema

TREE = {
    "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]}},
    "anyOf": [{"$ref": "#/$defs/node"}, {"type": ["string", "null"], "maxLength": 3}],
}


class TestSchemas:
    @pytest.mark.parametrize(
        ("schema", "message"),
        [
            ({"type": "string", "minLength": -1}, '"schema.minLength" must be at least 0'),
            (
                {"type": ["string", "text"]},
                '"schema.type" must match at least one anyOf branch',
            ),
            (
                {"$ref": "https://example.invalid/schema.json"},
                'refers to "https://example.invalid/schema.json"',
            ),
            ({"$ref": "#/$defs/missing"}, 'refers to "#/$defs/missing"'),
            ({"$ref": "other.json"}, "which is not inside it; nothing is fetched"),
            ({"anyOf": [{"enum": {1}}]}, "is a set"),
        ],
    )
    def test_invalid_or_outward_schemas_are_refused_at_registration(self, schema, message):
        with pytest.raises(UnsupportedSchemaError) as caught:
            compile_schema(schema)
        assert message in str(caught.value)

    def test_a_schema_that_is_too_deep_is_refused_with_the_limit(self):
        schema: dict = {"minimum": 1}
        for _ in range(600):
            schema = {"anyOf": [schema]}
        with pytest.raises(UnsupportedSchemaError, match="nested more than 500 levels deep"):
            compile_schema(schema)

    def test_nothing_is_fetched(self, monkeypatch):
        import socket

        def refuse(*args):
            raise AssertionError("a schema must not open connections")

        monkeypatch.setattr(socket, "getaddrinfo", refuse)
        monkeypatch.setattr(socket.socket, "connect", refuse)
        with pytest.raises(UnsupportedSchemaError):
            compile_schema({"$ref": "http://127.0.0.1:1/x.json"})
        assert [] == compile_schema({"$schema": "https://json-schema.org/draft/2020-12/schema"}).violations(1)


class TestValues:
    @pytest.mark.parametrize("value", ["abc", None, {"next": "x"}, {"next": {"next": None}}])
    def test_values_are_validated_through_references(self, value):
        assert value == compile_schema(TREE).freeze(value)

    @pytest.mark.parametrize("value", ["abcd", 1, {}, {"next": 1}, {"next": {"next": "abcd"}}])
    def test_values_that_break_a_referenced_schema_are_refused(self, value):
        with pytest.raises(InvalidValueError):
            compile_schema(TREE).freeze(value)

    @pytest.mark.parametrize(
        ("schema", "value", "expected"),
        [
            ({"type": ["string", "null"]}, 1, '"value" must be a string or null'),
            (
                {"properties": {"a": {"type": "number", "minimum": 3}}},
                {"a": 1},
                '"value.a" must be at least 3',
            ),
            ({"required": ["a", "b"], "minProperties": 0}, {"a": 1}, 'missing required property "value.b"'),
            (
                {"type": "array", "items": {"type": "boolean"}, "maxItems": 9},
                [1],
                '"value[0]" must be a boolean',
            ),
        ],
    )
    def test_messages_name_the_place(self, schema, value, expected):
        messages = [violation.text for violation in compile_schema(schema).violations(value)]
        assert 1 == len(messages)
        assert messages[0].startswith(expected)

    def test_true_is_not_one(self):
        compiled = compile_schema({"enum": [1], "minimum": 0})
        assert [] != compiled.violations(True)
        assert [] == compiled.violations(1.0)

    def test_a_value_that_is_too_deep_is_refused_with_the_limit(self):
        compiled = compile_schema({"not": {"type": "string"}})
        value: object = 1
        for _ in range(501):
            value = [value]
        with pytest.raises(InvalidValueError, match="nested more than 500 levels deep"):
            compiled.freeze(value)
        assert value[0] == compiled.freeze(value[0])

    async def test_a_deferred_schema_is_judged_by_the_first_call(self, registry, define):
        """Judging thousands of foreign schemas at registration would take minutes."""
        good = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}}
        bad = {"type": "object", "properties": {"n": {"minimum": "one"}}}
        registry.register(define("good", parameters=good), defer_schemas=True)
        registry.register(define("bad", parameters=bad), defer_schemas=True)
        registry.register(define("bad-output", schema={"minimum": "one"}), defer_schemas=True)
        assert "INVALID_ARGS" == (await registry.dispatch("good", {"n": 0})).error.info.code
        assert not (await registry.dispatch("good", {"n": 1})).is_error
        for name in ("bad", "bad-output"):
            assert "UNSUPPORTED_SCHEMA" == (await registry.dispatch(name, {"n": 1})).error.info.code
        with pytest.raises(UnsupportedSchemaError):
            registry.register(
                define("outside", parameters={"type": "object", "required": ["x"]}), defer_schemas=True
            )

    async def test_a_tool_with_such_parameters_validates_its_arguments(self, registry, define):
        parameters = {
            "type": "object",
            "properties": {"n": {"type": "integer", "minimum": 1}},
            "required": ["n"],
        }
        registry.register(define(parameters=parameters, schema={"maximum": 5}))
        result = await registry.dispatch("echo", {"n": 0})
        assert "INVALID_ARGS" == result.error.info.code
        assert '"n" must be at least 1 (got 0)' in result.error.message
        result = await registry.dispatch("echo", {"n": 1, "x": 9})
        assert '"value" must be at most 5' in result.error.message


class TestPatterns:
    """Foreign regular expressions run where they can be stopped."""

    @pytest.fixture(autouse=True)
    def fresh(self, monkeypatch):
        # On a busy machine the child may not come to its turn for a while.
        monkeypatch.setattr(schema_process, "CHECK_SECONDS", 60)
        yield
        schema_process.schema_process.close()

    async def test_a_pattern_decides(self, registry, define):
        parameters = {"type": "object", "properties": {"id": {"type": "string", "pattern": "^[a-z]+$"}}}
        registry.register(define(parameters=parameters, schema={"type": ["string", "null"], "pattern": "^x"}))
        assert not (await registry.dispatch("echo", {"id": "abc"})).is_error
        result = await registry.dispatch("echo", {"id": "ABC"})
        assert "INVALID_ARGS" == result.error.info.code
        assert '"id" must match the regular expression "^[a-z]+$" (got "ABC")' in result.error.message
        assert "INVALID_TOOL_OUTPUT" == (await registry.dispatch("echo", {"x": "y"})).error.info.code
        assert not (await registry.dispatch("echo", {"x": "x"})).is_error

    async def test_a_pattern_that_never_ends_fails_the_call_and_the_next_one_works(
        self, registry, define, monkeypatch
    ):
        """DESIGN section 7: patterns run under a time bound off the event loop's thread."""
        evil = {"type": "object", "properties": {"s": {"type": "string", "pattern": "^(a+)+$"}}}
        registry.register(define("evil", parameters=evil))
        assert not (await registry.dispatch("evil", {"s": "a"})).is_error
        ticks = []

        async def tick():
            while True:
                ticks.append(1)
                await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(tick)
            with monkeypatch.context() as quick:
                quick.setattr(schema_process, "CHECK_SECONDS", 0.5)
                result = await registry.dispatch("evil", {"s": "a" * 60 + "!"})
            nursery.cancel_scope.cancel()
        assert "INVALID_ARGS" == result.error.info.code
        assert (
            "could not be checked: a regular expression in the schema takes more than 0.5 s"
            in result.error.message
        )
        assert len(ticks) > 10
        assert not (await registry.dispatch("evil", {"s": "aaa"})).is_error

    async def test_property_patterns_and_huge_integers_go_the_same_way(self, registry, define):
        schema = {
            "type": "object",
            "patternProperties": {"^n": {"type": "integer"}},
            "additionalProperties": False,
        }
        registry.register(define(parameters=schema))
        assert not (await registry.dispatch("echo", {"n1": 10**5000})).is_error
        assert (await registry.dispatch("echo", {"n1": "x"})).is_error
        assert (await registry.dispatch("echo", {"m": 1})).is_error

    def test_a_classifier_does_not_wait_for_patterns(self, registry, define):
        parameters = {"type": "object", "properties": {"s": {"pattern": "x"}}}
        registry.register(define(parameters=parameters, concurrency_safe=lambda arguments: True))
        assert "exclusive" == registry.execution_mode("echo", {"s": "x"})
