"""How far a median that was measured may be from the true one.

Knows: the binomial distribution. Does not know: what was measured.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIDENCE: Final = 0.95
"""How often such an interval holds the true median, at least."""


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return two of the values between which the true median lies with at least 95 % confidence.

    It is the interval of the sign test. Whatever the distribution, each independent value lies below its
    median with probability 1/2, so how many do is binomial, and the k-th lowest and highest of n values miss
    the median with the probability that fewer than k do, on either side. Nothing is assumed of spread or
    symmetry. Of fewer than six values no two are that far apart: the interval is then unbounded.
    """
    ordered = sorted(values)
    count = len(ordered)
    below = 0.0
    rank = 0
    while rank < count:
        below += math.comb(count, rank) / 2**count
        if below > (1 - CONFIDENCE) / 2:
            break
        rank += 1
    if rank == 0:
        return -math.inf, math.inf
    return ordered[rank - 1], ordered[count - rank]
