"""What a search finds on mechanisms with a planted worst pair: `python -m benchmarks.search`.

Of every one, the space and the relation are given, and no pair. `--catalogue`: edge cases alone.
`--correct N`: how often the correct counterparts are refuted, with N seeds each. `--patterns`:
whether the pair that is found certifies as much as the best of the eight patterns of answers.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from typing import Any
from unittest.mock import patch

from dpaudit.api import audit, search
from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.claims import ApproximateDP, PrivacyClaim, PureDP
from dpaudit.inputs.adjacency import parse_adjacency
from dpaudit.searching import gathering
from dpaudit.searching.proposals import proposals
from dpaudit.searching.relations import relation_on
from dpaudit.searching.spaces import parse_space
from dpaudit.stats.binomial import clopper_pearson_interval
from mechanisms.neighbours.planted import PLANTED, Planted

DRAWS, CONFIDENCE = 20_000_000, 0.99
# Of correct counterparts: fewer draws, and more errors, so that these can be counted.
FEW_DRAWS, LESS_CONFIDENCE = 40_000, 0.9
# Of patterns: draws of a search, and of the audit of a pair. The best pattern is chosen by a part.
PATTERN_DRAWS, PART = 2_000_000, 10
# What chooses the best pattern, and what audits pairs, has seeds of its own.
_CHOOSING, _COMPARING = 10_000, 20_000


def claim_of(one: Planted) -> PrivacyClaim:
    return ApproximateDP(one.epsilon, one.delta) if one.delta else PureDP(one.epsilon)


def searched(one: Planted, target: str, **options: Any) -> AuditResult:
    return search(
        target,
        claim_of(one),
        space=one.space,
        adjacency=one.adjacency,
        params=dict(one.params),
        **options,
    )


@contextmanager
def catalogue_alone() -> Iterator[None]:
    """Let a search propose nothing but edge cases."""

    def edges(*given: Any, **more: Any) -> Any:
        source = takewhile(lambda pair: pair.origin != "random", proposals(*given, **more))
        return (pair for pair in source if pair.origin in ("edge", "extreme"))

    with (
        patch.object(gathering, "proposals", edges),
        patch.object(gathering, "where_exceptions_begin", _none),
    ):
        yield


def _none(*given: Any, **named: Any) -> Iterator[Any]:
    return iter(())


def records(result: AuditResult) -> int:
    """Return how many records the larger input of the last pair that is refuted has."""
    searched_ = result.searched
    if searched_ is None:
        return 0
    refuted = [n for n, one in enumerate(result.by_pair) if one.refuted]
    pair = searched_.found[refuted[-1] if refuted else 0]
    return max(len(one) if isinstance(one, list | tuple) else 1 for one in pair)


def broken(chosen: Sequence[Planted], draws: int, seed: int) -> int:
    """Print what is found of every mechanism; return how many were missed."""
    print(f"{'mechanism':<28} {'caught':<7} {'s CPU':>6} {'draws':>12} {'records':>8}  pair")
    times, missed = [], 0
    for one in chosen:
        began = time.process_time()
        result = searched(one, one.broken, samples=draws, seed=seed, confidence=CONFIDENCE)
        seconds = time.process_time() - began
        times.append(seconds)
        is_caught = result.verdict is Verdict.VIOLATION
        missed += not is_caught
        made = result.draws + (0 if result.searched is None else result.searched.draws)
        pair = result.by_pair[-1].pair if result.by_pair else str(result.error)
        print(
            f"{one.name:<28} {'yes' if is_caught else 'NO':<7} {seconds:6.1f} {made:12,} "
            f"{records(result):8}  {pair[:90]}",
            flush=True,
        )
    caught = len(chosen) - missed
    print(f"{caught} of {len(chosen)} caught; median {statistics.median(times):.1f} s of processor")
    return missed


def correct(chosen: Sequence[Planted], seeds: int) -> int:
    """Print how often correct counterparts are refuted; return how many are so too often."""
    nominal, bad = 1 - LESS_CONFIDENCE, 0
    for one in chosen:
        alarms = sum(
            searched(
                one, one.correct, samples=FEW_DRAWS, seed=seed, confidence=LESS_CONFIDENCE
            ).verdict
            is Verdict.VIOLATION
            for seed in range(seeds)
        )
        low, high = clopper_pearson_interval(alarms, seeds, 0.001)
        bad += low > nominal
        print(f"{one.name:<28} {alarms:4} of {seeds} ({low:.3f} to {high:.3f})", flush=True)
    print(f"nominal {nominal:.2f}; {bad} above it")
    return bad


def bound(one: Planted, pair: tuple[Any, Any], draws: int, seed: int) -> float:
    """Return the bound that an audit of the broken mechanism on one pair certifies."""
    d1, d2 = pair
    result = audit(
        one.broken,
        d1,
        d2,
        claim_of(one),
        params=dict(one.params),
        samples=draws,
        seed=seed,
        confidence=CONFIDENCE,
        stop="never",
    )
    return result.epsilon_lower


def patterns(chosen: Sequence[Planted], draws: int, seeds: int) -> int:
    """Print what pairs certify that are found, beside the best of the eight patterns at every place
    where the search puts them; return of how many mechanisms the pair found certifies less."""
    print(f"{'mechanism':<24} {'seed':>4} {'search':>7} {'pair':>7} {'best':>7}  pairs")
    worse = 0
    for one in chosen:
        relation = parse_adjacency(one.adjacency)
        assert relation is not None
        pairs = relation_on(parse_space(one.space), relation).pattern_pairs()
        tried = [
            (bound(one, (d1, d2), draws // PART, _CHOOSING + number), (d1, d2), why)
            for number, (d1, d2, why) in enumerate(pairs)
        ]
        _, best, name = max(tried, key=lambda some: some[0])
        ours, theirs = [], []
        for seed in range(seeds):
            result = searched(
                one, one.broken, samples=draws, seed=seed, confidence=CONFIDENCE, stop="never"
            )
            found = () if result.searched is None else result.searched.found
            by_bound = zip((each.epsilon_lower for each in result.by_pair), found, strict=True)
            _, pair = max(by_bound, key=lambda some: some[0])
            ours.append(bound(one, pair, draws, _COMPARING + seed))
            theirs.append(bound(one, best, draws, _COMPARING + seed))
            print(
                f"{one.name:<24} {seed:4} {result.epsilon_lower:7.3f} {ours[-1]:7.3f} "
                f"{theirs[-1]:7.3f}  {pair}; {name}: {best}",
                flush=True,
            )
        gains = [our - their for our, their in zip(ours, theirs, strict=True)]
        worse += statistics.median(gains) < 0
        least = sum(gain >= 0 for gain in gains)
        print(
            f"{one.name:<24} at least as high for {least} of {seeds} seeds; in the median "
            f"{statistics.median(ours):.3f} and {statistics.median(theirs):.3f}"
        )
    print(f"{worse} of {len(chosen)} certify less than the best pattern, in the median")
    return worse


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table that the flags ask for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-k", default="", help="only mechanisms whose name contains this")
    parser.add_argument("--draws", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--catalogue", action="store_true", help="propose edge cases alone")
    parser.add_argument("--correct", action="store_true", help="search the correct counterparts")
    parser.add_argument("--patterns", action="store_true", help="compare with the eight patterns")
    parser.add_argument("--seeds", type=int)
    given = parser.parse_args(arguments)
    chosen = [one for one in PLANTED if given.k in one.name]
    if given.correct:
        return int(correct(chosen, given.seeds or 200) > 0)
    if given.patterns:
        chosen = [one for one in chosen if one.space.startswith("vector")]
        return int(patterns(chosen, given.draws or PATTERN_DRAWS, given.seeds or 5) > 0)
    draws = given.draws or DRAWS
    if given.catalogue:
        with catalogue_alone():
            return int(broken(chosen, draws, given.seed) > 0)
    return int(broken(chosen, draws, given.seed) > 0)


if __name__ == "__main__":
    sys.exit(main())
