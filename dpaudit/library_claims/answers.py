"""Define questions and answers, and the distance of two inputs."""

from __future__ import annotations

import math
from fractions import Fraction

TYPE_CHECKING = False  # avoids the import of typing
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

# Values of δ at which a curve ε(δ) is evaluated. Reports show the claim at the first value. At
# large values of δ, the claimed ε is small, and a violation is easiest to show.
DELTAS = (1e-5, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-6)
_REMEDY = "give the claim itself, or an object or a pair of inputs with a finite loss"


class NoClaim(Exception):
    """Raised if a library states no claim to test. Has the code of an error in docs/errors.md."""

    def __init__(self, text: str, code: str) -> None:
        super().__init__(text)
        self.code = code


class Question:
    """The question to a library.

    pair: d1 and d2. None: a search will find the pair.
    relation: neighbouring relation of the inputs; None if the user states none.
    delta: the δ at which a claim that is a curve ε(δ) is tested. None: at several values of δ.
    params: keyword arguments of every call of the mechanism.
    """

    def __init__(
        self,
        pair: tuple[Any, Any] | None,
        relation: tuple[str, float] | None = None,
        delta: float | None = None,
        params: dict[str, Any] | None = None,
    ) -> None:
        self.pair, self.relation, self.delta = pair, relation, delta
        self.params = params or {}


def version_of(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version  # not needed to draw

    try:
        return version(package)
    except PackageNotFoundError:
        return "of an unknown version"


def number(value: Any, symbol: str, query: str) -> float:
    """Return the parameter `symbol` as a float. Raises NoClaim if it limits no leak, as ε = ∞."""
    parameter = float(value)
    if not 0 <= parameter < math.inf:
        why = f"{query} says {symbol} = {parameter:g}, which claims nothing; {_REMEDY}"
        raise NoClaim(why, code="claim-failed")
    if symbol == "δ" and parameter >= 1:
        why = f"{query} says δ = {parameter:g}, and a δ of 1 or more says nothing; {_REMEDY}"
        raise NoClaim(why, code="claim-says-nothing")
    return parameter


def point(question: Question, query: str, epsilon: Any, delta: Any = 0.0) -> dict[str, Any]:
    """Return the answer of a library that states a single point (ε, δ)."""
    epsilon, delta = number(epsilon, "ε", query), number(delta, "δ", query)
    if question.delta is not None and delta == 0:
        why = f"{query} states the claim without a δ to choose; leave delta out"
        raise NoClaim(why, code="options-conflict")
    if question.delta not in (None, delta):
        why = (
            f"{query} states ε = {epsilon:.12g} at δ = {delta:.12g} alone, and delta is "
            f"{question.delta:.12g}; leave delta out"
        )
        raise NoClaim(why, code="claim-at-another-delta")
    claim = {"epsilon": epsilon, "delta": delta} if delta else {"epsilon": epsilon}
    words = f"ε = {epsilon:.12g}, δ = {delta:.12g}" if delta else f"ε = {epsilon:.12g}"
    return {"asked": query, "claim": claim, "answer": words}


def single(question: Question, query: str, **parameters: Any) -> dict[str, Any]:
    """Return the answer of a library that states its claim in other parameters than ε and δ alone,
    such as ρ for zCDP or μ for Gaussian DP. `query` is the call that gave the claim."""
    symbols = {"rho": "ρ", "delta": "δ", "mu": "μ"}
    if question.delta is not None:
        # This claim has no δ that the user could choose, so `point` raises NoClaim.
        return point(question, query, 0.0)
    claim = {name: number(value, symbols[name], query) for name, value in parameters.items()}
    words = ", ".join(f"{symbols[name]} = {value:.12g}" for name, value in claim.items())
    return {"asked": query, "claim": claim, "answer": words}


def curve(
    question: Question, query: str, epsilon_at: Callable[[float], Any], *, pure: bool = False
) -> dict[str, Any]:
    """Return the answer of a library that states ε as a function of δ. `pure` says that the
    function is defined for δ = 0, too. `query` is the call that gave the claim."""
    if question.delta is not None:
        delta = question.delta
        epsilon = number(epsilon_at(delta), "ε", f"{query} at δ = {delta:g}")
        words = f"ε = {epsilon:.12g} at δ = {delta:.12g}"
        claim = {"epsilon": epsilon, "delta": delta}
        return {"asked": query, "claim": claim, "answer": words}
    points = []
    for delta in (0.0, *DELTAS) if pure else DELTAS:
        epsilon = float(epsilon_at(delta))
        if math.isnan(epsilon):
            why = f"{query} says ε = NaN at δ = {delta:g}; {_REMEDY}"
            raise NoClaim(why, code="claim-failed")
        if 0 <= epsilon < math.inf:
            points.append((epsilon, delta))
    if not points:
        why = f"{query} says that no ε is finite, which claims nothing; {_REMEDY}"
        raise NoClaim(why, code="claim-failed")
    # Among points (ε, δ) with the same ε, keep only the smallest δ: it implies the larger ones.
    guarantees = [p for p in points if p[1] == min(d for e, d in points if e == p[0])]
    epsilon, delta = guarantees[0]
    words = f"ε = {epsilon:.12g} at δ = {delta:.12g}"
    remaining = len(guarantees) - 1
    if remaining:
        words += " and {} other point{}".format(remaining, "s" * (remaining > 1))
    return {"asked": query, "claim": {"guarantees": [list(p) for p in guarantees]}, "answer": words}


# Functions that compute the distance of two inputs. They round up: a result is never smaller than
# the exact distance.


def norm(first: Any, second: Any, order: float) -> float | None:
    """Return the norm (order 1, 2 or ∞) of the difference of two numbers or vectors, or None."""
    first_entries, second_entries = vector(first), vector(second)
    if first_entries is None or second_entries is None or len(first_entries) != len(second_entries):
        return None
    gaps = [abs(Fraction(a) - Fraction(b)) for a, b in zip(first_entries, second_entries)]
    if order != 2:
        return _upward(
            max(gaps, default=Fraction(0)) if order == math.inf else sum(gaps, Fraction(0))
        )
    squared = sum((gap * gap for gap in gaps), Fraction(0))
    root = math.sqrt(sum((float(gap) / 2.0**512) ** 2 for gap in gaps)) * 2.0**512
    if root < 1e-100:  # squares of the scaled gaps may underflow
        root = math.sqrt(float(squared))
    while root and Fraction(_below(root)) ** 2 >= squared:
        root = _below(root)
    return _upward(squared, root, 2)


def vector(value: Any) -> list[Any] | None:
    """Return the entries of a list or array of finite numbers, or [number] of one; else None."""
    plain = value.tolist() if hasattr(value, "tolist") else value
    entries = list(plain) if isinstance(plain, (list, tuple)) else [plain]
    for entry in entries:
        if isinstance(entry, bool) or not isinstance(entry, (int, float)):
            return None
        if not math.isfinite(entry):
            return None
    return entries


def _upward(exact: Fraction, start: float | None = None, power: int = 1) -> float:
    """Return the first float x ≥ `start` (default: `exact`) with x ** power ≥ `exact`."""
    candidate = float(exact) if start is None else start
    while Fraction(candidate) ** power < exact:
        candidate = candidate * (1 + 2.0**-52) or 5e-324
    return candidate


def _below(value: float) -> float:
    return value * (1 - 2.0**-53)


def rows(value: Any) -> list[Any] | None:
    """Return the records of a list or an array as a list, or None for any other input."""
    plain = value.tolist() if hasattr(value, "tolist") else value
    return list(plain) if isinstance(plain, (list, tuple)) else None


def exchanged(first: Any, second: Any) -> tuple[int, int] | None:
    """Return the number of records that only `first` has, and the number that only `second` has, in
    any order. Return None if an input is not a list or an array."""
    first_rows, second_rows = rows(first), rows(second)
    if first_rows is None or second_rows is None:
        return None
    left, right = list(map(repr, first_rows)), list(map(repr, second_rows))
    for entry in list(left):
        if entry in right:
            left.remove(entry)
            right.remove(entry)
    return len(left), len(right)


def edits(first: Sequence[Any], second: Sequence[Any]) -> int:
    """Return the smallest number of insertions and deletions that turn one list into the other."""
    previous = list(range(len(second) + 1))
    for row, entry in enumerate(first, 1):
        current = [row]
        for column, other_entry in enumerate(second, 1):
            is_kept = repr(entry) == repr(other_entry)
            current.append(
                previous[column - 1] if is_kept else 1 + min(previous[column], current[-1])
            )
        previous = current
    return previous[-1]


def within(question: Question, sensitivity: Any, query: str) -> None:
    """Raise NoClaim if the two inputs are numbers whose distance exceeds `sensitivity`, since the
    mechanism's claim does not apply to them. `query` names the class of the mechanism."""
    distance = None if question.pair is None else norm(*question.pair, order=1)
    if distance is not None and not isinstance(sensitivity, bool) and distance > float(sensitivity):
        raise NoClaim(
            f"{query} is for inputs at a distance of at most {float(sensitivity):g}, and d1 and d2 "
            f"have the distance {distance:g}; give a closer pair",
            code="claim-not-for-pair",
        )
