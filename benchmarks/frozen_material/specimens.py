"""What the frozen audits draw from, beside the specimens: outputs of every shape, and every fault.

A copy goes into the folder that is kept, so that journals meet the very file they were begun with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def noisy_count(rows: list[Any], rng: np.random.Generator) -> float:
    return len(rows) + float(rng.laplace(scale=1.0))


def named_otherwise(prng: np.random.Generator, queries: list[float], many: int) -> FloatArray:
    noisy: FloatArray = sum(queries) + prng.laplace(size=many)
    return noisy


def gaussian(dataset: float, size: int, rng: np.random.Generator, sigma: float = 1.0) -> FloatArray:
    return rng.normal(dataset, sigma, size)


def vector(dataset: float, size: int, rng: np.random.Generator, width: int = 4) -> FloatArray:
    """Add noise that the places share in part."""
    noise = rng.normal(size=(size, width)) + rng.normal(size=(size, 1))
    noisy: FloatArray = noise + dataset * np.linspace(0, 1, width)
    return noisy


def long_vector(dataset: float, size: int, rng: np.random.Generator) -> FloatArray:
    """Add normal noise to more places than logistic regression takes."""
    return rng.normal(dataset * 3 / math.sqrt(520), 1, (size, 520))


def prefix_sums(dataset: int, size: int, rng: np.random.Generator) -> FloatArray:
    answers = rng.laplace(size=(size, 6))
    answers[:, 3] += dataset
    return np.cumsum(answers, axis=1)


def signs(dataset: int, size: int, rng: np.random.Generator) -> FloatArray:
    """Answer by whether the signs of two numbers agree: neither says anything by itself."""
    numbers = rng.normal(size=(size, 2))
    agree = (rng.random(size) < 1 / (1 + math.exp(-1.5))) == bool(dataset)
    numbers[:, 1] = np.abs(numbers[:, 1]) * np.sign(numbers[:, 0]) * np.where(agree, 1, -1)
    return numbers


def place(distance: float, size: int, rng: np.random.Generator) -> FloatArray:
    """Return a place at a noisy distance, in any direction."""
    angle = rng.uniform(0, 2 * np.pi, size)
    away = 30 + distance + rng.laplace(size=size)
    found: FloatArray = away[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return found


def noisy_table(rows: NDArray[Any], size: int, rng: np.random.Generator) -> FloatArray:
    """Return matrices: the dataset comes as an array."""
    return np.asarray(rows, dtype=float) + rng.laplace(size=(size, *np.shape(rows)))


def frame_mean(frame: Any, rng: np.random.Generator) -> float:
    return float(frame["age"].mean()) + float(rng.laplace())


def record(dataset: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return a mapping, nested, some of whose keys are not always there."""
    found: dict[str, Any] = {"noisy": dataset + float(rng.laplace()), "tags": {"a", "b"}}
    if rng.random() < 0.3 + 0.2 * dataset:
        flipped = dataset ^ int(rng.random() < 0.3)
        found["who"] = {"name": str(rng.choice(["Ann", "Bob"])), "raw": bytes([flipped])}
    return found


def ragged(dataset: int, rng: np.random.Generator) -> list[Any]:
    """Return lists of several lengths, of lists, with words among the numbers."""
    words = ["few", "many"]
    return [[float(rng.normal())] * int(rng.poisson(2 + dataset)), str(rng.choice(words))]


def mixed(dataset: int, rng: np.random.Generator) -> Any:
    """Return another kind of value every time."""
    kinds = [None, math.nan, math.inf, -math.inf, True, 7, "text", b"raw", (1, 2), 2.5 + dataset]
    return kinds[int(rng.integers(len(kinds)))]


def die(dataset: int, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return 0, …, 3, and more often a number near the dataset."""
    chances = [[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]][dataset]
    return rng.choice(4, size=size, p=chances)


def failing_die(dataset: int, rng: np.random.Generator) -> int:
    """Return 0 or 1, or raise, which is then an output like any other."""
    face = int(rng.integers(6))
    if face == 5:
        raise KeyError("no such face")
    if face == 4 and dataset:
        raise ZeroDivisionError
    return face % 2


def stated(dataset: int, rng: np.random.Generator) -> str:
    return "yes" if rng.random() < _yes(dataset) else "no"


def _yes(dataset: int) -> float:
    return 0.7 if dataset else 0.4


def _law(dataset: int) -> Mapping[str, float]:
    return {"yes": _yes(dataset), "no": 1 - _yes(dataset)}


stated.pmf = _law  # type: ignore[attr-defined]


def raising(dataset: float, rng: np.random.Generator) -> float:
    """Raise, in two ways, more often for one of the inputs."""
    luck = rng.random()
    if luck < 0.02 + 0.03 * dataset:
        raise ValueError(f"no answer for {dataset}")
    if luck > 0.99:
        return float([][0])
    return dataset + float(rng.laplace())


def always_raising(dataset: float) -> float:
    raise RuntimeError("never an answer")


def talkative(dataset: float, size: int, rng: np.random.Generator) -> FloatArray:
    print("drawing")
    return dataset + rng.laplace(size=size)


def old_generators(dataset: float) -> float:
    """Draw from the generators that modules share."""
    import random

    return dataset + float(np.random.laplace()) + random.random()


def constant(dataset: float) -> int:
    return 3


class Counter:
    """Made once, called often."""

    def __init__(self, scale: float, *, offset: float = 0.0) -> None:
        self.scale, self.offset = scale, offset

    def release(self, dataset: float, rng: np.random.Generator) -> float:
        return dataset + self.offset + float(rng.laplace(scale=self.scale))


def factory(scale: float) -> Callable[..., FloatArray]:
    def draw(dataset: float, size: int, rng: np.random.Generator) -> FloatArray:
        return dataset + rng.laplace(scale=scale, size=size)

    return draw


def rounded(output: float) -> float:
    return round(output, 1)


def tradeoff(alpha: float) -> float:
    """Return the trade-off function of μ = 1.1 (Dong, Roth & Su 2022)."""
    from scipy.special import ndtr, ndtri

    return float(ndtr(ndtri(1 - alpha) - 1.1))


def guess(output: float) -> int | None:
    """Guess the input, as the adversary of a computational claim does."""
    if -0.5 < output < 1.5:
        return None
    return 1 if output < 0.5 else 2


def size_of(output: FloatArray) -> float:
    return float(np.hypot(output[0], output[1]))


class Distance:
    """The distance from the point that all draws lie around."""

    def fit(self, selection: Any) -> Callable[[Any], FloatArray]:
        x, y = selection.outcomes.columns
        return Score(np.mean(x.numbers), np.mean(y.numbers))


class Score:
    words = "the distance from the middle of all draws"

    def __init__(self, x: Any, y: Any) -> None:
        self.middle = x, y

    def __call__(self, outcomes: Any) -> FloatArray:
        x, y = outcomes.named(["output[0]", "output[1]"])
        found: FloatArray = np.hypot(x.numbers - self.middle[0], y.numbers - self.middle[1])
        return np.where(found > 60, np.nan, found)


def fit(selection: Any) -> Callable[[Any], FloatArray]:
    """Look at the first number alone."""
    return first_number


def first_number(outcomes: Any) -> FloatArray:
    found: FloatArray = outcomes.columns[0].numbers
    return found


def failing_fit(selection: Any) -> Callable[[Any], FloatArray]:
    raise ValueError("nothing can be learned from this")
