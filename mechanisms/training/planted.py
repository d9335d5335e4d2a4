"""The list of bugs in training code: the pair that shows each, and the claim of its accountant.

`epsilon` at δ = 10⁻⁵ is what an exact accountant computes from σ, q and the number of steps that it
was given, rounded up in the sixth digit. The correct counterpart satisfies it for all neighbours.
"""

from __future__ import annotations

from typing import Any

from mechanisms.causes.planted import Cause

DELTA = 1e-5
# ε of the accountant at DELTA: one step on all records with σ = 2, and with σ = 5; one step with
# σ = 1 and q = 0.1; one step with σ = 0.8 and q = 0.01.
WHOLE, WEAK, SAMPLED, RARELY_SAMPLED = 1.9931, 0.72553, 1.68455, 0.48334

# A record whose gradient has norm 8, in a direction that no other record uses: a gradient canary.
CANARY = [0.0, 0.0, 0.0, 1.0, 8.0]
_OTHERS = [[1.0, 0.0, 0.0, 0.0, 1.0], [0.0, 1.0, 0.0, 0.0, -1.0], [0.0, 0.0, 1.0, 0.0, 1.0]]
_OPPOSITE = [0.0, 0.0, 0.0, 1.0, -8.0]
_ALIKE = [[0.1 * i, 0.02 * i, 0.0, 0.0, 1.0] for i in (-3, -2, -1, 1, 2, 3)]


def _bug(broken: str, correct: str, *lines: str, **rest: Any) -> Cause:
    given = {"d1": [*_OTHERS, CANARY], "d2": _OTHERS, "epsilon": WHOLE, **rest}
    return Cause(
        name=broken.partition(":")[2].replace("_", "-"),
        broken=f"mechanisms.training.{broken}",
        correct=f"mechanisms.training.{correct}",
        lines=lines,
        delta=DELTA,
        **given,
    )


# A trace names one of these lines.
NAMED = (
    _bug("steps:without_clipping", "steps:step", "gradients(dataset).sum", "rng.normal("),
    _bug("steps:batch_clipped", "steps:step", "mean = clipped(mean, clip)", "rng.normal("),
    _bug("steps:mean_noise_on_sum", "steps:step", "rng.normal("),
    _bug("steps:noise_by_microbatches", "steps:microbatches_together", "rng.normal("),
    _bug(
        *("steps:noise_by_batch_size", "steps:step", "RATE * total / batch", "rng.normal("),
        d1=[*_OTHERS[:1], CANARY],
        d2=_OTHERS[:1],
        params={"noise_multiplier": 5.0},
        epsilon=WEAK,
    ),
    _bug("steps:copies_clipped", "steps:copies_averaged", "clipped(factor", "rng.normal("),
    _bug(
        *("steps:batch_normalised", "steps:step", "x = x - x.mean(", "rng.normal("),
        d1=[*_ALIKE, [40.0, 0.0, 0.0, 0.0, 1.0]],
        d2=_ALIKE,
    ),
    # The noise on the sum is named, too: it hides the change of the start as well.
    _bug(
        *("steps:start_from_data", "steps:step", "start = _class_means("),
        *("weights: Floats = start", "total = total + rng.normal("),
    ),
    _bug(
        *("sampled:batch_in_order", "sampled:poisson_step", "batch = dataset[:", "rng.normal("),
        d1=[CANARY, _OPPOSITE, *_OTHERS],
        d2=[_OPPOSITE, *_OTHERS],
        epsilon=SAMPLED,
    ),
)
# The code is right, and the accountant was given another q or number of steps. No line is at fault.
UNNAMED = (
    _bug("steps:steps_on_all", "steps:step"),
    _bug(
        *("sampled:poisson_step", "sampled:poisson_step"),
        params={"sample_rate": 0.8, "noise_multiplier": 0.8},
        epsilon=RARELY_SAMPLED,
    ),
)
TRAINING = (*NAMED, *UNNAMED)
