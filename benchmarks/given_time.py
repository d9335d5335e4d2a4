"""How much of the time that it is given an audit uses: `--time`, with one worker and with several.

python -m benchmarks.given_time [--times 3] [--seconds 5 20]

Wanted: from 80 to 105 % on a machine that does nothing else. The time is that of the audit itself,
without the start of the command.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.processes import cost, dpaudit

MECHANISMS = {
    "batch": "mechanisms.laplace:laplace",
    "one call a draw": "benchmarks.throughput:laplace",
}
WORKERS = ("1", "2", "auto")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--seconds", type=float, nargs="+", default=[5.0, 20.0])
    given = parser.parse_args()
    print("                 workers   given     used (every run)         draws")
    for seconds in given.seconds:
        for name, path in MECHANISMS.items():
            for workers in WORKERS:
                runs = [used(path, seconds, workers) for _ in range(given.times)]
                shares = ", ".join(f"{100 * one / seconds:.0f} %" for one, _ in runs)
                draws = int(median(draws for _, draws in runs))
                print(f"{name:16} {workers:>7} {seconds:5g} s   {shares:22} {draws:12,}")


def used(path: str, seconds: float, workers: str) -> tuple[float, int]:
    """Return the seconds that an audit took, and its draws."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "result.json"
        claim = ("--d1", "0", "--d2", "1", "--epsilon", "1", "--stop", "never")
        asked = ("--time", f"{seconds:g}s", "--workers", workers, "--json", str(file))
        cost(dpaudit("run", path, *claim, *asked))
        (audit,) = json.loads(file.read_text(encoding="utf-8"))["audits"]
    return float(audit["seconds"]), int(audit["draws"])


if __name__ == "__main__":
    main()
