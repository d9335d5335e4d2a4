"""Bounds from the canaries of one training run: sizes, speed, false alarms, and invalid twins.

python -m benchmarks.canaries [table null together choice blanks]

Confidence is 95 %. Scores are normal with standard deviation 1 and mean μ for included canaries.

table     bounds for fixed counts, in each row the number of right guesses that μ gives on average
null      runs without a leak in which a bound is positive: the two fixed numbers of guesses, and,
          as an invalid twin, the best number on the same scores (1,000 canaries, 20,000 runs)
together  canaries that leak together: a public coin decides whether every coin is released by
          randomized response with accuracy 0.9, or nothing is; the true μ is 1.519 (10,000
          canaries, 10,000 runs)
choice    mean bound of the two fixed numbers, of each number of guesses alone, and of independent
          canaries, for normal scores, canaries of which 1 % leak all, and randomized response
blanks    false alarms if the output decides how many guesses are made, computed exactly
"""

from __future__ import annotations

import argparse
import math
import time
from bisect import bisect_left
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from dpaudit import ApproximateDP
from dpaudit.auditing.canary_scores import included_above, right_guesses
from dpaudit.auditing.single_run import SHARES, certify_guesses, guess_numbers, wrong_numbers
from dpaudit.claims.tradeoff import gaussian_delta, gaussian_epsilon
from dpaudit.stats import one_run
from dpaudit.stats.one_run import Guesses
from dpaudit.stats.one_run_tradeoff import independent_mu_lower, mu_lower

ALPHA, DELTA = 0.05, 1e-5
# Numbers of guesses that are compared, as shares of the canaries.
NUMBERS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0)
# Accuracy of randomized response, and its μ if a public coin decides whether it is used.
ACCURACY, TOGETHER_MU = 0.9, 1.519

# True μ; canaries, guesses, right guesses; wanted ε at δ for (ε, δ), and μ.
ROWS = [
    (1.0, Guesses(1_000, 100, 90), 1.626, 0.602),
    (1.0, Guesses(1_000, 500, 397), 1.163, 0.505),
    (1.0, Guesses(10_000, 1_000, 903), 2.047, 0.687),
    (1.0, Guesses(10_000, 2_500, 2_136), 1.674, 0.606),
    (1.0, Guesses(100_000, 10_000, 9_033), 2.171, 0.689),
    (0.5, Guesses(10_000, 2_500, 1_745), 0.764, 0.294),
    (2.0, Guesses(10_000, 1_000, 995), 4.484, 1.441),
]

cached_mu = lru_cache(maxsize=None)(mu_lower)
cached_independent = lru_cache(maxsize=None)(independent_mu_lower)


def table() -> None:
    print(
        "true μ  canaries  guesses   right   ε at 1e-05 (wanted)   μ (wanted)      as an ε      s"
    )
    for true, seen, epsilon, mu in ROWS:
        start = time.perf_counter()
        lower = mu_lower(seen, ALPHA)
        took = time.perf_counter() - start
        pointwise = certify_guesses([seen], ApproximateDP(1.0, DELTA), ALPHA).epsilon_lower
        print(
            f"{true:6.1f}  {seen.canaries:8,}  {seen.guesses:7,}  {seen.correct:6,}  "
            f"{pointwise:9.3f} (≥ {epsilon})     {lower:6.4f} ({mu})  "
            f"{gaussian_epsilon(lower, DELTA):8.3f}  {took:7.3f}"
        )


def null(runs: int = 20_000, canaries: int = 1_000) -> None:
    rng = np.random.default_rng(1)
    fixed = best = 0
    for _ in range(runs):
        coins = rng.integers(0, 2, canaries, dtype=np.int8).astype(bool)  # scores say nothing
        fixed += _default(coins) > 0
        best += max(_bound(coins, round(share * canaries)) for share in NUMBERS) > 0
    print(f"{runs:,} runs without a leak, {canaries:,} canaries, nominal 5 %:")
    _rate("two fixed numbers of guesses", fixed, runs, "≤ 5 %")
    _rate("best number of guesses on the same scores", best, runs, "invalid: above 5 %")


def together(runs: int = 10_000, canaries: int = 10_000, guesses: int = 1_000) -> None:
    rng = np.random.default_rng(2)
    above = {"fixed": 0, "two": 0, "independent": 0}
    largest = 0.0
    for _ in range(runs):
        leaks = rng.random() < 0.5
        coins = rng.integers(0, 2, canaries, dtype=np.int8).astype(bool)
        answers = coins ^ (
            rng.random(canaries) >= ACCURACY if leaks else rng.random(canaries) < 0.5
        )
        ranked = coins[np.argsort(~answers, kind="stable")]
        right = right_guesses(ranked, guesses, "both")
        bound = cached_mu(Guesses(canaries, guesses, right), ALPHA)
        largest = max(largest, bound)
        above["fixed"] += bound > TOGETHER_MU
        above["two"] += _default(ranked) > TOGETHER_MU
        inside = int(answers.sum())
        seen = Guesses(canaries, inside, int(coins[answers].sum()))
        above["independent"] += cached_independent(seen, ALPHA) > TOGETHER_MU
    print(f"{runs:,} runs of canaries that leak together, true μ {TOGETHER_MU}, true ε 2.20:")
    _rate(f"{guesses:,} guesses", above["fixed"], runs, "≤ 5 %")
    _rate("two fixed numbers of guesses", above["two"], runs, "≤ 5 %")
    _rate("independent canaries", above["independent"], runs, "invalid: about half")
    print(f"  largest μ at least: {largest:.3f}, as an ε {gaussian_epsilon(largest, DELTA):.2f}")


def choice(runs: int = 20) -> None:
    print("mean μ at least (95 %); numbers of guesses in % of the canaries")
    heads = "".join(f"{share:7.1%}" for share in NUMBERS)
    print(f"  scores         canaries    two{heads}  independent")
    for canaries in (10_000, 2_000):
        for name in ("μ = 0.5", "μ = 1", "μ = 2", "1 % leak", "accuracy 0.6"):
            rng, rows = np.random.default_rng(3), []
            for _ in range(runs):
                coins, scores = _scored(rng, canaries, name)
                ranked = coins[np.argsort(-scores)]
                fixed = [_bound(ranked, round(share * canaries)) for share in NUMBERS]
                rows.append([_default(ranked), *fixed, _independent(coins, scores)])
            means = np.mean(rows, axis=0)
            columns = "".join(f"{mean:7.3f}" for mean in means)
            print(f"  {name:13}  {canaries:8,}{columns}")


def blanks() -> None:
    canaries, chosen, alpha = 100_000, 8, 0.1
    delta = 0.77 / canaries
    names = canaries * delta / chosen
    is_refuted = one_run.p_value(Guesses(canaries, chosen, chosen), 0.0, delta) <= alpha
    needed = bisect_left(
        range(canaries + 1),
        True,
        key=lambda right: one_run.p_value(Guesses(canaries, canaries, right), 0.0, delta) <= alpha,
    )
    rate = names * is_refuted + (1 - names) * float(binom.sf(needed - 1, canaries, 0.5))
    print(f"false alarms at nominal 10 % if the output chooses how many guesses: {rate:.3%}")


def true_mu_of_together() -> float:
    """Return the smallest μ whose privacy profile is above that of the mechanism of `together`."""
    grid = np.linspace(0, math.log(ACCURACY / (1 - ACCURACY)), 2_000)
    deltas = [(ACCURACY - math.exp(e) * (1 - ACCURACY)) / 2 for e in grid]
    low, high = 0.0, 5.0
    for _ in range(50):
        middle = (low + high) / 2
        above = all(gaussian_delta(middle, e) >= d for e, d in zip(grid, deltas, strict=True))
        low, high = (low, middle) if above else (middle, high)
    return high


def _scored(
    rng: np.random.Generator, canaries: int, name: str
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    coins = rng.integers(0, 2, canaries, dtype=np.int8).astype(bool)
    noise = rng.normal(size=canaries)
    if name.startswith("μ"):
        return coins, float(name[4:]) * coins + noise
    if name == "1 % leak":  # with both coins: the highest and the lowest scores tell
        return coins, noise + np.where(rng.random(canaries) < 0.01, 20 * (2 * coins - 1), 0)
    return coins, noise + 20 * (coins == (rng.random(canaries) < 0.6))


def _bound(ranked: NDArray[np.bool_], guesses: int, level: float = ALPHA) -> float:
    seen = Guesses(len(ranked), guesses, right_guesses(ranked, guesses, "both"))
    return cached_mu(seen, level)


def _default(ranked: NDArray[np.bool_]) -> float:
    """Return the bound of the two fixed numbers of guesses, each at its share of the level."""
    numbers = zip(guess_numbers(len(ranked)), SHARES, strict=True)
    return max(_bound(ranked, guesses, share * ALPHA) for guesses, share in numbers)


def _independent(coins: NDArray[np.bool_], scores: NDArray[np.float64]) -> float:
    wrongs = wrong_numbers(len(coins))
    insides = included_above(coins, scores, wrongs)
    return max(
        cached_independent(Guesses(len(coins), inside + wrong, inside), share * ALPHA)
        for inside, wrong, share in zip(insides, wrongs, SHARES, strict=True)
    )


def _rate(name: str, count: int, runs: int, wanted: str) -> None:
    print(f"  {name:42} {count:6,}  {count / runs:7.2%}  ({wanted})")


PARTS = {one.__name__: one for one in (table, null, together, choice, blanks)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    for name in parser.parse_args().parts or PARTS:
        PARTS[name]()
        print()


if __name__ == "__main__":
    main()
