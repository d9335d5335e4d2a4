"""Learned attacks in whole audits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import dpaudit
from dpaudit.attacks.trees import NAME as TREES
from dpaudit.attacks.weighted_sums import NAME as LOGISTIC
from dpaudit.attacks.whitened import NAME as NEWS
from dpaudit.reports import text
from tests.result_files import from_json, to_json

Rng = np.random.Generator
Batch = NDArray[np.float64]


def prefix_sums(dataset: float, size: int, rng: Rng) -> Batch:
    """Sums of the first 1, …, 6 answers; the input is the fourth, and half of it the second."""
    answers = rng.laplace(size=(size, 6))
    answers[:, [1, 3]] += [dataset / 2, dataset]
    return np.cumsum(answers, axis=1)


def test_a_certificate_says_what_was_tried_and_how_the_score_fell() -> None:
    result = dpaudit.audit(
        prefix_sums, 0.0, 1.0, dpaudit.PureDP(1.5), samples=80_000, name="prefix sums"
    )
    (certificate,) = result.certificates
    assert certificate.scores is not None
    counts = np.array(certificate.scores.counts)
    assert counts.shape == (len(certificate.scores.edges) + 2, 2)
    assert certificate.scores.columns[0][0] == "output[3]"
    assert 0.5 < certificate.scores.columns[0][1] <= 1
    learned = sum(one.draws for one in certificate.evidence.blocks if one.stage == "learning")
    assert counts.sum() == learned
    assert {LOGISTIC, NEWS, TREES} <= {one.attack for one in certificate.attacks}
    assert from_json(to_json([result])) == [result]
    shown = " ".join(text.render(result, verbose=1).split())
    assert "attacks predicted bound: " in shown
    assert f"not tried: {TREES} (no two columns " in shown
    assert "not tried" not in text.render(result)
