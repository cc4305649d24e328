"""Every route to a tool goes through the same choke point: policies, approvals and observers see it."""

from __future__ import annotations

import dataclasses

import corpus
import pytest

from codemode import ToolCall, open_service
from tool_bindings import Ask, Deny, ScriptedApproval


@dataclasses.dataclass
class Seen:
    decisions: list[tuple[str, str, str | None]] = dataclasses.field(default_factory=list)
    results: list[tuple[str, str, bool]] = dataclasses.field(default_factory=list)


async def direct(service):
    result = await service.call("add", {"a": 1, "b": 2})
    return not result.is_error


async def code(service):
    return (await service.run_code("return await tools.add(a=1, b=2)")).ok


async def batched_in_a_program(service):
    outcome = await service.run_code("return (await codemode.batch([tools.add(a=1, b=2)]))[0]")
    return outcome.result == 3


async def batch(service):
    (result,) = await service.batch([ToolCall("add", {"a": 1, "b": 2})])
    return result.ok


ROUTES = {
    "direct": (direct, "direct"),
    "a program": (code, "code"),
    "a program's batch": (batched_in_a_program, "code"),
    "a batch": (batch, "batch"),
}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("answer", ["allow", "deny", "ask and allow", "ask and reject"])
async def test_each_route_is_asked_decided_and_observed_exactly_once(route, answer):
    call, provenance = ROUTES[route]
    registry, seen = corpus.fixture_registry(), Seen()

    async def decide(each, proceed):
        if each.name != "add":
            return await proceed()
        seen.decisions.append((each.name, each.provenance, each.run_id))
        if answer == "deny":
            return Deny("no adding")
        return await proceed() if answer == "allow" else Ask("may it add?")

    registry.on_pre_execute(decide)
    registry.on_result(
        lambda each, result: (
            seen.results.append((each.name, each.provenance, result.is_error)) if each.name == "add" else None
        )
    )
    outcomes = {"ask and allow": ["allowed-once"], "ask and reject": ["rejected"]}.get(answer, [])
    approval = registry.approval_provider = ScriptedApproval(outcomes)
    async with open_service(registry) as service:
        succeeded = await call(service)

    allowed = answer in ("allow", "ask and allow")
    assert allowed == succeeded
    assert [("add", provenance)] == [decision[:2] for decision in seen.decisions]
    assert [("add", provenance, not allowed)] == seen.results
    assert len(outcomes) == len(approval.requests)
    assert all(request.provenance == provenance for request in approval.requests)
    # Approvals and policies can tell which run a call belongs to.
    assert (provenance == "direct") == (seen.decisions[0][2] is None)
