"""`dpaudit canaries make`, and `dpaudit bound --canaries`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit.certificates.canary_certificate import OneRunCertificate
from dpaudit.inputs.canaries import Canaries
from tests.result_files import from_json


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A file with the scores of 1,000 canaries that leak."""
    coins = Canaries(1_000, 3).included
    scores = 1.5 * coins + np.random.default_rng(1).normal(size=1_000)
    rows = "".join(f"{int(one)},{score}\n" for one, score in zip(coins, scores, strict=True))
    file = tmp_path / "run.csv"
    file.write_text(f"included,score\n{rows}")
    return file


def test_make_writes_coins_and_their_digest(dpaudit: Any, tmp_path: Path) -> None:
    file = tmp_path / "coins.csv"
    made = dpaudit("canaries", "make", file, "-n", "200", "--seed", "5")
    assert made.exit_code == 0, made.output
    assert Canaries(200, 5).digest in made.stdout
    assert file.read_text().count("\n") == 201
    assert dpaudit("canaries", "make", file, "-n", "200").code == "file-exists"
    assert dpaudit("canaries", "make", file, "-n", "200", "--force").exit_code == 0
    assert dpaudit("canaries", "make", file, "-n", "0", "--force").code == "option-invalid"


@pytest.mark.parametrize(
    ("words", "exit_code", "method"),
    [
        (["--mu", "0.3"], 1, "tradeoff"),
        (["--mu", "0.3", "--guess-count", "200"], 1, "tradeoff"),
        (["--mu", "0.3", "--guess-count", "50", "--sides", "in", "--seed", "2"], 1, "tradeoff"),
        (["--epsilon", "0.5", "--delta", "1e-5"], 1, "point"),
        (["--mu", "0.3", "--independent-canaries"], 1, "independent"),
        (["--mu", "1.2"], 0, "tradeoff"),
    ],
)
def test_scores_are_audited_and_rechecked(
    dpaudit: Any, run: Path, tmp_path: Path, words: list[str], exit_code: int, method: str
) -> None:
    kept = tmp_path / "result.json"
    result = dpaudit("bound", "--canaries", run, *words, "--json", kept)
    assert result.exit_code == exit_code, result.output
    (read,) = from_json(kept.read_text("utf-8"))
    (one,) = read.by_pair
    assert isinstance(one, OneRunCertificate)
    assert one.leading.method == method
    assert Canaries(1_000, 3).digest in result.stdout
    assert ("independent" in result.stdout.split("\n\n")[0]) == (method == "independent")
    assert dpaudit("report", kept, "-q").exit_code == 0


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("--canaries {run} --mu 1 --guess-count 0", "canaries-invalid"),
        ("--canaries {run} --mu 1 --guess-count 1001", "canaries-invalid"),
        ("--canaries {run} --mu 1 --guess-count auto", "option-invalid"),
        ("--canaries {run} --mu 1 --sides in", "options-conflict"),
        ("--canaries {run} --mu 1 --arm included", "options-conflict"),
        ("--canaries {run} --mu 1 --guesses", "options-conflict"),
        ("--canaries {run} {run} --mu 1", "arguments-wrong"),
        ("--canaries missing.csv --mu 1", "file-not-found"),
        ("--guesses {run} --mu 1 --guess-count 5", "options-conflict"),
        ("--guesses 10 5 3 --mu 1 --independent-canaries", "options-conflict"),
        ("--canaries {run} --epsilon 1 --delta 0.1 --definition probabilistic",
         "guesses-cannot-test-claim"),
        ("--canaries {run} --mu 1 --sides in --independent-canaries --sides both", None),
    ],
)  # fmt: skip
def test_what_cannot_be_audited_is_refused(
    dpaudit: Any, run: Path, words: str, code: str | None
) -> None:
    result = dpaudit("bound", *words.format(run=run).split())
    assert (result.exit_code, result.code) == (2, code)
