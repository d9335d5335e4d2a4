"""A whole audit that refutes, help and version, beside importing what any command line with NumPy
imports; and pytest with the plugin, beside pytest without it.

python -m benchmarks.startup [--times 15]
"""

from __future__ import annotations

import argparse

from benchmarks.processes import alternated, dpaudit, python

BASE = python("import numpy, click, rich")
AUDIT = dpaudit(
    "run", "mechanisms.laplace:laplace", "--param", "epsilon=2",
    "--d1", "0", "--d2", "1", "--epsilon", "0.5",
)  # fmt: skip
PYTEST = [
    [*python("import pytest; raise SystemExit(pytest.main())"), "--version", *more]
    for more in (("-p", "no:dpaudit"), ())
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=15)
    times = parser.parse_args().times
    base, audit = alternated([BASE, AUDIT], times)
    ratio = audit.wall / base.wall
    print(f"import numpy, click, rich: {base.wall:.3f} s; dpaudit run, truth 2 against claim 0.5:")
    print(f"{audit.wall:.3f} s, {ratio:.2f} times as long (wanted: ≤ 4)")
    base, version, help_ = alternated([BASE, dpaudit("--version"), dpaudit("--help")], times)
    print(f"--version: {version.wall / base.wall:.2f} times as long; ", end="")
    print(f"--help: {help_.wall / base.wall:.2f} times (wanted: ≤ 0.5)")
    without, plugin = alternated(PYTEST, times)
    ratio = plugin.wall / without.wall
    print(f"pytest --version: {without.wall:.3f} s; with the plugin {ratio:.3f} times (≤ 1.05)")


if __name__ == "__main__":
    main()
