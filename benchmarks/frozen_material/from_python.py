"""Audits asked for from Python; what came out is printed as JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import specimens  # type: ignore[import-not-found]

import dpaudit


def main() -> None:
    draws_told: list[float] = []
    rng = np.random.default_rng(0)
    first, second = rng.laplace(0, 1, 3_000), rng.laplace(1, 1, 3_000)
    results = {
        "lambda": dpaudit.audit(
            lambda rows, rng: len(rows) + rng.laplace(),
            [1, 2, 3],
            [1, 2],
            dpaudit.PureDP(0.4),
            samples=1_000_000,
        ),
        "progress": dpaudit.audit(
            specimens.gaussian,
            0.0,
            1.0,
            dpaudit.ApproximateDP(1.0, 0.13),
            samples=30_000,
            on_progress=lambda progress: draws_told.append(progress.draws),
        ),
        "an attack": dpaudit.audit(
            specimens.place,
            0.0,
            1.0,
            dpaudit.PureDP(1.0),
            samples=30_000,
            attacks=[specimens.Distance],
        ),
        "recorded": dpaudit.bound(first, second, dpaudit.PureDP(0.5)),
        "guesses": dpaudit.bound_guesses(1000, 100, 75, dpaudit.ApproximateDP(1.0, 1e-4)),
    }
    shown = {name: _shown(result) for name, result in results.items()}
    print(json.dumps({**shown, "draws told": draws_told}, indent=1))


def _shown(result: dpaudit.AuditResult) -> dict[str, Any]:
    return {
        "verdict": result.verdict.value,
        "epsilon_lower": repr(result.epsilon_lower),
        "delta_lower": repr(result.delta_lower),
        "p_value": repr(result.p_value),
        "draws": result.draws,
        "blocks": [
            [block.draws for block in certificate.evidence.blocks]
            for certificate in result.certificates
        ],
        "warnings": [*result.warnings],
    }


if __name__ == "__main__":
    main()
