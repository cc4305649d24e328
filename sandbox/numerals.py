"""Numbers as text: integers of any size, floats as JavaScript writes them.

No setting of the process is changed: the interpreter's limit on digits is worked around.

Knows: decimal conversion.
Does not know: JSON beyond numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import decimal

__all__ = ["int_from_text", "int_text", "number_text"]

_INT_TEXT_DIGITS: Final = 4000
"""Digits converted by `int` and `str` directly; the interpreter refuses more than 4300 by default."""


def int_from_text(text: str) -> int:
    """Convert decimal digits without the interpreter's limit, in sub-quadratic time."""
    if len(text) <= _INT_TEXT_DIGITS:
        return int(text)
    if text.startswith("-"):
        return -int_from_text(text[1:])
    # Halving keeps both factors of every product the same size, where multiplication is fastest.
    low_digits = len(text) // 2
    shift: int = 10**low_digits
    return int_from_text(text[:-low_digits]) * shift + int_from_text(text[-low_digits:])


def int_text(number: int) -> str:
    """Write an integer in decimal without the interpreter's limit, in sub-quadratic time."""
    # 3.3 bits to a digit: below this many bits the direct conversion is always allowed.
    if number.bit_length() < 3 * _INT_TEXT_DIGITS:
        return int.__repr__(number)
    if number < 0:
        return "-" + int_text(-number)
    import decimal  # noqa: PLC0415  # takes longer to load than most programs' numbers to convert

    # The decimal module multiplies in near-linear time, where int division is quadratic. A context
    # of its own: the exact result needs every digit, and the caller's settings stay untouched.
    exact = decimal.Context(
        prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[decimal.Inexact]
    )
    powers: dict[int, decimal.Decimal] = {}

    def power_of_two(bits: int) -> decimal.Decimal:
        power = powers.get(bits)
        if power is None:
            if bits <= 256:  # Arbitrary: small enough for the direct conversion.
                power = decimal.Decimal(1 << bits)
            else:
                half = bits >> 1
                power = exact.multiply(power_of_two(half), power_of_two(bits - half))
            powers[bits] = power
        return power

    def convert(part: int, bits: int) -> decimal.Decimal:
        if bits <= 256:
            return decimal.Decimal(part)
        half = bits >> 1
        high = part >> half
        low = part - (high << half)
        return exact.add(exact.multiply(convert(high, bits - half), power_of_two(half)), convert(low, half))

    return format(convert(number, number.bit_length()), "f")


def number_text(number: float) -> str:
    """Write a number as JavaScript does: `1.0` is `1`, `1e21` is `1e+21`, `1e-7` is `1e-7`.

    Integers are written exactly at any size, and `-0.0` as `-0`.
    """
    if type(number) is int:
        return int_text(number)
    plain = repr(number)
    if "e" not in plain:
        # Without an exponent both languages write the same, but for a whole number's fraction.
        return plain.removesuffix(".0")
    import decimal  # noqa: PLC0415  # see above

    sign, digits, exponent = decimal.Decimal(plain).as_tuple()
    assert isinstance(exponent, int), "a lossless number is finite"
    text = "".join(map(str, digits))
    stripped = text.rstrip("0") or "0"
    exponent += len(text) - len(stripped)
    minus = "-" if sign else ""
    if stripped == "0":
        return minus + "0"
    point = len(stripped) + exponent  # Digits before the decimal point; may be negative.
    if len(stripped) <= point <= 21:
        return minus + stripped + "0" * (point - len(stripped))
    if 0 < point <= 21:
        return f"{minus}{stripped[:point]}.{stripped[point:]}"
    if -6 < point <= 0:
        return f"{minus}0.{'0' * -point}{stripped}"
    mantissa = stripped[0] + (f".{stripped[1:]}" if len(stripped) > 1 else "")
    return f"{minus}{mantissa}e{point - 1:+d}"
