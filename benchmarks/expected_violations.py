"""How surely configs/seeds finds the violations that it expects.

python -m benchmarks.expected_violations [--runs 1000] [--workers 2] [FILE.yaml...]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

from dpaudit.auditing.engine import run_audit
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.result import Verdict
from dpaudit.config.yaml_files import load_config

CONFIGS = Path(__file__).parents[1] / "configs" / "seeds"


def refuted_after(spec: AuditSpec, seed: int) -> float | None:
    """Return the share of its draws after which a run refuted the claim; 1 when only the exact test
    at the end did, None when nothing did."""
    result = run_audit(replace(spec, sampling=replace(spec.sampling, seed=seed)))
    if result.verdict is not Verdict.VIOLATION:
        return None
    return min(
        (certificate.evidence.refuted_after or certificate.evidence.budget)
        / certificate.evidence.budget
        for certificate in result.certificates
        if certificate.refuted
    )


def line(spec: AuditSpec, shares: Sequence[float | None]) -> str:
    """Return one line of the table."""
    refuted = [share for share in shares if share is not None]
    latest = f"{max(refuted):.1%}" if refuted else ""
    return f"{spec.name:<48}{len(refuted):>6} of {len(shares)}{latest:>10}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args(arguments)
    files = options.files or sorted(CONFIGS.glob("*.yaml"))
    print(f"{'audit':<48}{'found':>6}{'latest refutation, of its draws':>36}")
    missed = 0
    with ProcessPoolExecutor(options.workers) as pool:
        for spec in (audit for file in files for audit in load_config(file)):
            if spec.requirements.expect != "violation" or spec.statistics.exact:
                continue
            shares = list(pool.map(partial(refuted_after, spec), range(options.runs)))
            missed += shares.count(None)
            print(line(spec, shares), flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
