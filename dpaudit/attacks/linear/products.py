"""Products of matrices on one core.

Products large enough for it are given to several threads by NumPy's BLAS, which then wait for each
other at the cost of seconds when the cores are busy, and round differently as their number does.
"""

from __future__ import annotations

import numpy as np

from dpaudit.levels.level_map import FloatArray

# Multiplications in one call; OpenBLAS starts threads from 2^18 on.
_SMALL = 200_000
# With fewer rows at a time, the threads cost less than adding up does.
_LEAST_ROWS = 8
# Of the first residual, and how many times the rounds that would do without rounding.
_PRECISE, _ROUNDS = 1e-8, 3


def gram(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return leftᵀ right, of two matrices with the same rows."""
    width = left.shape[1], right.shape[1]
    rows = _SMALL // (width[0] * width[1])
    if rows < _LEAST_ROWS:
        return np.asarray(left.T @ right)
    total = np.zeros(width)
    for start in range(0, len(left), rows):
        total += left[start : start + rows].T @ right[start : start + rows]
    return total


def weighted_gram(matrix: FloatArray, weights: FloatArray) -> FloatArray:
    """Return matrixᵀ · diag(weights) · matrix, weighted piece by piece to save memory."""
    width = matrix.shape[1]
    rows = max(1, _SMALL // width**2)
    if rows < _LEAST_ROWS:
        rows = len(matrix)
    total = np.zeros((width, width))
    for start in range(0, len(matrix), rows):
        piece = matrix[start : start + rows]
        total += (piece * weights[start : start + rows, None]).T @ piece
    return total


def times(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    """Return matrix · vector."""
    return np.asarray(np.einsum("ij,j->i", matrix, vector))


def summed(matrix: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the sum of the rows with these weights."""
    return np.asarray(np.einsum("ij,i->j", matrix, weights))


def solved(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    """Return x with matrix · x = vector, of a positive definite matrix; of a large one by conjugate
    gradients, with the diagonal as preconditioner (Golub & Van Loan 2013, §11.5)."""
    if len(vector) ** 3 < _SMALL:
        return np.asarray(np.linalg.solve(matrix, vector))
    diagonal = np.diag(matrix)
    found = np.zeros(len(vector))
    rest = vector.astype(np.float64)
    step = eased = rest / diagonal
    size = float(np.sum(rest * eased))
    wanted = _PRECISE**2 * size
    for _ in range(_ROUNDS * len(vector)):
        if size <= wanted:
            break
        image = times(matrix, step)
        length = size / float(np.sum(step * image))
        found += length * step
        rest -= length * image
        eased = rest / diagonal
        before, size = size, float(np.sum(rest * eased))
        step = eased + size / before * step
    return found
