"""One dispatch: from a name and arguments to a success or a failure.

    begin    snapshot the arguments, mint the token                         (sync, cannot fail)
    prepare  abort check, collapse, pre-execute listeners, approval, guards
    execute  around listeners, argument validation, body, canonical value, content
    finish   post-execute listeners, finalize_content, freeze, observers

Every route to a tool, nested, direct, batch or MCP, goes through here, so a policy registered once
sees them all. With no listeners registered the stages do the same work in the same order, they
only have nobody to ask.

Knows: stages, their order, and which of them may change what.
Does not know: which process or protocol the call came from, and where its result is recorded.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, NoReturn

from sandbox.values import (
    GIVE_UP,
    JsonValue,
    NotJsonError,
    frozen_dict,
    frozen_list,
    snapshot_frozen,
)
from tool_bindings.abort import AbortSignal
from tool_bindings.annotated.dispatches import carry, declare
from tool_bindings.approval import OUTCOMES, ApprovalRequest
from tool_bindings.binding import argument_problem, canonical_value, conversion_problem, success_of
from tool_bindings.caller import DispatchToken
from tool_bindings.content import blocks_text
from tool_bindings.definition import ToolRunContext
from tool_bindings.errors import ArgumentConversionError, UnknownToolError
from tool_bindings.policy import ALLOW, UNCHANGED, Accept, Allow, Ask, Block, Deny
from tool_bindings.results import (
    ErrorInfo,
    ToolErrorRecord,
    ToolFailure,
    ToolSuccess,
    failure_from_exception,
    failure_from_message,
    frozen_result,
)
from tool_bindings.running import run_body
from tool_bindings.thread_body import AbandonedError
from tool_bindings.waterfall import settled, waterfall

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence

    from tool_bindings.abort import Cancellable
    from tool_bindings.binding import BoundTool
    from tool_bindings.caller import Caller, Provenance
    from tool_bindings.content import ContentBlock
    from tool_bindings.definition import ToolDefinition
    from tool_bindings.policy import AroundListener, PostDecision, PreDecision
    from tool_bindings.registry import Policies, Scope, ToolRegistry
    from tool_bindings.results import ToolResult

__all__ = ["Dispatch"]

_log = logging.getLogger("tool_bindings")

_BEGUN, _PREPARED, _EXECUTED, _FINISHED = range(4)
"""How far a dispatch has come."""

_ABORTED: Final = failure_from_message("tool call aborted", ErrorInfo("AbortError", "ABORTED"))
_ABORTED_BEFORE_DISPATCH: Final = failure_from_message(
    "tool call aborted before dispatch", ErrorInfo("AbortError", "ABORTED_BEFORE_DISPATCH")
)


class Dispatch:
    """One call on its way through the stages. Made by `ToolRegistry.begin`.

    Policies receive it and may read everything; only `signal` can be set, and only while an around
    listener runs.
    """

    __slots__ = (
        "_abort",
        "_arguments",
        "_around_running",
        "_begun_at",
        "_bound",
        "_caller",
        "_cancel_scope",
        "_collapsed",
        "_context",
        "_finalizer",
        "_known_policies",
        "_name",
        "_own_result",
        "_plain_result",
        "_registry",
        "_result",
        "_settled",
        "_signal",
        "_stage",
        "_token",
        "_valid",
        "abandoned",
        "call_id",
        "executed",
    )

    def __init__(
        self,
        registry: ToolRegistry,
        caller: Caller,
        policies: Policies,
        bound: BoundTool | None,
        name: str,
        arguments: object,
        call_id: str,
        abort: AbortSignal,
        cancel_scope: Cancellable | None,
    ) -> None:
        self._registry = registry
        self._caller = caller
        self._known_policies = policies
        self._begun_at = policies.generation
        self._bound = bound
        self._name = name
        self.call_id = call_id
        self._token: DispatchToken | None = None
        self._abort = self._signal = abort
        self._cancel_scope = cancel_scope
        self._context: ToolRunContext | None = None
        self._own_result: ToolResult | None = None
        self._plain_result: ToolResult | None = None
        """A success of the body's that is frozen and in shape as it was made."""
        self._result: ToolResult | None = None
        self._stage = _BEGUN
        self._settled = False  # The result is final: post-execute listeners are not asked.
        self._around_running = False
        self._collapsed = (
            policies.collapses and caller.parent is None and bound is not None and not bound.is_transport
        )
        self._finalizer = None if bound is None else bound.definition.finalize_content
        self.executed = False
        self.abandoned = False
        self._valid = False
        if bound is not None:
            accepted = bound.parameters.accept(arguments)
            if accepted is not GIVE_UP:
                self._arguments: Any = accepted
                self._valid = True
                return
        try:
            # What is not an object fails validation later, when policies have seen the call.
            self._arguments = snapshot_frozen(arguments, "arguments")
        except NotJsonError as error:
            self._arguments = frozen_dict({})
            self._settle(failure_from_message(f"tool arguments must be lossless JSON: {error}"))

    # --- what policies may read -----------------------------------------------------------------

    @property
    def name(self) -> str:
        """Name of the tool, as the caller wrote it."""
        return self._name

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The frozen arguments; an empty object when they were not JSON at all."""
        arguments: Mapping[str, Any] = self._arguments
        return arguments

    @property
    def definition(self) -> ToolDefinition | None:
        """The tool the name stood for when the call began; None for an unknown one."""
        return None if self._bound is None else self._bound.definition

    @property
    def token(self) -> DispatchToken:
        """Opaque identity of this dispatch; nested calls carry it as their parent."""
        if self._token is None:
            self._token = DispatchToken()
        return self._token

    @property
    def parent(self) -> DispatchToken | None:
        """Token of the enclosing dispatch, or None for a direct call."""
        return self._caller.parent

    @property
    def root_call_id(self) -> str:
        """Identity of the direct call this one is part of; its own for a direct one."""
        root = self._caller.root_call_id
        return self.call_id if root is None else root

    @property
    def parent_call_id(self) -> str | None:
        """Identity of the enclosing call, or None for a direct call."""
        return self._caller.parent_call_id

    @property
    def session(self) -> object:
        """The caller's session, or None."""
        return self._caller.session

    @property
    def scope(self) -> Scope | None:
        """The registry scope the call sees tools through, or None for the global one."""
        return self._caller.scope

    @property
    def provenance(self) -> Provenance:
        """Which route the call came by."""
        return self._caller.provenance

    @property
    def run_id(self) -> str | None:
        """The run whose program made the call, or None."""
        return self._caller.run_id

    @property
    def abort(self) -> AbortSignal:
        """The caller's abort signal."""
        return self._abort

    @property
    def signal(self) -> AbortSignal:
        """The signal the body will get, fused with the caller's."""
        return self._signal

    @signal.setter
    def signal(self, signal: AbortSignal) -> None:
        if not self._around_running:
            msg = "signal can be set only by an around listener, while it runs"
            raise AttributeError(msg)
        self._signal = signal

    def made(self, result: ToolResult) -> bool:
        """Whether a result is this call's own, as opposed to one that a listener has built."""
        return result is self._own_result or result is self._result

    def _policies(self) -> Policies:
        if self._known_policies.generation != self._registry.generation:
            self._known_policies = self._registry.policies(self._caller.scope)
        return self._known_policies

    def _settle(self, result: ToolResult) -> None:
        self._result = result
        self._settled = True

    def _out_of_order(self, name: str) -> NoReturn:
        msg = f"{name}() was called out of order: a dispatch goes prepare, execute, finish, each once"
        raise RuntimeError(msg)

    # --- prepare --------------------------------------------------------------------------------

    async def prepare(self) -> None:
        """Run everything that decides whether the body may run."""
        if not self.prepare_nowait():
            self._stage = _PREPARED
            try:
                await self._decide(self._policies())
            except Exception as error:  # noqa: BLE001  # a failing policy fails the call, never the host
                self._settle(failure_from_exception(error))

    def prepare_nowait(self) -> bool:
        """Do what `prepare` does when nobody has to be asked; False when somebody has: await that then."""
        if self._stage != _BEGUN:
            self._out_of_order("prepare")
        if self._result is None:
            if self._abort.aborted:
                self._settle(_ABORTED_BEFORE_DISPATCH)
            elif self._collapsed:
                # No policy sees a call that the caller had no way to make, and its tool has no say either.
                self._finalizer = None
                self._settle(failure_from_exception(self._registry.collapsed_error(self._name)))
            elif self._policies().before:
                return False
        self._stage = _PREPARED
        return True

    async def _decide(self, policies: Policies) -> None:
        if policies.pre:
            decision: PreDecision = await waterfall(policies.pre, (self,), _allow)
            if isinstance(decision, Ask):
                decision = await self._ask(decision)
            if isinstance(decision, Deny):
                self._result = failure_from_message(decision.reason)
                return
            if not isinstance(decision, Allow):
                msg = f"a pre-execute listener must return Allow, Deny or Ask, not {type(decision).__name__}"
                raise TypeError(msg)
            if self._abort.aborted:
                self._result = _ABORTED_BEFORE_DISPATCH
                return
        for guard in self._registry.live_guards(self._caller.scope):
            reason = await settled(guard(self))
            if reason is None:
                continue
            if not isinstance(reason, str):
                msg = f"a guard must return a reason as a string, or None, not {type(reason).__name__}"
                raise TypeError(msg)
            self._result = failure_from_message(reason)
            return

    async def _ask(self, ask: Ask) -> PreDecision:
        provider = self._registry.approval_provider
        if provider is None:
            return Deny(ask.reason or "this call requires approval, and nobody is set up to give it")
        caller = self._caller
        if caller.session is None and caller.scope is None and caller.run_id is None:
            return Deny(
                f"{ask.reason or 'this call requires approval'}; it belongs to no session that could be asked"
            )
        if caller.approval_pending is not None:
            caller.approval_pending(True)
        try:
            outcome = await provider.request(
                ApprovalRequest(
                    self._name,
                    self._arguments,
                    ask.reason,
                    self.call_id,
                    self.root_call_id,
                    self.parent_call_id,
                    caller.provenance,
                    caller.run_id,
                    caller.session,
                    self._abort,
                )
            )
        finally:
            if caller.approval_pending is not None:
                caller.approval_pending(False)
        if outcome not in OUTCOMES:
            msg = f"the approval provider must answer one of {', '.join(OUTCOMES)}, not {outcome!r}"
            raise ValueError(msg)
        if outcome == "allowed-once" or (outcome == "cancelled" and self._abort.aborted):
            # The abort check that follows every allowed decision turns the second case into an abort.
            return ALLOW
        detail = f": {ask.reason}" if ask.reason else ""
        if outcome == "rejected":
            return Deny(f"the user rejected this call{detail}")
        if outcome == "cancelled":
            return Deny(f"approval was cancelled{detail}")
        return Deny(f"approval is required, and there is no channel to ask on{detail}")

    # --- execute --------------------------------------------------------------------------------

    def execute(self) -> Awaitable[object]:
        """Run the body inside the around listeners, and make its value canonical. To be awaited."""
        if self._stage != _PREPARED:
            self._out_of_order("execute")
        self._stage = _EXECUTED
        if self._result is None and self._abort.aborted:
            self._result = _ABORTED_BEFORE_DISPATCH
        if self._result is not None:
            return _nothing()
        around = self._policies().around
        return self._wrapped(around) if around else self._body()

    async def _wrapped(self, around: Sequence[AroundListener]) -> None:
        self._around_running = True
        try:
            outcome = await waterfall(around, (self,), self._body)
            self._result = carry(self._own_result, await self._normalise(outcome), outcome)
        except Exception as error:  # noqa: BLE001  # a failing wrapper fails the call, never the host
            self._settle(failure_from_exception(error))
        finally:
            self._around_running = False
            self._signal = self._abort

    async def _normalise(self, outcome: object) -> ToolResult:
        """Trust only the object this very dispatch made; any other success is made again from its value."""
        if outcome is self._own_result and self._own_result is not None:
            return self._own_result
        if isinstance(outcome, ToolFailure):
            return outcome
        if not isinstance(outcome, ToolSuccess):
            msg = (
                f"an around listener must return a ToolSuccess or a ToolFailure, not {type(outcome).__name__}"
            )
            raise TypeError(msg)
        if self._abort.aborted and not self.executed:
            return _ABORTED_BEFORE_DISPATCH
        return await self._success(
            self._resolve(),
            outcome.value,
            outcome.additional_contexts,
            concludes_turn=self._context is not None and self._context.concludes_turn,
        )

    async def _success(
        self, bound: BoundTool, value: object, contexts: Sequence[JsonValue], *, concludes_turn: bool
    ) -> ToolSuccess:
        canonical = await canonical_value(bound, value)
        return success_of(
            bound,
            self._arguments,
            canonical,
            with_meta=self._caller.parent is None,
            contexts=contexts,
            concludes_turn=concludes_turn,
        )

    def _resolve(self) -> BoundTool:
        """Look the tool up again: it may have gone, or been replaced, since the call began."""
        bound = self._bound
        if bound is not None and bound.is_transport:
            return bound
        bound = self._policies().view.get(self._name)
        if bound is None:
            raise self._registry.unknown_tool_error(self._name, self._caller.scope)
        return bound

    async def _body(self) -> ToolResult:
        """Run the body once; every failure of it becomes a result here, before wrappers see it."""
        if self.executed:
            msg = "proceed() ran the body already; a dispatch runs it at most once"
            raise RuntimeError(msg)
        bound = self._bound
        if bound is None or self._begun_at != self._registry.generation:
            try:
                bound = self._resolve()
            except UnknownToolError as error:
                return self._own(failure_from_exception(error))
        signal = self._signal
        if signal is not self._abort:
            signal = AbortSignal.any(self._abort, signal)
        if signal.aborted:
            return self._own(_ABORTED_BEFORE_DISPATCH)
        if not self._valid or bound is not self._bound:
            problem = await argument_problem(bound, self._arguments)
            if problem is not None:
                return self._own(failure_from_exception(problem))
        self.executed = True
        caller = self._caller
        context = self._context = ToolRunContext(
            self.call_id, caller.root_call_id, caller.parent_call_id, caller.session, signal, caller.progress
        )
        try:
            value = await run_body(
                bound,
                self._arguments,
                context,
                signal,
                self._registry.threads,
                caller.grace_seconds,
                # A listener may have opened scopes of its own between the caller's and the body.
                None if self._around_running else self._cancel_scope,
            )
            if value is not GIVE_UP:
                accepted = bound.output.accept(value)
                success = success_of(
                    bound,
                    self._arguments,
                    await canonical_value(bound, value) if accepted is GIVE_UP else accepted,
                    with_meta=caller.parent is None,
                    contexts=context.deferred_contexts,
                    concludes_turn=context.concludes_turn,
                )
                if bound.definition.output.render is None and context.annotation is None:
                    self._plain_result = success
                return self._own(success)
            result = _ABORTED
        except AbandonedError:
            self.abandoned = True
            result = failure_from_message(
                f"tool call aborted, but its thread did not end in {caller.grace_seconds:g} s and runs on; "
                "what it did or will still do is unknown",
                ErrorInfo("ToolOutcomeUnknownError", "TOOL_OUTCOME_UNKNOWN"),
            )
        except ArgumentConversionError as error:
            self.executed = False
            result = failure_from_exception(conversion_problem(bound, error))
        except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever a body raises is its call's failure
            result = failure_from_exception(error)
        if context.deferred_contexts:
            result = ToolFailure(result.error, result.content, None, frozen_list(context.deferred_contexts))
        return self._own(result)

    def _own(self, result: ToolResult) -> ToolResult:
        context = self._context
        if context is not None and context.annotation is not None:
            result = declare(self, result, context.annotation)
        self._own_result = self._result = result
        return result

    # --- finish ---------------------------------------------------------------------------------

    async def finish(self) -> ToolResult:
        """Let policies judge the result, fix it, and show it to the observers."""
        result = self.finish_nowait()
        if result is not None:
            return result
        if self._stage != _EXECUTED:
            self._out_of_order("finish")
        self._stage = _FINISHED
        policies = self._policies()
        assert self._result is not None, "execute() leaves a result"
        result = self._unless_aborted(self._result)
        try:
            decision = await waterfall(policies.post, (self, result), _accept)
            result = carry(result, await self._apply(decision, result))
        except Exception as error:  # noqa: BLE001  # a failing policy fails the call, never the host
            result = failure_from_exception(error)
        return self._fix(self._unless_aborted(result), policies)

    def finish_nowait(self) -> ToolResult | None:
        """Do what `finish` does when no listener has to be asked; None when one has, and that is needed."""
        policies = self._policies()
        if policies.post and not self._settled:
            return None
        if self._stage != _EXECUTED:
            self._out_of_order("finish")
        self._stage = _FINISHED
        assert self._result is not None, "execute() leaves a result"
        result = self._unless_aborted(self._result) if self._abort.aborted else self._result
        return self._fix(result, policies)

    def _fix(self, result: ToolResult, policies: Policies) -> ToolResult:
        if self._finalizer is not None:
            result = self._result = frozen_result(result)
            result = carry(result, self._finalize(result))
        if result is not self._plain_result:
            result = frozen_result(result)
        self._result = result
        for observer in policies.observers:
            try:
                observer(self, result)
            except Exception:  # noqa: BLE001  # an observer has no say in the call
                _log.exception("an observer of tool results failed on call %s", self.call_id)
        return result

    def _unless_aborted(self, result: ToolResult) -> ToolResult:
        """Only a success yields to an abort; every failure says more than the abort would."""
        if result.is_error or not self._abort.aborted:
            return result
        aborted = _ABORTED if self.executed else _ABORTED_BEFORE_DISPATCH
        if not result.additional_contexts:
            return aborted
        return ToolFailure(aborted.error, aborted.content, None, result.additional_contexts)

    async def _apply(self, decision: object, result: ToolResult) -> ToolResult:
        if isinstance(decision, Block):
            feedback = list(decision.content)
            message = blocks_text(feedback) if feedback else "tool result blocked by post-execute policy"
            return ToolFailure(ToolErrorRecord(message), feedback, None, tuple(decision.contexts))
        if not isinstance(decision, Accept):
            msg = f"a post-execute listener must return Accept or Block, not {type(decision).__name__}"
            raise TypeError(msg)
        contexts: Sequence[JsonValue] = result.additional_contexts
        if decision.contexts:
            contexts = [*contexts, *decision.contexts]
        if decision.value is not UNCHANGED:
            if decision.content is not UNCHANGED:
                msg = "a post-execute listener may replace content or value, not both"
                raise TypeError(msg)
            if isinstance(result, ToolFailure):
                msg = "a post-execute listener cannot give a value to a failed result"
                raise TypeError(msg)
            return await self._success(
                self._resolve(), decision.value, contexts, concludes_turn=result.concludes_turn
            )
        if decision.content is UNCHANGED and contexts is result.additional_contexts:
            return result
        content: Sequence[ContentBlock] = result.content
        if decision.content is not UNCHANGED:
            content = decision.content
        if isinstance(result, ToolFailure):
            return ToolFailure(result.error, content, result.meta, contexts)
        return ToolSuccess(result.value, content, result.meta, contexts, result.concludes_turn)

    def _finalize(self, result: ToolResult) -> ToolResult:
        finalizer = self._finalizer
        assert finalizer is not None
        try:
            content = finalizer(self, result)
        except Exception as error:  # noqa: BLE001  # a failing finalizer fails the call, never the host
            return failure_from_exception(error)
        if content is None:
            return result
        if isinstance(result, ToolFailure):
            return ToolFailure(result.error, content, result.meta, result.additional_contexts)
        return ToolSuccess(
            result.value, content, result.meta, result.additional_contexts, result.concludes_turn
        )


async def _nothing() -> None:
    """Stand for work that there is none of."""


async def _allow() -> PreDecision:
    return ALLOW


async def _accept() -> PostDecision:
    return Accept()
