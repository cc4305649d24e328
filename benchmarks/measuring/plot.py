"""The figures as a picture: one panel per question, medians as bars, quartiles as whiskers.

Drawn with matplotlib, which the `bench` extra installs; imported only when a picture is asked for.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from codemode.measurement import write_quantity

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from measuring.rounds import Measured


class PlotError(Exception):
    """There is nothing to draw with, or nothing to draw."""


@dataclasses.dataclass(frozen=True)
class Panel:
    """One question.

    Attributes:
        title: What is shown.
        bars: Row and label of each bar, top to bottom; those that were not measured are left out.
    """

    title: str
    bars: tuple[tuple[str, str], ...]


OURS, THEIRS = "#2b6cb0", "#a0aec0"


def draw(measured: Measured, panels: Sequence[Panel], file: Path, *, ours: frozenset[str]) -> None:
    """Write the picture; the name of the file says in which format (.svg, .png, .pdf).

    Args:
        measured: What came out.
        panels: What to show of it.
        file: Where the picture goes.
        ours: Names of the drivers whose bars are set off.

    Raises:
        PlotError: matplotlib is not installed, or no row of any panel was measured.
    """
    try:
        import matplotlib as mpl  # noqa: PLC0415  # heavy, and not needed to measure
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        raise PlotError("a picture needs matplotlib: pip install 'codemode[bench]'") from error
    shown = [(panel, bars) for panel in panels if (bars := _measured_bars(panel, measured))]
    if not shown:
        raise PlotError("nothing that a picture shows was measured")
    heights = [len(bars) + 1.5 for _, bars in shown]
    # The same numbers give the same file, and text stays text.
    with mpl.rc_context({"svg.hashsalt": "codemode", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(8, 0.3 * sum(heights) + 0.5), layout="constrained")
        axes = figure.subplots(len(shown), 1, height_ratios=heights, squeeze=False)[:, 0]
        for axis, (panel, bars) in zip(axes, shown, strict=True):
            _draw_panel(axis, panel, bars, measured, ours)
        file.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)


def _measured_bars(panel: Panel, measured: Measured) -> list[tuple[str, str]]:
    return [bar for bar in panel.bars if bar[0] in measured.rows]


def _draw_panel(
    axis: Any, panel: Panel, bars: list[tuple[str, str]], measured: Measured, ours: frozenset[str]
) -> None:
    rows = [measured.rows[name] for name, _ in bars]
    medians = [row.samples.median for row in rows]
    quartiles = [row.samples.quartiles for row in rows]
    places = range(len(bars))
    colors = [OURS if name.partition("/")[0] in ours else THEIRS for name, _ in bars]
    whiskers = [
        [max(median - low, 0) for median, (low, _) in zip(medians, quartiles, strict=True)],
        [max(high - median, 0) for median, (_, high) in zip(medians, quartiles, strict=True)],
    ]
    axis.barh(places, medians, color=colors, xerr=whiskers, error_kw={"elinewidth": 0.8, "capsize": 2})
    axis.set_xscale("log")
    axis.set_yticks(places, [label for _, label in bars])
    axis.invert_yaxis()
    axis.set_title(panel.title, loc="left", fontsize=10)
    unit = rows[0].unit
    axis.xaxis.set_major_formatter(lambda value, _place: write_quantity(value, unit))
    axis.xaxis.minorticks_off()
    axis.spines[["top", "right"]].set_visible(False)
    for place, (_, high) in zip(places, quartiles, strict=True):
        text = write_quantity(medians[place], unit)
        axis.annotate(text, (high, place), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8)
    axis.set_xlim(right=max(high for _, high in quartiles) * 3)
