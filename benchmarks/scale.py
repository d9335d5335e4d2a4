"""What many draws cost: a model from short measurements, checked against whole runs.

python -m benchmarks.scale [--largest 4e8] [--times 3]

The model (docs/guides/scale.md): every draw costs the mechanism and its tally, every block the
worker that draws it and the process that bets on it; beside that an audit starts, starts its
workers and learns once.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from benchmarks.processes import Cost, alternated, dpaudit
from dpaudit.auditing.engine import run_audit
from dpaudit.auditing.options import Sampling
from dpaudit.auditing.schedule import Plan, limits_for
from dpaudit.auditing.spec import AuditSpec
from dpaudit.claims import PureDP
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.sampling.chunks import Chunk, LevelCounts, Measure, ToCount
from dpaudit.sampling.executors.pools import Done
from dpaudit.sampling.sampler import Sampler
from dpaudit.targets.target import ImportedTarget

# Name -> (import path, whether it is called for one draw at a time, how many fewer draws it makes).
MECHANISMS = {
    "batch": ("mechanisms.laplace:laplace", False, 1),
    "one call a draw": ("benchmarks.throughput:laplace", True, 30),
}
WORKERS = 2
LEAST = 1_000
# From this number of draws on, the cost of learning is constant.
LEARNS = 800_000
LEARNED = 100_000
PAIR = NeighbouringPair(0.0, 1.0)
CORES = os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class Model:
    """Seconds: of a draw with its tally; of a block, for the worker and for the auditing process;
    of starting, of each worker's start (CPU, and until it draws), and of learning."""

    draw: float
    block: float
    bet: float
    start: float
    worker: float
    ready: float
    learn: float

    def cpu(self, draws: int, blocks: int, workers: int) -> float:
        """Return the seconds of CPU of all processes together."""
        once = self.start + workers * self.worker + self.learn
        return once + draws * self.draw + blocks * (self.block + self.bet)

    def wall(self, draws: int, blocks: int, workers: int, cores: int) -> float:
        """Return the seconds that an audit takes where its processes share this number of cores."""
        drawing, betting = draws * self.draw + blocks * self.block, blocks * self.bet
        share = max(drawing / workers, betting, (drawing + betting) / cores)
        return self.start + self.ready + self.learn + share


class Canned(Executor):
    """Draws what is learned from; of each block that certifies only the first of its size, so that
    what is left is the work of the process that audits."""

    def __init__(self, path: str) -> None:
        self.sampler = sampler(path)
        self.known: dict[int, LevelCounts] = {}
        self.blocks = 0
        self.drawing = 0.0
        self.measure: Measure | None = None

    def submit(self, _: Callable[..., Any], /, *args: Any, **__: Any) -> Future[Any]:
        """Run the chunks of a task, or not."""
        future: Future[Any] = Future()
        future.set_result(Done([self._drawn(chunk) for chunk in args[1]], 1e-6))
        return future

    def _drawn(self, chunk: Chunk[Any]) -> Any:
        if not isinstance(chunk, ToCount):
            return self.sampler.draw(chunk)
        self.measure = chunk.measure
        self.blocks += 1
        if chunk.size not in self.known:
            begun = time.process_time()
            self.known[chunk.size] = self.sampler.draw(chunk)
            self.drawing += time.process_time() - begun
        return self.known[chunk.size]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=float, default=4e8)
    parser.add_argument("--times", type=int, default=3)
    given = parser.parse_args()
    models = []
    for name, (path, single, fewer) in MECHANISMS.items():
        model = calibrated(path, given.times, single=single)
        models.append((name, model))
        print(f"{name}: {1e9 * model.draw:.3g} ns a draw, {1e6 * model.block:.0f} µs a block for")
        print(f"  its worker, {1e6 * model.bet:.0f} µs for the auditing process; ", end="")
        print(f"{model.start:.1f} s to start,")
        print(f"  {model.worker:.1f} s for each worker, {model.learn:.2f} s to learn")
        print("        draws   blocks   CPU: model, measured   time: model, measured")
        for size in (given.largest / 100, given.largest / 10, given.largest):
            check(model, path, int(size) // fewer, single=single)
    print("10^11 draws         core-hours   time with 16, 64, 256 workers")
    for name, model in [*models, ("100 µs a draw", replace(models[-1][1], draw=1e-4))]:
        extrapolate(name, model)


def check(model: Model, path: str, draws: int, *, single: bool) -> None:
    """Print what a run should cost, and does."""
    blocks = blocks_of(draws, single=single)
    (seen,) = alternated([audit(path, draws)], 1)
    print(f"{draws:13,} {blocks:8,}", end="")
    print(f"   {model.cpu(draws, blocks, WORKERS):9.1f} s {seen.cpu:6.1f} s", end="")
    print(f"  {model.wall(draws, blocks, WORKERS, CORES):9.1f} s {seen.wall:6.1f} s")


def extrapolate(name: str, model: Model) -> None:
    """Print what 10¹¹ draws of a mechanism cost on machines of which each worker has a core."""
    draws = 10**11
    blocks = blocks_of(draws, single=False)
    hours = model.cpu(draws, blocks, 1) / 3600
    times = [model.wall(draws, blocks, count, count + 1) / 60 for count in (16, 64, 256)]
    print(f"  {name:15} {hours:11,.1f}   ", end="")
    print(", ".join(f"{minutes:,.1f} min" for minutes in times))


def calibrated(path: str, times: int, *, single: bool) -> Model:
    """Return the model of a mechanism, from measurements of some seconds."""
    short = LEARNS * (10 if single else 100)
    start, started, learned, drawn = alternated(
        [audit(path, LEAST, None), audit(path, LEAST), audit(path, LEARNS), audit(path, short)],
        times,
    )
    bet, measure = betting(path)
    block = overhead(path, measure, times)
    blocks = blocks_of(short, single=single) - blocks_of(LEARNS, single=single)
    draw = (_beyond(learned, drawn) - blocks * (block + bet)) / (short - LEARNS)
    return Model(
        draw=draw,
        block=block,
        bet=bet,
        start=start.cpu,
        worker=_beyond(start, started) / WORKERS,
        ready=max(0.0, started.wall - start.wall),
        learn=max(0.0, _beyond(started, learned) - LEARNS * draw),
    )


def betting(path: str) -> tuple[float, Measure]:
    """Return the seconds of a block in the auditing process, and what it measured."""
    seconds, blocks = [], []
    for draws in (10 * LEARNS, 400 * LEARNS):
        canned = Canned(path)
        begun = time.process_time()
        run_audit(spec(path, draws, canned))
        seconds.append(time.process_time() - begun - canned.drawing)
        blocks.append(canned.blocks)
    if canned.measure is None:
        raise RuntimeError("an audit ended before it certified anything")
    return (seconds[1] - seconds[0]) / (blocks[1] - blocks[0]), canned.measure


def overhead(path: str, measure: Measure, times: int) -> float:
    """Return the seconds of a block, in its worker, beside those of its draws."""
    source = sampler(path)
    sizes = (100, 1_100)
    small, large = (
        median(_seconds(source, ToCount((0, 1, 0), size, measure)) for _ in range(20 * times))
        for size in sizes
    )
    return max(0.0, small - (large - small) / 10)


def blocks_of(draws: int, *, single: bool) -> int:
    """Return how many blocks certify."""
    plan = Plan(draws, None, limits_for(1, single_draws=single))
    return sum(1 for _ in plan.certifying_sizes(plan.freeze_at))


def audit(path: str, draws: int, workers: int | None = WORKERS) -> Sequence[str]:
    """Return the command that audits a correct mechanism."""
    one = ("--workers", "1")
    many = one if workers is None else ("--executor", "processes", "--workers", str(workers))
    claim = ("--d1", "0", "--d2", "1", "--epsilon", "1", "--stop", "never")
    return dpaudit("run", path, *claim, "--samples", str(draws), *many)


def spec(path: str, draws: int, executor: Executor | None = None) -> AuditSpec:
    """Return the same audit for this process."""
    return AuditSpec(
        name=path,
        target=ImportedTarget(path=path),
        pairs=(PAIR,),
        claim=PureDP(1.0),
        sampling=Sampling(samples=draws, executor=executor, stop="never"),
    )


def sampler(path: str) -> Sampler:
    """Return what a worker draws with."""
    return Sampler(ImportedTarget(path=path), (PAIR,), 0)


def _seconds(source: Sampler, chunk: Chunk[Any]) -> float:
    begun = time.process_time()
    source.draw(chunk)
    return time.process_time() - begun


def _beyond(start: Cost, whole: Cost) -> float:
    return whole.cpu - start.cpu


if __name__ == "__main__":
    main()
