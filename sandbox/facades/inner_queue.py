# ruff: noqa: N818 -- the names and signatures are the library's
"""`queue` for programs: the same queues without threads, so whoever would wait for another thread is told.

Knows: the queues of the standard library. Does not know: anything else; this text runs as a program does.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import Any

__all__ = ["Empty", "Full", "LifoQueue", "PriorityQueue", "Queue", "SimpleQueue"]


class Empty(Exception):
    """There is nothing in the queue."""


class Full(Exception):
    """There is no room in the queue."""


class Queue:
    """First in, first out."""

    def __init__(self, maxsize: int = 0) -> None:
        self.maxsize = maxsize
        self.unfinished_tasks = 0
        self._init(maxsize)

    def _init(self, maxsize: int) -> None:
        self.queue: Any = deque()

    def _qsize(self) -> int:
        return len(self.queue)

    def _put(self, item: Any) -> None:
        self.queue.append(item)

    def _get(self) -> Any:
        return self.queue.popleft()

    def qsize(self) -> int:
        """Return how many items there are."""
        return self._qsize()

    def empty(self) -> bool:
        """Say whether there are none."""
        return not self._qsize()

    def full(self) -> bool:
        """Say whether there is no room for another."""
        return 0 < self.maxsize <= self._qsize()

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        """Add an item."""
        if timeout is not None and timeout < 0:
            raise ValueError("'timeout' must be a non-negative number")
        if self.full():
            if block and timeout is None:
                raise RuntimeError(
                    "put() would wait for ever: the queue is full, and no other thread takes from it"
                )
            raise Full
        self._put(item)
        self.unfinished_tasks += 1

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Remove an item and return it."""
        if timeout is not None and timeout < 0:
            raise ValueError("'timeout' must be a non-negative number")
        if not self._qsize():
            if block and timeout is None:
                raise RuntimeError(
                    "get() would wait for ever: the queue is empty, and no other thread adds to it"
                )
            raise Empty
        return self._get()

    def put_nowait(self, item: Any) -> None:
        """Add an item, or raise Full."""
        self.put(item, block=False)

    def get_nowait(self) -> Any:
        """Remove an item and return it, or raise Empty."""
        return self.get(block=False)

    def task_done(self) -> None:
        """Say that an item taken before has been dealt with."""
        if self.unfinished_tasks <= 0:
            raise ValueError("task_done() called too many times")
        self.unfinished_tasks -= 1

    def join(self) -> None:
        """Return if every item has been dealt with."""
        if self.unfinished_tasks:
            raise RuntimeError(
                f"join() would wait for ever: {self.unfinished_tasks} items lack a task_done(), and "
                "no other thread does it"
            )


class LifoQueue(Queue):
    """Last in, first out."""

    def _init(self, maxsize: int) -> None:
        self.queue = []

    def _get(self) -> Any:
        return self.queue.pop()


class PriorityQueue(Queue):
    """Smallest first."""

    def _init(self, maxsize: int) -> None:
        self.queue = []

    def _put(self, item: Any) -> None:
        heapq.heappush(self.queue, item)

    def _get(self) -> Any:
        return heapq.heappop(self.queue)


class SimpleQueue:
    """First in, first out, without a limit."""

    def __init__(self) -> None:
        self._items = Queue()

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        """Add an item."""
        self._items.put(item)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Remove an item and return it."""
        return self._items.get(block, timeout)

    def put_nowait(self, item: Any) -> None:
        """Add an item."""
        self._items.put(item)

    def get_nowait(self) -> Any:
        """Remove an item and return it, or raise Empty."""
        return self._items.get(block=False)

    def empty(self) -> bool:
        """Say whether there are none."""
        return self._items.empty()

    def qsize(self) -> int:
        """Return how many items there are."""
        return self._items.qsize()
