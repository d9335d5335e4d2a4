"""A claim of several pairs (ε, δ), such as the privacy curve that an accountant computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from dpaudit.claims.base import (
    Parameter,
    PrivacyClaim,
    ProfilePoint,
    checked_delta,
    checked_epsilon,
    implied_delta,
    invalid,
)


def _checked(name: str, table: Any) -> tuple[tuple[float, float], ...]:
    try:
        pairs = [(epsilon, delta) for epsilon, delta in table]
    except (TypeError, ValueError):
        why = f"{name}={table!r} must be a list of pairs [ε, δ], such as [[1, 1e-5], [2, 1e-7]]"
        raise invalid(why) from None
    if not pairs:
        raise invalid(f"{name} must list at least one pair [ε, δ]")
    checked = [(checked_epsilon(f"{name}: ε", e), checked_delta(f"{name}: δ", d)) for e, d in pairs]
    return tuple(dict.fromkeys(checked))


@dataclass(frozen=True, slots=True)
class ProfileDP(PrivacyClaim):
    """(ε, δ)-differential privacy for several pairs (ε, δ): the points of a privacy curve.

    Parameters
    ----------
    guarantees : sequence of pairs of float
        Pairs [ε, δ]: ε in nats, finite, at least 0; δ in [0, 1). The first pair represents the
        claim where only one can be used.

    Notes
    -----
    The claim is that every pair holds. An audit chooses the pair to test by draws that do not
    certify (docs/method.md §6).

    Examples
    --------
    >>> from dpaudit import ProfileDP
    >>> claim = ProfileDP([[4.4, 1e-5], [1, 0.127]])
    >>> claim.describe()
    '(4.4, 1e-05)-DP and 1 other point'
    >>> claim.profile(1.0)
    0.127
    """

    key: ClassVar[str] = "profile"
    title: ClassVar[str] = "approximate differential privacy at several points"
    formula: ClassVar[str] = "P(E) ≤ e^ε Q(E) + δ for every listed (ε, δ)"

    guarantees: Annotated[
        tuple[tuple[float, float], ...] | Sequence[Sequence[float]],
        Parameter(
            "Pairs [ε, δ], all of which are claimed.",
            _checked,
            forms=("table",),
            is_telling=True,
            has_flag=False,
        ),
    ]

    def profile(self, epsilon: float) -> float:
        """Return the smallest δ with which (`epsilon`, δ)-DP follows from one of the listed pairs,
        by docs/method.md (6.6)."""
        return min(implied_delta(point, epsilon) for point in self.points())

    def points(self) -> tuple[ProfilePoint, ...]:
        return tuple(ProfilePoint(*pair) for pair in self.guarantees)

    def describe(self) -> str:
        first, count = self.point(), len(self.guarantees) - 1
        more = f" and {count} other point{'s' * (count > 1)}" if count else ""
        return f"({first.epsilon:.12g}, {first.delta:.12g})-DP{more}"

    def parameters(self) -> dict[str, Any]:
        return {"guarantees": [list(pair) for pair in self.guarantees]}
