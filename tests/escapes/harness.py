"""Runs programs under the language wall alone, with the fixture tools of the corpus, on a plain asyncio loop.

No supervisor, no wire, no kernel wall: what these tests show, the policy and the guards hold by themselves.
"""

from __future__ import annotations

import asyncio
import base64
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandbox import values
from sandbox.diagnostics import describe_exception
from sandbox.facades import asyncio_facade
from sandbox.guards import build_globals
from sandbox.policy import ProgramRefusedError, ProgramResult, compile_program

OUTPUT_BYTES = 4 * 1024 * 1024

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
_PAGE = 3
_TOTALS = {"none": 0, "one": 1}
_PARAMETERS: dict[str, dict[str, str]] = {
    "add": {"a": "integer", "b": "integer"},
    "echo": {"value": "any"},
    "read": {"path": "string"},
    "search": {"query": "string", "page": "integer?"},
    "slow": {"ms": "integer"},
    "fail": {"message": "string"},
    "flaky": {"key": "string"},
    "big": {"n": "integer"},
    "image": {},
    "exotic-name": {"x": "any"},
}


class ToolCallError(Exception):
    """What a failed tool call raises."""

    def __init__(self, message: str = "", tool_name: str | None = None) -> None:
        super().__init__(message)
        self.tool_name = tool_name


class _Call:
    """A tool call that starts when it is awaited."""

    __slots__ = ("_arguments", "_host", "_name")

    def __init__(self, host: _Host, name: str, arguments: Any) -> None:
        self._host, self._name, self._arguments = host, name, arguments

    def __await__(self) -> Any:
        return self._host.call(self._name, self._arguments).__await__()

    def _missing_await(self, *_: Any) -> Any:
        raise TypeError(f"the tool call {self._name!r} was not awaited; write: await tools.{self._name}(...)")

    __getitem__ = __iter__ = __len__ = __contains__ = __bool__ = __add__ = _missing_await

    def __getattr__(self, name: str) -> Any:
        if name[:2] == "__":
            raise AttributeError(name)
        return self._missing_await()


class _Tool:
    __slots__ = ("_host", "_name")

    def __init__(self, host: _Host, name: str) -> None:
        self._host, self._name = host, name

    def __call__(self, *args: Any, **kwargs: Any) -> _Call:
        if args and (kwargs or len(args) > 1 or not isinstance(args[0], dict)):
            raise ToolCallError(f"{self._name} takes keyword arguments, or one dict", self._name)
        return _Call(self._host, self._name, args[0] if args else kwargs)

    def __repr__(self) -> str:
        return f"<tool {self._name}>"


class _Tools:
    __slots__ = ("_host",)

    def __init__(self, host: _Host) -> None:
        self._host = host

    def __getattr__(self, name: str) -> _Tool:
        return self[name]

    def __getitem__(self, name: Any) -> _Tool:
        if type(name) is not str or name not in _PARAMETERS:
            raise AttributeError(f"there is no tool {name!r}; the tools are: {', '.join(_PARAMETERS)}")
        return _Tool(self._host, name)

    def __repr__(self) -> str:
        return "<tools>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("tools cannot be copied")


class _Host:
    """The ten fixture tools."""

    def __init__(self, *, frozen: bool = True) -> None:
        self.failures: dict[str, int] = {}
        self._frozen = frozen

    async def call(self, name: str, arguments: Any) -> Any:
        try:
            given = values.from_program(arguments, "arguments")
        except values.NotJsonError as error:
            raise ToolCallError(str(error), name) from None
        self._check(name, given)
        value = values.snapshot(await self._body(name, given))
        return values.freeze(value) if self._frozen else value

    def _check(self, name: str, given: Any) -> None:
        wanted = _PARAMETERS[name]
        for key in given:
            if key not in wanted:
                raise ToolCallError(f"{name}: unexpected argument {key!r}", name)
        for key, kind in wanted.items():
            if key not in given:
                if kind[-1] == "?":
                    continue
                raise ToolCallError(f"{name}: missing argument {key!r}", name)
            expected = {"integer": int, "string": str}.get(kind.rstrip("?"), object)
            if not isinstance(given[key], expected) or (expected is int and isinstance(given[key], bool)):
                raise ToolCallError(f"{name}: argument {key!r} must be of type {kind}", name)

    async def _body(self, name: str, given: Any) -> Any:
        if name == "add":
            return given["a"] + given["b"]
        if name == "echo":
            return given["value"]
        if name == "exotic-name":
            return given["x"]
        if name == "read":
            lines = FILES.get(given["path"])
            if lines is None:
                raise ToolCallError(f"file not found: {given['path']}", "read")
            numbered = [{"number": number + 1, "text": text} for number, text in enumerate(lines)]
            return {"path": given["path"], "offset": 0, "lines": numbered, "totalLines": len(lines)}
        if name == "search":
            return self._search(given["query"], given.get("page", 1))
        if name == "slow":
            await asyncio.sleep(given["ms"] / 1000)
            return {"sleptMs": given["ms"]}
        if name == "fail":
            raise ToolCallError(given["message"], "fail")
        if name == "flaky":
            count = self.failures[given["key"]] = self.failures.get(given["key"], 0) + 1
            if count <= 2:
                raise ToolCallError(f"temporary failure {count} for {given['key']}", "flaky")
            return {"key": given["key"], "attempts": count}
        if name == "big":
            return {"rows": [{"i": i, "text": f"row {i}"} for i in range(given["n"])]}
        return {"mime": "image/png", "bytes": base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(8)).decode()}

    def _search(self, query: str, page: int) -> Any:
        total = _TOTALS.get(query, 7)
        shown = range((page - 1) * _PAGE, min(page * _PAGE, total))
        items = [
            {
                "id": f"{query}-{i + 1}",
                "title": f"Result {i + 1} for {query}",
                "score": ((i + 1) * 37 % 100) / 100,
            }
            for i in shown
        ]
        return {"items": items, "nextPage": page + 1 if page * _PAGE < total else None}


@dataclass
class Outcome:
    """How one program ended."""

    status: str
    """`ok`, `policy`, `exception`, `timeout`, `memory-limit`, `output-limit` or `worker-exit`."""
    result: Any = None
    has_result: bool = False
    logs: str = ""
    error_type: str | None = None
    message: str = ""
    line: int | None = None
    hint: str | None = None
    frames: list[Any] = field(default_factory=list)


class OutputLimitError(BaseException):
    """The program printed too much."""


def run_program(source: str) -> Outcome:
    """Run one program in this process."""
    logs: list[str] = []
    size = 0

    def write(stream: str, text: str) -> None:
        nonlocal size
        del stream
        size += len(text)
        if size > OUTPUT_BYTES:
            raise OutputLimitError
        logs.append(text)

    try:
        compiled = compile_program(source)
    except ProgramRefusedError as error:
        first = error.refusals[0]
        return Outcome(
            "policy", error_type=error.error_type, message=str(error), line=first.line, hint=first.hint
        )
    host = _Host()

    async def adapted(call: Any) -> Any:
        return await call

    def nested_run(main: Any) -> Any:
        outer = asyncio.events._get_running_loop()
        task = asyncio.tasks.current_task()
        asyncio.events._set_running_loop(None)
        asyncio.tasks._leave_task(outer, task)
        try:
            with asyncio.Runner() as runner:
                return runner.run(adapted(main))
        finally:
            asyncio.tasks._enter_task(outer, task)
            asyncio.events._set_running_loop(outer)

    asyncio_facade.install(
        run=nested_run, awaitable_adapter=lambda call: adapted(call) if isinstance(call, _Call) else call
    )
    names = build_globals(
        bindings={"tools": _Tools(host), "ToolCallError": ToolCallError}, stdout_write=write
    )
    try:
        exec(compiled.code, names)
        returned = _drive(names[compiled.entry_name]())
        outcome = Outcome("ok")
        if isinstance(returned, ProgramResult):
            try:
                outcome.result, outcome.has_result = values.from_program(returned.value), True
            except values.NotJsonError as error:
                if not returned.implicit:
                    if isinstance(returned.value, _Call):
                        returned.value._missing_await()
                    return Outcome(
                        "exception", error_type="InvalidOutput", message=str(error), logs="".join(logs)
                    )
    except OutputLimitError:
        return Outcome("output-limit", logs="".join(logs))
    except BaseException as error:  # noqa: BLE001  # a program may raise anything
        kind, message, line, frames = describe_exception(error, source)
        status = "memory-limit" if isinstance(error, MemoryError) else "exception"
        return Outcome(
            status,
            error_type=kind,
            message=f"{kind}: {message}",
            line=line,
            frames=frames,
            logs="".join(logs),
        )
    outcome.logs = "".join(logs)
    return outcome


def _drive(coroutine: Any) -> Any:
    with asyncio.Runner() as runner:
        runner.get_loop().set_exception_handler(lambda loop, context: None)
        return runner.run(coroutine)


def load(name: str) -> list[dict[str, Any]]:
    """Return the items of a data file."""
    text = (Path(__file__).parent.parent / "data" / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.split("\n") if line.strip()]
