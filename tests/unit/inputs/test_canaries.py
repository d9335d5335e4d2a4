"""Coins of canaries, and files with their scores."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit.inputs.canaries import Canaries, read_scores
from tests.raising import code


def test_equal_seeds_give_equal_coins() -> None:
    first, second, other = Canaries(1_000, 1), Canaries(1_000, 1), Canaries(1_000, 2)
    assert (first.included == second.included).all()
    assert first.digest == second.digest != other.digest
    text = "".join("1" if is_in else "0" for is_in in first.included)
    assert first.digest == hashlib.sha256(text.encode()).hexdigest()


def test_without_a_seed_the_coins_are_new() -> None:
    first, second = Canaries(200), Canaries(200)
    assert (first.included != second.included).any()
    assert (first.included == Canaries(200, first.seed).included).all()


def test_coins_are_fair() -> None:
    counts = [int(Canaries(1_000, seed).included.sum()) for seed in range(400)]
    assert np.mean(counts) == pytest.approx(500, abs=5 * np.sqrt(250 / 400))
    assert np.var(counts) == pytest.approx(250, rel=0.4)


def test_select_keeps_the_included() -> None:
    canaries = Canaries(5, 0)
    wanted = np.flatnonzero(canaries.included)
    assert canaries.select(list(range(5))) == wanted.tolist()
    assert (canaries.select(np.eye(5)) == np.eye(5)[wanted]).all()
    assert code(canaries.select, [1, 2]) == "canaries-invalid"


def test_gradients_have_the_clipping_norm_and_random_directions() -> None:
    rows = Canaries(300, 1).gradients(clip=0.5, dim=50)
    assert rows.shape == (300, 50)
    norms = np.linalg.norm(rows.astype(float), axis=1)
    assert norms == pytest.approx(0.5, rel=1e-5)
    assert norms.max() <= 0.5
    cosines = rows @ rows.T / 0.25
    assert abs(cosines[np.triu_indices(300, 1)]).max() < 0.8


@pytest.mark.parametrize(
    ("n", "seed"), [(0, 1), (1.5, 1), (True, 1), (10**9, 1), (5, -1), (5, "a")]
)
def test_impossible_coins_are_refused(n: Any, seed: Any) -> None:
    assert code(Canaries, n, seed) == "option-invalid"


@pytest.mark.parametrize(("clip", "dim"), [(0, 5), (1.0, 0), (1.0, 2.5), (float("nan"), 5)])
def test_impossible_gradients_are_refused(clip: Any, dim: Any) -> None:
    assert code(Canaries(5, 0).gradients, clip, dim) == "option-invalid"


def test_saved_coins_are_read_again(tmp_path: Path) -> None:
    file = tmp_path / "run.csv"
    canaries = Canaries(50, 3)
    assert canaries.save(file) == canaries.digest
    lines = file.read_text().split()
    scored = [f"{lines[0]},score", *(f"{line},{place}.5" for place, line in enumerate(lines[1:]))]
    for rows in (scored[1:], scored[:0:-1]):  # the order of the rows does not count
        file.write_text("\n".join([scored[0], *rows]))
        included, scores = read_scores(file)
        assert (included == canaries.included).all()
        assert scores.tolist() == [place + 0.5 for place in range(50)]
    assert code(canaries.save, tmp_path / "missing" / "run.csv") == "cannot-write"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("included,score\n1,0.5\n2,0.1\n", "recording-invalid"),
        ("included,score\n1,\n0,0.1\n", "canaries-invalid"),
        ("included\n1\n0\n", "column-unknown"),
        ("included;score\n1;0,5\n0;0,1\n", "file-malformed"),
        ("included,score\n", "file-empty"),
        ("canary,included,score\n7,1,2\n7,0,1\n", "canaries-invalid"),
        ("included,score\n1,2\nincluded,score\n0,1\n", "recording-invalid"),
    ],
)
def test_files_of_no_run_are_refused(tmp_path: Path, text: str, wanted: str) -> None:
    file = tmp_path / "run.csv"
    file.write_text(text)
    assert code(read_scores, file) == wanted


def test_columns_and_coins_have_the_words_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "run.csv"
    file.write_text("id,member,loss\n1, Yes,0.5\n0,FALSE,2\n", "utf-8")
    names = {"included": "member", "score": "-loss", "canary": "id"}
    included, scores = read_scores(file, names)
    assert included.tolist() == [False, True]
    assert scores.tolist() == [-2.0, -0.5]
    for missing in ({**names, "run": "runs"}, {"score": "loss"}):
        assert code(read_scores, file, missing) == "column-unknown"
