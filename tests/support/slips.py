"""The slip table: what models get wrong, and what the answer to it must and must not say."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import corpus
import trio

from codemode import Settings, open_service
from tool_bindings import Output, ToolDefinition

TABLE = Path(__file__).parent.parent / "data" / "slips.jsonl"
NEVER_SHOWN = (
    "FrozenDict",
    "FrozenList",
    "HostFunction",
    "HostNamespace",
    "PendingCall",
    "_GatheringFuture",
    "RefusedImportError",
    "RestrictedPython",
    "<program>",
    "sandbox/",
    "site-packages",
    "Traceback (most recent",
    "object at 0x",
)
"""Names of our own and of the host's, which mean nothing to the author of a program."""
USERS = [
    {"name": "Ann", "age": 34, "tags": ["staff"], "address": {"city": "Oslo"}, "manager": None},
    {"name": "Bob", "age": 27, "tags": [], "address": {"city": "Rome"}, "manager": "Ann"},
]
ORDER = {
    "type": "object",
    "properties": {
        "customerId": {"type": "string"},
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"sku": {"type": "string"}, "qty": {"type": "integer", "minimum": 1}},
                "required": ["sku", "qty"],
                "additionalProperties": False,
            },
        },
        "priority": {"enum": ["low", "normal", "high"]},
    },
    "required": ["customerId", "items"],
    "additionalProperties": False,
}
AT_ONCE = 4
"""Programs that run at the same time."""


def load() -> list[dict[str, Any]]:
    """Return the slips of the table that this Python has."""
    slips = [json.loads(line) for line in TABLE.read_text(encoding="utf-8").splitlines()]
    return [slip for slip in slips if sys.version_info < _version(slip.get("python_below", "99"))]


def _version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def slips_registry() -> Any:
    """Return the fixture tools, and some that stand in for what a program cannot do itself."""
    registry = corpus.fixture_registry()

    @registry.tool
    async def write(path: str, content: str) -> None:
        """Write a file."""

    @registry.tool
    async def bash(command: str) -> str:
        """Run a command."""
        return ""

    @registry.tool
    async def web_fetch(url: str) -> str:
        """Fetch a page."""
        return ""

    @registry.tool
    async def users() -> list[dict[str, Any]]:
        """List the users."""
        return USERS

    @registry.tool
    async def export(kind: str) -> str:
        """Export the orders as text."""
        return '{"orders": [{"id": 1, "total": "1,200"}], "next": null}'

    registry.register(
        ToolDefinition("create_order", "Place an order.", ORDER, Output({"type": "null"}), _place_order)
    )
    return registry


async def _place_order(_arguments: object, _context: object) -> None:
    return None


async def judge(slips: list[dict[str, Any]]) -> dict[str, str]:
    """Run every variant of the slips; return what is wrong with each answer that is wrong."""
    faults: dict[str, str] = {}
    settings = Settings(parked_workers=AT_ONCE)
    async with open_service(slips_registry(), settings=settings) as service, trio.open_nursery() as nursery:
        at_once = trio.CapacityLimiter(AT_ONCE)

        async def run(name: str, slip: dict[str, Any], program: str) -> None:
            async with at_once:
                outcome = await service.run_code(program, tools=slip.get("tools"))
            text = "\n".join(block["text"] for block in outcome.content)
            lacks = [part for part in slip["hint"] if part not in text]
            shows = [part for part in (*slip["forbidden"], *NEVER_SHOWN) if part in text]
            if lacks or shows or text.count("Hint: ") > 1:
                faults[name] = f"lacks {lacks}, shows {shows}:\n{text}"

        for slip in slips:
            for number, program in enumerate(slip["programs"], 1):
                nursery.start_soon(run, f"{slip['id']}/{number}", slip, program)
    return faults
