"""The committed ratios, and whether new ones are still like them.

Ratios of two rows of one run are compared, never times: those of another machine say nothing here.
"""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from measuring.claims import Judged

MAX_WORSENING = 1.5
"""Times the committed ratio; what shared machines do to one run stays below it. Arbitrary."""


@dataclasses.dataclass(frozen=True)
class Change:
    """One ratio, then and now. Either is None where it is not known."""

    text: str
    committed: float | None
    found: float | None

    @property
    def verdict(self) -> str:
        """Return "ok", "WORSE", "missing" (no figure now) or "new" (none committed)."""
        if self.found is None:
            return "missing"
        if self.committed is None:
            return "new"
        return "WORSE" if self.found > self.committed * MAX_WORSENING else "ok"

    @property
    def fails(self) -> bool:
        """Whether the guard must fail."""
        return self.verdict in ("WORSE", "missing")


def ratios(judged: Sequence[Judged]) -> dict[str, float | None]:
    """Return the ratios among the claims."""
    return {each.claim.text: each.value for each in judged if each.claim.against is not None}


def write(file: Path, judged: Sequence[Judged]) -> None:
    """Make the ratios of this run the committed ones.

    Raises:
        ValueError: One of them could not be measured.
    """
    found = ratios(judged)
    absent = [text for text, value in found.items() if value is None]
    if absent:
        raise ValueError(f"not a baseline, because there is no figure for: {', '.join(absent)}")
    rounded = {text: float(f"{value:.3g}") for text, value in found.items()}
    file.write_text(json.dumps(rounded, indent=2) + "\n", encoding="utf-8")


def compare(file: Path, judged: Sequence[Judged]) -> list[Change]:
    """Return every ratio of the file and of this run beside each other."""
    committed: dict[str, float] = json.loads(file.read_text(encoding="utf-8"))
    found = ratios(judged)
    return [Change(text, committed.get(text), found.get(text)) for text in {**committed, **found}]


def table(changes: Sequence[Change]) -> str:
    """Return one line per ratio."""
    width = max((len(change.text) for change in changes), default=0)
    lines = [f"{'':{width}} {'committed':>10} {'now':>10} {'change':>8}"]
    for change in changes:
        then = "-" if change.committed is None else f"{change.committed:.2f}x"
        now = "-" if change.found is None else f"{change.found:.2f}x"
        both = change.committed and change.found
        times = (
            f"{change.found / change.committed:.2f}" if both and change.found and change.committed else "-"
        )
        lines.append(f"{change.text:{width}} {then:>10} {now:>10} {times:>8}  {change.verdict}")
    return "\n".join(lines)
