"""Runs corpus programs in real workers, with one wall or both, and judges how they ended."""

from __future__ import annotations

import re
from typing import Any

import harness
import trio

from sandbox import values
from sandbox.limits import Limits
from sandbox.vocabulary import (
    ABSENT,
    ErrorClass,
    HostFunctionError,
    Namespace,
    Outcome,
    Program,
    SandboxSettings,
)

PLAIN = "return await tools.add(a=1, b=2)"
LIMITS = Limits(
    wall_seconds=200,
    compute_seconds=30,
    memory_mb=256,
    max_output_bytes=1 << 20,
    max_log_entries=5_000,
    max_call_bytes=1 << 20,
    max_source_bytes=12 << 20,
)
"""Time enough on the busiest machine, for programs that have to end by themselves."""
HASTY = LIMITS.tightened(wall_seconds=5, compute_seconds=1.5)
"""For programs that may be ended by their deadline."""
SETTINGS = SandboxSettings(limits=LIMITS, parked_workers=4, max_concurrent_runs=4, grace_seconds=0.5)

_CATEGORIES = {
    "policy": "rejected_at_compile",
    "exception": "raises_in_program",
    "invalid-output": "raises_in_program",
    "timeout": "timeout",
    "memory-limit": "memory_limit",
    "output-limit": "output_limit",
}


class Tools:
    """The ten fixture tools as host functions."""

    def __init__(self) -> None:
        self._host = harness._Host(frozen=False)

    async def __call__(self, call: Any) -> Any:
        try:
            self._host._check(call.member, call.arguments)
            if call.member == "slow":
                await trio.sleep(call.arguments["ms"] / 1000)
                return {"sleptMs": call.arguments["ms"]}
            return _step(self._host._body(call.member, call.arguments))
        except harness.ToolCallError as error:
            raise HostFunctionError(str(error)) from None

    def namespace(self) -> Namespace:
        """Return the namespace a program calls them by."""
        members = {name: f"{name}(...)" for name in harness._PARAMETERS}
        return Namespace("tools", members, self, ErrorClass("ToolCallError", ("tool_name",)), noun="tool")


def _step(coroutine: Any) -> Any:
    """Run a coroutine that awaits nothing."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("a fixture tool waited")


def category(outcome: Outcome) -> str:
    """Name the outcome in the corpus's words."""
    if outcome.failure is None:
        return "contained"
    return _CATEGORIES.get(outcome.failure.kind, "contained")


def accepted(item: dict[str, Any], outcome: Outcome) -> bool:
    """Whether the corpus accepts how an item ended."""
    ended = category(outcome)
    allowed = set(item["accept"])
    if "contained" in allowed or ended in allowed:
        return True
    return ended == "raises_in_program" and "denied" in allowed


def violations(must_not: dict[str, Any], outcome: Outcome) -> list[str]:
    """Return which of an item's `must_not` hold in one outcome."""
    text = "" if outcome.value is ABSENT else values.encode(outcome.value).decode()
    logs = "\n".join(outcome.logs)
    message = "" if outcome.failure is None else outcome.failure.message
    found = []
    if must_not.get("returns_contains") and must_not["returns_contains"] in text:
        found.append(f"returned {text[:100]}")
    if must_not.get("returns_matches") and re.search(must_not["returns_matches"], text):
        found.append(f"returned {text[:100]}")
    if must_not.get("logs_contains") and must_not["logs_contains"] in logs:
        found.append(f"logged {logs[:100]}")
    if must_not.get("error_longer_than") and len(message) > must_not["error_longer_than"]:
        found.append(f"said {len(message)} characters")
    if must_not.get("status") and must_not["status"] == ("ok" if outcome.failure is None else "error"):
        found.append(f"ended {must_not['status']}")
    return found


def may_be_late(item: dict[str, Any]) -> bool:
    """Whether the corpus accepts that an item is ended by its deadline."""
    return not {"timeout", "contained"}.isdisjoint(item["accept"])


async def run_each(
    sandbox: Any, items: list[dict[str, Any]], judge: Any, *, hasty: Any, at_once: int = 3
) -> dict[str, Any]:
    """Run every item, its follow-ups and the plain program; return what `judge(item, outcomes)` finds, by
    id. An item gets little time where `hasty(item)` says so."""
    faults: dict[str, Any] = {}
    limiter = trio.CapacityLimiter(at_once)

    async def one(item: dict[str, Any]) -> None:
        async with limiter:
            source = item["program"] if item["program"] is not None else eval(item["program_gen"], {})
            limits = HASTY if hasty(item) else LIMITS
            outcomes = [await run(sandbox, text, limits) for text in (source, *item.get("followups", ()))]
            after = await run(sandbox, PLAIN)
        found = judge(item, outcomes)
        if after.value != 3:
            found = [*found, f"the next run gave {after!r}"]
        if found:
            faults[item["id"]] = [item["title"], *found]

    async with trio.open_nursery() as nursery:
        for item in items:
            nursery.start_soon(one, item)
    return faults


async def run(sandbox: Any, source: str, limits: Limits = LIMITS) -> Outcome:
    """Run one program with the fixture tools."""
    return await sandbox.run(Program(source, (Tools().namespace(),)), limits=limits)
