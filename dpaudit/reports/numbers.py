"""Write numbers as text. No other module rounds numbers for reports. Lower bounds are rounded down,
upper bounds and p-values up, so that a printed number never claims more than the computed one.
Point estimates and numbers of the claim are rounded to the nearest."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

from dpaudit.wording import visible

DOWN, UP, NEAREST = ROUND_FLOOR, ROUND_CEILING, ROUND_HALF_EVEN
# With 17 significant digits, any two different floats have different texts.
_ALL_DIGITS = 17
# Smaller numbers are written with an exponent; otherwise they would consist mostly of zeros.
_MIN_PLAIN = Decimal("0.0001")
# Larger numbers are written with an exponent; otherwise they would consist mostly of zeros.
_MAX_PLAIN = Decimal(10**9)
_MIN_P = 1e-300
# Keeps a number and its unit on one line. `unglued` replaces it by a plain space.
GLUE = "\N{NO-BREAK SPACE}"


def at_least(value: float, *, above: float | None = None, digits: int = 3) -> str:
    """Return a lower bound as text, rounded down to `digits` significant digits. If the text would
    not be greater than `above`, a smaller number, it gets more digits."""
    if above is not None and above < value < math.inf:
        limit = Decimal(repr(above))
        while digits < _ALL_DIGITS and _round(value, digits, DOWN) <= limit:
            digits += 1
    return _rounded(value, digits, DOWN)


def at_most(value: float) -> str:
    """Return an upper bound as text, rounded up to 3 significant digits."""
    return _rounded(value, 3, UP)


def about(value: float, *, digits: int = 3) -> str:
    """Return a point estimate as text, rounded to the nearest with `digits` significant digits."""
    return _rounded(value, digits, NEAREST)


def apart(low: float, high: float, *, digits: int = 3, nearest: bool = False) -> tuple[str, str]:
    """Return two numbers, `low` < `high`, as texts with enough digits to show this order. `low` is
    rounded up and `high` down. With `nearest`, for numbers that are no bounds, both are rounded to
    the nearest."""
    below, above = _apart(low, high, digits, *((NEAREST, NEAREST) if nearest else (UP, DOWN)))
    return _written(below), _written(above)


def p_at_most(p: float) -> str:
    """Return a relation and a p-value, rounded up, such as `= 0.0043` or `< 1e-300`."""
    return "< 1e-300" if p < _MIN_P else f"= {_rounded(min(p, 1.0), 2, UP)}"


def share(value: float, rounding: str = NEAREST) -> str:
    """Return a probability as a percentage with 3 significant digits, such as `15.6 %`."""
    if not math.isfinite(value):
        return "unknown"
    if value in (0, 1):
        return f"{value * 100:.0f}{GLUE}%"
    rounded = _percent(value, rounding)
    # Keep trailing zeros, so that the percentages of a column align.
    return f"{rounded.quantize(Decimal(1).scaleb(rounded.adjusted() - 2)):f}{GLUE}%"


def shares_apart(low: float, high: float) -> tuple[str, str]:
    """Return two probabilities, `low` < `high`, as percentages with at least 3 digits, and enough
    to show this order. `low`, the largest that a claim allows, is rounded up; `high` was
    observed."""
    if _percent(low, UP) < _percent(high, NEAREST):
        return share(low, UP), share(high)
    # Use decimals: with floats, 100 * 0.07 is greater than 7.
    below, above = (_written(p.scaleb(2)) for p in _apart(low, high, 3, UP, DOWN))
    return f"{below}{GLUE}%", f"{above}{GLUE}%"


def _percent(value: float, rounding: str) -> Decimal:
    percent = Context(prec=30).multiply(Decimal(repr(float(value))), Decimal(100))
    return Context(prec=3, rounding=rounding).plus(percent)


def plain(value: float) -> str:
    """Return a number that the user gave, such as ε or a confidence, with at most 6 digits."""
    return f"{value:.6g}"


def level(confidence: float) -> str:
    r"""Return a confidence as a percentage, such as `99 %`.

    A confidence that a user gave keeps all its digits. A confidence that follows from a share of an
    error probability is rounded down to 4 digits.

    >>> level(0.999999), level(1 - 0.01 / 3), level(1 - 0.01 / 7)
    ('99.9999\xa0%', '99.66\xa0%', '99.85\xa0%')
    """
    text = plain(100 * confidence)
    if confidence < 1 and text == "100":  # no confidence is 100 %
        text = f"{Decimal(100) * Decimal(repr(confidence)):f}".rstrip("0")
    # Round to 12 digits, to remove a floating-point error such as the error of 1 - 0.01.
    exact = Decimal(f"{100 * confidence:.12g}")
    # A confidence with more than 6 digits, such as 99.6666… % for three audits, was computed from a
    # share of an error probability: a user would give fewer digits. Round it down to 4 digits.
    if Decimal(text) != exact and exact < 100:
        text = _stripped(Context(prec=4, rounding=DOWN).plus(exact))
    return f"{text}{GLUE}%"


def error_level(alpha: float) -> str:
    """Return an error probability as a percentage, such as `1 %`, without floating-point error."""
    return f"{100 * alpha:.4g}{GLUE}%"


def duration(seconds: float) -> str:
    """Return a time as text, such as `0.42 s`, `12 s`, `3 min 20 s` or `2 h 5 min`."""
    if not math.isfinite(seconds):
        return "unknown"
    if seconds < 10:
        return f"{max(seconds, 0.01):.2g}{GLUE}s"
    minutes, remainder = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {remainder} s" if minutes else f"{remainder}{GLUE}s"
    return f"{minutes // 60} h {minutes % 60} min"


def sure(epsilon: float, rounding: str = DOWN) -> str:
    """Return e^ε / (1 + e^ε) as a percentage. This is how certain of the input an attacker can
    become who begins with even odds. The text may be `nearly 100 %`, but never `100 %`, which no
    finite ε allows."""
    # Use decimals: as a float, 1 - 1e-17 equals 1, and the text would be 100 %.
    context = Context(prec=50)
    odds = Decimal(repr(min(epsilon, 100.0))).exp(context)
    percent = context.divide(odds, context.add(odds, 1)) * 100
    doubt = 100 - percent
    # Show the digits up to the first one that is not 9, and one digit more, but at most
    # 99.9999999 %.
    decimals = 1 if doubt >= 1 else min(8, -doubt.adjusted() + 1)
    step = Decimal(1).scaleb(-decimals)
    rounded = percent.quantize(step, rounding=rounding, context=context)
    nearly = "nearly " if rounded == 100 else ""
    return f"{nearly}{_stripped(rounded)}{GLUE}%"


def unglued(text: str) -> str:
    """Return `text` with spaces in place of no-break spaces, and with control characters escaped.
    Call this after the text has been broken into lines."""
    return visible(text.replace(GLUE, " "))


def _apart(
    low: float, high: float, digits: int, of_low: str, of_high: str
) -> tuple[Decimal, Decimal]:
    for needed in range(digits, _ALL_DIGITS):
        below, above = _round(low, needed, of_low), _round(high, needed, of_high)
        if below < above:
            return below, above
    return Decimal(repr(low)), Decimal(repr(high))


def _round(value: float, digits: int, rounding: str) -> Decimal:
    # Round the shortest decimal text of the float; rounding its exact value down would give 0.299
    # for 0.3.
    return Context(prec=digits, rounding=rounding).create_decimal(repr(float(value)))


def _rounded(value: float, digits: int, rounding: str) -> str:
    if not math.isfinite(value):
        return "∞" if value > 0 else str(value)
    return _written(_round(value, digits, rounding))


def _written(number: Decimal) -> str:
    if number != 0 and not _MIN_PLAIN <= abs(number) < _MAX_PLAIN:
        mantissa, exponent = f"{number:e}".split("e")
        return f"{_stripped(Decimal(mantissa))}e{int(exponent):+03d}"
    return _stripped(number)


def _stripped(number: Decimal) -> str:
    text = f"{number:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
