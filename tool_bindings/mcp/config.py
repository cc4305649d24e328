"""The `mcpServers` file that desktop clients use, read and checked before anything is started.

    {"mcpServers": {"time": {"command": "mcp-server-time", "args": ["--local-timezone", "UTC"]},
                    "docs": {"url": "https://example.org/mcp", "headers": {"Authorization": "${TOKEN}"}}}}

`${NAME}` and `${NAME:-default}` stand for environment variables of ours, so that secrets need not be
in the file. Settings that other clients do not have are under the key `codemode` of a server.

Knows: forms, defaults, bounds. Does not know: how a server is reached.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import os
import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from sandbox.values import decode
from tool_bindings.mcp.errors import McpConfigError
from tool_bindings.repeated_keys import repeated_key_problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

__all__ = ["HttpServer", "McpServerConfig", "Reconnect", "StdioServer", "load_mcp_config", "parse_mcp_config"]

MAX_FILE_BYTES: Final = 1_048_576
"""Bytes of a configuration file. Arbitrary: a thousand times a usual one."""
_SERVER_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,32}")
_MAX_DELAY_MS: Final = 2_147_483_647
"""Milliseconds a delay may have: the largest signed 32-bit number, as in other clients."""

_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_STDIO_KEYS: Final = ("command", "args", "env", "cwd")
_HTTP_KEYS: Final = ("url", "headers")
_COMMON_KEYS: Final = ("type", "transport", "disabled", "codemode")
_OWN_KEYS: Final = (
    "toolCallTimeoutMs",
    "failOnStartupError",
    "startupTimeoutMs",
    "concurrencySafe",
    "reconnect",
)
_RECONNECT_KEYS: Final = ("enabled", "initialDelayMs", "maxDelayMs", "maxAttempts")
_HTTP_TYPES: Final = ("http", "streamable-http", "streamableHttp")


@dataclasses.dataclass(frozen=True, slots=True)
class Reconnect:
    """What happens when a connection is lost."""

    enabled: bool = True
    initial_delay_seconds: float = 0.5
    """Before the first attempt; each further one waits twice as long."""
    max_delay_seconds: float = 30.0
    """The longest wait; a connection that lived as long starts the count of attempts anew."""
    max_attempts: int = 10
    """Attempts in a row before the server's tools are taken away."""


@dataclasses.dataclass(frozen=True, slots=True)
class StdioServer:
    """A server that is started as a child process."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Added to the few variables that every child gets."""
    cwd: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class HttpServer:
    """A server that is reached over streamable HTTP."""

    url: str
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict, repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class McpServerConfig:
    """One server."""

    name: str
    transport: StdioServer | HttpServer
    tool_call_timeout_seconds: float = 60.0
    startup_timeout_seconds: float = 60.0
    """For connecting, shaking hands and the first list of tools."""
    fail_on_startup_error: bool = False
    """Whether a first attempt that fails is an error; else it is repeated in the background."""
    concurrency_safe: bool | frozenset[str] = False
    """Tools whose calls may overlap: all, none, or those with these names of the server's own."""
    reconnect: Reconnect = Reconnect()

    def __post_init__(self) -> None:
        if not _SERVER_NAME.fullmatch(self.name):
            raise McpConfigError(
                f"MCP server name {self.name!r} must have 1 to 32 characters of A-Z, a-z, 0-9, _ and -"
            )


def load_mcp_config(path: Path, environ: Mapping[str, str] | None = None) -> list[McpServerConfig]:
    """Read a configuration file.

    Args:
        path: The file.
        environ: Where `${NAME}` is looked up; the process's environment by default.

    Raises:
        McpConfigError: It cannot be read, or says something that makes no sense.
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise McpConfigError(f"cannot read {str(path)!r}: {error.strerror}") from error
    if len(data) > MAX_FILE_BYTES:
        raise McpConfigError(f"{str(path)!r} has more than {MAX_FILE_BYTES} bytes; is it the right file?")
    try:
        text = data.decode("utf-8-sig")
        document = decode(text)
    except UnicodeDecodeError:
        raise McpConfigError(f"{str(path)!r} is not UTF-8 text") from None
    except ValueError as error:
        raise McpConfigError(f"{str(path)!r} is not valid JSON: {error}") from None
    twice = repeated_key_problem(text)
    if twice is not None:
        raise McpConfigError(f"{str(path)!r}: {twice}")
    return parse_mcp_config(document, environ)


def parse_mcp_config(document: object, environ: Mapping[str, str] | None = None) -> list[McpServerConfig]:
    """Check a decoded configuration; servers that are `disabled` are left out.

    Raises:
        McpConfigError: It says something that makes no sense.
    """
    variables = os.environ if environ is None else environ
    servers = document.get("mcpServers") if isinstance(document, dict) else None
    if not isinstance(servers, dict):
        raise McpConfigError(
            'an MCP configuration is an object {"mcpServers": {"name": {"command": "...", "args": []}}}'
        )
    read = (_Reader(str(name), entry, variables).config() for name, entry in servers.items())
    return [config for config in read if config is not None]


class _Reader:
    """Reads the entry of one server; every complaint names the server and the key."""

    def __init__(self, name: str, entry: Any, environ: Mapping[str, str]) -> None:
        self._name = name
        self._entry = entry
        self._environ = environ

    def config(self) -> McpServerConfig | None:
        if not isinstance(self._entry, dict):
            raise self._error("must be an object with `command` or `url`")
        self._refuse_slips(self._entry, (*_STDIO_KEYS, *_HTTP_KEYS, *_COMMON_KEYS), "")
        if self._flag(self._entry, "disabled", "", default=False):
            return None
        own = self._entry.get("codemode", {})
        if not isinstance(own, dict):
            raise self._error("`codemode` must be an object")
        self._refuse_unknown(own, _OWN_KEYS, "codemode.")
        default = McpServerConfig(self._name, self._transport())
        return dataclasses.replace(
            default,
            tool_call_timeout_seconds=self._milliseconds(own, "toolCallTimeoutMs", "codemode.", 60_000),
            startup_timeout_seconds=self._milliseconds(own, "startupTimeoutMs", "codemode.", 60_000),
            fail_on_startup_error=self._flag(own, "failOnStartupError", "codemode.", default=False),
            concurrency_safe=self._concurrency(own),
            reconnect=self._reconnect(own),
        )

    def _transport(self) -> StdioServer | HttpServer:
        entry = self._entry
        kind = entry.get("type", entry.get("transport"))
        if kind == "sse":
            raise self._error("uses the `sse` transport, which MCP gave up; give its streamable HTTP url")
        if kind not in (None, "stdio", *_HTTP_TYPES):
            raise self._error(f"`type` must be stdio or http, not {kind!r}")
        is_http = kind in _HTTP_TYPES or (kind is None and "url" in entry)
        if is_http == ("command" in entry) or is_http != ("url" in entry):
            raise self._error("must have either `command` (a program to start) or `url` (streamable HTTP)")
        if is_http:
            url = self._text(entry["url"], "url")
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise self._error(f"`url` must be an http or https address, not {url!r}")
            return HttpServer(url, self._texts(entry.get("headers", {}), "headers"))
        args = entry.get("args", [])
        if not isinstance(args, list):
            raise self._error("`args` must be an array of strings")
        command = self._text(entry["command"], "command")
        if not command.strip():
            raise self._error("`command` is empty")
        cwd = entry.get("cwd")
        return StdioServer(
            command,
            tuple(self._text(argument, f"args[{index}]") for index, argument in enumerate(args)),
            self._texts(entry.get("env", {}), "env"),
            self._text(cwd, "cwd") if cwd else None,
        )

    def _texts(self, value: Any, key: str) -> dict[str, str]:
        if not isinstance(value, dict):
            raise self._error(f"`{key}` must be an object of strings")
        return {name: self._text(text, f"{key}.{name}") for name, text in value.items()}

    def _text(self, value: Any, key: str) -> str:
        if not isinstance(value, str):
            raise self._error(f"`{key}` must be a string")

        def look_up(match: re.Match[str]) -> str:
            name, default = match.groups()
            found = self._environ.get(name, default)
            if found is None:
                raise self._error(
                    f"`{key}` needs the environment variable {name}, which is not set; set it, or write"
                    f" ${{{name}:-default}}"
                )
            return found

        text = _VARIABLE.sub(look_up, value)
        if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
            raise self._error(f"`{key}` has a zero character or a lone surrogate in it")
        return text

    def _concurrency(self, own: Mapping[str, Any]) -> bool | frozenset[str]:
        value = own.get("concurrencySafe", False)
        if type(value) is bool:
            return value
        if isinstance(value, list) and all(isinstance(name, str) for name in value):
            return frozenset(value)
        raise self._error("`codemode.concurrencySafe` must be true, false or an array of tool names")

    def _reconnect(self, own: Mapping[str, Any]) -> Reconnect:
        value = own.get("reconnect", {})
        where = "codemode.reconnect."
        if not isinstance(value, dict):
            raise self._error("`codemode.reconnect` must be an object")
        self._refuse_unknown(value, _RECONNECT_KEYS, where)
        attempts = value.get("maxAttempts", 10)
        if type(attempts) is not int or attempts < 1:
            raise self._error(f"`{where}maxAttempts` must be a whole number of at least 1, not {attempts!r}")
        initial = self._milliseconds(value, "initialDelayMs", where, 500)
        longest = self._milliseconds(value, "maxDelayMs", where, 30_000)
        if initial > longest:
            raise self._error(f"`{where}initialDelayMs` must not be above `maxDelayMs`")
        return Reconnect(self._flag(value, "enabled", where, default=True), initial, longest, attempts)

    def _milliseconds(self, holder: Mapping[str, Any], key: str, where: str, default: int) -> float:
        value = holder.get(key, default)
        if type(value) not in (int, float) or not math.isfinite(value) or not 0 < value <= _MAX_DELAY_MS:
            raise self._error(
                f"`{where}{key}` must be a number of milliseconds above 0 and at most {_MAX_DELAY_MS}"
            )
        return float(value) / 1000

    def _flag(self, holder: Mapping[str, Any], key: str, where: str, *, default: bool) -> bool:
        value = holder.get(key, default)
        if type(value) is not bool:
            raise self._error(f"`{where}{key}` must be true or false")
        return value

    def _refuse_unknown(self, holder: Mapping[str, Any], known: Iterable[str], where: str) -> None:
        for key in holder:
            if key not in known:
                raise self._error(f"`{where}{key}` is not known; there are: {', '.join(known)}")

    def _refuse_slips(self, holder: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
        # Every client adds keys of its own (autoApprove, icon ...): only what looks like a slip is refused.
        for key in holder:
            close = difflib.get_close_matches(key, known, 1, cutoff=0.75)
            if key not in known and close:
                raise self._error(f"`{where}{key}` is not known; did you mean `{close[0]}`?")

    def _error(self, text: str) -> McpConfigError:
        return McpConfigError(f"MCP server {self._name!r}: {text}")
