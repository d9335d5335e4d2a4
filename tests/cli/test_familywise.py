"""One error probability for all audits of a file: what is run, printed, kept and rechecked."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpaudit.auditing.recheck import recheck_families
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.result import AuditResult, Sampled
from dpaudit.claims import PureDP
from dpaudit.cli.batch import Printer
from dpaudit.reports.json import read_document
from tests.cli.made_results import CLEARED, answer
from tests.result_files import from_json
from tests.specs import replace


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture
def p_values(install_engine: Callable[[Any], None]) -> list[AuditSpec]:
    """Answer every audit with the p-value that is its name."""
    specs: list[AuditSpec] = []

    def run_audit(spec: AuditSpec, on_progress: Any = None) -> Any:
        specs.append(spec)
        if spec.name == "stop":
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(60)
        made = replace(answer(spec), family=spec.statistics.family)
        if not spec.name.replace(".", "").isdigit():
            return made
        p = float(spec.name)
        point, alone = PureDP(1.0).point(), p <= spec.alpha
        one = replace(CLEARED, point=point, p_value=p, refuted=alone, alpha=spec.alpha)
        return replace(made, ending=Sampled((one,)))

    install_engine(run_audit)
    return specs


def in_a_file(path: Path, *names: str, more: str = "") -> Path:
    audits = "".join(f"  - {{name: '{name}'}}\n" for name in names)
    path.write_text(
        f"version: 1\n{more}defaults: {{mechanism: 'm:f', d1: 0, d2: 1, claim: {{epsilon: 1}}}}\n"
        f"audits:\n{audits}"
    )
    return path


def test_the_verdicts_are_those_of_holms_procedure(
    dpaudit: Any, p_values: list[AuditSpec], tmp_path: Path
) -> None:
    file = in_a_file(tmp_path / "a.yaml", "0.006", "0.9", "0.001", "0.003", more="familywise: on\n")
    assert dpaudit("run", file).exit_code == 2  # YAML 1.2: `on` is a text
    file = in_a_file(
        tmp_path / "a.yaml", "0.006", "0.9", "0.001", "0.003", more="familywise: true\n"
    )
    ran = dpaudit("run", file, "--json", tmp_path / "r.json", "-q")
    assert [one.statistics.confidence for one in p_values] == [0.9975] * 4
    lines = [line.split()[:4] for line in ran.stdout.splitlines()[:4]]
    # What the others decide on is printed when they are known.
    assert [line[-1] if line[0] == "NO" else line[1] for line in lines] == [
        "0.9", "0.001", "0.006", "0.003",
    ]  # fmt: skip
    assert [line[0] for line in lines] == ["NO", "VIOLATION", "NO", "VIOLATION"]
    assert ran.exit_code == 1
    assert "at most 1 % for all 4 audits together (Holm)." in ran.stdout
    assert "each audit" not in ran.stdout
    results = from_json((tmp_path / "r.json").read_text("utf-8"))
    levels = [one.family.level for one in results if one.family]
    assert levels == pytest.approx([0.005, 0.005, 0.0025, 0.01 / 3])
    # Without it, each is judged at 1 %, and a false alarm of any is four times as likely.
    usual = dpaudit("run", in_a_file(tmp_path / "b.yaml", "0.006", "0.9", "0.001", "0.003"))
    assert "at most 1 % for each audit, 4 % together" in usual.stdout


def test_only_what_others_refute_changes_the_exit_code(
    dpaudit: Any, p_values: list[AuditSpec], tmp_path: Path
) -> None:
    alone = in_a_file(tmp_path / "a.yaml", "0.004", "0.9", "0.8", more="familywise: true\n")
    assert dpaudit("run", alone).exit_code == 0
    with_others = in_a_file(tmp_path / "b.yaml", "0.004", "0.9", "0.001")
    assert dpaudit("run", with_others, "--familywise", "-k", "0.004").exit_code == 0
    ran = dpaudit("run", with_others, "--familywise")
    assert ran.exit_code == 1
    assert "VIOLATION           0.004" in ran.stdout
    assert "-k 0.004 --familywise" in ran.stdout
    assert {one.statistics.confidence for one in p_values} == {p_values[0].statistics.confidence}


def test_each_file_is_a_family(dpaudit: Any, p_values: list[AuditSpec], tmp_path: Path) -> None:
    first = in_a_file(tmp_path / "a.yaml", "0.9", "0.8", more="familywise: true\n")
    second = in_a_file(tmp_path / "b.yaml", "0.7")
    said = words(dpaudit("run", first, second).stdout)
    assert [one.statistics.confidence for one in p_values] == [0.995, 0.995, 0.99]
    chance = f"1 % for the 2 audits of {first} (Holm), 2 % for all audits "
    assert chance.replace(" ", "") in said.replace(" ", "")


def test_it_is_about_all_audits_of_a_file(dpaudit: Any, config: Any, tmp_path: Path) -> None:
    inside = dpaudit("run", config("a", more=", familywise: true"))
    assert inside.code == "key-misplaced"
    lone = dpaudit("run", "m:f", "--d1", 0, "--d2", 1, "--epsilon", 1, "--familywise")
    assert (lone.exit_code, lone.code) == (2, "options-conflict")
    file = config("a", "b", more=", confidence: 0.95")
    file.write_text(file.read_text().replace("0.95", "0.9", 1).replace("audits:", "familywise: "
                                             "true\naudits:"))  # fmt: skip
    two = dpaudit("run", file)
    assert two.exit_code == 2
    assert f"{file}:3: confidence=0.9 and 0.95: " in two.stderr
    assert dpaudit("run", file, "--confidence", "0.9", "-k", "zzz").exit_code == 5


def test_an_interrupted_batch_shows_what_is_open_by_its_share(
    dpaudit: Any, p_values: list[AuditSpec], tmp_path: Path
) -> None:
    names = ("0.003", "0.001", "stop", "0.9")
    file = in_a_file(tmp_path / "a.yaml", *names, more="familywise: true\n")
    ran = dpaudit("run", file, "--json", tmp_path / "r.json", "-q")
    assert ran.exit_code == 130
    assert [line.split()[:4] for line in ran.stdout.splitlines()] == [
        ["VIOLATION", "0.001", "ε", ">"],
        ["NO", "VIOLATION", "FOUND", "0.003"],
    ]
    assert "2 of 4 audits finished" in ran.stderr
    results, planned, _ = read_document((tmp_path / "r.json").read_text("utf-8"))
    assert planned == 4
    assert [one.verdict.value for one in results] == ["NO VIOLATION FOUND", "VIOLATION"]
    assert recheck_families(results, has_ended=False) == []
    # In a run that had ended, the first one would be refuted beside the second.
    assert len(recheck_families(results, has_ended=True)) == 1


@pytest.mark.parametrize(
    ("breaks_at", "error"), [("0.001", BrokenPipeError), ("0.003", KeyboardInterrupt)]
)
def test_a_run_that_ends_while_it_prints_its_last_results_keeps_holms_verdicts(
    dpaudit: Any,
    p_values: list[AuditSpec],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    breaks_at: str,
    error: type[BaseException],
) -> None:
    """0.001 is shown as soon as it is there, as the last one; 0.003 when all are."""
    file = in_a_file(tmp_path / "a.yaml", "0.003", "0.9", "0.001", more="familywise: true\n")
    show, calls = Printer.show, list[str]()

    def showing(printer: Printer, result: AuditResult) -> None:
        calls.append(result.name)
        if calls.count(breaks_at) == 1 and result.name == breaks_at:
            raise error
        show(printer, result)

    monkeypatch.setattr(Printer, "show", showing)
    ran = dpaudit(
        "run", file, "--familywise", "--confidence", "0.992", "--json", tmp_path / "r.json"
    )
    assert ran.exit_code in (130, 141)
    results, planned, _ = read_document((tmp_path / "r.json").read_text("utf-8"))
    assert (len(results), planned) == (3, 3)
    assert [one.verdict.value for one in results] == [
        "VIOLATION",
        "NO VIOLATION FOUND",
        "VIOLATION",
    ]
    assert recheck_families(results, has_ended=True) == []
