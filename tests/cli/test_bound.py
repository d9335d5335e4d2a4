"""`dpaudit bound`, with real audits of small files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.result_files import from_json


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    rng = np.random.default_rng(0)
    paths = [tmp_path / name for name in ("d1.npy", "d2.npy")]
    for shift, path in enumerate(paths):
        np.save(path, shift + rng.laplace(size=1_500))
    return list(map(str, paths))


@pytest.mark.parametrize(
    ("flags", "code", "verdict"),
    [
        (["--epsilon", "0.4"], 1, "VIOLATION"),
        (["--epsilon", "1"], 0, "NO VIOLATION FOUND"),
        (["--epsilon", "0.4", "--expect", "violation"], 0, "VIOLATION"),
        (["--mu", "0.3"], 1, "VIOLATION"),
        (["--epsilon", "0.4", "--scores", "--confidence", "0.9", "--seed", "3"], 1, "VIOLATION"),
        (["--epsilon", "0.2", "--bound", "clopper-pearson"], 1, "VIOLATION"),
    ],
)
def test_exit_codes(
    dpaudit: Any, files: list[str], flags: list[str], code: int, verdict: str
) -> None:
    result = dpaudit("bound", *files, *flags, "-q")
    assert result.exit_code == code, result.output
    assert result.stdout.startswith(f"{verdict}  {files[0]}, {files[1]}: ")


def test_the_report_shows_it_again(dpaudit: Any, files: list[str], tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    first = dpaudit("bound", *files, "--epsilon", "0.4", "--json", file, "-v")
    again = dpaudit("report", file, "-v")
    assert again.exit_code == 0, again.output
    assert again.stdout.startswith(first.stdout)


def test_one_file_with_an_arm(dpaudit: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    arms = rng.integers(1, 3, 2_000)
    rows = "".join(
        f"{arm},{arm + noise}\n" for arm, noise in zip(arms, rng.laplace(size=2_000), strict=True)
    )
    file = tmp_path / "draws.csv"
    file.write_text(f"input,x\n{rows}")
    result = dpaudit("bound", file, "--arm", "input", "--epsilon", "0.4")
    assert result.exit_code == 1, result.output
    assert "warning" not in result.stdout
    assert "2,000" not in result.stderr


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["1000", "100", "95", "--epsilon", "1"], 1),
        (["1_000", "100", "75", "--epsilon", "1", "--delta", "1e-4"], 0),
    ],
)
def test_guesses(dpaudit: Any, tmp_path: Path, words: list[str], code: int) -> None:
    file = tmp_path / "result.json"
    result = dpaudit("bound", "--guesses", *words, "--json", file)
    assert result.exit_code == code, result.output
    assert dpaudit("report", file, "-q").exit_code == 0


@pytest.mark.parametrize(
    ("blank", "delta", "warnings"),
    [("1,\n" * 20, 1e-4, 1), ("1,\n" * 20, 0, 0), ("", 1e-4, 0)],
)
def test_blank_guesses_are_a_warning_where_delta_is_positive(
    dpaudit: Any, tmp_path: Path, blank: str, delta: float, warnings: int
) -> None:
    file, kept = tmp_path / "guesses.csv", tmp_path / "result.json"
    file.write_text("included,guess\n" + "1,1\n0,0\n" * 50 + blank)
    claim = ("--epsilon", "1", *(("--delta", str(delta)) if delta else ()))
    result = dpaudit("bound", "--guesses", file, *claim, "--json", kept)
    assert result.stdout.count("warning") == warnings
    (recorded,) = from_json(kept.read_text("utf-8"))
    assert len(recorded.by_pair[0].warnings) == warnings
    assert dpaudit("report", kept, "-q").exit_code == 0


# A command, the code that it is refused with (None where click refuses it), what the message names.
REFUSED: list[tuple[str, str | None, str]] = [
    ("{d1} {d2}", "option-missing", "--epsilon"),
    ("{d1} --epsilon 1", "arguments-wrong", "d1"),
    ("{d1} --arm x --epsilon 1", "recording-invalid", "d1.npy"),
    ("{d1} {d1} --epsilon 1", "file-twice", "d1.npy"),
    ("{d1} {twin} --epsilon 1", "file-twice", "twin.npy"),
    ("{d1} {d2} --epsilon 1 --json nowhere/x.json", "cannot-write", "nowhere/x.json"),
    ("--guesses 10 20 5 --epsilon 1", "guesses-invalid", "20"),
    ("--guesses 10 5 --epsilon 1", "arguments-wrong", "--guesses"),
    ("--guesses 1000 100 -75 --epsilon 1", None, "-75"),
    ("--guesses 10 5 2 --arm x --epsilon 1", "options-conflict", "--arm"),
]


def test_one_message_with_the_remedy(refused: Any, files: list[str]) -> None:
    twin = Path(files[0]).with_name("twin.npy")
    twin.symlink_to(files[0])
    names = {"d1": files[0], "d2": files[1], "twin": twin}
    for words, code, named in REFUSED:
        found, line = refused("bound", *words.format(**names).split())
        assert found == code, words
        assert named in line


def test_a_copy_of_the_first_file_is_no_second_sample(dpaudit: Any, files: list[str]) -> None:
    draws = np.load(files[0])
    copy, texts = Path(files[1]), [Path(one).with_suffix(".csv") for one in files]
    copy.write_bytes(Path(files[0]).read_bytes())
    for text, form in zip(texts, ("{!r}", " {:.20e}"), strict=True):
        text.write_text("\n".join(["output", *map(form.format, draws.tolist())]))
    for d1, d2 in ((files[0], copy), texts):
        result = dpaudit("bound", d1, d2, "--epsilon", "1")
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"identical (d1 = {d1}, d2 = {d2})" in result.stderr
        assert result.stderr.count("\n") == 1


def test_equal_samples_of_one_value_and_of_another_order_are_samples(
    dpaudit: Any, tmp_path: Path
) -> None:
    d1, d2 = tmp_path / "d1.npy", tmp_path / "d2.npy"
    np.save(d1, np.zeros(1_000))
    np.save(d2, np.zeros(1_000))
    assert dpaudit("bound", d1, d2, "--epsilon", "1").exit_code == 0
    bits = np.random.default_rng(0).integers(2, size=1_000)
    np.save(d1, bits)
    np.save(d2, bits[::-1])
    assert dpaudit("bound", d1, d2, "--epsilon", "1").exit_code == 0


@pytest.fixture
def series(tmp_path: Path) -> list[str]:
    """Two stretches of one law, every value close to the one before it."""
    rng = np.random.default_rng(0)
    paths = [tmp_path / name for name in ("d1.npy", "d2.npy")]
    for path in paths:
        np.save(path, rng.normal(size=2_000).cumsum())
    return list(map(str, paths))


def test_rows_that_hang_together_are_no_verdict(
    dpaudit: Any, series: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "result.json"
    result = dpaudit("bound", *series, "--epsilon", "0.4", "--json", file)
    assert result.exit_code == 3, result.output
    assert result.stdout.split()[0] == "ERROR"
    (audit,) = json.loads(file.read_text())["audits"]
    assert (audit["verdict"], audit["ending"]["certificates"]) == ("ERROR", [])
    assert audit["ending"]["code"] == "draws-differ"


def test_columns_name_those_of_the_file(dpaudit: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    coins = rng.integers(2, size=2_000)
    losses = rng.normal(size=2_000) - 2 * coins
    file = tmp_path / "run.csv"
    rows = [f"{bool(coin)},{loss}" for coin, loss in zip(coins, losses, strict=True)]
    file.write_text("\n".join(["member,loss", *rows, ""]))
    words = ("bound", "--canaries", file, "--mu", "0.5")
    assert dpaudit(*words, "--columns", "included=member,score=-loss").exit_code == 1
    assert dpaudit(*words, "--columns", "included=member,score=loss").exit_code == 0
    assert dpaudit(*words).code == "column-unknown"
    for value in ("member", "included=", "score=-", "included=member,included=loss"):
        assert dpaudit(*words, "--columns", value).exit_code == 2
    for value in ("coin=member", "included=member,score=loss,guess=loss"):
        assert dpaudit(*words, "--columns", value).code == "options-conflict"
    guesses = ("bound", "--guesses", "1000", "100", "75", "--epsilon", "1")
    assert dpaudit(*guesses, "--columns", "guess=g").code == "options-conflict"
