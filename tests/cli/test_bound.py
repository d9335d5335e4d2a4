"""`dpaudit bound`, with real audits of small files."""

from __future__ import annotations

import json
import re
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
        (["--epsilon", "1", "--delta", "1e-5"], 0, "NO VIOLATION FOUND"),
        (["--mu", "0.3"], 1, "VIOLATION"),
        (["--sigma", "1"], 0, "NO VIOLATION FOUND"),
        (["--rho", "0.5", "--delta", "0.01"], 0, "NO VIOLATION FOUND"),
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


def test_a_divergence_that_no_event_shows_in_eighty_columns(dpaudit: Any, tmp_path: Path) -> None:
    rng, file = np.random.default_rng(1), tmp_path / "result.json"
    paths = [tmp_path / name for name in ("d1.npy", "d2.npy")]
    for shift, path in enumerate(paths):
        np.save(path, shift + rng.normal(size=40_000))
    words = ("bound", *paths, "--order", "2", "--epsilon", "0.75")
    brief, verbose = dpaudit(*words), dpaudit(*words, "-v", "--json", file)
    assert (brief.exit_code, verbose.exit_code) == (1, 1), brief.output
    headline = re.compile(r"D_2\([PQ] ‖ [PQ]\) is at least 0\.[89]\d*; the claim allows 0\.75")
    row = re.compile(r"  divergence  D_2\([PQ] ‖ [PQ]\) ≥ 0\.[89]\d+ \(allowed: 0\.75\), p = ")
    for text in (brief.stdout, verbose.stdout):
        assert headline.search(" ".join(text.split())), text
        assert len(row.findall(text)) == 1, text
        lines = [one for one in text.splitlines() if str(tmp_path) not in one]
        assert max(map(len, lines)) <= 80
    assert "event E" not in brief.stdout
    assert "event E" in verbose.stdout
    assert "each for the " not in verbose.stdout  # no bets
    again = dpaudit("report", file, "-v")
    assert again.exit_code == 0, again.output
    assert again.stdout.startswith(verbose.stdout)


def test_what_was_not_looked_at_is_said(dpaudit: Any, files: list[str], tmp_path: Path) -> None:
    said = " ".join(dpaudit("bound", *files, "--epsilon", "1").stdout.split())
    assert "(dpaudit run --floating-point)" in said
    assert "(dpaudit run --timing)" in said
    whole = [tmp_path / name for name in ("n1.npy", "n2.npy")]
    for path in whole:
        np.save(path, np.random.default_rng(len(path.name)).integers(0, 9, 1_500))
    assert "--timing" not in dpaudit("bound", *whole, "--epsilon", "1", "-v").stdout


def test_json_to_standard_output(dpaudit: Any, files: list[str]) -> None:
    result = dpaudit("bound", *files, "--epsilon", "0.4", "--json", "-")
    assert json.loads(result.stdout)["audits"][0]["verdict"] == "VIOLATION"
    assert result.stderr.startswith("VIOLATION")


def test_constant_recordings_are_warned_about(dpaudit: Any, tmp_path: Path) -> None:
    paths = [tmp_path / "a.npy", tmp_path / "b.npy"]
    for path, size in zip(paths, (1_500, 1_400), strict=True):
        np.save(path, np.full(size, 7.0))
    result = dpaudit("bound", *paths, "--epsilon", "1", "-q")
    assert result.exit_code == 0
    assert "all 2,900 draws are 7, " in result.stdout


def test_a_folder_is_called_one(dpaudit: Any, files: list[str], tmp_path: Path) -> None:
    result = dpaudit("bound", tmp_path, files[0], "--epsilon", "1")
    assert result.exit_code == 2
    assert result.code == "file-unreadable"


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
        (["1,000", "100", "75", "--epsilon", "1", "--expect", "violation"], 1),
    ],
)
def test_guesses(dpaudit: Any, tmp_path: Path, words: list[str], code: int) -> None:
    file = tmp_path / "result.json"
    result = dpaudit("bound", "--guesses", *words, "--json", file)
    assert result.exit_code == code, result.output
    assert dpaudit("report", file, "-q").exit_code == 0


def test_guesses_in_a_file(dpaudit: Any, tmp_path: Path) -> None:
    file = tmp_path / "guesses.csv"
    file.write_text("included,guess\n" + "1,1\n0,0\n" * 50 + "1,\n" * 20)
    result = dpaudit("bound", "--guesses", file, "--epsilon", "1")
    assert result.exit_code == 1
    assert "100 about 120 canaries, 100 right" in result.stdout


CONDITION = "number of guesses was fixed"


@pytest.mark.parametrize("verbose", [(), ("-v",)])
@pytest.mark.parametrize(
    ("claim", "is_fixed"),
    [(("--epsilon", "1"), False), (("--epsilon", "1", "--delta", "1e-4"), True),
     (("--mu", "1"), True)],
)  # fmt: skip
def test_the_number_of_guesses_is_a_condition_where_delta_is_positive(
    dpaudit: Any, claim: tuple[str, ...], verbose: tuple[str, ...], is_fixed: bool
) -> None:
    result = dpaudit("bound", "--guesses", "1000", "100", "75", *claim, *verbose)
    assert (CONDITION in " ".join(result.stdout.split())) == is_fixed


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
    ("{d1} {d2} --definition gaussian", "option-missing", "--mu"),
    ("{d1} --epsilon 1", "arguments-wrong", "d1"),
    ("{d1} {d2} {d1} --epsilon 1", "arguments-wrong", "not 3"),
    ("{d1} {d2} --arm x --epsilon 1", "option-invalid", "--arm x"),
    ("{d1} --arm x --epsilon 1", "recording-invalid", "d1.npy"),
    ("{d1} nowhere.npy --epsilon 1", "file-not-found", "'nowhere.npy'"),
    ("{d1} {d1} --epsilon 1", "file-twice", "d1.npy"),
    ("{d1} {twin} --epsilon 1", "file-twice", "twin.npy"),
    ("{d1} {text} --epsilon 1", "file-malformed", "text.npy"),
    ("{d1} {d2} --epsilon 1 --confidence 2", "option-invalid", "confidence=2.0"),
    ("{d1} {d2} --epsilon 1 --json nowhere/x.json", "cannot-write", "nowhere/x.json"),
    ("--guesses 10 20 5 --epsilon 1", "guesses-invalid", "20"),
    ("--guesses 10 5 --epsilon 1", "arguments-wrong", "--guesses"),
    ("--guesses ten 5 2 --epsilon 1", "arguments-wrong", "ten"),
    ("--guesses 10 5 -2 --epsilon 1", None, "-2"),
    ("--guesses 1000 100 -75 --epsilon 1", None, "-75"),
    ("--guesses 1000 100 75 --epsilom 1", None, "'--epsilon'"),
    ("{d1} {d2} --epsilon 1 -q -v", "options-conflict", "-q"),
    ("--guesses 10 5 2 --arm x --epsilon 1", "options-conflict", "--arm"),
]
# The same of claims and of counts.
NAMED = [
    ("{d1} {d2} --epsilon -1", "epsilon=-1"),
    ("--guesses 20000000 20000000 9 --epsilon 1", "10,000,000"),
    ("--guesses 2000000000000000 9 5 --epsilon 1", "2,000,000,000,000,000 canaries"),
    ("--guesses 1%s 9 5 --epsilon 1" % ("0" * 400), "1.00e+400 canaries"),
    ("{d1} {few} --epsilon 1", "few.npy: 20 draws of d2"),
    ("{few} {d2} --epsilon 1", "few.npy: 20 draws of d1"),
    ("{few} {less} --epsilon 1", "30 draws"),
    ("--guesses 10 5 2 --epsilon 1 --definition probabilistic --delta 0.1", "single outputs"),
]


def test_one_message_with_the_remedy(refused: Any, files: list[str]) -> None:
    twin, text = (Path(files[0]).with_name(f"{name}.npy") for name in ("twin", "text"))
    twin.symlink_to(files[0])
    text.write_text("1 2 3")
    names = {"d1": files[0], "d2": files[1], "twin": twin, "text": text}
    for name, draws in (("few", 20), ("less", 10)):
        path = Path(files[0]).with_name(f"{name}.npy")
        np.save(path, np.arange(float(draws)))
        names[name] = path
    for words, code, named in REFUSED:
        found, line = refused("bound", *words.format(**names).split())
        assert found == code, words
        assert named in line
    for words, named in NAMED:
        assert named in refused("bound", *words.format(**names).split())[1]


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
    again = dpaudit("report", file)
    assert again.stdout.startswith(result.stdout)
    quiet = dpaudit("bound", *series, "--epsilon", "0.4", "-q", "--expect", "violation")
    assert (quiet.exit_code, quiet.stdout.count("\n")) == (3, 1)
    assert audit["ending"]["error"][:40] in quiet.stdout


def test_rows_that_were_sorted_are_a_warning(
    dpaudit: Any, files: list[str], tmp_path: Path
) -> None:
    np.save(files[0], np.sort(np.load(files[0])))
    file = tmp_path / "result.json"
    result = dpaudit("bound", *files, "--epsilon", "0.4", "--json", file)
    assert result.exit_code == 1, result.output
    words = "rows of d1 are sorted by "
    assert f"warning {words}" in " ".join(result.stdout.split())
    (audit,) = json.loads(file.read_text())["audits"]
    assert any(text.startswith(words) for text in audit["ending"]["certificates"][0]["warnings"])
    quiet = dpaudit("bound", *files, "--epsilon", "0.4", "-q")
    assert f"warning: {files[0]}, {files[1]}: {words}" in quiet.output


@pytest.mark.parametrize(
    ("column", "code", "message"),
    [
        ("", 2, "d1.csv: column 1 has no name; "),
        ("run", 3, "leave that column "),
    ],
)
def test_the_index_that_pandas_writes_is_no_output(
    dpaudit: Any, tmp_path: Path, column: str, code: int, message: str
) -> None:
    rng = np.random.default_rng(0)
    for name, size in (("d1", 1_500), ("d2", 1_200)):
        rows = "".join(f"{place},{one}\n" for place, one in enumerate(rng.normal(size=size)))
        (tmp_path / f"{name}.csv").write_text(f"{column},x\n{rows}")
    paths = [tmp_path / name for name in ("d1.csv", "d2.csv")]
    result = dpaudit("bound", *paths, "--epsilon", "1")
    assert result.exit_code == code, result.output
    assert message in " ".join(result.output.split())


def test_an_unnamed_column_beside_an_arm(dpaudit: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    file = tmp_path / "draws.csv"
    rows = "".join(f"{i},{arm},{i % 7}\n" for i, arm in enumerate(rng.integers(1, 3, 2_000)))
    file.write_text(f",input,x\n{rows}")
    result = dpaudit("bound", file, "--arm", "input", "--epsilon", "1")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "draws.csv: column 1 has no name" in result.stderr


def test_one_file_with_an_arm_whose_rows_hang_together(dpaudit: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    pairs = zip(rng.integers(1, 3, 2_000), rng.normal(size=2_000).cumsum(), strict=True)
    file = tmp_path / "draws.csv"
    file.write_text("input,x\n" + "".join(f"{arm},{one}\n" for arm, one in pairs))
    saved = tmp_path / "r.json"
    result = dpaudit("bound", file, "--arm", "input", "--epsilon", "0.4", "--json", saved)
    assert result.exit_code == 3, result.output
    assert json.loads(saved.read_text())["audits"][0]["ending"]["code"] == "draws-differ"
