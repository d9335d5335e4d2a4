"""`dpaudit explain`: tables with the seeds' own numbers, figures, and what it refuses."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from scipy.stats import norm

from dpaudit.claims import (
    ApproximateDP,
    GaussianDP,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)
from dpaudit.claims.tradeoff import tradeoff
from dpaudit.cli.commands import cli


def explain(*words: str) -> Result:
    return CliRunner().invoke(cli, ["explain", *words])


def test_the_answer_of_the_seed_is_75_percent() -> None:
    """001: "ε = 1.1 … 50 % … at most 75 %"; 000, equation 5 gives the other bound, 25 %."""
    result = explain("posterior", "--epsilon", "1.1", "--prior", "0.5")
    assert result.exit_code == 0, result.output
    assert re.findall(r"\d+\.\d %", result.stdout)[1:3] == ["75.0 %", "25.0 %"]


def test_without_a_prior_there_is_a_table_for_every_epsilon() -> None:
    result = explain("posterior", "--epsilon", "0", "--epsilon", str(math.log(3)))
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].startswith("ε = 0: ")
    # ε = 0 leaves a belief as it was; ln 3 makes even odds 3 to 1.
    assert lines[6].split() == ["50.0", "%", "50.0", "%", "50.0", "%"]
    assert lines[6 + 11].split() == ["50.0", "%", "25.0", "%", "75.0", "%"]


@pytest.mark.parametrize("alpha", [0.0, 1e-4, 0.03, 0.25, 0.5, 0.9, 1.0])
def test_tradeoff_functions_are_those_of_the_seed(alpha: float) -> None:
    """001: f_ε and G_μ, with δ as in Dong, Roth & Su 2022, Prop. 2.5."""
    for epsilon, delta in ((0.0, 0.0), (1.0, 0.0), (1.0, 0.1), (3.0, 1e-5)):
        claim = ApproximateDP(epsilon, delta) if delta else PureDP(epsilon)
        factor = math.exp(epsilon)
        exact = max(0.0, 1 - delta - factor * alpha, (1 - delta - alpha) / factor)
        assert tradeoff(claim, alpha) == pytest.approx(exact, abs=1e-12)
    exact = norm.cdf(norm.ppf(1 - alpha) - 0.7)
    assert tradeoff(GaussianDP(0.7), alpha) == pytest.approx(exact, abs=1e-12)


def test_noise_that_meets_a_claim_misses_at_least_as_often() -> None:
    for alpha in (0.001, 0.3):
        gaussian = tradeoff(GaussianDP(1.0), alpha)
        assert tradeoff(ZeroConcentratedDP(0.5), alpha) <= gaussian
        assert tradeoff(RenyiDP(3, 1.5), alpha) <= gaussian


def test_profiles_are_tabled_at_the_claimed_epsilon_too() -> None:
    result = explain("profile", "--epsilon", "0.7", "--delta", "1e-5", "--mu", "1", "--rho", "0.5")
    assert result.exit_code == 0, result.output
    header = result.stdout.splitlines()[1].split("  ")
    assert [one.strip() for one in header if one.strip()] == [
        "ε",
        "(0.7, 1e-05)-DP",
        "1-Gaussian DP",
        "0.5-zCDP",
    ]
    rows = {line.split()[0]: line.split()[1:] for line in result.stdout.splitlines()[2:]}
    assert rows["0.7"][0] == "1e-05"
    assert rows["1"][1] == "0.127"


# What is drawn does not depend on the format, nor the format on what is drawn.
@pytest.mark.parametrize(
    ("words", "suffix"),
    [
        (("profile", "--epsilon", "1", "--rho", "0.5"), "png"),
        (("tradeoff", "--epsilon", "1", "--mu", "1"), "svg"),
        (("posterior", "--epsilon", "1", "--epsilon", "3"), "pdf"),
    ],
    ids=lambda given: given if isinstance(given, str) else given[0],
)
def test_figures_are_written_and_repeat_themselves(
    words: tuple[str, ...], suffix: str, tmp_path: Path
) -> None:
    heads = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    # Two are compared where the format repeats itself to the byte.
    files = [tmp_path / f"{name}.{suffix}" for name in ("ab" if suffix == "png" else "a")]
    for file in files:
        result = explain(*words, "--figure", str(file))
        assert result.exit_code == 0, result.output
        assert file.read_bytes().startswith(heads[suffix])
    if suffix == "png":
        assert files[0].read_bytes() == files[1].read_bytes()


def test_bad_input_is_refused_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    requests = {
        ("posterior", "--epsilon", "1", "--prior", "1.5"): "prior=1.5",
        ("posterior", "--epsilon", "-1"): "epsilon=-1.0",
        ("posterior",): "--epsilon",
        ("tradeoff", "--order", "2", "--mu", "1"): "--order 2 goes with --epsilon",
        ("profile", "--delta", "0.1", "--mu", "1"): "--delta 0.1 goes with --epsilon or --rho",
        ("profile", "--mu", "1", "--figure", "a.pgn"): "'a.pgn'",
    }
    for words, named in requests.items():
        result = explain(*words)
        assert result.exit_code == 2
        assert named in result.stderr
        assert not list(tmp_path.iterdir())


def test_without_matplotlib_a_figure_is_refused_and_tables_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    words = ("profile", "--mu", "1")
    assert explain(*words).exit_code == 0
    result = explain(*words, "--figure", str(tmp_path / "a.png"))
    assert result.exit_code == 2
    assert "pip install matplotlib" in result.stderr
    assert not list(tmp_path.iterdir())


def test_a_miss_rate_is_rounded_down() -> None:
    """It is a least one: 1 - e/1000 = 0.99728 is not called 0.9973."""
    result = explain("tradeoff", "--epsilon", "1")
    assert "0.001   0.9972\n" in result.stdout


def test_options_without_a_command_are_those_of_posterior() -> None:
    words = ("--epsilon", "1.1", "--prior", "0.5")
    result = explain(*words)
    assert (result.exit_code, result.stdout) == (0, explain("posterior", *words).stdout)
    assert "tradeoff" in explain("--help").stdout
    assert explain("--epsilo", "1").exit_code == 2
