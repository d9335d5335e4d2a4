"""Vector measurements of OpenDP as batches, against one call for each draw: CPU time of both.

The last column is the share of a batch that OpenDP's compiled code takes, which draws the noise.

python -m benchmarks.opendp_vectors [--draws 20_000]
"""

from __future__ import annotations

import argparse
import time
from importlib import import_module
from typing import Any

from dpaudit.library_claims.dataset_functions import as_function
from mechanisms.watch import opendp

# Calls that draw one output each.
_CALLS = 1_000
_MEASUREMENTS = {
    "geometric, integers": (opendp.geometric_vector, "int"),
    "Laplace, integers": (opendp.laplace_vector, "int"),
    "Laplace, floats": (opendp.laplace_vector, "float"),
    "Gaussian, integers": (opendp.gaussian_vector, "int"),
    "Gaussian, floats": (opendp.gaussian_vector, "float"),
}


def rates(measurement: Any, value: float, draws: int) -> tuple[float, float]:
    """Return the draws in a second of CPU time: of one call for all, and of one call each."""
    batch = as_function(measurement)
    batch(value, 10)
    start = time.process_time()
    batch(value, draws)
    middle = time.process_time()
    for _ in range(_CALLS):
        measurement([value])
    end = time.process_time()
    return draws / (middle - start), _CALLS / (end - middle)


def compiled_share(measurement: Any, value: float, draws: int) -> float:
    """Return the share of the time of one call for all draws that compiled code takes."""
    batch, library = as_function(measurement), import_module("opendp._lib").lib
    compiled, spent = library.opendp_core__measurement_invoke, 0.0

    def timed(*given: Any) -> Any:
        nonlocal spent
        start = time.process_time()
        result = compiled(*given)
        spent += time.process_time() - start
        return result

    library.opendp_core__measurement_invoke = timed
    try:
        start = time.process_time()
        batch(value, draws)
        return spent / (time.process_time() - start)
    finally:
        library.opendp_core__measurement_invoke = compiled


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=20_000)
    draws = parser.parse_args().draws
    print(f"{'':22}{'batch':>10}{'one a call':>14}{'ratio':>9}{'compiled':>10}")
    for name, (make, kind) in _MEASUREMENTS.items():
        batch, single = rates(make(kind), 0 if kind == "int" else 0.0, draws)
        share = compiled_share(make(kind), 0 if kind == "int" else 0.0, draws)
        print(f"{name:22}{batch:>8,.0f}/s{single:>12,.0f}/s{batch / single:>9.1f}{share:>10.0%}")


if __name__ == "__main__":
    main()
