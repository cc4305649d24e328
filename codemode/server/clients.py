"""What the server keeps of each client: how much it runs at once, and the event logs of its last runs.

Bounds are per owner: one stdio connection, or one HTTP token however many sessions it opens. Logs are
per session, and nobody reads those of another.

Knows: bounds and bookkeeping. Does not know: MCP, how a run is made.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import trio

from sandbox.values import encode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

__all__ = ["Bounds", "Client", "ClientBusyError", "ClientKey", "Clients", "Journal", "RunLogs"]

LOGS_KEPT: Final = 20
"""Runs of one client whose event logs can be read. Arbitrary."""
MAX_LOG_BYTES: Final = 1_048_576
"""Bytes of one run's event log that are kept; further events are counted only."""
UNCLAIMED_KEPT: Final = 64
"""Logs of calls that have ended and whose caller has not come for them: direct calls, and cancelled runs."""
MAX_SESSIONS_KEPT: Final = 100
"""Sessions of one owner whose logs are kept; those of the quietest are forgotten first."""
MAX_OWNER_BYTES: Final = 33_554_432
"""Characters, which are bytes, of all logs of one owner."""


class ClientKey(NamedTuple):
    """Who asks: the owner of the bounds, and the session of the owner, '' where there is only one."""

    owner: str
    session: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Bounds:
    """How much one client may ask for at a time."""

    running: int = 4
    """Runs and direct calls of one client that are being worked on."""
    waiting: int = 64
    """Further ones that wait for their turn; one more is refused."""


class ClientBusyError(Exception):
    """The client asks for more at a time than it may; it should wait for answers first."""


class Journal:
    """Collects the events of runs as they are recorded, each run's apart."""

    def __init__(self) -> None:
        self._open: dict[str, _RunLog] = {}
        self._ended: OrderedDict[str, _RunLog] = OrderedDict()
        self._run_of_turn: dict[int, str] = {}
        self._early: list[Mapping[str, Any]] = []
        self._latest: str | None = None

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Take one event of the service.

        A turn's first events come in one go and only the call among them says whose they are, so they wait
        for it. A message that a call leaves behind follows its result at once.
        """
        data = event["data"]
        kind = event["type"]
        if kind in ("turn/start", "step/start", "assistant/message"):
            self._early.append(event)
            return
        if kind == "tool/call":
            owner = self._latest = str(data["callId"])
            self._run_of_turn[data["turn"]] = owner
            log = self._open[owner] = _RunLog()
            for earlier in self._early:
                log.add(earlier)
            self._early.clear()
        elif kind == "user/message":
            owner = self._latest or ""
        else:
            owner = str(data.get("rootCallId") or self._run_of_turn.get(data.get("turn", -1), ""))
            self._latest = owner
        if owner in self._open:
            self._open[owner].add(event)
        if kind == "turn/end":
            self._run_of_turn.pop(data["turn"], None)
            if owner in self._open:
                self._ended[owner] = self._open.pop(owner)
                if len(self._ended) > UNCLAIMED_KEPT:
                    self._ended.popitem(last=False)

    def take(self, run_id: str) -> str | None:
        """Return the log of a run that has ended, as JSON Lines, and forget it."""
        log = self._ended.pop(run_id, None)
        return None if log is None else log.text()


class _RunLog:
    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._size = 0
        self._dropped = 0

    def add(self, event: Mapping[str, Any]) -> None:
        if self._size > MAX_LOG_BYTES:
            self._dropped += 1
            return
        line = encode(event)  # type: ignore[arg-type]  # an event is JSON
        self._size += len(line)
        self._lines.append(line)

    def text(self) -> str:
        lines = list(self._lines)
        if self._dropped:
            lines.append(encode({"type": "note", "data": {"droppedEvents": self._dropped}}))
        return "".join(line.decode("ascii") + "\n" for line in lines)


class Client:
    """One client."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._places = trio.Semaphore(bounds.running)
        self._asked = 0
        self._turnstile = trio.Lock()
        self._overlapping = 0
        self._idle = trio.Event()

    @contextlib.asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Hold one of the client's places while the body runs.

        Raises:
            ClientBusyError: Too many wait for one already.
        """
        most = self._bounds.running + self._bounds.waiting
        if self._asked >= most:
            raise ClientBusyError(
                f"this client already has {self._asked} unfinished requests; at most {most} are taken at a"
                " time, so wait for answers before asking for more"
            )
        self._asked += 1
        try:
            async with self._places:
                yield
        finally:
            self._asked -= 1

    @contextlib.asynccontextmanager
    async def turn(self, *, exclusive: bool) -> AsyncIterator[None]:
        """Let direct calls overlap where all are parallel-safe, and an exclusive one run alone, in order."""
        async with self._turnstile:
            if exclusive:
                while self._overlapping:
                    await self._idle.wait()
                yield
                return
            self._overlapping += 1
            self._idle = trio.Event()
        try:
            yield
        finally:
            self._overlapping -= 1
            if not self._overlapping:
                self._idle.set()


class RunLogs:
    """Event logs of the last runs of each session. One owner's runs never push out another's."""

    def __init__(self) -> None:
        self._owners: dict[str, _OwnersLogs] = {}

    def keep(self, key: ClientKey, run_id: str, text: str | None) -> None:
        """Keep the log of a run, and drop what is oldest beyond the bounds."""
        if text is not None:
            self._owners.setdefault(key.owner, _OwnersLogs()).keep(key.session, run_id, text)

    def of(self, key: ClientKey) -> Mapping[str, str]:
        """Return a session's logs by run id, oldest first."""
        logs = self._owners.get(key.owner)
        return {} if logs is None else logs.of(key.session)


class _OwnersLogs:
    def __init__(self) -> None:
        self._sessions: OrderedDict[str, OrderedDict[str, str]] = OrderedDict()
        self._size = 0

    def keep(self, session: str, run_id: str, text: str) -> None:
        logs = self._sessions.setdefault(session, OrderedDict())
        self._sessions.move_to_end(session)
        logs[run_id] = text
        self._size += len(text)
        if len(logs) > LOGS_KEPT:
            self._drop_oldest(session)
        # From the session that was quiet for longest.
        while len(self._sessions) > MAX_SESSIONS_KEPT or (self._size > MAX_OWNER_BYTES and self._count() > 1):
            self._drop_oldest(next(iter(self._sessions)))

    def of(self, session: str) -> Mapping[str, str]:
        return dict(self._sessions.get(session, {}))

    def _count(self) -> int:
        return sum(map(len, self._sessions.values()))

    def _drop_oldest(self, session: str) -> None:
        logs = self._sessions[session]
        _, text = logs.popitem(last=False)
        self._size -= len(text)
        if not logs:
            del self._sessions[session]


class Clients:
    """All clients by their owner's name."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._clients: dict[str, Client] = {}

    def of(self, key: ClientKey) -> Client:
        """Return the client with this key, new or known. There are as many as tokens."""
        if key.owner not in self._clients:
            self._clients[key.owner] = Client(self._bounds)
        return self._clients[key.owner]
