"""How often a comparison with new processes misses noise that a process draws once, or reports a
difference between processes that draw from one law.

python -m benchmarks.new_processes [--runs 400] [--laws 2000] [--processes 8 4]

Processes are simulated: each has its own pool of noise, and its own order of lists. Exits with 1 if
more than one of all comparisons of one law reports a difference.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.auditing.safeguards.redrawing import DIFFERENCE_ALPHA
from dpaudit.draws import SelectionDraws, pool
from dpaudit.outcomes import Outcomes, from_raw
from dpaudit.sampling.between_processes import Division, between_processes, order_free_cells
from dpaudit.sampling.executors.new_processes import FEWER_PROCESSES, PROCESSES

Rng = np.random.Generator
# Outputs of a process for inputs 0 and 1, (draws,).
Process = Callable[[NDArray[np.int64], Rng], Any]

SIZES = (2_000, 200, 100, 50, 25, 10)
NAMES = ["a", "bc", "d", "efg"]


def once(spread: float, rng: Rng) -> Process:
    """Draw one value for each input, and normal noise of this spread for each output."""
    kept = rng.laplace(size=2)
    return lambda x, rng: x + kept[x] + spread * rng.normal(size=len(x))


def from_pool(values: int, rng: Rng) -> Process:
    kept = rng.laplace(size=values)
    return lambda x, rng: x + rng.choice(kept, len(x)) + 0.01 * rng.normal(size=len(x))


def in_a_vector(rng: Rng) -> Process:
    """Keep the noise of one of two entries."""
    kept = rng.laplace()
    return lambda x, rng: np.stack([x + kept, rng.normal(size=len(x))], axis=1)


def among_others(entries: int, rng: Rng) -> Process:
    """Keep noise of one entry, and draw as much fresh noise for every entry."""
    kept = rng.laplace()

    def draw(x: NDArray[np.int64], rng: Rng) -> Any:
        vectors = rng.laplace(size=(len(x), entries))
        vectors[:, 0] += x + kept
        return vectors

    return draw


def beside_its_scale(rng: Rng) -> Process:
    """Keep noise that shows only beside the other entry."""
    kept = rng.laplace()

    def draw(x: NDArray[np.int64], rng: Rng) -> Any:
        large = rng.normal(scale=20.0, size=len(x))
        return np.stack([large + x + kept + 0.3 * rng.normal(size=len(x)), large], axis=1)

    return draw


def among_names(rng: Rng) -> Process:
    """Keep the noise of one of 30 named entries."""
    kept = rng.laplace()

    def draw(x: NDArray[np.int64], rng: Rng) -> Any:
        rows = rng.laplace(scale=2.0, size=(len(x), 30))
        rows[:, 25] = x + kept + 0.3 * rng.normal(size=len(x))
        return [{f"k{n}": value for n, value in enumerate(row)} for row in rows.tolist()]

    return draw


KINDS: dict[str, Callable[[Rng], Process]] = {
    "one value": partial(once, 0.0),
    "one value, fresh noise of spread 0.3": partial(once, 0.3),
    "one value, fresh noise of spread 1": partial(once, 1.0),
    "one value in a vector": in_a_vector,
    "one value beside a large entry": beside_its_scale,
    "one value of 30 by name": among_names,
    "pool of 10": partial(from_pool, 10),
    "pool of 50": partial(from_pool, 50),
    "pool of 200": partial(from_pool, 200),
}
# Kinds that the comparison often misses with few draws.
HIDDEN: dict[str, Callable[[Rng], Process]] = {
    f"one of {entries} entries, fresh noise": partial(among_others, entries)
    for entries in (5, 20, 100)
}


def number(_: Rng) -> Process:
    return lambda x, rng: x + rng.laplace(scale=0.5, size=len(x))


def count(_: Rng) -> Process:
    return lambda x, rng: x + rng.geometric(0.8, len(x)) - rng.geometric(0.8, len(x))


def label(_: Rng) -> Process:
    return lambda x, rng: np.where(rng.random(len(x)) < np.where(x, 0.88, 0.12), "yes", "no")


def numbers_of_a_set(own: Rng) -> Process:
    """Return noisy counts in the order of a set."""
    order = own.permutation(4)

    def draw(x: NDArray[np.int64], rng: Rng) -> Any:
        counts = np.stack([3 * x, x, 7 + 0 * x, 1 - x], axis=1)
        return (counts + rng.laplace(size=counts.shape))[:, order]

    return draw


def pairs_of_a_set(own: Rng) -> Process:
    """Return (name, noisy count), in the order of a set of the names."""
    order = own.permutation(4).tolist()

    def draw(x: NDArray[np.int64], rng: Rng) -> Any:
        noise = rng.laplace(size=(len(x), 4)).tolist()
        return [
            [(NAMES[k], k * one + noise[row][k]) for k in order]
            for row, one in enumerate(x.tolist())
        ]

    return draw


def names_of_a_set(own: Rng) -> Process:
    """Return the names whose noisy count is positive, in the order of a set of them."""
    order = own.permutation(4).tolist()

    def draw(x: NDArray[np.int64], rng: Rng) -> Any:
        chosen = (rng.random((len(x), 4)) < np.where(x, 0.8, 0.3)[:, None]).tolist()
        return [[NAMES[k] for k in order if row[k]] for row in chosen]

    return draw


def text_of_a_set(own: Rng) -> Process:
    draw = names_of_a_set(own)
    return lambda x, rng: [", ".join(names) for names in draw(x, rng)]


def sum_over_a_set(own: Rng) -> Process:
    """Return sums, rounded as the order of a set has it, with noise in a quarter of them."""
    rounding = 1e-16 * own.integers(-2, 3)
    return lambda x, rng: (
        (0.1 + x) * (1 + rounding) + rng.laplace(size=len(x)) * (rng.random(len(x)) < 0.25)
    )


LAWS: dict[str, Callable[[Rng], Process]] = {
    one.__name__: one
    for one in (
        number, count, label, numbers_of_a_set, pairs_of_a_set, names_of_a_set, text_of_a_set,
        sum_over_a_set,
    )
}  # fmt: skip


def difference(
    make: Callable[[Rng], Process],
    processes: int,
    size: int,
    seed: int,
    level: float = DIFFERENCE_ALPHA,
    *,
    is_order_shared: bool = True,
) -> str:
    """Return the message of a comparison of the auditing process with new ones; "" for none.

    is_order_shared: whether only processes with equal orders of lists are compared by a rule.
    """
    rng = np.random.default_rng(seed)
    alike = [number for number in range(processes + 1) if number == 0 or number % 2]
    order = make(rng)
    parts = []
    for number in range(processes + 1):
        x = rng.integers(0, 2, size)
        is_law = make in LAWS.values()
        process = order if is_law and number in alike else make(rng)
        parts.append(SelectionDraws(from_raw(process(x, rng)), x == 0))
    outcomes = pool(parts).outcomes
    every = range(len(parts))
    divisions = [Division(cell, every) for cell in order_free_cells(outcomes)]
    ruled = alike if is_order_shared else every
    divisions += [Division(cell, ruled) for cell in event_cells(outcomes)]
    return between_processes(parts, divisions, level)[1]


def event_cells(outcomes: Outcomes) -> list[NDArray[np.int64]]:
    """Return the cells of a rule about the first number, less the second if outputs have two."""
    numbers = [column.numbers for column in outcomes.columns if not np.isnan(column.numbers).any()]
    if not numbers:
        score = np.unique(outcomes.keys(), return_inverse=True)[1].astype(float)
    else:
        score = numbers[0] - numbers[1] if len(numbers) == 2 else numbers[0]
    edges = np.quantile(score, np.linspace(0, 1, 17)[1:-1])
    runs = np.searchsorted(edges, score, side="right")
    return [(runs < 8).astype(np.int64), runs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400, help="comparisons of each kind of noise")
    parser.add_argument("--laws", type=int, default=2_000, help="comparisons of each correct law")
    parser.add_argument("--processes", type=int, nargs="+", default=[PROCESSES, FEWER_PROCESSES])
    options = parser.parse_args()
    with ProcessPoolExecutor() as workers:
        for row in missed(workers, options.runs, options.processes):
            print(row, flush=True)
        alarms = 0
        for name in LAWS:
            found = sum(
                workers.map(partial(_differs, name, 8, 200), range(options.laws), chunksize=20)
            )
            print(f"{name:<38}{found:>6} of {options.laws:,} differ", flush=True)
            alarms += found
    sys.exit(alarms > 1)


def missed(workers: ProcessPoolExecutor, runs: int, numbers: Sequence[int]) -> Iterator[str]:
    """Yield a line for each kind of noise: the share of comparisons that report no difference."""
    yield f"{'missed, in %':<38}{'processes':>10}" + "".join(f"{size:>8,}" for size in SIZES)
    for name in (*KINDS, *HIDDEN):
        for processes in numbers:
            shares = []
            for size in SIZES:
                one = partial(_differs, name, processes, size)
                shares.append(100 - 100 * sum(workers.map(one, range(runs), chunksize=20)) / runs)
            yield f"{name:<38}{processes:>10}" + "".join(f"{share:>8.3g}" for share in shares)


def _differs(name: str, processes: int, size: int, seed: int) -> bool:
    return bool(difference({**KINDS, **HIDDEN, **LAWS}[name], processes, size, seed))


if __name__ == "__main__":
    main()
