"""Canaries of a training run: the coins that decide which canaries are included, and files with
their scores. `Canaries` tosses the coins before the training. `read_scores` reads the coins and the
scores from a file."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import DatasetError, Name, UsageError
from dpaudit.inputs.output_files import INCLUDED, column_of, in_or_out, plain_values, read_columns
from dpaudit.wording import shown

SCORE, CANARY, RUN = "score", "canary", "run"
# Largest number of canaries. All coins are kept in memory.
_MAX_CANARIES = 10**8
# Number of the random stream for the coins that decide which canaries are included. A seed gives
# several independent random streams.
_COINS = 1
# Index of the random stream from which the directions of the canaries' gradients are drawn.
_DIRECTIONS = 2
# Number of the random stream for the order of equal scores.
TIES = 3


@dataclass(frozen=True, slots=True)
class Canaries:
    """The coins of n canaries: which of them a training run includes.

    Parameters
    ----------
    n : int
        Number of canaries, from 1 to 10⁸.
    seed : int, optional
        Seed of the coins, at least 0. Keep it from the code that computes the scores. Default:
        drawn from the operating system.

    Raises
    ------
    UsageError
        For an impossible number or seed.

    Notes
    -----
    Equal n and seed give equal coins. `digest` identifies the coins: publish it before the run, as
    proof that the coins were tossed before the scores were seen. Every audit of
    `bound_canaries` reports the digest of its coins.

    Examples
    --------
    >>> import dpaudit
    >>> canaries = dpaudit.Canaries(1_000, seed=7)
    >>> int(canaries.included.sum()), canaries.digest[:8]
    (492, 'aa63b145')
    """

    n: int
    seed: int | None = None

    def __post_init__(self) -> None:
        if not _is_whole(self.n) or not 1 <= self.n <= _MAX_CANARIES:
            raise _refused("n", self.n, f"a whole number from 1 to {_MAX_CANARIES:,}")
        if self.seed is None:
            object.__setattr__(self, "seed", secrets.randbits(63))
        elif not _is_whole(self.seed) or self.seed < 0:
            raise _refused("seed", self.seed, "a whole number, at least 0")

    @property
    def included(self) -> NDArray[np.bool_]:
        """Whether each canary is included, as a Boolean array (n,) of independent fair coins."""
        return self._generator(_COINS).integers(0, 2, self.n, dtype=np.int8).astype(np.bool_)

    @property
    def digest(self) -> str:
        """SHA-256 of the coins, in hexadecimal."""
        return coins_digest(self.included)

    def select(self, candidates: Any) -> Any:
        """Return the candidates whose canaries the coins include, in their order.

        Parameters
        ----------
        candidates : sequence, ndarray or tensor
            One entry, or row, for each canary.

        Returns
        -------
        list, ndarray or tensor
            The included entries: a list for a list or tuple, else `candidates[included]`.

        Raises
        ------
        UsageError
            If the number of candidates is not the number of canaries, `n`.
        """
        if len(candidates) != self.n:
            why = f"{len(candidates):,} candidates for {self.n:,} canaries; give one for each"
            raise UsageError(why, code="canaries-invalid")
        if isinstance(candidates, list | tuple):
            return [
                candidate
                for candidate, is_in in zip(candidates, self.included, strict=True)
                if is_in
            ]
        return candidates[self.included]

    def gradients(self, clip: float, dim: int) -> NDArray[np.float32]:
        """Return a gradient for each canary, of random direction and the largest allowed norm.

        Parameters
        ----------
        clip : float
            Clipping norm of the training, above 0.
        dim : int
            Number of parameters of the model.

        Returns
        -------
        ndarray of float32, shape (n, dim)
            Rows of norm `clip`. Add the row of each included canary to the sum of the clipped
            gradients of a step; the score of a canary is the inner product of its row with what
            the run releases.

        Raises
        ------
        UsageError
            For a norm or a number of parameters that is not above 0.
        """
        if not isinstance(clip, Real) or not 0 < clip < np.inf:
            raise _refused("clip", clip, "a number above 0")
        if not _is_whole(dim) or dim < 1:
            raise _refused("dim", dim, "a whole number above 0")
        rows = self._generator(_DIRECTIONS).standard_normal((self.n, dim), dtype=np.float32)
        # The factor is slightly smaller than exact, so that rounding makes no row exceed the
        # clipping norm.
        rows *= np.float32(clip * (1 - 1e-6)) / np.linalg.norm(rows, axis=1, keepdims=True)
        return rows

    def save(self, file: str | Path) -> str:
        """Write the coins to a CSV file with the columns `canary` (from 0) and `included`.

        Parameters
        ----------
        file : str or Path
            The file, which is overwritten.

        Returns
        -------
        str
            `digest`.

        Raises
        ------
        DatasetError
            If the file cannot be written.
        """
        rows = "".join(f"{canary},{int(is_in)}\n" for canary, is_in in enumerate(self.included))
        try:
            Path(file).write_text(f"{CANARY},{INCLUDED}\n{rows}", encoding="utf-8")
        except OSError as error:
            why = f"cannot write {file}: {error.strerror}"
            raise DatasetError(why, code="cannot-write") from None
        return self.digest

    def _generator(self, stream: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(stream,)))


def coins_digest(included: NDArray[np.bool_]) -> str:
    """Return the SHA-256, in hexadecimal, of the coins of canaries. It is that of a text such as
    `0110`, with `1` for each included canary and `0` for each other one."""
    return hashlib.sha256((included + ord("0")).astype(np.uint8).tobytes()).hexdigest()


def read_scores(
    file: Path, names: Mapping[str, str] | None = None
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return the coins and the scores, each of shape (n,), from a file with one canary per row.

    The column `included` contains the coin, 1 or 0, and the column `score` a number. If there is a
    column `run`, all its values must be equal, so that the file is about one run. If there is a
    column `canary`, its values must differ. If they are the numbers 0 to n - 1, the canaries are
    sorted by them, so that the digest of the coins does not depend on the order of the rows.

    names: the columns of the file, by these four names, where they differ. A minus before the
        column of the score, as in `-loss`, changes the sign of all scores.

    Raises DatasetError for any other file.
    """
    table = read_columns(file)
    columns = {name: name for name in (INCLUDED, SCORE, RUN, CANARY)} | dict(names or {})
    coin, score = columns[INCLUDED], columns[SCORE]
    sign = -1.0 if score.startswith("-") and score not in table else 1.0
    score = score.removeprefix("-") if sign < 0 else score
    included = [
        in_or_out(file, coin, value, row)
        for row, value in enumerate(plain_values(column_of(file, table, coin)), start=1)
    ]
    scores = [
        sign * _score(file, score, row, value)
        for row, value in enumerate(plain_values(column_of(file, table, score)), start=1)
    ]
    for name in {RUN, CANARY} & (names or {}).keys():
        column_of(file, table, columns[name])
    if columns[RUN] in table:
        runs = list(dict.fromkeys(plain_values(table[columns[RUN]])))
        if len(runs) > 1:
            raise _invalid(
                f"{file} has {len(runs):,} runs in the column {columns[RUN]!r}; give a file for "
                "each run, since the coins of one run say nothing about the scores of another"
            )
    if columns[CANARY] in table:
        canaries = plain_values(table[columns[CANARY]])
        _check_names(file, canaries)
        if set(canaries) == set(range(len(canaries))):
            order = np.argsort(canaries)
            return np.array(included, dtype=bool)[order], np.array(scores, dtype=float)[order]
    return np.array(included, dtype=bool), np.array(scores, dtype=float)


def _score(file: Path, column: str, row: int, value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and value == value:
        return float(value)
    written = "nothing" if value in (None, "") else shown(value, 60)
    raise _invalid(
        f"{file}: the column {column!r} holds {written} in row {row:,}; give every canary a "
        "number, and a canary without a score the lowest one (leaving it out may depend on its "
        "coin)"
    )


def _check_names(file: Path, names: Sequence[Any]) -> None:
    first: dict[Any, int] = {}
    for row, name in enumerate(names, start=1):
        if first.setdefault(name, row) != row:
            name = int(name) if isinstance(name, float) and name.is_integer() else name
            raise _invalid(
                f"{file}: canary {shown(name, 60)} is in rows {first[name]:,} and {row:,}; keep "
                "one row for each canary, and the rows of one run"
            )


def _invalid(why: str) -> DatasetError:
    return DatasetError(why, code="canaries-invalid")


def _refused(name: str, value: Any, must_be: str) -> UsageError:
    return UsageError(Name(name), f"={value!r} must be {must_be}", code="option-invalid")


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
