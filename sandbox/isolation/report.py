"""What became of a step of the kernel wall: the words in which a worker tells the host.

Apart from the steps themselves, so that the host need not load them.
"""

from __future__ import annotations

from typing import NamedTuple


class StepReport(NamedTuple):
    """What became of a step on this machine."""

    name: str
    active: bool
    detail: str = ""
