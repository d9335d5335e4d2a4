"""What audits of mechanisms that return vectors cost beside the draws: CPU, and memory.

python -m benchmarks.vectors [--samples 4e6] [--only PART] [--every N] [--memory 1e8]
                             [--dp-sniper CLONE]

Each audit runs in a process of its own, and so does the drawing that it is compared with: the same
calls for as many outputs, of which nothing is read. An audit's CPU is all of it, with what it
learns, and with what it imports for that; dpaudit itself is imported before. With a clone of
DP-Sniper, the mechanisms are those of its own suite, on the inputs that it reports
(`benchmarks.dp_sniper`).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterable
from typing import Any

import numpy as np

import dpaudit
from benchmarks.dp_sniper import suite
from benchmarks.processes import ROOT
from benchmarks.vector_cases import Case, Rng, cases

# Of ru_maxrss.
_UNIT = 1 if sys.platform == "darwin" else 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=float, default=4e6)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--every", type=int, default=1, help="measure every N-th case")
    parser.add_argument("--memory", type=float, help="also measure the memory at this budget")
    parser.add_argument("--dp-sniper", metavar="CLONE", help="of its mechanisms, in place of ours")
    parser.add_argument("--in-here", choices=("audit", "draw"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    samples = int(given.samples)
    known: Iterable[Case] = suite(given.dp_sniper) if given.dp_sniper else cases()
    if given.in_here:
        case = next(case for case in known if case.name == given.only)
        print(json.dumps(audited(case, samples) if given.in_here == "audit" else drawn(case)))
        return
    every = [case for case in known if given.only in case.name][:: given.every]
    clone = ["--dp-sniper", given.dp_sniper] if given.dp_sniper else []
    print(f"{samples:,} draws        columns   audit   draws   ratio   peak memory  ε at least")
    total = np.zeros(2)
    for case in every:
        audit = _child(case, samples, "audit", clone)
        draws = _child(case, samples, "draw", clone, audit["calls"])
        spent = audit["cpu"], draws["cpu"]
        total += spent
        print(f"{case.name:33} {case.columns:3} ", end="")
        memory, bound = audit["memory"] / 1e6, audit["epsilon_lower"]
        shown = "" if bound is None else f"{bound:10.3f}"
        print(f"{_words(*spent)}  {memory:6.0f} MB  {shown}", end="", flush=True)
        if given.memory:
            more = _child(case, int(given.memory), "audit", clone)
            print(f", {more['memory'] / 1e6:.0f} MB of {int(given.memory):,} draws", end="")
        print(flush=True)
    print(f"{'all':37} {_words(*total)}")


def audited(case: Case, samples: int) -> dict[str, Any]:
    """Audit, and return the cost and the calls: (is of d1, draws) of each."""
    calls: list[tuple[bool, int]] = []

    def mechanism(dataset: Any, size: int, rng: Rng) -> Any:
        calls.append((dataset == case.d1, size))
        return case.mechanism(dataset, size=size, rng=rng)

    case.mechanism(case.d1, size=1, rng=np.random.default_rng(1))
    audit = dpaudit.audit  # which is imported with it
    begun = time.process_time()
    result = audit(mechanism, case.d1, case.d2, case.claim, samples=samples, seed=1, stop="never")
    spent = time.process_time() - begun
    if result.error is not None:
        raise RuntimeError(result.error)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    memory = usage.ru_maxrss * _UNIT
    bound = result.epsilon_lower if isinstance(case.claim, dpaudit.PureDP) else None
    return {"cpu": spent, "memory": memory, "calls": calls, "epsilon_lower": bound}


def drawn(case: Case) -> dict[str, Any]:
    """Make the calls on standard input, and return the cost."""
    rng = np.random.default_rng(1)
    np.random.seed(1)
    calls = json.load(sys.stdin)
    case.mechanism(case.d1, size=1, rng=rng)
    begun = time.process_time()
    for is_d1, size in calls:
        case.mechanism(case.d1 if is_d1 else case.d2, size=size, rng=rng)
    return {"cpu": time.process_time() - begun}


def _words(audit: float, draws: float) -> str:
    return f"{audit:6.2f} s {draws:5.2f} s  {audit / draws:6.2f}"


def _child(case: Case, samples: int, what: str, clone: list[str], calls: Any = None) -> Any:
    words = [sys.executable, "-m", "benchmarks.vectors", "--in-here", what, *clone]
    words += ["--only", case.name, "--samples", str(samples)]
    # What is imported counts, and is compiled once only where that is kept.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run(
        words,
        cwd=ROOT,
        env=environment,
        input=json.dumps(calls),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{case.name}: {done.stderr}")
    return json.loads(done.stdout)


if __name__ == "__main__":
    main()
