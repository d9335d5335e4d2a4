"""Audits without draws, for mechanisms that state the probability of each output (`pmf`).

The exact ε and δ of each pair of inputs are computed from the two output distributions
(docs/method.md §10). There are no bounds and no error probability.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from dpaudit.adapters.loading import WithAdversary, add_adversary, load_mechanism
from dpaudit.adapters.pmf import LawRow, law_table
from dpaudit.attacks.single_outputs import event_words
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.certificate import ExactCertificate, ExactEvent
from dpaudit.claims import PrivacyClaim
from dpaudit.errors import UsageError
from dpaudit.inputs.neighbouring import check_pair
from dpaudit.inputs.pairs import notes, stated
from dpaudit.outcomes import RAISED
from dpaudit.stats import exact

_UNLIMITED = (
    "exact cannot test a computational claim without an adversary: it assumes an unlimited "
    "adversary, and the claim is about limited ones; give adversary, or leave out exact"
)


def exact_certificates(spec: AuditSpec) -> tuple[ExactCertificate, ...]:
    """Return a certificate for each pair of inputs. Raise TargetError for a mechanism that does not
    state probabilities, or whose probabilities are negative or do not add up to 1."""
    answers = _answers(spec)
    return tuple(
        replace(
            certify_laws(
                spec.tested, pair.label, law_table(spec.target, pair.d1, pair.d2, answers)
            ),
            warnings=check_pair(pair, spec.group),
            adjacency=stated(pair),
            notes=notes(pair, spec.group),
        )
        for pair in spec.pairs
    )


def certify_laws(claim: PrivacyClaim, pair: str, table: Sequence[LawRow]) -> ExactCertificate:
    """Return the certificate of a pair: the exact ε and δ between the output distributions of its
    inputs.

    claim: the claim for one output.
    table: rows (output in words, probability on d1, probability on d2).
    """
    p = {index: of_d1 for index, (_, of_d1, _) in enumerate(table)}
    q = {index: of_d2 for index, (_, _, of_d2) in enumerate(table)}
    # If the claim is a curve with several points (ε, δ), the certificate is about the point whose δ
    # is exceeded the most by the exact δ.
    point = max(claim.points(), key=lambda point: exact.delta(p, q, point.epsilon) - point.delta)
    at_delta = exact.epsilon(p, q, point.delta)
    violating = exact.violating(p, q, point.epsilon)
    by_mass = claim.counts_single_outputs and violating.outcomes
    refuted = any(exact.exceeds_point(p, q, point.epsilon, point.delta) for point in claim.points())
    if claim.counts_single_outputs:
        refuted = exact.exceeds(violating.mass, point.delta)
    return ExactCertificate(
        pair=pair,
        point=point,
        refuted=refuted,
        epsilon=exact.epsilon(p, q).epsilon,
        epsilon_lower=at_delta.epsilon,
        delta_lower=exact.delta(p, q, point.epsilon),
        probabilistic_delta=violating.mass,
        event=_event(violating if by_mass else at_delta.event, table),
        law=tuple(table),
    )


def _answers(spec: AuditSpec) -> Callable[[list[Any]], list[Any]] | None:
    """Return the function from outputs to the adversary's guesses; None without an adversary."""
    claim = spec.tested
    if claim.adversary is None and claim.limits_adversaries:
        raise UsageError(_UNLIMITED, code="option-missing")
    if claim.adversary is None:
        return None
    mechanism = add_adversary(load_mechanism(spec.target), claim.adversary)
    return mechanism.answers if isinstance(mechanism, WithAdversary) else None


def _event(event: exact.Event, table: Sequence[LawRow]) -> ExactEvent | None:
    if not event.outcomes or event.mass == event.other_mass:
        return None
    probabilities = (event.mass, event.other_mass)
    d1, d2 = probabilities if event.guess == "d1" else reversed(probabilities)
    names = tuple(table[index][0] for index in event.outcomes)
    kinds = [name for name in names if name.startswith(RAISED)]
    words = event_words(kinds, [name for name in names if name not in kinds])
    return ExactEvent(words, event.guess, d1, d2)
