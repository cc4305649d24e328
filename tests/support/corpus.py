"""The program corpus and the ten fixture tools its expected results rely on."""

from __future__ import annotations

import base64
import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import trio

from sandbox.values import JsonValue
from tool_bindings import Output, ToolDefinition, ToolRegistry

DATA = Path(__file__).parent.parent / "data"

FILES = {
    "notes.txt": ["alpha", "beta", "gamma", "delta", "epsilon"],
    "data.csv": ["name,age,city", "Ann,34,Oslo", "Bob,27,Paris", "Cid,41,Oslo", "Dee,29,Rome"],
    "config.json": ["{", '  "debug": true,', '  "limit": 10,', '  "tags": ["a", "b"]', "}"],
    "server.log": [
        "2024-03-01 10:00:01 INFO start",
        "2024-03-01 10:00:05 WARN disk 91%",
        "2024-03-01 10:01:00 ERROR db timeout",
        "2024-03-01 10:02:30 INFO retry",
        "2024-03-01 10:03:00 ERROR db timeout",
        "2024-03-01 10:04:10 INFO ok",
    ],
    "unicode.txt": ["naïve café", "日本語", "emoji 🎉 end"],
    "empty.txt": [],
}
PAGE_SIZE = 3
RESULTS_BY_QUERY = {"none": 0, "one": 1}
RESULTS_OF_OTHER_QUERIES = 7
FLAKY_FAILURES = 2


def load(name: str) -> list[dict[str, Any]]:
    """Return the items of one corpus file, generated sources made."""
    items = []
    for line in (DATA / name).read_text(encoding="utf-8").splitlines():
        item = json.loads(line)
        if item["program"] is None:
            item["program"] = eval(item["program_gen"], {})  # the corpus is ours
        items.append(item)
    return items


def fixture_registry() -> ToolRegistry:
    """Return a registry with the ten tools; `flaky` counts its calls per registry."""
    registry = ToolRegistry()
    attempts: dict[str, int] = {}

    @registry.tool(concurrency_safe=True)
    async def add(a: int, b: int) -> int:
        """Add two integers."""
        return a + b

    @registry.tool(concurrency_safe=True)
    async def echo(value: JsonValue) -> JsonValue:
        """Return the value."""
        return value

    @registry.tool(concurrency_safe=True)
    async def read(path: str) -> dict[str, Any]:
        """Read one of six files."""
        if path not in FILES:
            raise ValueError(f"file not found: {path}")
        lines = [{"number": number, "text": text} for number, text in enumerate(FILES[path], 1)]
        return {"path": path, "offset": 0, "lines": lines, "totalLines": len(lines)}

    @registry.tool(concurrency_safe=True)
    async def search(query: str, page: int = 1) -> dict[str, Any]:
        """Search; three results a page."""
        total = RESULTS_BY_QUERY.get(query, RESULTS_OF_OTHER_QUERIES)
        indexes = range((page - 1) * PAGE_SIZE, min(page * PAGE_SIZE, total))
        items = [
            {
                "id": f"{query}-{index + 1}",
                "title": f"Result {index + 1} for {query}",
                "score": (index + 1) * 37 % 100 / 100,
            }
            for index in indexes
        ]
        return {"items": items, "nextPage": page + 1 if page * PAGE_SIZE < total else None}

    @registry.tool(concurrency_safe=True)
    async def slow(ms: int) -> dict[str, int]:
        """Sleep."""
        await trio.sleep(ms / 1000)
        return {"sleptMs": ms}

    @registry.tool(concurrency_safe=True)
    async def fail(message: str) -> None:
        """Fail."""
        raise ValueError(message)

    @registry.tool
    async def flaky(key: str) -> dict[str, Any]:
        """Fail twice per key, then succeed."""
        attempts[key] = attempts.get(key, 0) + 1
        if attempts[key] <= FLAKY_FAILURES:
            raise ValueError(f"temporary failure {attempts[key]} for {key}")
        return {"key": key, "attempts": attempts[key]}

    @registry.tool(concurrency_safe=True)
    async def big(n: int) -> dict[str, list[dict[str, Any]]]:
        """Return n rows."""
        return {"rows": [{"i": index, "text": f"row {index}"} for index in range(n)]}

    @registry.tool(concurrency_safe=True)
    async def image() -> dict[str, str]:
        """Return a picture as base64 text."""
        return {"mime": "image/png", "bytes": base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(8)).decode()}

    registry.register(
        ToolDefinition(
            name="exotic-name",
            description="Return x.",
            parameters={"type": "object", "properties": {"x": {}}, "required": ["x"]},
            output=Output(schema={}),
            execute=_return_x,
            concurrency_safe=True,
        )
    )
    return registry


async def _return_x(arguments: Any, _context: Any) -> Any:
    return arguments["x"]


@dataclasses.dataclass(frozen=True)
class Ending:
    """How a run ended, in the corpus's words."""

    status: str
    result: Any
    logs: str
    error_type: str | None
    error_text: str


def ending_of(outcome: Any) -> Ending:
    """Translate a `RunOutcome`."""
    record = outcome.to_json()
    error = record.get("error", {})
    logs = "".join(line + "\n" for line in record["logs"])
    text = " ".join(str(error.get(key) or "") for key in ("errorType", "message", "hint"))
    return Ending("ok" if outcome.ok else "error", record.get("result"), logs, error.get("errorType"), text)


def mismatch(expected: dict[str, Any], ending: Ending) -> str | None:
    """Say how an ending differs from what an item of `legit.jsonl` expects, or None."""
    faults = [_fault(choice, ending) for choice in (expected, *expected.get("alternatives", ()))]
    return None if None in faults else faults[0]


def _fault(expected: dict[str, Any], ending: Ending) -> str | None:
    if expected["status"] != ending.status:
        return f"status is {ending.status}: {ending.error_text}"
    if expected["status"] == "ok" and not same_json(expected.get("result"), ending.result):
        return f"result is {ending.result!r}, not {expected.get('result')!r}"
    if "logs" in expected and expected["logs"] != ending.logs:
        return f"logs are {ending.logs!r}, not {expected['logs']!r}"
    for part in expected.get("logs_contain", ()):
        if part not in ending.logs:
            return f"logs lack {part!r}"
    if "error_type" in expected and expected["error_type"] != ending.error_type:
        return f"error type is {ending.error_type}, not {expected['error_type']}"
    for part in expected.get("error_contains", ()):
        if part.lower() not in ending.error_text.lower():
            return f"error lacks {part!r}: {ending.error_text}"
    if "error_matches" in expected and not re.search(expected["error_matches"], ending.error_text):
        return f"error does not match {expected['error_matches']!r}: {ending.error_text}"
    return None


def same_json(left: Any, right: Any) -> bool:
    """Compare type-strictly: True is not 1, 1 is not 1.0."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)
