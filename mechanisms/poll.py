"""A poll by randomized response, asked once or several times, and what it tells about everybody.

Everyone answers the truth with probability p, else by a fair coin. The estimator of the share of
Yes, its variance and its asymptotic interval are those of Lalanne 2020 (Introduction to
Differential Privacy, lesson 1, §2.3), whose equations 15 and 16 print Φ where Φ⁻¹ is meant.

`python -m mechanisms.poll` prints how far off the estimate is, by ε and by the number of answers;
with `--figure FILE` it draws it (figure 2 there).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import product
from pathlib import Path
from statistics import NormalDist
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from mechanisms.randomized_response import randomized_response
from mechanisms.truth import satisfies, truth_of

EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0, math.inf)
SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
SHARE, ALPHA = 0.5, 0.05


def _pmf(dataset: Sequence[int], p: float) -> dict[tuple[int, ...], float]:
    laws = [truth_of(randomized_response).pmf(person, p=p) for person in dataset]
    return {
        answers: math.prod(law[answer] for law, answer in zip(laws, answers, strict=True))
        for answers in product((0, 1), repeat=len(laws))
    }


def _epsilon(d1: Sequence[int], d2: Sequence[int], p: float) -> float:
    """Return the sum over everyone whose true answer differs (composition, group privacy)."""
    epsilon = truth_of(randomized_response).epsilon
    return math.fsum(epsilon(one, other, p=p) for one, other in zip(d1, d2, strict=True))


@satisfies("pure", epsilon=_epsilon, pmf=_pmf)
def poll(
    dataset: Sequence[int], p: float = 0.5, *, size: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Correct: everyone's answer, 0 or 1; ln(1 + 2p/(1 - p))-DP when one true answer changes.

    Outputs have a column for each person. Adjacency: replace.
    """
    answers = [randomized_response(person, p, size=size, rng=rng) for person in dataset]
    return np.stack(answers, axis=1)


def _repeated_pmf(dataset: int, p: float, runs: int) -> dict[tuple[int, ...], float]:
    return _pmf([dataset] * runs, p)


def _repeated_epsilon(d1: int, d2: int, p: float, runs: int) -> float:
    return _epsilon([d1] * runs, [d2] * runs, p)


@satisfies("pure", epsilon=_repeated_epsilon, pmf=_repeated_pmf)
def repeated_poll(
    dataset: int, p: float = 0.5, runs: int = 3, *, size: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Correct: `runs` answers of one person; exactly runs · ln(1 + 2p/(1 - p))-DP.

    Broken when it is claimed to cost what one answer does. Adjacency: replace, the dataset is one
    answer.
    """
    return poll([dataset] * runs, p, size=size, rng=rng)


@dataclass(frozen=True, slots=True)
class Estimator:
    """What the answers tell about the share μ of people whose true answer is Yes.

    p: how often the truth is told, in (0, 1]; 1 is a poll without privacy. Raises ValueError
    otherwise.
    """

    p: float

    def __post_init__(self) -> None:
        if not 0 < self.p <= 1:
            raise ValueError(f"p={self.p!r} must lie in (0, 1]")

    @classmethod
    def at_epsilon(cls, epsilon: float) -> Estimator:
        """Return the estimator of the poll that is exactly ε-DP; inf: without privacy.

        ε = ln(1 + 2p/(1 - p)) = ln((1 + p)/(1 - p)) (eq. 7), so that p = tanh(ε/2).
        """
        return cls(math.tanh(epsilon / 2))

    def estimate(self, yes: int, answers: int) -> float:
        """Return the unbiased estimate of μ from `yes` of `answers` (eq. 10).

        It may lie outside of [0, 1].

        >>> round(Estimator(0.5).estimate(4_000, 10_000), 12)
        0.3
        """
        return (yes / answers - (1 - self.p) / 2) / self.p

    def variance(self, share: float) -> float:
        """Return v(p, μ), the variance of √n (estimate - μ) (eq. 14).

        The text writes out q(1 - q)/p², where q = pμ + (1 - p)/2 is the probability of a Yes.
        """
        q = self.p * share + (1 - self.p) / 2
        return q * (1 - q) / self.p**2

    def half_width(self, share: float, answers: int, alpha: float = ALPHA) -> float:
        """Return Φ⁻¹(1 - α/2) √(v(p, μ)/n): half the asymptotic interval (eq. 15; 16 for p = 1)."""
        quantile = NormalDist().inv_cdf(1 - alpha / 2)
        return quantile * math.sqrt(self.variance(share) / answers)

    def interval(self, yes: int, answers: int, alpha: float = ALPHA) -> tuple[float, float]:
        """Return the interval that holds μ with a probability that tends to 1 - α.

        μ in the variance is replaced by its estimate, moved into [0, 1].
        """
        middle = self.estimate(yes, answers)
        margin = self.half_width(min(1.0, max(0.0, middle)), answers, alpha)
        return middle - margin, middle + margin


def _label(epsilon: float) -> str:
    return "no privacy" if epsilon == math.inf else f"ε = {epsilon:g}"


def _table() -> str:
    """Return the half-widths, a row for each number of answers."""
    head = "".join(f"{_label(epsilon):>12}" for epsilon in EPSILONS)
    lines = [f"{'answers':>9}{head}"]
    for answers in SIZES:
        widths = [Estimator.at_epsilon(one).half_width(SHARE, answers) for one in EPSILONS]
        lines.append(f"{answers:>9,}{''.join(f'{width:>12.3g}' for width in widths)}")
    title = f"Half-width of the {1 - ALPHA:.0%} interval of the share of Yes, at a share of {SHARE}"
    return "\n".join([title, *lines])


def _draw(file: Path) -> None:
    """Draw the half-widths against the number of answers, a line for each ε."""
    figure = _matplotlib().Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot()
    answers = np.geomspace(SIZES[0], SIZES[-1], 100)
    for epsilon in EPSILONS:
        estimator = Estimator.at_epsilon(epsilon)
        widths = [estimator.half_width(SHARE, n) for n in answers]
        axes.loglog(answers, widths, label=_label(epsilon))
    axes.set_xlabel("answers")
    axes.set_ylabel(f"half-width of the {1 - ALPHA:.0%} interval")
    axes.grid(which="both", alpha=0.3)
    axes.legend()
    # A figure made without pyplot is drawn by Agg, or by the SVG writer; no display is needed.
    figure.savefig(file, dpi=150)


def _matplotlib() -> Any:
    try:
        return import_module("matplotlib.figure")
    except ImportError:
        raise click.ClickException(
            "--figure needs matplotlib, which is not installed: pip install matplotlib"
        ) from None


def _figure_file(
    _context: click.Context, _parameter: click.Parameter, value: Path | None
) -> Path | None:
    if value is not None and value.suffix.lower() not in (".png", ".svg"):
        raise click.BadParameter(f"{str(value)!r} must end in .png or .svg")
    return value


@click.command(help="Print how far off the poll's estimate is, by ε and number of answers.")
@click.option(
    "--figure",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=_figure_file,
    help="Draw it instead, into a .png or .svg file.",
)
def main(figure: Path | None) -> None:
    """Print the table, or draw the figure."""
    if figure is None:
        click.echo(_table())
        return
    try:
        _draw(figure)
    except OSError as error:
        raise click.ClickException(f"{figure} cannot be written: {error.strerror}") from None


if __name__ == "__main__":
    main()
