"""Presentation modes: what a model is sent, and what it may call directly."""

from __future__ import annotations

import ast

import pytest

from tool_bindings import AbortSignal, DefinitionError, ErrorInfo, ScriptedApproval, ToolRegistry, text_block
from tool_bindings.presentation import assemble


@pytest.fixture
def run_code(define):
    return define("run_code", parameters={"type": "object", "properties": {"code": {"type": "string"}}})


def names(assembly):
    return [tool["name"] for tool in assembly.tools]


@pytest.fixture
def collapsed(define):
    registry = ToolRegistry(presentation="code", approval_provider=ScriptedApproval([]))
    registry.register(define())
    return registry


class TestAssembly:
    @pytest.mark.parametrize(
        ("mode", "tools", "sections"),
        [
            ("native", ["a", "b"], []),
            ("code", ["run_code"], [("tools:code-only", 99), ("tools:sdk", 150)]),
            ("both", ["a", "b", "run_code"], [("tools:sdk", 150)]),
        ],
    )
    def test_each_mode_sends_its_tools_and_sections(self, define, run_code, mode, tools, sections):
        """spec/tests 74, 75."""
        registry = ToolRegistry(presentation=mode)
        registry.register(define("b"))
        registry.register(define("a"))
        assembly = assemble(registry, run_code)
        assert tools == names(assembly)
        assert sections == [(section.name, section.order) for section in assembly.sections]

    def test_stub_text_is_the_same_every_time(self, define, run_code):
        """spec/tests 76."""
        texts = set()
        for order in (("a", "b", "c"), ("c", "a", "b")):
            registry = ToolRegistry(presentation="both")
            for name in order:
                registry.register(define(name))
            texts.add(assemble(registry, run_code).sections[0].text)
            texts.add(assemble(registry, run_code).sections[0].text)
        assert 1 == len(texts)
        text = texts.pop()
        ast.parse(text[text.index("```python") + 9 : text.rindex("```")])
        assert "run_code(" not in text[text.index("```python") :]

    def test_other_modes_need_a_runtime_whose_language_has_stubs(self, run_code):
        """spec/tests 77."""
        registry = ToolRegistry(presentation="both")
        with pytest.raises(DefinitionError, match="needs run_code, and no runtime is set up"):
            assemble(registry)
        with pytest.raises(DefinitionError, match="no stubs for programs in 'cobol'"):
            assemble(registry, run_code, language="cobol")
        assert [] == assemble(ToolRegistry(), language="cobol").tools

    def test_a_tool_order_may_name_only_what_is_sent(self, collapsed, define, run_code):
        """spec/tests 83."""
        with pytest.raises(
            DefinitionError, match="tool_order names tools that are not sent in mode 'code': echo"
        ):
            assemble(collapsed, run_code, tool_order=["echo"])
        native = ToolRegistry()
        for name in ("a", "b", "c"):
            native.register(define(name))
        assert ["c", "a", "b"] == names(assemble(native, tool_order=["c"]))


class TestCollapse:
    async def test_a_direct_call_is_unknown_and_is_told_the_route_and_no_policy_sees_it(self, collapsed):
        """spec/tests 78."""
        seen, observed = [], []
        collapsed.on_pre_execute(lambda call, proceed: seen.append("pre"))
        collapsed.add_guard(lambda call: seen.append("guard"))
        collapsed.around(lambda call, proceed: seen.append("around"))
        collapsed.on_post_execute(lambda call, result, proceed: seen.append("post"))
        collapsed.on_result(lambda call, result: observed.append(result))
        result = await collapsed.dispatch("echo", {}, session="s")
        assert ErrorInfo("ToolNotFoundError", "UNKNOWN_TOOL") == result.error.info
        assert 'call it from run_code as await tools["echo"](...)' in result.error.message
        assert ([], [], [result]) == (seen, collapsed.approval_provider.requests, observed)

    async def test_a_nested_call_is_not_affected(self, collapsed):
        """spec/tests 79."""
        outer = collapsed.begin("echo", {})
        assert 1 == (await collapsed.dispatch("echo", {"x": 1}, parent=outer.token)).value

    async def test_an_aborted_collapsed_call_is_aborted_and_finalized(self, define):
        """spec/tests 80."""
        registry = ToolRegistry(presentation="code")
        registry.register(define(finalize_content=lambda call, result: [text_block("finalized")]))
        signal = AbortSignal()
        signal.abort()
        result = await registry.dispatch("echo", {}, abort=signal)
        assert ("ABORTED_BEFORE_DISPATCH", [text_block("finalized")]) == (
            result.error.info.code,
            result.content,
        )
        result = await registry.dispatch("echo", {})
        assert "Error: unknown tool" == result.content[0]["text"][:19]

    async def test_bad_arguments_of_a_collapsed_call_are_named_first(self, collapsed):
        """spec/contract 1.9."""
        result = await collapsed.dispatch("echo", {"x": {1}})
        assert result.error.message.startswith("tool arguments must be lossless JSON")

    async def test_one_scope_collapses_while_others_stay_native(self, registry, define):
        """spec/tests 81."""
        registry.register(define())
        code = registry.scope("coder")
        inner = code.scope()
        lift = code.present_as("code")
        assert (await registry.dispatch("echo", {}, scope=inner)).is_error
        assert not (await registry.dispatch("echo", {})).is_error
        with pytest.raises(DefinitionError, match="coder already presents tools as 'code'"):
            code.present_as("both")
        inner.present_as("native")
        assert not (await registry.dispatch("echo", {}, scope=inner)).is_error
        lift()
        assert "native" == registry.presentation(code)

    def test_modes_are_declared_on_scopes_and_must_exist(self, registry):
        with pytest.raises(DefinitionError, match=r"use ToolRegistry\(presentation=\.\.\.\)"):
            registry.present_as("code")
        with pytest.raises(DefinitionError, match="one of native, code, both"):
            registry.scope().present_as("fast")
        with pytest.raises(DefinitionError, match="one of native, code, both"):
            ToolRegistry(presentation="fast")

    async def test_run_code_without_a_runtime_is_an_error_result(self, collapsed):
        """spec/tests 84: nobody put the transport in, so the name is unknown."""
        result = await collapsed.dispatch("run_code", {"code": "", "description": ""})
        assert "UNKNOWN_TOOL" == result.error.info.code
