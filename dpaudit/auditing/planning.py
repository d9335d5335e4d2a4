"""Compute from one trial how many draws an audit needs to refute a claim (`dpaudit plan`).

A trial is a short audit with a seed of its own. It learns an event, and shows how probable the
event is. The leak is assumed to be in this event: there the odds of d1 against d2 are
e^(factor · ε), where ε is the claimed value and `factor`, such as 1.2, is the size of the leak. The
number of draws then follows from the formulas of underpowered.py, by which `--require-power` judges
the audit afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dpaudit.auditing.options import MAX_SAMPLES, Requirements
from dpaudit.auditing.spec import AuditSpec
from dpaudit.auditing.underpowered import (
    ESTIMATE_ALPHA,
    draws_for_rare,
    draws_needed,
    event_share,
    foreseen,
    most_powerful,
)
from dpaudit.certificates.certificate import Certificate
from dpaudit.claims import ProfilePoint
from dpaudit.errors import UsageError
from dpaudit.stats.binomial import upper_tail

# Number of draws of a trial, for each pair. With a tenth of them, an audit does not see leaks of
# ε ≤ 0.1, nor outputs of probability 1/1000 (docs/power.md, "10⁴ draws").
TRIAL_DRAWS = 100_000
# The audit learns another event than the trial: it may be rarer, or only a part of it may show the
# leak. So this share of the event is assumed to show it. With 2/3, 51 of 60 audits of the planned
# size refuted Laplace noise of ε = 4.4, claimed as 4; with 1/2, 56.
_SHARE_THAT_LEAKS = 0.5
# Added to the seed, so that the planned audit makes other draws than the trial. It may not count
# the draws of the trial again, since they have chosen its number of draws.
_SEED_OFFSET = 2**32


def trial_of(spec: AuditSpec, draws: int = TRIAL_DRAWS) -> AuditSpec:
    """Return the trial of an audit. It has one process, another seed, no requirements, and `draws`
    draws for each pair. Raise UsageError for an audit whose draws cannot be planned, such as an
    exact audit."""
    reason = foreseen(replace(spec, sampling=replace(spec.sampling, samples=MAX_SAMPLES)))
    if spec.statistics.exact:
        reason = "an exact audit makes no draws, so there are none to plan"
    if spec.tested.counts_single_outputs:
        reason = (
            "single outputs, by which the probabilistic definition is tested, are not planned for; "
            "claim --definition approximate, which it implies"
        )
    if reason is not None:
        raise _impossible(reason)
    sampling = replace(
        spec.sampling,
        samples=draws,
        time=None,
        seed=spec.sampling.seed + _SEED_OFFSET,
        stop="never",
        workers=1,
        executor=None,
    )
    requirements = Requirements(allow_underpowered=True)
    return replace(spec, sampling=sampling, requirements=requirements, no_trace=True)


def draws_for_leak(certificates: Sequence[Certificate], factor: float, power: float) -> int:
    """Return the number of draws of a pair with which an audit detects a leak with probability
    `power`, rounded up to three digits. Raise UsageError if no number is known to be enough.

    certificates: the certificates of a trial, one for each pair.
    factor: size of the leak, as a multiple of the claimed ε; above 1.
    power: in (0, 1).
    """
    return max(_of_pair(certificate, factor, power) for certificate in certificates)


def _of_pair(certificate: Certificate, factor: float, power: float) -> int:
    test = most_powerful(certificate)
    # Without a difference, chance has chosen the event, and another audit learns another event.
    if upper_tail(test.correct, test.correct + test.wrong, 0.5) > ESTIMATE_ALPHA:
        raise _impossible(
            f"{certificate.draws:,} draws of a trial showed no difference between the inputs; "
            "--trial sets another number"
        )
    if certificate.point.epsilon == 0:
        raise _impossible(
            "the event of the trial tests the claim at ε = 0, and no leak is a multiple of 0"
        )
    samples = draws_needed(certificate, _SHARE_THAT_LEAKS * event_share(test), factor, power)
    if samples is None:
        raise _impossible("no number of draws would refute such a leak in the event of the trial")
    return samples


def draws_for_output(
    certificates: Sequence[Certificate],
    probability: float,
    points: Sequence[ProfilePoint],
    power: float,
) -> int:
    """Return the number of draws of a pair with which an audit refutes the claim by a rare output:
    one that one input gives with this `probability`, and the other never. It is rounded up to three
    digits. Raise UsageError if no number of draws is enough.

    certificates: the certificates of a trial, one for each pair.
    points: the output has to refute one of them.
    power: the wanted probability of a refutation, in (0, 1).
    """
    numbers = []
    for certificate in certificates:
        samples = draws_for_rare(certificate, probability, points, power=power)
        if samples is None:
            raise _impossible(
                f"no number of draws would refute an output of probability {probability:g}"
            )
        numbers.append(samples)
    return max(numbers)


def _impossible(reason: str) -> UsageError:
    return UsageError(reason, code="plan-impossible")
