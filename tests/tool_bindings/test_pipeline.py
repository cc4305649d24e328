"""One dispatch up to the body: stages, their order, decisions and arguments."""

from __future__ import annotations

import dataclasses
import functools
import threading

import pytest

from sandbox.values import FrozenDict, encode
from tool_bindings import (
    ALLOW,
    Allow,
    Ask,
    Deny,
    ErrorInfo,
    JsonValue,
    ScriptedApproval,
    ToolErrorRecord,
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


class TestOrder:
    async def test_stages_run_in_order(self, registry, define):
        """spec/tests 37."""
        seen = []

        async def pre(call, proceed):
            seen.append("pre")
            return await proceed()

        async def around(call, proceed):
            seen.append("around")
            result = await proceed()
            seen.append("around-end")
            return result

        async def post(call, result, proceed):
            seen.append("post")
            return await proceed()

        registry.register(
            define(
                execute=body(1, record=seen), finalize_content=lambda call, result: seen.append("finalize")
            )
        )
        registry.on_pre_execute(pre)
        registry.add_guard(lambda call: seen.append("guard"))
        registry.around(around)
        registry.on_post_execute(post)
        registry.on_result(lambda call, result: seen.append("result"))
        await registry.dispatch("echo", {})
        assert ["pre", "guard", "around", "body", "around-end", "post", "finalize", "result"] == seen

    async def test_listeners_are_asked_in_registration_order_unless_put_first(self, registry, define):
        seen = []

        def listener(name):
            async def pre(call, proceed):
                seen.append(name)
                return await proceed()

            return pre

        registry.register(define())
        registry.on_pre_execute(listener("one"))
        registry.on_pre_execute(listener("two"))
        dispose = registry.on_pre_execute(listener("zero"), first=True)
        await registry.dispatch("echo", {})
        dispose()
        await registry.dispatch("echo", {})
        assert ["zero", "one", "two", "one", "two"] == seen

    async def test_a_stage_out_of_order_is_a_bug_of_the_caller(self, registry, define):
        registry.register(define())
        call = registry.begin("echo", {})
        with pytest.raises(RuntimeError, match="out of order"):
            await call.execute()
        await call.prepare()
        await call.execute()
        await call.finish()
        with pytest.raises(RuntimeError, match="each once"):
            await call.finish()

    async def test_stages_with_nobody_to_ask_need_no_waiting(self, registry, define):
        registry.register(define())
        call = registry.begin("echo", {"x": 1})
        with pytest.raises(RuntimeError, match="out of order"):
            call.finish_nowait()
        assert call.prepare_nowait()
        with pytest.raises(RuntimeError, match="out of order"):
            call.prepare_nowait()
        await call.execute()
        assert 1 == call.finish_nowait().value
        with pytest.raises(RuntimeError, match="each once"):
            call.finish_nowait()

    async def test_stages_with_somebody_to_ask_say_so_and_begin_only_when_awaited(self, registry, define):
        asked = []
        registry.register(define())

        async def before(call, proceed):
            asked.append("before")
            return await proceed()

        async def after(call, result, proceed):
            asked.append("after")
            return await proceed()

        registry.on_pre_execute(before)
        registry.on_post_execute(after)
        call = registry.begin("echo", {"x": 1})
        assert not call.prepare_nowait()
        assert [] == asked
        await call.prepare()
        await call.execute()
        assert None is call.finish_nowait()
        assert ["before"] == asked
        assert 1 == (await call.finish()).value
        assert ["before", "after"] == asked

    async def test_policies_added_while_a_call_is_on_its_way_are_asked_from_then_on(self, registry, define):
        asked = []

        async def execute(arguments, context):
            registry.on_post_execute(after)
            return arguments

        async def after(call, result, proceed):
            asked.append(call.name)
            return await proceed()

        registry.register(define(execute=execute))
        await registry.dispatch("echo", {})
        assert ["echo"] == asked

    async def test_a_plain_wrapper_of_an_async_body_runs_in_a_thread_as_every_plain_body(self, registry):
        @registry.tool
        async def add(number: int) -> int:
            return number + 1

        definition = registry.get("add")
        threads = []

        @functools.wraps(definition.execute)
        def cached(arguments, context):
            threads.append(threading.current_thread())
            return 7

        registry.register(dataclasses.replace(definition, name="cached", execute=cached))
        assert 7 == (await registry.dispatch("cached", {"number": 1})).value
        assert threading.current_thread() not in threads

    async def test_a_call_has_its_identity_and_its_place(self, registry, define):
        registry.register(define())
        outer = registry.begin("echo", {}, call_id="call-7")
        nested = registry.begin(
            "echo",
            {},
            call_id="call-7:code:1",
            root_call_id="call-7",
            parent_call_id="call-7",
            parent=outer.token,
        )
        assert ("call-7", "call-7", None, None) == (
            outer.call_id,
            outer.root_call_id,
            outer.parent_call_id,
            outer.parent,
        )
        assert ("call-7:code:1", "call-7", "call-7") == (
            nested.call_id,
            nested.root_call_id,
            nested.parent_call_id,
        )
        assert outer.token is nested.parent is not nested.token


class TestBeforeTheBody:
    async def test_a_denial_skips_the_body_and_still_meets_post_execute(self, registry, define):
        """spec/tests 38."""
        seen = []
        registry.register(define(execute=body(record=seen)))
        registry.on_pre_execute(lambda call, proceed: Deny("not today"))
        registry.around(lambda call, proceed: seen.append("around"))

        async def post(call, result, proceed):
            seen.append(("post", result.is_error))
            return await proceed()

        registry.on_post_execute(post)
        call = registry.begin("echo", {})
        await call.prepare()
        await call.execute()
        result = await call.finish()
        assert ToolErrorRecord("not today") == result.error
        assert ["Error: not today"] == text_of(result)
        assert [("post", True)] == seen
        assert not call.executed

    @pytest.mark.parametrize(
        ("answers", "session", "expected"),
        [
            (None, "s", "because"),
            (["allowed-once"], None, "because; it belongs to no session that could be asked"),
            (["rejected"], "s", "the user rejected this call: because"),
            (["cancelled"], "s", "approval was cancelled: because"),
            (["unavailable"], "s", "approval is required, and there is no channel to ask on: because"),
        ],
    )
    async def test_an_ask_that_nobody_grants_is_a_denial(self, registry, define, answers, session, expected):
        """spec/tests 39; spec/contract 1.5."""
        seen = []
        registry.register(define(execute=body(record=seen)))
        registry.on_pre_execute(lambda call, proceed: Ask("because"))
        approval = None if answers is None else ScriptedApproval(answers)
        registry.approval_provider = approval
        result = await registry.dispatch("echo", {}, session=session)
        assert expected == result.error.message
        assert [] == seen
        assert (0 if approval is None or session is None else 1) == (
            len(approval.requests) if approval else 0
        )

    async def test_a_granted_ask_runs_the_body_and_says_who_asked(self, registry, define):
        pending = []
        registry.register(define())
        registry.on_pre_execute(lambda call, proceed: Ask())
        registry.approval_provider = ScriptedApproval(["allowed-once"])
        result = await registry.dispatch(
            "echo", {"x": 1}, session="s", provenance="code", run_id="run-1", approval_pending=pending.append
        )
        assert 1 == result.value
        asked = registry.approval_provider.requests[0]
        assert ("echo", {"x": 1}, "code", "run-1") == (
            asked.tool,
            asked.arguments,
            asked.provenance,
            asked.run_id,
        )
        assert [True, False] == pending

    @pytest.mark.parametrize("belongs", ["session", "scope", "run_id"])
    async def test_a_session_a_scope_or_a_run_is_enough_to_be_asked(self, registry, define, belongs):
        """Decision 0107: "agent" means any of them."""
        registry.register(define())
        registry.on_pre_execute(lambda call, proceed: Ask())
        registry.approval_provider = ScriptedApproval(["allowed-once"])
        owner = registry.scope() if belongs == "scope" else "x"
        assert not (await registry.dispatch("echo", {}, **{belongs: owner})).is_error

    @pytest.mark.parametrize("answer", ["maybe", None, True])
    async def test_a_rogue_approval_answer_fails_the_call(self, registry, define, answer):
        registry.register(define())
        registry.on_pre_execute(lambda call, proceed: Ask())
        registry.approval_provider = ScriptedApproval([answer])
        result = await registry.dispatch("echo", {}, session="s")
        assert "must answer one of allowed-once, rejected, cancelled, unavailable" in result.error.message

    async def test_a_pre_execute_listener_that_decides_nothing_fails_the_call(self, registry, define):
        registry.register(define())
        registry.on_pre_execute(lambda call, proceed: None)
        result = await registry.dispatch("echo", {})
        assert "a pre-execute listener must return Allow, Deny or Ask, not NoneType" == result.error.message

    async def test_a_raising_pre_execute_listener_or_guard_fails_the_call_without_post_execute(
        self, registry, define
    ):
        """spec/contract 1.5: final results skip post-execute."""
        seen = []

        def fail(call, *rest):
            raise ValueError("broken policy")

        registry.register(define())
        registry.on_post_execute(lambda call, result, proceed: seen.append("post"))
        dispose = registry.on_pre_execute(fail)
        assert ["Error: broken policy"] == text_of(await registry.dispatch("echo", {}))
        dispose()
        registry.add_guard(fail)
        assert ["Error: broken policy"] == text_of(await registry.dispatch("echo", {}))
        assert [] == seen

    async def test_a_guard_denial_is_final_and_guards_compose(self, registry, define):
        """spec/tests 40."""
        asked = []
        registry.register(define())

        async def allow_all(call, proceed):
            await proceed()
            return Allow()

        def late_guard(call):
            asked.append("late")
            return "closed"

        def first_guard(call):
            asked.append("first")
            if len(asked) == 1:
                registry.add_guard(late_guard)

        registry.on_pre_execute(allow_all)
        registry.add_guard(first_guard)
        registry.add_guard(lambda call: asked.append("second"))
        result = await registry.dispatch("echo", {})
        assert ["first", "second", "late"] == asked
        assert "closed" == result.error.message

    async def test_guards_run_from_the_global_layer_to_the_nearest(self, registry, define):
        seen = []
        scope = registry.scope()
        inner = scope.scope()
        registry.register(define())
        inner.add_guard(lambda call: seen.append("inner"))
        scope.add_guard(lambda call: seen.append("outer"))
        registry.add_guard(lambda call: seen.append("global"))
        await registry.dispatch("echo", {}, scope=inner)
        assert ["global", "outer", "inner"] == seen

    async def test_scoped_listeners_see_their_own_calls_only(self, registry, define):
        seen = []
        registry.register(define())
        scopes = [registry.scope(), registry.scope()]
        for number, scope in enumerate(scopes):
            scope.on_result(lambda call, result, number=number: seen.append(number))
        await registry.dispatch("echo", {}, scope=scopes[1])
        await registry.dispatch("echo", {})
        assert [1] == seen

    async def test_policies_cannot_rewrite_the_call(self, registry, define):
        """spec/contract 1.5: no input rewriting, and the signal only inside around."""
        errors = []

        def pre(call, proceed):
            for change in (
                lambda: setattr(call, "arguments", {}),
                lambda: setattr(call, "name", "other"),
                lambda: setattr(call, "signal", call.abort),
                lambda: call.arguments.update(x=2),
            ):
                try:
                    change()
                except (AttributeError, TypeError) as error:
                    errors.append(type(error).__name__)
            return ALLOW

        registry.register(define())
        registry.on_pre_execute(pre)
        assert 1 == (await registry.dispatch("echo", {"x": 1})).value
        assert ["AttributeError", "AttributeError", "AttributeError", "TypeError"] == errors


class TestArguments:
    async def test_invalid_arguments_fail_with_their_code_and_the_body_does_not_run(self, registry, define):
        """spec/tests 34."""
        seen = []
        parameters = {
            "type": "object",
            "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
            "required": ["path"],
            "additionalProperties": False,
        }
        registry.register(define("read", body(record=seen), parameters=parameters))
        call = registry.begin("read", {"pth": "x", "limit": "3"})
        await call.prepare()
        await call.execute()
        result = await call.finish()
        assert ErrorInfo("ToolArgsError", "INVALID_ARGS") == result.error.info
        assert (
            'invalid arguments: missing required property "path"; "limit" must be an integer (got "3"); '
            '"pth" is not a declared property (additionalProperties: false); did you mean "path"? '
            "The tool is: read(*, path: str, limit: int = ...) -> Any"
        ) == result.error.message
        assert [] == seen
        assert not call.executed

    @pytest.mark.parametrize(
        ("value", "shown"),
        [
            ("one", '"one"'),
            (True, "true"),
            ([1], "an array"),
            ({}, "an object"),
            ("x" * 99, '"' + "x" * 39 + "…"),
        ],
    )
    async def test_a_refused_argument_is_shown_but_never_at_length(self, registry, define, value, shown):
        """Field report F036: tool, parameter, what was expected, what came."""
        parameters = {"type": "object", "properties": {"n": {"type": "integer"}}}
        registry.register(define("add", parameters=parameters))
        message = (await registry.dispatch("add", {"n": value})).error.message
        assert f'invalid arguments: "n" must be an integer (got {shown}). The tool is: add(' in message

    async def test_a_flood_of_violations_is_cut(self, registry, define):
        parameters = {"type": "object", "properties": {"n": {"type": "array", "items": {"type": "null"}}}}
        registry.register(define(parameters=parameters))
        message = (await registry.dispatch("echo", {"n": [1] * 1000})).error.message
        assert "; and 990 more. The tool is" in message

    async def test_policies_see_a_call_with_invalid_arguments_before_it_fails(self, registry, define):
        seen = []
        registry.register(define(parameters={"type": "object", "properties": {"x": {"type": "string"}}}))
        registry.add_guard(lambda call: seen.append(call.arguments))
        assert (await registry.dispatch("echo", {"x": 1})).is_error
        assert [{"x": 1}] == seen

    async def test_defaults_are_not_applied_and_extra_keys_are_allowed_at_an_open_root(
        self, registry, define
    ):
        """spec/tests 35."""
        received = []

        async def execute(arguments, context):
            received.append(arguments)

        parameters = {"type": "object", "properties": {"n": {"type": "integer", "default": 5}}}
        registry.register(define(execute=execute, parameters=parameters))
        assert not (await registry.dispatch("echo", {"more": True})).is_error
        assert [{"more": True}] == received

    async def test_every_tool_gets_validated_arguments(self, registry, define):
        """Decision 0101 against spec/tests 36: hand-made definitions are validated like any other."""
        seen = []
        registry.register(
            define(
                execute=body(record=seen),
                parameters={"type": "object", "properties": {"x": {"type": "null"}}},
            )
        )
        assert "INVALID_ARGS" == (await registry.dispatch("echo", {"x": 0})).error.info.code
        assert [] == seen

    async def test_arguments_that_are_no_object_fail_validation(self, registry, define):
        registry.register(define())
        for arguments in ([1], "x", None, 5):
            result = await registry.dispatch("echo", arguments)
            assert "INVALID_ARGS" == result.error.info.code
            assert '"arguments" must be an object' in result.error.message

    async def test_arguments_that_are_not_json_fail_before_any_policy(self, registry, define):
        """spec/tests 60."""
        seen, notified = [], []
        registry.register(define())
        registry.on_pre_execute(lambda call, proceed: seen.append("pre"))
        registry.on_post_execute(lambda call, result, proceed: seen.append("post"))
        registry.on_result(lambda call, result: notified.append(result))
        result = await registry.dispatch("echo", {"x": {1, 2}})
        message = 'tool arguments must be lossless JSON: "arguments.x" is a set; write list(...)'
        assert ToolErrorRecord(message) == result.error
        assert [] == seen
        assert [result] == notified

    async def test_each_property_of_the_input_is_read_once(self, registry, define):
        """spec/tests 61: the caller's dict may change right after begin, nobody looks at it again."""
        arguments = {"x": [1]}
        registry.register(define())
        call = registry.begin("echo", arguments)
        arguments["x"].append(2)
        arguments["y"] = 1
        await call.prepare()
        await call.execute()
        assert [1] == (await call.finish()).value

    async def test_policy_body_renderer_and_observer_see_one_frozen_object(self, registry, define):
        """spec/contract 1.4."""
        seen = []

        async def execute(arguments, context):
            seen.append(arguments)

        def render(arguments, value):
            seen.append(arguments)
            return []

        registry.register(define(execute=execute, render=render))
        registry.add_guard(lambda call: seen.append(call.arguments))
        registry.on_result(lambda call, result: seen.append(call.arguments))
        await registry.dispatch("echo", {"x": [1]})
        assert 4 == len(seen)
        assert all(each is seen[0] for each in seen)
        assert FrozenDict is type(seen[0])

    async def test_arguments_and_values_of_any_depth_go_all_the_way(self, registry):
        """Issue 5: depth 20 000, through a raw annotation and through a converted one."""

        @registry.tool
        async def echo(value: JsonValue) -> JsonValue:
            return value

        @registry.tool
        async def wrap(values: list[JsonValue]) -> list[JsonValue]:
            return values

        deep: JsonValue = "x"
        for level in range(20_000):
            deep = [deep] if level % 2 else {"k": deep}
        result = await registry.dispatch("echo", {"value": deep})
        assert encode(deep) == encode(result.value)
        assert len(result.content[0]["text"]) < 17_000
        result = await registry.dispatch("wrap", {"values": [deep]})
        assert encode([deep]) == encode(result.value)
