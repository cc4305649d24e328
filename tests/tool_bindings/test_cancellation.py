"""Abort signals, outer cancellation, deadlines, and bodies that do not want to stop."""

from __future__ import annotations

import threading

import pytest
import trio
import trio.testing

from tool_bindings import (
    AbortSignal,
    Ask,
    Deny,
    ErrorInfo,
    ScriptedApproval,
    ToolErrorRecord,
    ToolFailure,
    ToolRegistry,
    ToolSuccess,
    text_block,
)
from tool_bindings.timeouts import enforce_timeouts

ABORTED = ToolErrorRecord("tool call aborted", ErrorInfo("AbortError", "ABORTED"))
BEFORE = ToolErrorRecord(
    "tool call aborted before dispatch", ErrorInfo("AbortError", "ABORTED_BEFORE_DISPATCH")
)


class LendingRegistry(ToolRegistry):
    """Dispatches as a run's nested calls are: in a scope the caller lends and has a shield around."""

    async def dispatch(self, name, arguments, **options):
        with trio.CancelScope(shield=True), trio.CancelScope() as scope:
            call = self.begin(name, arguments, cancel_scope=scope, **options)
            await call.prepare()
            await call.execute()
            with trio.CancelScope(shield=True):
                return await call.finish()


@pytest.fixture(params=[ToolRegistry, LendingRegistry], ids=["own-scope", "lent-scope"])
def registry(request):
    return request.param()


@pytest.fixture
def fired():
    signal = AbortSignal()
    signal.abort("stop")
    return signal


class TestBeforeTheBody:
    async def test_a_call_aborted_before_it_began_meets_no_policy(self, registry, define, fired):
        """spec/tests 64."""
        seen, observed = [], []
        registry.register(define(finalize_content=lambda call, result: seen.append("finalize")))
        registry.on_pre_execute(lambda call, proceed: seen.append("pre"))
        registry.around(lambda call, proceed: seen.append("around"))
        registry.on_post_execute(lambda call, result, proceed: seen.append("post"))
        registry.on_result(lambda call, result: observed.append(result))
        call = registry.begin("echo", {"x": [1]}, abort=fired)
        assert [1] == call.arguments["x"]
        await call.prepare()
        await call.execute()
        result = await call.finish()
        assert BEFORE == result.error
        assert [text_block("Error: tool call aborted before dispatch")] == result.content
        assert (["finalize"], [result]) == (seen, observed)

    async def test_bad_arguments_beat_an_abort(self, registry, define, fired):
        """spec/tests 65."""
        registry.register(define())
        result = await registry.dispatch("echo", {"x": {1}}, abort=fired)
        assert result.error.message.startswith("tool arguments must be lossless JSON")

    async def test_an_abort_during_pre_execute_skips_the_body(self, registry, define):
        """spec/tests 66."""
        ran = []
        signal = AbortSignal()

        async def pre(call, proceed):
            signal.abort()
            return await proceed()

        async def execute(arguments, context):
            ran.append(1)

        registry.register(define(execute=execute))
        registry.on_pre_execute(pre)
        assert BEFORE == (await registry.dispatch("echo", {}, abort=signal)).error
        assert [] == ran

    async def test_a_denial_that_settles_after_the_abort_stays_a_denial(self, registry, define):
        """spec/tests 66."""
        signal = AbortSignal()

        async def pre(call, proceed):
            signal.abort()
            return Deny("no")

        registry.register(define())
        registry.on_pre_execute(pre)
        assert "no" == (await registry.dispatch("echo", {}, abort=signal)).error.message

    async def test_an_approval_cancelled_by_the_abort_is_an_abort(self, registry, define):
        """spec/contract 1.5."""
        signal = AbortSignal()

        def decide(request):
            signal.abort()
            return "cancelled"

        registry.register(define())
        registry.on_pre_execute(lambda call, proceed: Ask())
        registry.approval_provider = ScriptedApproval(decide)
        assert BEFORE == (await registry.dispatch("echo", {}, abort=signal, session="s")).error

    async def test_a_wrapper_that_sets_a_fired_signal_keeps_the_body_from_running(
        self, registry, define, fired
    ):
        """spec/tests 69."""
        ran = []

        async def around(call, proceed):
            call.signal = fired
            return await proceed()

        async def execute(arguments, context):
            ran.append(1)

        registry.register(define(execute=execute))
        registry.around(around)
        assert BEFORE == (await registry.dispatch("echo", {})).error
        assert [] == ran

    async def test_a_short_circuit_success_overtaken_by_the_abort_was_never_dispatched(
        self, registry, define
    ):
        """spec/tests 70."""
        signal = AbortSignal()

        async def around(call, proceed):
            signal.abort()
            return ToolSuccess(1, [])

        registry.register(define())
        registry.around(around)
        assert BEFORE == (await registry.dispatch("echo", {}, abort=signal)).error


class TestDuringTheBody:
    async def test_an_abort_that_is_swallowed_leaves_nothing_to_judge_slowly(self, registry, define):
        """A full JSON Schema is judged in a thread, for which a cancelled scope would not wait."""
        signal = AbortSignal()

        async def execute(arguments, context):
            signal.abort()
            try:
                await trio.sleep_forever()
            except trio.Cancelled:
                return "late"

        schema = {"type": "string", "pattern": "^late$", "format": "date"}
        registry.register(define(execute=execute, schema=schema))
        assert ABORTED == (await registry.dispatch("echo", {}, abort=signal)).error

    async def test_errors_beside_the_cancellation_are_the_result(self, registry, define):
        signal = AbortSignal()

        async def fail_late():
            try:
                await trio.sleep_forever()
            finally:
                raise ValueError("while stopping")

        async def execute(arguments, context):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(fail_late)
                nursery.start_soon(trio.sleep_forever)
                await trio.testing.wait_all_tasks_blocked()
                signal.abort()

        registry.register(define(execute=execute))
        assert "while stopping" == (await registry.dispatch("echo", {}, abort=signal)).error.message

    async def test_a_cancelled_family_of_tasks_is_an_abort(self, registry, define):
        signal = AbortSignal()

        async def execute(arguments, context):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.sleep_forever)
                await trio.testing.wait_all_tasks_blocked()
                signal.abort()
                await trio.sleep_forever()

        registry.register(define(execute=execute))
        assert ABORTED == (await registry.dispatch("echo", {}, abort=signal)).error

    async def test_the_body_is_cancelled_and_awaited_and_its_success_becomes_aborted(
        self, registry, define, nursery
    ):
        """spec/tests 67."""
        signal, started, ended = AbortSignal(), trio.Event(), []

        async def execute(arguments, context):
            started.set()
            try:
                await trio.sleep_forever()
            finally:
                with trio.CancelScope(shield=True):
                    await trio.lowlevel.checkpoint()
                ended.append(context.abort.reason)

        async def abort():
            await started.wait()
            signal.abort("enough")

        registry.register(define(execute=execute))
        nursery.start_soon(abort)
        call = registry.begin("echo", {}, abort=signal)
        await call.prepare()
        await call.execute()
        assert ["enough"] == ended
        assert ABORTED == (await call.finish()).error
        assert call.executed

    async def test_a_body_that_ends_well_in_spite_of_the_abort_is_aborted(self, registry, define):
        """spec/tests 67."""
        signal = AbortSignal()

        async def execute(arguments, context):
            context.defer_context({"kept": True})
            signal.abort()
            return 1

        registry.register(define(execute=execute))
        result = await registry.dispatch("echo", {}, abort=signal)
        assert ABORTED == result.error
        assert [{"kept": True}] == list(result.additional_contexts)

    async def test_a_failure_of_the_tool_says_more_than_the_abort(self, registry, define):
        """spec/tests 67."""
        signal = AbortSignal()

        async def execute(arguments, context):
            signal.abort()
            try:
                await trio.sleep_forever()
            except trio.Cancelled:
                raise ValueError("rolled back") from None

        registry.register(define(execute=execute))
        assert "rolled back" == (await registry.dispatch("echo", {}, abort=signal)).error.message

    async def test_an_abort_while_post_execute_waits_aborts_the_success(self, registry, define):
        """spec/tests 68."""
        signal = AbortSignal()

        async def execute(arguments, context):
            context.defer_context({"kept": True})

        async def post(call, result, proceed):
            signal.abort()
            await trio.lowlevel.checkpoint()
            return await proceed()

        registry.register(define(execute=execute))
        registry.on_post_execute(post)
        result = await registry.dispatch("echo", {}, abort=signal)
        assert ABORTED == result.error
        assert [{"kept": True}] == list(result.additional_contexts)

    async def test_a_replaced_signal_is_fused_with_the_callers_and_restored(self, registry, define):
        """spec/tests 71."""
        caller, mine, signals = AbortSignal(), AbortSignal(), []

        async def around(call, proceed):
            call.signal = mine
            return await proceed()

        async def execute(arguments, context):
            signals.append(context.abort)
            caller.abort("from the caller")
            return context.abort.reason

        registry.register(define(execute=execute))
        registry.around(around)
        call = registry.begin("echo", {}, abort=caller)
        await call.prepare()
        await call.execute()
        assert call.signal is caller
        assert signals[0] is not mine
        assert signals[0] is not caller
        assert "from the caller" == signals[0].reason
        assert ABORTED == (await call.finish()).error

    async def test_an_uncooperative_body_keeps_the_call_pending(self, registry, define, autojump_clock):
        """spec/tests 73, for async bodies."""
        signal = AbortSignal()

        async def execute(arguments, context):
            signal.abort()
            with trio.CancelScope(shield=True):
                await trio.sleep(60)
            return 1

        registry.register(define(execute=execute))
        before = trio.current_time()
        assert ABORTED == (await registry.dispatch("echo", {}, abort=signal)).error
        assert 60 == trio.current_time() - before

    async def test_cancelling_the_calling_task_cancels_the_body_and_propagates(self, define, autojump_clock):
        """DESIGN section 3: trio cancellation raises."""
        registry = ToolRegistry()
        ended = []

        async def execute(arguments, context):
            try:
                await trio.sleep_forever()
            finally:
                ended.append(1)

        registry.register(define(execute=execute))
        with trio.move_on_after(1) as scope:
            await registry.dispatch("echo", {})
        assert scope.cancelled_caught
        assert [1] == ended


class TestDeadlines:
    @pytest.mark.parametrize("cooperative", [True, False])
    async def test_a_passed_deadline_is_a_timeout_even_when_the_body_ended_well(
        self, registry, define, autojump_clock, cooperative
    ):
        """spec/tests 72."""

        async def execute(arguments, context):
            context.defer_context({"kept": True})
            with trio.CancelScope(shield=not cooperative):
                await trio.sleep(2)
            return 1

        registry.register(define(execute=execute, timeout_seconds=0.5))
        enforce_timeouts(registry)
        before = trio.current_time()
        result = await registry.dispatch("echo", {})
        assert (0.5 if cooperative else 2) == trio.current_time() - before
        assert (
            ToolErrorRecord("tool call timed out after 500ms", ErrorInfo("ToolTimeoutError", "TOOL_TIMEOUT"))
            == result.error
        )
        assert [{"kept": True}] == list(result.additional_contexts)

    async def test_a_call_in_time_keeps_its_result_and_others_have_no_deadline(
        self, registry, define, autojump_clock
    ):
        async def execute(arguments, context):
            await trio.sleep(arguments["x"])
            return "done"

        registry.register(define("quick", execute, timeout_seconds=1))
        registry.register(define("free", execute))
        lift = enforce_timeouts(registry)
        assert "done" == (await registry.dispatch("quick", {"x": 0.5})).value
        assert "done" == (await registry.dispatch("free", {"x": 100})).value
        lift()
        assert "done" == (await registry.dispatch("quick", {"x": 5})).value

    async def test_a_default_deadline_covers_tools_without_one(self, registry, define, autojump_clock):
        async def execute(arguments, context):
            await trio.sleep_forever()

        registry.register(define(execute=execute))
        enforce_timeouts(registry, default_seconds=3)
        assert "tool call timed out after 3000ms" == (await registry.dispatch("echo", {})).error.message

    async def test_the_callers_abort_is_not_a_timeout(self, registry, define, autojump_clock):
        signal = AbortSignal()

        async def execute(arguments, context):
            signal.abort()
            await trio.sleep_forever()

        registry.register(define(execute=execute, timeout_seconds=5))
        enforce_timeouts(registry)
        assert ABORTED == (await registry.dispatch("echo", {}, abort=signal)).error


class TestThreads:
    """Plain functions run in threads, which cannot be stopped."""

    async def test_a_plain_body_runs_beside_the_event_loop(self, registry, define):
        threads = []

        def execute(arguments, context):
            threads.append(threading.current_thread())
            return 7

        registry.register(define(execute=execute))
        assert 7 == (await registry.dispatch("echo", {})).value
        assert threading.current_thread() is not threads[0]

    async def test_a_plain_body_may_return_an_awaitable(self, registry, define):
        async def inner():
            await trio.lowlevel.checkpoint()
            return 8

        registry.register(define(execute=lambda arguments, context: inner()))
        assert 8 == (await registry.dispatch("echo", {})).value

    async def test_progress_and_contexts_work_from_a_thread(self, registry, define):
        reports = []

        def execute(arguments, context):
            context.progress(1, 2, "half")
            context.defer_context({"a": 1})

        registry.register(define(execute=execute))
        result = await registry.dispatch("echo", {}, progress=lambda *report: reports.append(report))
        assert [(1, 2, "half")] == reports
        assert [{"a": 1}] == list(result.additional_contexts)

    async def test_a_thread_that_ends_within_the_grace_period_is_awaited(self, define):
        registry = ToolRegistry(grace_seconds=60)
        signal, release, ended = AbortSignal(), threading.Event(), []

        def execute(arguments, context):
            trio.from_thread.run_sync(signal.abort)
            release.wait(30)
            ended.append(1)
            return 1

        async def release_it():
            await signal.wait()
            release.set()

        registry.register(define(execute=execute))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(release_it)
            result = await registry.dispatch("echo", {}, abort=signal)
        assert ABORTED == result.error
        assert [1] == ended

    async def test_a_failure_within_the_grace_period_is_kept(self, define):
        registry = ToolRegistry(grace_seconds=60)
        signal = AbortSignal()

        def execute(arguments, context):
            trio.from_thread.run_sync(signal.abort)
            raise ValueError("cleaned up")

        registry.register(define(execute=execute))
        assert "cleaned up" == (await registry.dispatch("echo", {}, abort=signal)).error.message

    async def test_a_thread_that_does_not_end_is_abandoned_and_listed_until_it_does(
        self, define, autojump_clock
    ):
        """Decision 0105, against spec/tests 73 for threads: the call settles, its outcome is unknown."""
        registry = ToolRegistry(grace_seconds=5)
        signal, release = AbortSignal(), threading.Event()

        def execute(arguments, context):
            trio.from_thread.run_sync(signal.abort)
            release.wait(30)

        registry.register(define("stuck", execute))
        call = registry.begin("stuck", {}, call_id="c1", abort=signal)
        await call.prepare()
        before = trio.current_time()
        await call.execute()
        result = await call.finish()
        assert 5 == trio.current_time() - before
        assert ErrorInfo("ToolOutcomeUnknownError", "TOOL_OUTCOME_UNKNOWN") == result.error.info
        assert "did not end in 5 s" in result.error.message
        assert call.abandoned
        assert call.executed
        assert [("stuck", "c1")] == [(each.name, each.call_id) for each in registry.abandoned_bodies()]
        release.set()
        # Real time, which the clock of this test would jump over: the threads end on their own.
        idle = threading.Event()
        for _ in range(3000):
            if not registry.abandoned_bodies():
                break
            await trio.to_thread.run_sync(idle.wait, 0.01)
        assert () == registry.abandoned_bodies()


async def test_a_timeout_failure_of_a_wrapper_survives_the_abort(registry, define, fired):
    signal = AbortSignal()

    async def around(call, proceed):
        await proceed()
        signal.abort()
        return ToolFailure(ToolErrorRecord("from the wrapper"), [])

    registry.register(define())
    registry.around(around)
    assert "from the wrapper" == (await registry.dispatch("echo", {}, abort=signal)).error.message
