"""Registration, layers, restrictions, and what is shown of a tool."""

from __future__ import annotations

import math

import pytest

from tool_bindings import (
    DefinitionError,
    DuplicateToolError,
    Output,
    ToolDefinition,
    ToolRegistry,
    UnsupportedSchemaError,
)


async def body(arguments, context):
    return None


class TestRegistration:
    @pytest.mark.parametrize("output", [None, {"schema": {}}, {}, "text"])
    def test_a_tool_without_an_output_declaration_is_refused_with_the_needed_shape(self, output):
        """spec/tests 1."""
        with pytest.raises(
            DefinitionError, match=r"Output\(schema=\{\.\.\.\}, render=\.\.\., presentation_meta="
        ):
            ToolDefinition("t", "", {"type": "object"}, output, body)

    @pytest.mark.parametrize("field", ["render", "presentation_meta"])
    def test_projections_must_be_functions(self, field):
        with pytest.raises(DefinitionError, match=f"Output.{field} must be a function"):
            Output({}, **{field: "text"})

    @pytest.mark.parametrize("seconds", [0, -1, math.nan, math.inf, True, "5"])
    def test_a_timeout_must_be_positive_and_finite(self, registry, define, seconds):
        """spec/tests 2: refused where the tool is defined, by hand or from a function."""
        with pytest.raises(
            DefinitionError, match="timeout_seconds must be a finite number of seconds above 0"
        ):
            define(timeout_seconds=seconds)
        with pytest.raises(DefinitionError, match="timeout_seconds"):

            @registry.tool(timeout_seconds=seconds)
            async def slow() -> None: ...

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"name": ""}, "name must be a non-empty string"),
            ({"execute": "x"}, "execute must be a function"),
            ({"finalize_content": 1}, "finalize_content must be a function or None"),
            ({"present_call": 1}, "present_call must be a function or None"),
            ({"concurrency_safe": 1}, "concurrency_safe must be True, False, or a function"),
            ({"parameters": []}, "parameters must be a JSON schema as a dict"),
        ],
    )
    def test_other_slips_are_refused(self, define, options, message):
        with pytest.raises(DefinitionError, match=message):
            define(**options)

    def test_a_bad_output_schema_is_refused_and_names_the_tool(self, registry, define):
        """spec/contract 1.1: UNSUPPORTED_SCHEMA."""
        with pytest.raises(
            UnsupportedSchemaError, match=r"output of tool 'echo': schema.enum must be"
        ) as caught:
            registry.register(define(schema={"type": "string", "enum": [1]}))
        assert "UNSUPPORTED_SCHEMA" == caught.value.code
        assert [] == registry.names()

    def test_run_code_cannot_be_registered(self, registry, define):
        """spec/tests 5: in no mode, in no layer."""
        for layer in (registry, registry.scope(), ToolRegistry(presentation="code")):
            with pytest.raises(DefinitionError, match="'run_code' is reserved"):
                layer.register(define("run_code"))

    def test_a_failing_change_listener_rolls_the_registration_back(self, registry, define):
        """spec/tests 6."""

        def refuse():
            raise RuntimeError("no room")

        dispose = registry.on_change(refuse)
        with pytest.raises(RuntimeError, match="no room"):
            registry.register(define())
        assert [] == registry.names()
        dispose()
        registry.register(define())
        assert ["echo"] == registry.names()

    def test_changes_are_announced(self, registry, define):
        seen = []
        registry.on_change(lambda: seen.append(registry.names()))
        registry.register(define())()
        assert [["echo"], []] == seen

    def test_a_duplicate_in_one_layer_is_refused_and_both_disposers_unregister(self, registry, define):
        """spec/tests 7."""
        dispose = registry.register(define())
        with pytest.raises(DuplicateToolError, match="register a variant through a scope"):
            registry.register(define())
        scope = registry.scope("agent")
        scope.register(define("other"))
        with pytest.raises(DuplicateToolError, match="already registered in agent"):
            scope.register(define("other"))
        dispose()
        dispose()
        assert [] == registry.names()
        assert ["other"] == registry.names(scope)
        scope.close()
        assert [] == registry.names(scope)
        with pytest.raises(DefinitionError, match="agent is closed"):
            scope.register(define())

    def test_a_disposer_takes_back_its_own_registration_only(self, registry, define):
        first = registry.register(define())
        first()
        registry.register(define())
        first()
        assert ["echo"] == registry.names()

    def test_something_else_than_a_definition_is_refused(self, registry):
        with pytest.raises(DefinitionError, match=r"use @registry\.tool for functions"):
            registry.register(body)


class TestSchemas:
    def test_only_name_description_and_parameters_are_shown(self, registry, define):
        """spec/tests 3."""
        registry.register(define(timeout_seconds=1, concurrency_safe=lambda arguments: True))
        assert [
            {"name": "echo", "description": "The tool echo.", "parameters": {"type": "object"}}
        ] == registry.schemas()

    def test_schemas_are_copies(self, registry, define):
        """spec/tests 4: neither what is returned nor what was handed in reaches the registry."""
        parameters = {"type": "object", "properties": {"a": {"type": "array"}}}
        registry.register(define(parameters=parameters))
        parameters["properties"]["b"] = {}
        registry.schemas()[0]["parameters"]["properties"].clear()
        assert {"type": "object", "properties": {"a": {"type": "array"}}} == registry.schemas()[0][
            "parameters"
        ]

    def test_deep_parameters_are_fine(self, registry, define):
        """spec/tests 4."""
        node: dict = {"type": "string"}
        for _ in range(20_000):
            node = {"type": "array", "items": node}
        registry.register(define(parameters={"type": "object", "properties": {"a": node}}))
        assert "object" == registry.schemas()[0]["parameters"]["type"]

    def test_tools_are_listed_by_name(self, registry, define):
        for name in ("b", "a", "C"):
            registry.register(define(name))
        assert ["C", "a", "b"] == registry.names() == [schema["name"] for schema in registry.schemas()]


class TestLayers:
    async def test_a_nearer_tool_shadows_a_farther_one(self, registry, define):
        async def near(arguments, context):
            return "near"

        registry.register(define())
        scope = registry.scope()
        dispose = scope.register(define(execute=near))
        inner = scope.scope()
        assert "near" == (await registry.dispatch("echo", {}, scope=inner)).value
        assert None is (await registry.dispatch("echo", {})).value
        dispose()
        assert None is (await registry.dispatch("echo", {}, scope=inner)).value

    def test_closing_a_scope_closes_what_is_on_top_of_it(self, registry, define):
        with registry.scope() as outer:
            inner = outer.scope()
            inner.register(define())
        assert [] == registry.names(inner)

    async def test_a_scope_of_another_registry_is_refused(self, registry):
        with pytest.raises(DefinitionError, match="belongs to another registry"):
            await registry.dispatch("x", {}, scope=ToolRegistry().scope())

    def test_get_ignores_the_presentation_mode(self, define):
        registry = ToolRegistry(presentation="code")
        definition = define()
        registry.register(definition)
        assert definition is registry.get("echo")
        assert None is registry.get("run_code")


class TestRestrictions:
    @pytest.fixture
    def scope(self, registry, define):
        for name in ("a", "b", "c"):
            registry.register(define(name))
        return registry.scope()

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({}, r"needs allow=\[\.\.\.\] or deny=\[\.\.\.\]"),
            ({"deny": ["x", "w"]}, "not inherited: w, x; known: a, b, c"),
            ({"allow": ["run_code"]}, "'run_code' cannot be restricted"),
            ({"allow": "a"}, r"write allow=\['a'\]"),
        ],
    )
    def test_bad_restrictions_are_refused(self, scope, options, message):
        """spec/tests 82."""
        with pytest.raises(DefinitionError, match=message):
            scope.restrict(**options)

    def test_the_global_layer_cannot_be_restricted(self, registry):
        """spec/tests 82."""
        with pytest.raises(DefinitionError, match="works on a scope"):
            registry.restrict(deny=[])

    def test_restrictions_intersect_and_lift_one_by_one(self, registry, scope):
        """spec/tests 82."""
        lift_allow = scope.restrict(allow=["a", "b"])
        lift_deny = scope.restrict(deny=["b"])
        assert ["a"] == registry.names(scope)
        lift_allow()
        assert ["a", "c"] == registry.names(scope)
        lift_deny()
        assert ["a", "b", "c"] == registry.names(scope) == registry.names()

    def test_own_tools_stay_visible(self, registry, scope, define):
        """spec/tests 82."""
        scope.restrict(allow=[])
        scope.register(define("b"))
        assert ["b"] == registry.names(scope)
        assert [] != registry.names(scope.scope())

    def test_deny_admits_later_tools_and_allow_does_not(self, registry, scope, define):
        denying, allowing = scope, registry.scope()
        denying.restrict(deny=["a"])
        allowing.restrict(allow=["a"])
        registry.register(define("later"))
        assert ["b", "c", "later"] == registry.names(denying)
        assert ["a"] == registry.names(allowing)

    def test_the_filter_is_copied(self, registry, scope):
        denied = ["a"]
        scope.restrict(deny=denied)
        denied.append("b")
        assert ["b", "c"] == registry.names(scope)

    async def test_a_restricted_tool_is_unknown(self, registry, scope):
        scope.restrict(deny=["a"])
        result = await registry.dispatch("a", {}, scope=scope)
        assert "UNKNOWN_TOOL" == result.error.info.code
        assert 'unknown tool "a". Tools: b, c' == result.error.message


class TestExecutionMode:
    @pytest.mark.parametrize(
        ("safe", "expected"),
        [
            (True, "parallel"),
            (False, "exclusive"),
            (lambda arguments: True, "parallel"),
            (lambda arguments: 1, "exclusive"),
            (lambda arguments: None, "exclusive"),
            (lambda arguments: arguments["missing"], "exclusive"),
        ],
    )
    def test_only_exactly_true_is_parallel(self, registry, define, safe, expected):
        """spec/contract 1.7."""
        registry.register(define(concurrency_safe=safe))
        assert expected == registry.execution_mode("echo", {})

    def test_a_classifier_never_sees_invalid_arguments(self, registry, define):
        seen = []
        parameters = {"type": "object", "properties": {"a": {"type": "string"}}}
        registry.register(
            define(parameters=parameters, concurrency_safe=lambda arguments: not seen.append(arguments))
        )
        assert "exclusive" == registry.execution_mode("echo", {"a": 1})
        assert "exclusive" == registry.execution_mode("echo", {"a": {1}})
        assert [] == seen
        assert "parallel" == registry.execution_mode("echo", {"a": "x"})

    def test_unknown_and_collapsed_tools_are_exclusive(self, define):
        """spec/contract 1.7, 1.9."""
        registry = ToolRegistry(presentation="code")
        registry.register(define(concurrency_safe=True))
        assert "exclusive" == registry.execution_mode("nope", {})
        assert "exclusive" == registry.execution_mode("echo", {})
        assert "parallel" == registry.execution_mode("echo", {}, nested=True)


async def test_an_unknown_tool_names_near_matches_and_what_there_is(registry, define):
    registry.register(define("search"))
    result = await registry.dispatch("serch", {})
    assert 'unknown tool "serch"; did you mean "search"? Tools: search' == result.error.message
    assert ("ToolNotFoundError", "UNKNOWN_TOOL") == (result.error.info.name, result.error.info.code)


class TestCards:
    async def test_cards_come_from_the_definition_and_never_raise(self, registry, define):
        """spec/contract 1.1: bad arguments, as in old logs, give the generic card."""
        parameters = {"type": "object", "properties": {"x": {"type": "integer"}}}
        registry.register(
            define(
                parameters=parameters,
                present_call=lambda arguments: {"title": f"x is {arguments['x']}"},
                present_result=lambda arguments, result: {"failed": result.is_error},
            )
        )
        registry.register(define("plain"))
        result = await registry.dispatch("echo", {"x": 1})
        assert {"title": "x is 1"} == registry.present_call("echo", {"x": 1})
        assert {"failed": False} == registry.present_result("echo", {"x": 1}, result)
        for arguments in ({"x": "1"}, {}, [], {"x": {1}}):
            assert None is registry.present_call("echo", arguments)
        assert None is registry.present_call("plain", {}) is registry.present_call("gone", {})
        assert (
            None
            is registry.present_result("plain", {}, result)
            is registry.present_result("gone", {}, result)
        )
