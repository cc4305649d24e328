"""`codemode serve`: programs and tools for MCP clients, over standard streams or HTTP.

Knows: options, tokens, how serving begins and ends. Does not know: MCP.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from codemode.cli import status
from codemode.cli.status import CommandError
from codemode.server.descriptors import claim_standard_streams

if TYPE_CHECKING:
    import argparse
    import socket
    from collections.abc import AsyncIterator

    import trio

    from codemode.cli.console import Console
    from codemode.cli.interrupt import Interrupt
    from codemode.cli.toolset import Toolset
    from codemode.server.descriptors import Descriptors
    from codemode.server.handlers import CodeServer
    from codemode.session_log import SessionLog

TOKEN_VARIABLE: Final = "CODEMODE_TOKEN"  # noqa: S105  # the name of a variable
_MIN_TOKEN_CHARS: Final = 16
_TOKEN: Final = re.compile(r"[\x21-\x7e]+")
_MAX_TOKEN_FILE_BYTES: Final = 65_536
_PATIENCE_SECONDS: Final = 10.0
"""Clients give up on a server that does not answer; tools of slower MCP servers are announced later."""
OUTPUT_BYTES: Final = 1_048_576
"""Default of `--max-output-bytes` here: what comes back goes into a model's context."""
_STDIO_NOTE: Final = """\
codemode: serving run_code, whose programs can call {tools}, over standard streams.
  An MCP client is awaited on standard input; clients start this command themselves.
  Ctrl-C or Ctrl-D ends it."""
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


def run(options: argparse.Namespace, console: Console) -> int:
    """Serve until the client leaves or a signal comes."""
    tokens: list[str] = []
    listener: socket.socket | None = None
    _check_options(options)
    by_hand = sys.stdin is not None and sys.stdin.isatty()
    try:
        # Before anything else is imported: modules of tools print while they are. Over HTTP it keeps tools
        # from waiting for a terminal.
        descriptors = claim_standard_streams()
    except OSError as error:
        raise CommandError(f"standard input and output must be open: {error.strerror}") from error
    if importlib.util.find_spec("mcp") is None:
        raise CommandError("serving needs the MCP SDK: pip install 'codemode[mcp]'")
    if options.http is not None:
        tokens = _tokens(options, console)
        listener = _listen(*options.http)

    import trio  # noqa: PLC0415  # after the claim, like all that follows

    from codemode.cli.interrupt import Interrupt  # noqa: PLC0415
    from codemode.cli.log import event_log  # noqa: PLC0415
    from codemode.cli.servers import mcp_files  # noqa: PLC0415
    from codemode.cli.toolset import load_toolset  # noqa: PLC0415

    protected = [*mcp_files(options), *(Path(name) for name in (options.events, options.token_file) if name)]
    toolset = load_toolset(options, protected=protected)
    interrupt = Interrupt(console.tell)
    with event_log(options.events, console) as log:
        if listener is None:
            trio.run(_serve_stdio, options, toolset, log, console, interrupt, descriptors, by_hand)
        else:
            trio.run(_serve_http, options, toolset, log, console, interrupt, listener, tokens)
    # A client that leaves and a person who stops the server both get what they want.
    return status.OK


def _check_options(options: argparse.Namespace) -> None:
    """Refuse what would be ignored: who gives it believes in a door that is not there.

    Raises:
        CommandError: An option for HTTP was given without it.
    """
    for name, value in (("--token-file", options.token_file), ("--allow-host", options.allow_host)):
        if value and options.http is None:
            raise CommandError(f"{name} is for HTTP only; add --http HOST:PORT, or leave {name} out")


async def _serve_stdio(
    options: argparse.Namespace,
    toolset: Toolset,
    log: SessionLog | None,
    console: Console,
    interrupt: Interrupt,
    descriptors: Descriptors,
    by_hand: bool,
) -> None:
    from codemode.event_text import plural  # noqa: PLC0415
    from codemode.server.stdio import serve_stdio  # noqa: PLC0415

    async with _open_server(options, toolset, log, console, interrupt) as server:
        if by_hand:
            # No client speaks through a terminal, so a person is there and would wait in vain.
            names = toolset.allowed if options.allow else toolset.registry.names()
            console.say(_STDIO_NOTE.format(tools=plural(len(names), "tool")))
        await serve_stdio(server, descriptors)


async def _serve_http(
    options: argparse.Namespace,
    toolset: Toolset,
    log: SessionLog | None,
    console: Console,
    interrupt: Interrupt,
    listener: socket.socket,
    tokens: list[str],
) -> None:
    from codemode.server.http import PATH, serve_http  # noqa: PLC0415

    host, _ = options.http
    shown = f"[{host}]" if ":" in host else host
    async with _open_server(options, toolset, log, console, interrupt) as server:
        console.say(f"codemode: serving at http://{shown}:{listener.getsockname()[1]}{PATH}")
        if host not in _LOOPBACK:
            console.say(
                "codemode: warning: others can reach this address, and what passes is not encrypted;"
                " put a proxy with TLS in front"
            )
        await serve_http(
            server,
            listener,
            host=host,
            tokens=tokens,
            host_names=options.allow_host,
            stopped=interrupt.abort.wait,
        )


@contextlib.asynccontextmanager
async def _open_server(
    options: argparse.Namespace,
    toolset: Toolset,
    log: SessionLog | None,
    console: Console,
    interrupt: Interrupt,
) -> AsyncIterator[CodeServer]:
    """Open the service and everything it needs. A signal ends the body, a second one at once."""
    from codemode.cli.interrupt import stoppable  # noqa: PLC0415
    from codemode.cli.servers import with_mcp_servers  # noqa: PLC0415
    from codemode.server.clients import Bounds, Journal  # noqa: PLC0415
    from codemode.server.handlers import CodeServer, never_gone, one_client  # noqa: PLC0415
    from codemode.server.http import client_key, disconnected  # noqa: PLC0415
    from codemode.service import open_service  # noqa: PLC0415
    from codemode.settings import Settings  # noqa: PLC0415

    registry, journal = toolset.registry, Journal()
    settings = {
        "wall_seconds": options.wall_seconds,
        "compute_seconds": options.compute_seconds,
        "memory_mb": options.memory_mb,
        "max_output_bytes": options.max_output_bytes or OUTPUT_BYTES,
        "isolation": options.isolation,
    }
    given = Settings(**{name: value for name, value in settings.items() if value is not None})
    async with (
        stoppable(interrupt) as nursery,
        with_mcp_servers(
            options, toolset, console, verbose=True, patience_seconds=_PATIENCE_SECONDS
        ) as offered,
        open_service(
            registry, settings=given, session_log=log, on_event=journal.on_event, spill=toolset.spill
        ) as service,
    ):
        present = options.present or registry.presentation()
        server = CodeServer(
            service,
            registry,
            journal,
            bounds=Bounds(),
            allowed=offered.allowed if options.allow else None,
            expose_tools=present == "both",
            key_of=one_client if options.http is None else client_key,
            gone_of=never_gone if options.http is None else disconnected,
        )
        dispose = registry.on_change(server.on_tools_changed)
        try:
            if options.http is None:
                nursery.start_soon(_cancel_when_interrupted, interrupt, nursery.cancel_scope)
            yield server
        finally:
            dispose()


async def _cancel_when_interrupted(interrupt: Interrupt, scope: trio.CancelScope) -> None:
    await interrupt.abort.wait()
    scope.cancel()


def _listen(host: str, port: int) -> socket.socket:
    from codemode.server.sockets import listening_socket  # noqa: PLC0415

    try:
        return listening_socket(host, port)
    except OSError as error:
        raise CommandError(f"--http {host}:{port}: cannot listen there: {error.strerror}") from error


def _tokens(options: argparse.Namespace, console: Console) -> list[str]:
    """Return the tokens clients must send: those given, else a new one, which is printed once."""
    if options.token_file is not None:
        tokens = _read_token_file(options.token_file)
        source = f"--token-file {options.token_file!r}"
    elif TOKEN_VARIABLE in os.environ:
        tokens, source = [os.environ[TOKEN_VARIABLE].strip()], TOKEN_VARIABLE
    else:
        from codemode.server.sockets import new_token  # noqa: PLC0415

        token = new_token()
        console.say(f"codemode: bearer token for this run of the server: {token}")
        return [token]
    for token in tokens:
        if len(token) < _MIN_TOKEN_CHARS or not _TOKEN.fullmatch(token):
            raise CommandError(
                f"{source}: a token must have at least {_MIN_TOKEN_CHARS} visible ASCII characters,"
                " and no spaces"
            )
    return tokens


def _read_token_file(name: str) -> list[str]:
    try:
        with Path(name).open("rb") as stream:
            text = stream.read(_MAX_TOKEN_FILE_BYTES + 1).decode("ascii")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not ASCII text"
        raise CommandError(f"--token-file {name!r}: cannot read it: {why}") from None
    tokens = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if len(text) > _MAX_TOKEN_FILE_BYTES or not tokens:
        raise CommandError(f"--token-file {name!r} must have one token per line, at least one")
    return tokens
