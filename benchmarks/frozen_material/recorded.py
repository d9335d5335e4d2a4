"""Draws recorded elsewhere, for dpaudit bound, made with fixed seeds.

python recorded.py
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np


def main() -> None:
    rng = np.random.default_rng(20)
    for name, middle in (("d1", 0.0), ("d2", 1.0)):
        np.save(f"{name}.npy", rng.laplace(middle, 1, 4_000))
        np.save(f"{name}-vectors.npy", rng.normal(middle * 0.5, 1, (3_000, 5)))
        rows = [
            {"noisy": middle + one, "fine": one > 0} for one in rng.laplace(size=1_500).tolist()
        ]
        Path(f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    np.save("few.npy", rng.laplace(0, 1, 900))
    arms = rng.integers(1, 3, 4_000)
    losses = rng.normal(np.where(arms == 1, 0.0, 1.0))
    labels = np.where(rng.random(4_000) < 0.2 + 0.3 * (arms == 2), "high", "low")
    table = zip(arms, losses, labels, strict=True)
    lines = [f"{arm},{loss:.12g},{label}\n" for arm, loss, label in table]
    Path("runs.csv").write_text("".join(["input,loss,label\n", *lines]))
    Path("sorted.csv").write_text("".join(["input,loss,label\n", *sorted(lines)]))
    included = rng.integers(0, 2, 1_000)
    right = rng.random(1_000) < 0.8
    guessed = rng.random(1_000) < 0.2
    guesses = np.where(guessed, np.where(right, included, 1 - included).astype(str), "")
    pairs = zip(included, guesses, strict=True)
    Path("canaries.csv").write_text(
        "".join(["included,guess\n", *(f"{one},{guess}\n" for one, guess in pairs)])
    )


if __name__ == "__main__":
    main()
