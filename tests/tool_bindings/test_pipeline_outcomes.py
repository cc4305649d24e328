"""One dispatch from the body on: values, failures, and what policies may make of them."""

from __future__ import annotations

import dataclasses
import logging

import pytest

from sandbox.values import FrozenDict, FrozenList
from tool_bindings import (
    Accept,
    Block,
    ErrorInfo,
    HarnessError,
    ToolErrorRecord,
    ToolFailure,
    ToolSuccess,
    text_block,
)

TEXT = {"type": "string"}
BAD_OUTPUT = ErrorInfo("ToolOutputError", "INVALID_TOOL_OUTPUT")


def text_of(result):
    return [block.get("text") for block in result.content]


def body(value=None, *, raises=None, record=None):
    """Make an async body that notes that it ran, then returns or raises."""

    async def execute(arguments, context):
        if record is not None:
            record.append("body")
        if raises is not None:
            raise raises
        return value

    return execute


class TestOutput:
    async def test_a_value_is_frozen_and_rendered(self, registry, define):
        registry.register(define(execute=body({"a": [1]})))
        result = await registry.dispatch("echo", {})
        assert {"a": [1]} == result.value
        assert FrozenDict is type(result.value)
        assert [{"type": "text", "text": '{\n  "a": [\n    1\n  ]\n}'}] == result.content
        assert FrozenList is type(result.content)

    @pytest.mark.parametrize("value", [{1, 2}, object(), float("nan"), {"a": (1,)}])
    async def test_a_value_that_is_not_json_breaks_the_contract_before_post_execute(
        self, registry, define, value
    ):
        """spec/tests 30."""
        seen = []
        registry.register(define(execute=body(value)))

        async def post(call, result, proceed):
            seen.append(result.is_error)
            return await proceed()

        registry.on_post_execute(post)
        result = await registry.dispatch("echo", {})
        assert BAD_OUTPUT == result.error.info
        assert result.error.message.startswith(
            'tool "echo" returned invalid output: value is not lossless JSON: "value'
        )
        assert [True] == seen

    async def test_a_value_of_the_wrong_type_breaks_the_contract(self, registry, define):
        """spec/tests 31."""
        registry.register(define(execute=body(1), schema=TEXT))
        result = await registry.dispatch("echo", {})
        assert BAD_OUTPUT == result.error.info
        assert 'tool "echo" returned invalid output: "value" must be a string' == result.error.message

    @pytest.mark.parametrize("part", ["render", "presentation_meta"])
    async def test_a_raising_projection_breaks_the_contract_and_names_the_cause(self, registry, define, part):
        """spec/tests 32."""

        def fail(arguments, value):
            raise ValueError("no such column")

        registry.register(define(**{part: fail}))
        result = await registry.dispatch("echo", {})
        assert BAD_OUTPUT == result.error.info
        assert f"output.{part} failed: no such column" in result.error.message
        assert not hasattr(result, "value")

    @pytest.mark.parametrize("part", ["render", "presentation_meta"])
    async def test_a_projection_that_is_not_json_breaks_the_contract(self, registry, define, part):
        """spec/tests 33."""
        registry.register(define(**{part: lambda arguments, value: [{"type": "text", "text": {1}}]}))
        result = await registry.dispatch("echo", {})
        assert f'output.{part} returned non-lossless JSON: "{part}[0].text" is a set' in result.error.message

    @pytest.mark.parametrize("blocks", ["text", {"type": "text"}, [["text"]], [{"text": "x"}], None])
    async def test_a_renderer_must_return_content_blocks(self, registry, define, blocks):
        registry.register(define(render=lambda arguments, value: blocks))
        result = await registry.dispatch("echo", {})
        assert "output.render must return a list of content blocks" in result.error.message

    async def test_metadata_is_for_direct_calls_only(self, registry, define):
        """spec/tests 56."""
        computed = []

        def meta(arguments, value):
            computed.append(value)
            return {"n": value}

        registry.register(define(presentation_meta=meta))
        outer = registry.begin("echo", {"x": 1})
        assert {"n": 1} == (await registry.dispatch("echo", {"x": 1})).meta
        assert None is (await registry.dispatch("echo", {"x": 1}, parent=outer.token)).meta
        assert [1] == computed

    async def test_a_body_without_render_gets_the_bounded_default(self, registry, define):
        registry.register(define(execute=body(list(range(100_000)))))
        result = await registry.dispatch("echo", {})
        assert 16_384 <= len(result.content[0]["text"].encode()) <= 16_384 + 100
        assert 100_000 == len(result.value)


class TestFailures:
    async def test_a_body_exception_reaches_wrappers_and_post_execute_as_a_result(self, registry, define):
        """spec/tests 47, 63."""
        seen = []
        registry.register(define(execute=body(raises=ValueError("boom"))))

        async def around(call, proceed):
            result = await proceed()
            seen.append(result.error)
            return result

        async def post(call, result, proceed):
            seen.append(result.error)
            return await proceed()

        registry.around(around)
        registry.on_post_execute(post)
        result = await registry.dispatch("echo", {})
        assert [ToolErrorRecord("boom")] * 2 == seen
        assert ["Error: boom"] == text_of(result)

    async def test_a_coded_error_carries_name_and_code(self, registry, define):
        class FsError(HarnessError):
            """A file is not there."""

        registry.register(define(execute=body(raises=FsError("no file", "FS_NOT_FOUND"))))
        result = await registry.dispatch("echo", {})
        assert ToolErrorRecord("no file", ErrorInfo("FsError", "FS_NOT_FOUND")) == result.error

    async def test_every_exception_has_a_message(self, registry, define):
        """spec/tests 62."""

        class WithMessageError(Exception):
            message = "from the attribute"

        class UnprintableError(Exception):
            def __str__(self):
                raise RuntimeError

        class SilentError(Exception):
            pass

        cases = [
            (WithMessageError(), "from the attribute"),
            (UnprintableError(), "<unprintable exception>"),
            (SilentError(), "SilentError"),
            (ExceptionGroup("group", [ValueError("inner")]), "inner"),
            (SystemExit("stop"), "stop"),
        ]
        for number, (error, expected) in enumerate(cases):
            registry.register(define(f"t{number}", body(raises=error)))
            assert expected == (await registry.dispatch(f"t{number}", {})).error.message

    async def test_a_huge_exception_text_is_cut(self, registry, define):
        registry.register(define(execute=body(raises=ValueError("x" * 1_000_000))))
        message = (await registry.dispatch("echo", {})).error.message
        assert 16_384 <= len(message) < 17_000
        assert "of 1000000 bytes are not shown" in message

    async def test_an_unknown_tool_is_seen_by_policies_and_fails_at_the_body(self, registry):
        """spec/contract 1.5."""
        seen = []
        registry.add_guard(lambda call: seen.append(("guard", call.definition)))

        async def post(call, result, proceed):
            seen.append(("post", result.error.info.code))
            return await proceed()

        registry.on_post_execute(post)
        assert (await registry.dispatch("nope", {})).is_error
        assert [("guard", None), ("post", "UNKNOWN_TOOL")] == seen


class TestAround:
    async def test_a_success_made_by_a_wrapper_goes_through_the_tools_own_schema(self, registry, define):
        """spec/tests 41."""
        seen = []
        registry.register(
            define(execute=body(record=seen), schema=TEXT, render=lambda a, v: [text_block(f"<{v}>")])
        )
        dispose = registry.around(
            lambda call, proceed: ToolSuccess("short", [text_block("hand-made")], {"m": 1})
        )
        result = await registry.dispatch("echo", {})
        assert ("short", ["<short>"], None) == (result.value, text_of(result), result.meta)
        dispose()
        registry.around(lambda call, proceed: ToolSuccess(5, []))
        assert BAD_OUTPUT == (await registry.dispatch("echo", {})).error.info
        assert [] == seen

    async def test_a_cached_success_of_another_tool_is_validated_again(self, registry, define):
        """spec/tests 42."""
        seen = []
        registry.register(define("number", body(5)))
        registry.register(define("text", body(record=seen), schema=TEXT))
        cached = await registry.dispatch("number", {})
        registry.around(lambda call, proceed: cached)
        result = await registry.dispatch("text", {})
        assert BAD_OUTPUT == result.error.info
        assert [] == seen

    async def test_a_cached_success_of_the_same_tool_is_made_anew(self, registry, define):
        renders = []

        def render(arguments, value):
            renders.append(arguments["x"])
            return [text_block(str(arguments["x"]))]

        registry.register(define(render=render))
        cached = await registry.dispatch("echo", {"x": 1})
        registry.around(lambda call, proceed: cached)
        result = await registry.dispatch("echo", {"x": 2})
        assert (1, ["2"]) == (result.value, text_of(result))
        assert [1, 2] == renders

    async def test_a_copied_success_loses_its_edited_content_and_keeps_its_contexts(self, registry, define):
        """spec/tests 43."""
        context = {"role": "user", "content": []}

        async def around(call, proceed):
            result = await proceed()
            return dataclasses.replace(result, content=[text_block("edited")], additional_contexts=[context])

        registry.register(define(execute=body("x")))
        registry.around(around)
        result = await registry.dispatch("echo", {})
        assert ["x"] == text_of(result)
        assert [context] == list(result.additional_contexts)

    async def test_the_dispatchs_own_result_is_trusted_as_it_is(self, registry, define):
        renders = []

        def render(arguments, value):
            renders.append(value)
            return []

        async def around(call, proceed):
            return await proceed()

        registry.register(define(render=render))
        registry.around(around)
        await registry.dispatch("echo", {})
        assert [None] == renders

    async def test_a_success_for_a_tool_that_vanished_is_an_unknown_tool(self, registry, define):
        """spec/tests 44."""
        dispose = registry.register(define())
        posts = []

        async def around(call, proceed):
            dispose()
            return ToolSuccess(1, [])

        registry.around(around)
        registry.on_post_execute(lambda call, result, proceed: posts.append(result))
        result = await registry.dispatch("echo", {})
        assert "UNKNOWN_TOOL" == result.error.info.code
        assert [] == posts

    async def test_a_wrapper_failure_is_kept_as_authored(self, registry, define):
        """spec/tests 45."""
        authored = ToolFailure(
            ToolErrorRecord("later", ErrorInfo("QueueError", "QUEUED")),
            [text_block("busy")],
            {"m": 1},
            [{"c": 1}],
        )
        registry.register(define())
        registry.around(lambda call, proceed: authored)
        assert authored == await registry.dispatch("echo", {})

    async def test_a_raising_wrapper_fails_the_call_without_post_execute(self, registry, define):
        """spec/tests 46."""
        seen = []

        async def around(call, proceed):
            await proceed()
            raise ValueError("wrapper broke")

        registry.register(define())
        registry.around(around)
        registry.on_post_execute(lambda call, result, proceed: seen.append("post"))
        assert ["Error: wrapper broke"] == text_of(await registry.dispatch("echo", {}))
        assert [] == seen

    async def test_listeners_get_frozen_results(self, registry, define):
        """spec/tests 48."""
        frozen = []

        async def around(call, proceed):
            result = await proceed()
            with pytest.raises(dataclasses.FrozenInstanceError):
                result.value = 1
            frozen.extend([type(result.value), type(result.content), type(result.content[0])])
            return result

        registry.register(define(execute=body([1])))
        dispose = registry.around(around)
        await registry.dispatch("echo", {})
        assert [FrozenList, FrozenList, FrozenDict] == frozen
        dispose()
        registry.add_guard(lambda call: "denied")

        async def post(call, result, proceed):
            with pytest.raises(TypeError, match="read-only"):
                result.content.append("x")
            return await proceed()

        registry.on_post_execute(post)
        assert "denied" == (await registry.dispatch("echo", {})).error.message

    async def test_the_body_runs_at_most_once(self, registry, define):
        ran = []

        async def around(call, proceed):
            await proceed()
            return await proceed()

        registry.register(define(execute=body(record=ran)))
        registry.around(around)
        result = await registry.dispatch("echo", {})
        assert "at most once" in result.error.message
        assert ["body"] == ran

    async def test_something_else_than_a_result_fails_the_call(self, registry, define):
        registry.register(define())
        registry.around(lambda call, proceed: {"value": 1})
        result = await registry.dispatch("echo", {})
        assert (
            "an around listener must return a ToolSuccess or a ToolFailure, not dict" == result.error.message
        )


class TestPostExecute:
    @pytest.fixture
    def answer(self, registry, define):
        """Register a tool that returns its argument, and a listener that answers with one decision."""
        registry.register(
            define(
                render=lambda arguments, value: [text_block(f"value {value}")],
                presentation_meta=lambda arguments, value: {"meta": value},
            )
        )

        def install(decision):
            return registry.on_post_execute(lambda call, result, proceed: decision)

        return install

    async def test_replaced_content_leaves_value_and_metadata(self, registry, answer):
        """spec/tests 49: content replacement is presentation only, and no confidentiality."""
        answer(Accept(content=[text_block("hidden")]))
        result = await registry.dispatch("echo", {"x": 1})
        assert (1, ["hidden"], {"meta": 1}) == (result.value, text_of(result), result.meta)

    async def test_a_replaced_value_recomputes_content_and_metadata(self, registry, answer):
        """spec/tests 49."""
        answer(Accept(value=None))
        result = await registry.dispatch("echo", {"x": 1})
        assert (None, ["value None"], {"meta": None}) == (result.value, text_of(result), result.meta)

    async def test_a_replaced_value_is_validated(self, registry, define):
        registry.register(define("text", body("a"), schema=TEXT))
        registry.on_post_execute(lambda call, result, proceed: Accept(value=1))
        assert BAD_OUTPUT == (await registry.dispatch("text", {})).error.info

    async def test_content_and_value_together_fail(self, registry, answer):
        """spec/tests 50."""
        answer(Accept(content=[], value=1))
        result = await registry.dispatch("echo", {"x": 1})
        assert "a post-execute listener may replace content or value, not both" == result.error.message

    async def test_a_value_for_a_failure_fails(self, registry, define):
        """spec/tests 50."""
        registry.register(define(execute=body(raises=ValueError("x"))))
        registry.on_post_execute(lambda call, result, proceed: Accept(value=1))
        result = await registry.dispatch("echo", {})
        assert "a post-execute listener cannot give a value to a failed result" == result.error.message

    async def test_content_of_a_failure_may_be_replaced(self, registry, define):
        registry.register(define(execute=body(raises=ValueError("x"))))
        registry.on_post_execute(lambda call, result, proceed: Accept(content=[text_block("softer")]))
        result = await registry.dispatch("echo", {})
        assert ("x", ["softer"]) == (result.error.message, text_of(result))

    @pytest.mark.parametrize(
        ("blocks", "message"),
        [
            ([text_block("no"), text_block("never")], "no\nnever"),
            ([], "tool result blocked by post-execute policy"),
            ([{"type": "reasoning", "text": "hm"}], "[reasoning content]"),
        ],
    )
    async def test_a_block_makes_a_failure_of_its_feedback(self, registry, answer, blocks, message):
        """spec/tests 51."""
        answer(Block(blocks))
        result = await registry.dispatch("echo", {"x": 1})
        assert ToolErrorRecord(message) == result.error
        assert blocks == result.content
        assert None is result.meta

    async def test_a_block_drops_deferred_contexts_and_keeps_its_own(self, registry, define):
        """spec/tests 52."""

        async def execute(arguments, context):
            context.defer_context({"from": "body"})

        registry.register(define(execute=execute))
        registry.on_post_execute(lambda call, result, proceed: Block([], [{"from": "policy"}]))
        result = await registry.dispatch("echo", {})
        assert [{"from": "policy"}] == list(result.additional_contexts)

    async def test_contexts_come_from_body_then_wrapper_then_policy(self, registry, define):
        """spec/tests 53."""

        async def execute(arguments, context):
            context.defer_context({"from": "body"})

        async def around(call, proceed):
            result = await proceed()
            contexts = [*result.additional_contexts, {"from": "wrapper"}]
            return dataclasses.replace(result, additional_contexts=contexts)

        registry.register(define(execute=execute))
        registry.around(around)
        registry.on_post_execute(lambda call, result, proceed: Accept(contexts=[{"from": "policy"}]))
        result = await registry.dispatch("echo", {})
        assert ["body", "wrapper", "policy"] == [context["from"] for context in result.additional_contexts]

    async def test_deferred_contexts_survive_an_exception_of_the_body(self, registry, define):
        """spec/tests 54."""

        async def execute(arguments, context):
            context.defer_context({"kept": True})
            raise ValueError("after")

        registry.register(define(execute=execute))
        result = await registry.dispatch("echo", {})
        assert ("after", [{"kept": True}]) == (result.error.message, list(result.additional_contexts))

    async def test_a_replaced_value_keeps_contexts_and_adds_none(self, registry, define):
        """spec/tests 55."""

        async def execute(arguments, context):
            context.defer_context({"from": "body"})
            return 1

        registry.register(define(execute=execute))
        registry.on_post_execute(lambda call, result, proceed: Accept(value=2))
        result = await registry.dispatch("echo", {})
        assert (2, [{"from": "body"}]) == (result.value, list(result.additional_contexts))

    async def test_a_raising_listener_fails_the_call_and_drops_contexts(self, registry, define):
        async def execute(arguments, context):
            context.defer_context({"from": "body"})

        async def post(call, result, proceed):
            raise ValueError("judge is ill")

        registry.register(define(execute=execute))
        registry.on_post_execute(post)
        result = await registry.dispatch("echo", {})
        assert ("judge is ill", []) == (result.error.message, list(result.additional_contexts))

    async def test_a_decision_of_another_kind_fails_the_call(self, registry, answer):
        answer(None)
        result = await registry.dispatch("echo", {"x": 1})
        assert "a post-execute listener must return Accept or Block, not NoneType" == result.error.message

    async def test_content_that_is_not_json_fails_the_call(self, registry, answer):
        """spec/contract 1.4."""
        answer(Accept(content=[{"type": "text", "text": {1}}]))
        result = await registry.dispatch("echo", {"x": 1})
        assert result.error.message.startswith("tool result must be losslessly JSON-serializable: ")


class TestConcludeTurn:
    async def test_only_a_success_concludes_the_turn_and_wrappers_cannot(self, registry, define):
        async def execute(arguments, context):
            context.conclude_turn()
            if arguments.get("fail"):
                raise ValueError("no")

        registry.register(define(execute=execute))
        registry.register(define("plain"))
        assert (await registry.dispatch("echo", {})).concludes_turn
        assert not hasattr(await registry.dispatch("echo", {"fail": True}), "concludes_turn")
        dispose = registry.around(lambda call, proceed: ToolSuccess(1, [], concludes_turn=True))
        assert not (await registry.dispatch("plain", {})).concludes_turn
        dispose()
        registry.on_post_execute(lambda call, result, proceed: Block([]))
        assert not hasattr(await registry.dispatch("echo", {}), "concludes_turn")


class TestFinalize:
    async def test_it_runs_once_for_every_outcome_and_none_keeps_the_content(self, registry, define):
        """spec/tests 57."""
        seen = []

        def finalize(call, result):
            seen.append(result.is_error)
            return [text_block("final")] if call.arguments.get("replace") else None

        async def execute(arguments, context):
            if arguments.get("fail"):
                raise ValueError("x")
            return "v"

        registry.register(define(execute=execute, finalize_content=finalize))
        assert ["v"] == text_of(await registry.dispatch("echo", {}))
        assert ["final"] == text_of(await registry.dispatch("echo", {"replace": 1}))
        assert ["final"] == text_of(await registry.dispatch("echo", {"replace": 1, "fail": 1}))
        registry.add_guard(lambda call: "denied")
        assert ["final"] == text_of(await registry.dispatch("echo", {"replace": 1}))
        assert ["Error"] == [
            text.split(":")[0] for text in text_of(await registry.dispatch("echo", {"x": {1}}))
        ]
        assert [False, False, True, True, True] == seen

    async def test_a_raising_finalizer_becomes_the_result_and_is_not_called_again(self, registry, define):
        """spec/tests 58."""
        calls = []

        def finalize(call, result):
            calls.append(result)
            raise ValueError("cannot finish")

        registry.register(define(finalize_content=finalize))
        result = await registry.dispatch("echo", {})
        assert "cannot finish" == result.error.message
        assert 1 == len(calls)

    async def test_it_belongs_to_the_tool_that_was_there_when_the_call_began(self, registry, define):
        dispose = registry.register(define(finalize_content=lambda call, result: [text_block("first owner")]))
        call = registry.begin("echo", {})
        dispose()
        await call.prepare()
        await call.execute()
        assert ["first owner"] == text_of(await call.finish())


class TestObservers:
    async def test_failures_of_observers_are_logged_and_go_no_further(self, registry, define, caplog):
        """spec/tests 59."""
        seen = []

        def fail(call, result):
            raise ValueError("observer broke")

        registry.register(define())
        registry.on_result(lambda call, result: seen.append(result))
        registry.on_result(fail)
        registry.on_result(lambda call, result: seen.append(result))
        with caplog.at_level(logging.ERROR, "tool_bindings"):
            result = await registry.dispatch("echo", {})
        assert not result.is_error
        assert [result, result] == seen
        assert seen[0] is seen[1] is result
        assert "observer broke" in caplog.text
