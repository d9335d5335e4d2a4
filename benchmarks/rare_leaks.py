"""How often audits refute a claim because of a rare leak, and after how many draws.

python -m benchmarks.rare_leaks [--probability 1e-4] [--seeds 20] [--kinds value tail category]
python -m benchmarks.rare_leaks --pure [--probability 1e-3 1e-4] [--times 100 80 60] [--kinds ...]
python -m benchmarks.rare_leaks --pure --epsilon 6 --probability 0.02 --times 8000
python -m benchmarks.rare_leaks --representations [--seeds 20]

By default, the claim is (1.1, p/10)-DP: the leak has probability p and only d1 gives it, the rest
of the output attains ε = 1.1, and the budget is 200/p draws, of which 100 show the leak. Each
occurrence of the leak adds at most log(1 + e^-ε) = 0.29 to the log-wealth of betting, which
therefore needs at least 43/p draws.

With --pure, the claim is ε = 1 (--epsilon), which the rest of the output attains, and the budget is
a multiple of 1/p draws (--times). In the kinds `both` and `column` both inputs leak, with different
values; in all other kinds only d1 leaks.

With --representations, the two inputs give outputs that Python calls equal but a recipient can tell
from each other, in 90 % of draws. The claim is ε = 1 and the budget is 10,000 draws. These audits
are run by the command `dpaudit run`, since orders of text keys count where it fixes the hash seed.
"""

from __future__ import annotations

import argparse
import decimal
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import dpaudit
from dpaudit import ApproximateDP, PrivacyClaim, PureDP, Verdict

# Claimed ε of the table with δ = p/10, and of the other two tables.
EPSILON, PURE_EPSILON = 1.1, 1.0
# Columns of `category`, and of `column`.
COLUMNS, LAPLACE_COLUMNS = 20, 8
# Share of draws of the --representations table that show which input was used.
SHOWN = 0.9
REPRESENTATION_DRAWS = 10_000

Draw = Callable[..., Any]


def answer(
    dataset: int, size: int, rng: np.random.Generator, epsilon: float
) -> NDArray[np.float64]:
    """Randomised response."""
    truthful = rng.random(size) < 1 / (1 + math.exp(-epsilon))
    return np.where(truthful, dataset, 1 - dataset).astype(np.float64)


def leaks(dataset: int, size: int, rng: np.random.Generator, p: float) -> NDArray[np.bool_]:
    return np.asarray((rng.random(size) < p) & (dataset == 1))


def value(
    dataset: int, size: int, rng: np.random.Generator, p: float, epsilon: float = EPSILON
) -> NDArray[np.float64]:
    """Randomised response, and a third value as the leak."""
    outputs = answer(dataset, size, rng, epsilon)
    outputs[leaks(dataset, size, rng, p)] = 77.0
    return outputs


def laplace_value(
    dataset: int, size: int, rng: np.random.Generator, p: float, epsilon: float = EPSILON
) -> NDArray[np.float64]:
    """Laplace noise, and one value far outside it as the leak."""
    outputs = dataset + rng.laplace(scale=1 / epsilon, size=size)
    outputs[leaks(dataset, size, rng, p)] = 1e9
    return np.asarray(outputs)


def both(
    dataset: int, size: int, rng: np.random.Generator, p: float, epsilon: float = EPSILON
) -> NDArray[np.float64]:
    """Laplace noise, and a rare value of each input, 1e9 and 1e9 + 1."""
    outputs = dataset + rng.laplace(scale=1 / epsilon, size=size)
    outputs[rng.random(size) < p] = 1e9 + dataset
    return np.asarray(outputs)


def tail(
    dataset: int, size: int, rng: np.random.Generator, p: float, epsilon: float = EPSILON
) -> NDArray[np.float64]:
    """Laplace noise, and a far tail as the leak."""
    outputs = dataset + rng.laplace(scale=1 / epsilon, size=size)
    chosen = leaks(dataset, size, rng, p)
    outputs[chosen] = 1e6 * (1 + rng.random(int(chosen.sum())))
    return np.asarray(outputs)


def category(
    dataset: int, size: int, rng: np.random.Generator, p: float, epsilon: float = EPSILON
) -> NDArray[np.float64]:
    """20 columns: a randomised response, categories with a new one as the leak, normal noise."""
    outputs = rng.normal(size=(size, COLUMNS))
    outputs[:, 0] = answer(dataset, size, rng, epsilon)
    outputs[:, 7] = rng.integers(5, size=size)
    outputs[leaks(dataset, size, rng, p), 7] = 9
    return outputs


def column(
    dataset: int, size: int, rng: np.random.Generator, p: float, epsilon: float = EPSILON
) -> NDArray[np.float64]:
    """Eight columns of Laplace noise, and in one of them a rare value of each input, 50 and 51."""
    outputs = rng.laplace(scale=1 / epsilon, size=(size, LAPLACE_COLUMNS))
    outputs[:, 0] += dataset
    outputs[rng.random(size) < p, 5] = 50.0 + dataset
    return outputs


def key(
    dataset: int, size: int, rng: np.random.Generator, p: float, epsilon: float = EPSILON
) -> list[dict[str, float]]:
    """A dict with a randomised response, and a second key as the leak."""
    pairs = zip(answer(dataset, size, rng, epsilon), leaks(dataset, size, rng, p), strict=True)
    return [
        {"answer": number, "leak": 1.0} if leak else {"answer": number} for number, leak in pairs
    ]


def random_value(
    dataset: int, size: int, rng: np.random.Generator, p: float, epsilon: float = EPSILON
) -> NDArray[np.float64]:
    """Randomised response, and a number that never repeats as the leak."""
    outputs = answer(dataset, size, rng, epsilon)
    chosen = leaks(dataset, size, rng, p)
    outputs[chosen] = rng.random(int(chosen.sum()))
    return outputs


def random_text(
    dataset: int, size: int, rng: np.random.Generator, p: float, epsilon: float = EPSILON
) -> list[float | str]:
    """Randomised response, and a text that never repeats as the leak."""
    outputs: list[float | str] = answer(dataset, size, rng, epsilon).tolist()
    for index in np.flatnonzero(leaks(dataset, size, rng, p)):
        outputs[index] = f"debug {rng.integers(2**63)}"
    return outputs


def random_key(
    dataset: int, size: int, rng: np.random.Generator, p: float, epsilon: float = EPSILON
) -> list[dict[str, float]]:
    """A dict with a randomised response and a second key, which the leak renames at random."""
    answers = answer(dataset, size, rng, epsilon).tolist()
    outputs = [{"answer": bit, "other": 0.0} for bit in answers]
    for index in np.flatnonzero(leaks(dataset, size, rng, p)):
        del outputs[index]["other"]
        outputs[index][f"debug {rng.integers(2**63)}"] = 0.0
    return outputs


def exception(dataset: int, rng: np.random.Generator, p: float, epsilon: float = EPSILON) -> float:
    """Randomised response, one call per draw, and an exception as the leak."""
    if dataset == 1 and rng.random() < p:
        raise ValueError("leak")
    return float(dataset if rng.random() < 1 / (1 + math.exp(-epsilon)) else 1 - dataset)


def sign_of_zero(dataset: int, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """0.0 or -0.0."""
    zero = -0.0 if dataset else 0.0
    return np.where(rng.random(size) < SHOWN, zero, 1.0)


def number_type(dataset: int, rng: np.random.Generator) -> float:
    """The same number as a float or as an int."""
    if rng.random() >= SHOWN:
        return 8
    return 7 if dataset else 7.0


def key_order(dataset: int, rng: np.random.Generator) -> dict[str, int]:
    """The same dict with its keys in one order or the other."""
    if rng.random() >= SHOWN:
        return {"count": 4}
    return {"count": 3, "total": 5} if dataset else {"total": 5, "count": 3}


def list_or_tuple(dataset: int, rng: np.random.Generator) -> list[float] | tuple[float, ...]:
    """The same numbers in a list or in a tuple."""
    if rng.random() >= SHOWN:
        return [1.5]
    return [0.5] if dataset else (0.5,)


def digits(dataset: int, rng: np.random.Generator) -> decimal.Decimal:
    """The same decimal number with one digit after the point or with two."""
    if rng.random() >= SHOWN:
        return decimal.Decimal(4)
    return decimal.Decimal("2.5" if dataset else "2.50")


KINDS: dict[str, Draw] = {
    kind.__name__: kind
    for kind in (value, tail, category, key, exception, random_value, random_text, random_key)
}
PURE_KINDS: dict[str, Draw] = {
    kind.__name__: kind
    for kind in (
        value,
        laplace_value,
        both,
        tail,
        category,
        column,
        key,
        exception,
        random_value,
        random_text,
        random_key,
    )
}
REPRESENTATIONS: dict[str, Draw] = {
    kind.__name__: kind for kind in (sign_of_zero, number_type, key_order, list_or_tuple, digits)
}


@dataclass(frozen=True)
class Audits:
    """Result of audits that differ only in their seed.

    `draws` is the median number of draws after which betting refuted the claim, inf if betting did
    not refute it in half of the audits. `seconds` is the mean time of an audit.
    """

    refuted: int
    count: int
    draws: float
    seconds: float


def run_audits(mechanism: Draw, claim: PrivacyClaim, samples: int, seeds: int) -> Audits:
    """Audit the inputs 1 and 0 with the seeds 0 to `seeds` - 1."""
    refuted, draws = 0, []
    start = time.perf_counter()
    for seed in range(seeds):
        result = dpaudit.audit(mechanism, 1, 0, claim, samples=samples, seed=seed)
        refuted += result.verdict is Verdict.VIOLATION
        (certificate,) = result.certificates
        draws.append(certificate.evidence.refuted_after or math.inf)
    return Audits(refuted, seeds, median(draws), (time.perf_counter() - start) / seeds)


def line(name: str, p: float, seeds: int) -> str:
    """Return a line of the table with δ = p/10."""
    mechanism, claim = partial(KINDS[name], p=p), ApproximateDP(EPSILON, p / 10)
    audits = run_audits(mechanism, claim, round(200 / p), seeds)
    betting = f"{audits.draws * p:.0f}/p" if audits.draws < math.inf else "later"
    return (
        f"{name:12} {p:8.0e} {audits.refuted:4d} of {seeds:<4d} {betting:>10} "
        f"{audits.seconds:8.1f} s"
    )


def pure_audits(
    name: str, p: float, times: float, seeds: int, epsilon: float = PURE_EPSILON
) -> Audits:
    """Audit one kind of leak against the pure claim with `times` / p draws."""
    mechanism = partial(PURE_KINDS[name], p=p, epsilon=epsilon)
    return run_audits(mechanism, PureDP(epsilon), round(times / p), seeds)


def pure_line(name: str, p: float, times: float, audits: Audits) -> str:
    """Return a line of the table for a pure claim."""
    betting = f"{audits.draws * p:.0f}/p" if audits.draws < math.inf else "none"
    return (
        f"{name:14} {p:8.0e} {f'{times:g}/p':>8} {audits.refuted:4d} of {audits.count:<4d} "
        f"{betting:>10} {audits.seconds:8.1f} s"
    )


def pooled_line(times: float, audits: Sequence[Audits]) -> str:
    """Return the share of refuted audits with its 95 % Clopper-Pearson interval, as a line."""
    refuted, count = sum(audit.refuted for audit in audits), sum(audit.count for audit in audits)
    interval = stats.binomtest(refuted, count).proportion_ci(0.95, method="exact")
    return (
        f"all kinds, {times:g}/p draws: {refuted} of {count} refuted, {refuted / count:.1%} "
        f"(95 % interval {interval.low:.1%} to {interval.high:.1%})"
    )


def representation_line(name: str, seeds: int) -> str:
    """Return a line of the table of representations."""
    audits = run_commands(name, seeds)
    return f"{name:14} {audits.refuted:4d} of {seeds:<4d} {audits.seconds:8.1f} s"


def run_commands(name: str, seeds: int) -> Audits:
    """Audit the inputs 1 and 0 of a representation by `dpaudit run`, in a shell without
    PYTHONHASHSEED: the command sets it for itself."""
    audit = {"mechanism": f"{__file__}:{name}", "d1": 1, "d2": 0, "samples": REPRESENTATION_DRAWS}
    audit["claim"] = {"epsilon": PURE_EPSILON}
    every = [{**audit, "name": f"seed {seed}", "seed": seed} for seed in range(seeds)]
    plain = {key: value for key, value in os.environ.items() if key != "PYTHONHASHSEED"}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "audits.yaml")
        file.write_text(json.dumps({"version": 1, "audits": every}), encoding="utf-8")
        words = [sys.executable, "-m", "dpaudit", "run", str(file), "--quiet", "--json", "-"]
        done = subprocess.run(words, env=plain, capture_output=True, check=False)
    audits = json.loads(done.stdout)["audits"]
    refuted = [
        record["ending"]["certificates"][0]["evidence"]["refuted_after"] or math.inf
        for record in audits
    ]
    seconds = sum(record["seconds"] for record in audits) / seeds
    violations = [record["verdict"] for record in audits].count("VIOLATION")
    return Audits(violations, seeds, median(refuted), seconds)


def print_approximate(names: Sequence[str], probabilities: Sequence[float], seeds: int) -> None:
    print("kind                p   refuted   by betting   an audit")
    for p in probabilities:
        for name in names:
            print(line(name, p, seeds), flush=True)


def print_pure(
    names: Sequence[str],
    probabilities: Sequence[float],
    budgets: Sequence[float],
    seeds: int,
    epsilon: float,
) -> None:
    print("kind                  p   budget   refuted   by betting   an audit")
    pooled: dict[float, list[Audits]] = {times: [] for times in budgets}
    for p in probabilities:
        for name in names:
            for times, group in pooled.items():
                group.append(pure_audits(name, p, times, seeds, epsilon))
                print(pure_line(name, p, times, group[-1]), flush=True)
    for times, group in pooled.items():
        print(pooled_line(times, group))


def print_representations(names: Sequence[str], seeds: int) -> None:
    print("kind             refuted     an audit")
    for name in names:
        print(representation_line(name, seeds), flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    table = parser.add_mutually_exclusive_group()
    table.add_argument("--pure", action="store_true", help="the table for a pure claim")
    table.add_argument(
        "--representations", action="store_true", help="the table of equal outputs that differ"
    )
    parser.add_argument("--probability", type=float, nargs="+", help="p; 1e-4, with --pure 1e-3")
    parser.add_argument(
        "--times", type=float, nargs="+", help="with --pure: budgets in units of 1/p; 100 80 60"
    )
    parser.add_argument("--epsilon", type=float, help="with --pure: the claimed ε; 1")
    parser.add_argument("--seeds", type=int, default=20, help="audits per line; 20")
    parser.add_argument("--kinds", nargs="+", help="value and tail, in the other tables all")
    options = parser.parse_args(arguments)
    for name in ("times", "epsilon"):
        if getattr(options, name) and not options.pure:
            parser.error(f"--{name} is for --pure")
    if options.probability and options.representations:
        parser.error("--probability is not for --representations")
    kinds = PURE_KINDS if options.pure else REPRESENTATIONS if options.representations else KINDS
    for name in options.kinds or ():
        if name not in kinds:
            parser.error(f"no kind {name!r} in this table; known: {', '.join(kinds)}")
    if options.pure:
        probabilities, budgets = options.probability or [1e-3], options.times or [100, 80, 60]
        epsilon = options.epsilon or PURE_EPSILON
        print_pure(options.kinds or list(kinds), probabilities, budgets, options.seeds, epsilon)
    elif options.representations:
        print_representations(options.kinds or list(kinds), options.seeds)
    else:
        print_approximate(
            options.kinds or ["value", "tail"], options.probability or [1e-4], options.seeds
        )


if __name__ == "__main__":
    main()
