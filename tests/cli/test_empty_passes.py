"""A green run that is empty is not green, and -q tells what matters."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit.inputs.neighbouring import EQUAL_INPUTS
from dpaudit.reports.trace import DECIDES

MECHANISMS = """
import math

def laplace(x, size, rng): return x + rng.laplace(size=size)
def count(x): return len(x)
def forgot(x, rng): rng.laplace()
def nan(x): return math.nan
def inf(x): return [math.inf, -math.inf]
def seven(x): return 7.0
def empty(x): return []
def text(x, rng): return f"{x + rng.laplace():.12f} rows"
def letters(x, rng): return text(x, rng).translate(str.maketrans("0123456789", "abcdefghij"))
def key(x, rng): return {text(x, rng): True}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "m.py").write_text(MECHANISMS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def words(text: str) -> str:
    return " ".join(text.split())


TOO_FEW = ("run", "m.py:count", "--d1", "[1]", "--d2", "[]", "--epsilon", "12", "--samples", "5000")


def test_too_few_draws_exit_4_and_say_so_before_drawing(dpaudit: Any) -> None:
    result = dpaudit(*TOO_FEW)
    assert result.exit_code == 4
    reason = "5,000 draws cannot "
    assert f"NO VIOLATION FOUND count: under-powered: {reason}" in words(result.stdout)
    assert "at least 896,338 could (samples)" in words(result.stdout)
    assert result.stderr.startswith(f"warning: count: under-powered: {reason}")
    # The full report comes all the same, and does not call an event rare that is not.
    assert "99 % Clopper–Pearson" in result.stdout
    assert re.search(r"4,000 draws .* \(more draws help\)\.", words(result.stdout))
    said = words(result.stdout).replace("rarer events", "").replace("rare outputs that", "")
    assert "rare" not in said


def test_an_under_powered_audit_names_the_trace_that_decides_it(dpaudit: Any) -> None:
    claim = ("--d1", "0", "--d2", "20", "--epsilon", "12", "--samples", "5000")
    result = dpaudit("run", "m.py:laplace", *claim)
    assert result.exit_code == 4
    (row,) = (line for line in result.stdout.splitlines() if line.startswith("  trace  "))
    assert DECIDES in words(result.stdout)
    traced = dpaudit(*shlex.split(row)[2:])
    assert (traced.exit_code, traced.stdout.partition(" ")[0]) == (1, "CAUSE")


@pytest.mark.parametrize(
    ("audit", "is_named"),
    [
        ("{mechanism: 'm.py:count', d1: [1], d2: []}", True),
        ("{mechanism: 'm.py:count', d1: [1], d2: [], allow_underpowered: true}", False),
        ("{mechanism: 'm.py:count', d1: [1], d2: [1]}", False),
        ("{compose: ['m.py:count', 'm.py:count'], d1: [1], d2: []}", False),
    ],
)
def test_what_cannot_be_traced_is_not_sent_to_a_trace(
    dpaudit: Any, folder: Path, audit: str, is_named: bool
) -> None:
    (folder / "a.yaml").write_text(
        f"version: 1\ndefaults: {{claim: {{epsilon: 12}}, samples: 5000}}\naudits: [{audit}]\n"
    )
    result = dpaudit("run", "a.yaml", "-v")
    assert result.exit_code == (0 if "allow" in audit else 4)
    assert (DECIDES in words(result.stdout)) is is_named
    assert "  trace  " not in result.stdout  # a trace takes inputs, and no file


@pytest.mark.parametrize("mechanism", ["letters", "key"])
def test_an_audit_that_saw_only_new_outputs_exits_4(dpaudit: Any, mechanism: str) -> None:
    audit = ["run", f"m.py:{mechanism}", "--d1", "0", "--d2", "1", "--epsilon", "1"]
    audit += ["--samples", "2000"]
    result = dpaudit(*audit)
    assert result.exit_code == 4
    assert re.search(r"under-powered: .*--post-process", words(result.stdout))
    allowed = dpaudit(*audit, "--allow-underpowered")
    assert allowed.exit_code == 0
    assert "--post-process" in words(allowed.stdout)


def test_a_text_with_numbers_that_keeps_its_claim_exits_0(dpaudit: Any) -> None:
    audit = ("run", "m.py:text", "--d1", "0", "--d2", "1", "--epsilon", "1", "--samples", "2000")
    result = dpaudit(*audit)
    assert result.exit_code == 0
    assert "numbers in texts are read as columns" in words(result.stdout)
    assert dpaudit(*audit[:-3], "0.2", *audit[-2:]).exit_code == 1


def test_an_error_of_an_audit_with_equal_inputs_is_named(dpaudit: Any) -> None:
    result = dpaudit("run", "m.py:count", "--d1", "0", "--d2", "0", "--epsilon", "1")
    assert result.exit_code == 3
    assert "TypeError" in result.stdout
    assert EQUAL_INPUTS not in words(result.stdout)


@pytest.mark.parametrize("claim", [("800",), ("1e308",), ("1", "--group", "1000000")])
def test_what_no_draws_can_refute_is_not_promised_with_more(
    dpaudit: Any, claim: tuple[str, ...]
) -> None:
    result = dpaudit(*TOO_FEW[:6], "--epsilon", *claim, "--samples", "1000")
    assert result.exit_code == 4
    assert "no number of " in words(result.stdout)
    assert "(no number could)" in words(result.stdout)
    assert "more draws help" not in words(result.stdout)


def test_what_no_recording_and_no_guesses_can_refute(dpaudit: Any) -> None:
    np.save("a.npy", np.zeros(1_000))
    np.save("b.npy", np.ones(1_000))
    recorded = dpaudit("bound", "a.npy", "b.npy", "--epsilon", "800")
    assert recorded.exit_code == 4
    assert words(recorded.stdout).count("no number could") == 2
    assert DECIDES not in words(recorded.stdout)
    guessed = dpaudit("bound", "--guesses", 1000, 100, 100, "--epsilon", "800")
    assert guessed.exit_code == 4
    assert "no number could" in words(guessed.stdout)
    few = dpaudit("bound", "--guesses", 1000, 20, 20, "--epsilon", "4")
    assert "at least 254 guesses" in words(few.stdout)


def test_an_event_that_could_not_refute_is_told_and_has_no_power(dpaudit: Any) -> None:
    """All 100 draws could refute ε = 2; those of the event that was chosen could not."""
    asked = ("m.py:laplace", "--d1", "0", "--d2", "2", "--epsilon", "2", "--samples", "100")
    result = dpaudit("run", *asked)
    found = re.search(
        r"draws in the event [^.]*ε = 2, [^.]*\(more draws help\)", words(result.stdout)
    )
    assert found
    assert result.exit_code == 0
    assert dpaudit("run", *asked, "--require-power", "100").exit_code == 4


def test_it_can_be_allowed(dpaudit: Any, folder: Path) -> None:
    result = dpaudit(*TOO_FEW, "--allow-underpowered")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "warning 5,000 draws cannot refute" in words(result.stdout)
    (folder / "a.yaml").write_text(
        "version: 1\naudits:\n  - {name: a, mechanism: m.py:count, d1: [1], d2: [],\n"
        "     claim: {epsilon: 12}, samples: 5000, allow_underpowered: true}\n"
    )
    assert dpaudit("run", "a.yaml").exit_code == 0


@pytest.mark.parametrize(("factor", "code"), [("1.2", 0), ("1.01", 4)])
def test_as_much_power_as_is_asked_for(dpaudit: Any, folder: Path, factor: str, code: int) -> None:
    asked = ("m.py:laplace", "--d1", "0", "--d2", "1", "--epsilon", "1", "--samples", "20_000")
    result = dpaudit("run", *asked, "--require-power", factor)
    assert result.exit_code == code
    for said in (" leaks of ε ≥ 1.0", f"claim is ε = {factor};"):
        assert (said in words(result.stdout)) is (code == 4)
    (folder / "a.yaml").write_text(
        "version: 1\naudits:\n  - {name: a, mechanism: m.py:laplace, d1: 0, d2: 1,\n"
        f"     claim: {{epsilon: 1}}, samples: 20_000, require_power: {factor}}}\n"
    )
    assert dpaudit("run", "a.yaml").exit_code == code


def test_a_flag_that_is_wrong_is_blamed_on_no_file(dpaudit: Any, folder: Path) -> None:
    (folder / "a.yaml").write_text(
        "version: 1\naudits:\n  - {mechanism: m.py:laplace, d1: 0, d2: 1, claim: {epsilon: 1}}\n"
    )
    result = dpaudit("run", "a.yaml", "--require-power", "0")
    assert (result.exit_code, result.code) == (2, "option-invalid")
    assert words(result.stderr).startswith("error: --require-power=0.0 ")


def test_a_violation_needs_no_power(dpaudit: Any) -> None:
    asked = ("m.py:laplace", "--d1", "0", "--d2", "1", "--epsilon", "0.3", "--samples", "5_000")
    assert dpaudit("run", *asked, "--require-power", "1.1").exit_code == 1


def test_power_that_cannot_be_asked_for(refused: Any) -> None:
    asked = ("run", "m.py:laplace", "--d1", "0", "--d2", "1", "--epsilon", "1", "--require-power")
    for more, named in {
        ("0.9",): "--require-power=0.9",
        ("1",): "--require-power=1.0",
        ("1.2", "--allow-underpowered"): "--allow-underpowered",
        ("much",): "'much'",
    }.items():
        assert named in refused(*asked, *more)[1]


ASKED_RARE = ("m.py:laplace", "--d1", "0", "--d2", "1", "--epsilon", "1", "--samples", "10_000")


@pytest.mark.parametrize(("probability", "code"), [("0.01", 0), ("0.001", 4)])
def test_rare_outputs_that_would_have_been_caught(
    dpaudit: Any, folder: Path, probability: str, code: int
) -> None:
    result = dpaudit("run", *ASKED_RARE, "--require-rare", probability, "--json", "r.json")
    assert result.exit_code == code
    (audit,) = json.loads(Path("r.json").read_text())["audits"]
    assert (audit["underpowered"] is None) is (code == 0)
    if code:
        # From which probability on, the one asked for, and a number of draws that is enough.
        assert "--require-rare 0.001:" in audit["underpowered"]
        assert "--samples 74_600" in audit["underpowered"]
        assert "0.00746" in audit["underpowered"]
    (folder / "a.yaml").write_text(
        "version: 1\naudits:\n  - {name: a, mechanism: m.py:laplace, d1: 0, d2: 1,\n"
        f"     claim: {{epsilon: 1}}, samples: 10_000, require_rare: {probability}}}\n"
    )
    assert dpaudit("run", "a.yaml").exit_code == code


def test_the_draws_that_are_named_are_enough(dpaudit: Any) -> None:
    asked = (*ASKED_RARE[:-1], "74_600", "--require-rare", "0.001")
    assert dpaudit("run", *asked).exit_code == 0
    both = dpaudit("run", *ASKED_RARE, "--require-rare", "0.001", "--require-power", "1.01")
    assert both.exit_code == 4
    assert "leaks of ε ≥ 1.1" in words(both.stdout)
    assert "--samples 74_600" in words(both.stdout)


def test_a_violation_needs_no_rare_outputs(dpaudit: Any) -> None:
    asked = (*ASKED_RARE[:5], "--epsilon", "0.3", "--samples", "10_000")
    assert dpaudit("run", *asked, "--require-rare", "1e-6").exit_code == 1


@pytest.mark.parametrize("value", ["0", "2", "abc"])
def test_rare_outputs_that_a_file_cannot_ask_for(dpaudit: Any, folder: Path, value: str) -> None:
    (folder / "a.yaml").write_text(
        "version: 1\naudits:\n  - {name: a, mechanism: m.py:laplace, d1: 0, d2: 1,\n"
        f"     claim: {{epsilon: 1}}, samples: 10_000, require_rare: {value}}}\n"
    )
    result = dpaudit("run", "a.yaml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.count("error: ") == 1
    assert "require_rare" in result.stderr
    assert "4:" in result.stderr
    assert re.search(r"such as 1e-3|such as 0\.5", words(result.stderr))


def test_rare_outputs_that_cannot_be_asked_for(refused: Any) -> None:
    for more, named in {
        ("0",): "--require-rare=0.0",
        ("2",): "--require-rare=2.0",
        ("abc",): "'abc'",
        ("0.1", "--allow-underpowered"): "--allow-underpowered",
        ("1e-6", "--delta", "1e-5"): "=1e-06",
        ("0.1", "--bound", "clopper-pearson"): "--bound",
        ("0.1", "--delta", "0.01", "--definition", "probabilistic"): "approximate DP",
    }.items():
        assert named in refused("run", *ASKED_RARE, "--require-rare", *more)[1]


def test_no_multiple_of_a_claim_of_delta_alone(dpaudit: Any) -> None:
    asked = ("m.py:laplace", "--d1", "0", "--d2", "1", "--epsilon", "0", "--delta", "0.5")
    result = dpaudit("run", *asked, "--require-power", "1.2")
    assert result.exit_code == 2
    assert "--require-power " in result.stderr
    assert "claimed ε" in words(result.stderr)


def test_equal_inputs_exit_4(dpaudit: Any) -> None:
    result = dpaudit("run", "m.py:laplace", "--d1", "1", "--d2", "1", "--epsilon", "1", "-q")
    assert result.exit_code == 4
    assert f"under-powered: {EQUAL_INPUTS}" in words(result.stdout)


def test_it_is_in_the_json_and_in_its_report(dpaudit: Any) -> None:
    assert dpaudit(*TOO_FEW, "--json", "r.json").exit_code == 4
    (audit,) = json.loads(Path("r.json").read_text())["audits"]
    assert audit["underpowered"].startswith("5,000 draws cannot refute")
    report = dpaudit("report", "r.json")
    assert report.exit_code == 0
    assert "under-powered" in report.stdout


def test_a_batch_is_as_its_worst(dpaudit: Any, folder: Path) -> None:
    (folder / "a.yaml").write_text(
        "version: 1\ndefaults: {samples: 5000, d1: [1], d2: []}\naudits:\n"
        "  - {name: few, mechanism: m.py:count, claim: {epsilon: 12}}\n"
        "  - {name: leak, mechanism: m.py:count, claim: {epsilon: 1}, expect: EXPECT}\n"
    )
    text = (folder / "a.yaml").read_text()
    for expect, code in (("violation", 4), ("pass", 1)):
        (folder / "a.yaml").write_text(text.replace("EXPECT", expect))
        assert dpaudit("run", "a.yaml", "-q").exit_code == code


@pytest.mark.parametrize(
    ("mechanism", "message"),
    [
        ("forgot", "every output was None: "),
        ("nan", "every output was NaN: "),
        ("inf", "every output was (inf, -inf): "),
    ],
)
def test_outputs_that_are_nothing_are_an_error(dpaudit: Any, mechanism: str, message: str) -> None:
    given = ("--d1", "0", "--d2", "1", "--epsilon", "1", "--samples", "5000")
    result = dpaudit("run", f"m.py:{mechanism}", *given)
    assert result.exit_code == 3
    assert message in words(result.stdout)


@pytest.mark.parametrize(("mechanism", "flags"), [("seven", ()), ("empty", ("-q",))])
def test_one_output_for_everything_is_a_warning(
    dpaudit: Any, mechanism: str, flags: tuple[str, ...]
) -> None:
    given = ("--d1", "0", "--d2", "1", "--epsilon", "1", "--samples", "5000")
    result = dpaudit("run", f"m.py:{mechanism}", *given, *flags)
    assert result.exit_code == 0
    assert "all 5,000 draws are" in words(result.stdout)
    # log(100) / 2,490: the larger of what could hide in the draws of either input.
    assert " of up to 0.0019 " in words(result.stdout)


def test_what_could_not_fail_is_not_as_expected(dpaudit: Any) -> None:
    Path("a.yaml").write_text(
        "version: 1\naudits:\n  - {name: a, mechanism: m.py:count, d1: [1], d2: [],\n"
        "     claim: {epsilon: 12}, samples: 5000, expect: pass}\n"
    )
    result = dpaudit("run", "a.yaml", "-q")
    assert result.exit_code == 4
    assert "as expected" not in result.stdout


@pytest.mark.parametrize("confidence", ["0.99999999", "0.999999999999"])
def test_no_confidence_is_a_hundred_percent(dpaudit: Any, confidence: str) -> None:
    given = ("--d1", "0", "--d2", "1", "--epsilon", "1", "--samples", "2000")
    result = dpaudit("run", "m.py:laplace", *given, "--confidence", confidence)
    assert result.exit_code == 0
    assert "100 %" not in result.stdout.replace("\N{NO-BREAK SPACE}", " ")
    assert f"{confidence.replace('0.99', '99.')} %" in words(result.stdout)
