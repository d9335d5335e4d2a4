"""The pytest plugin, on small test runs of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dpaudit.testing.plugin import summary
from dpaudit.testing.session import KeptAudit

pytest_plugins = ["pytester"]

TESTS = """
import pytest
from dpaudit.testing import assert_private, assert_violates

def noisy(x, size, rng):
    return x + rng.laplace(size=size)

def test_private():
    assert_private(noisy, 0, 1, epsilon=1.5)

@pytest.mark.parametrize("epsilon", [0.5, 0.6])
def test_violates(epsilon):
    assert_violates(noisy, 0, 1, epsilon=epsilon, samples=3_000)

@pytest.mark.dpaudit(samples=4_000, confidence=0.99)
def test_marked(dp_audit):
    first = dp_audit(noisy, 0, 1, epsilon=1.5)
    second = dp_audit(noisy, 1, 0, epsilon=1.5, samples=2_000)
    assert first.verdict is second.verdict
"""


# Of workers, which load no plugins but these where PYTEST_DISABLE_PLUGIN_AUTOLOAD is set.
WORKERS = ("-p", "xdist", "-p", "dpaudit.testing.plugin", "-n")


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(test_mine=TESTS)
    pytester.makepyprojecttoml("[tool.dpaudit]\nsamples = 5_000\nconfidence = 0.999\n")
    return pytester


def audits_of(file: Path) -> dict[str, Any]:
    return {audit["name"]: audit for audit in json.loads(file.read_text("utf-8"))["audits"]}


def budgets_of(file: Path) -> dict[str, int]:
    return {
        name: audit["ending"]["certificates"][0]["evidence"]["budget"]
        for name, audit in audits_of(file).items()
    }


def test_a_run_saves_its_audits_whose_options_the_command_line_decides(
    project: pytest.Pytester,
) -> None:
    result = project.runpytest("--dpaudit-json", "out.json")
    result.assert_outcomes(passed=4)
    # 0.001 for each of three, 0.01 for each of two.
    result.stdout.fnmatch_lines(
        ["dpaudit: 5 privacy audits of 2,000 to 5,000 draws at 99 % to 99.9 %; *1 run in 43 *"]
    )
    assert budgets_of(project.path / "out.json") == {
        "test_mine.py::test_marked": 4_000,
        "test_mine.py::test_marked (2)": 2_000,
        "test_mine.py::test_private": 5_000,
        "test_mine.py::test_violates[0.5]": 3_000,
        "test_mine.py::test_violates[0.6]": 3_000,
    }
    options = ("--dpaudit-json", "out.json", "--dpaudit-samples", "3_500")
    project.runpytest(*options).assert_outcomes(passed=4)
    assert set(budgets_of(project.path / "out.json").values()) == {3_500}


def test_several_workers_give_the_same_results(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.makeconftest(
        """
        import os
        from dpaudit.auditing import engine
        from dpaudit.sampling.executors import new_processes

        if "PYTEST_XDIST_WORKER" in os.environ:  # what the fixtures do in this process
            engine._traced = lambda spec, result: result
            new_processes.PROCESSES = 0
        """
    )
    project.runpytest("--dpaudit-json", "one.json").assert_outcomes(passed=4)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    result = project.runpytest(*WORKERS, "2", "--dpaudit-json", "two.json")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["dpaudit: 5 privacy audits of *1 run in 43*"])
    here, there = (audits_of(project.path / name) for name in ("one.json", "two.json"))
    for audit in (*here.values(), *there.values()):
        audit.pop("seconds")
    assert here == there


def test_a_failure_shows_the_report_and_how_to_repeat_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_mine="""
        from dpaudit.testing import assert_private

        def test_leak():
            def leaks(x, size, rng):
                return x + rng.laplace(scale=0.5, size=size)
            assert_private(leaks, 0, 1, epsilon=1)
        """
    )
    result = pytester.runpytest("--dpaudit-samples", "5_000")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            ">*assert_private(leaks, 0, 1, epsilon=1)",
            "E*repeat*pytest test_mine.py::test_leak --dpaudit-samples=5000",
            "test_mine.py:*: AssertionError",
        ]
    )
    assert "assertions.py" not in result.stdout.str()


def test_a_run_without_audits_says_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_nothing(): pass")
    result = pytester.runpytest("--dpaudit-json", "out.json")
    assert "dpaudit:" not in result.stdout.str()
    assert audits_of(pytester.path / "out.json") == {}


@pytest.mark.parametrize(
    ("flags", "project_file", "words"),
    [
        (["--dpaudit-samples", "many"], "", "--dpaudit-samples=many"),
        (["--dpaudit-json", "test_mine.py"], "", "--dpaudit-json=test_mine.py"),
        ([], "[tool.dpaudit]\nsample = 5", "'sample'"),
        ([], "[tool.dpaudit]\nsamples = true", "samples=True"),
        ([], "[tool.dpaudit]\njournal = 3", "journal=3"),
    ],
)
def test_wrong_settings_are_refused_before_any_test(
    pytester: pytest.Pytester, flags: list[str], project_file: str, words: str
) -> None:
    pytester.makepyfile("def test_nothing(): pass")
    pytester.makepyprojecttoml(project_file)
    result = pytester.runpytest(*flags)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{words}*"])


STRICT = """
import pytest
from dpaudit.testing import assert_private, assert_violates

def seven(x):
    return 7

def is_text(x):
    return isinstance(x, str)

@pytest.mark.parametrize("options", [{}, {"strict": False}, {"strict": True}])
def test_private(options):
    assert_private(seven, 0, 1, epsilon=1, **options)

def test_violates():
    assert_violates(is_text, "a", 1, epsilon=1)

@pytest.mark.dpaudit(strict=True)
def test_marked():
    assert_private(seven, 0, 1, epsilon=1)
"""


@pytest.mark.parametrize(("lines", "failed"), [("", 2), ("strict = true", 4)])
def test_warnings_fail_strict_tests(pytester: pytest.Pytester, lines: str, failed: int) -> None:
    pytester.makepyfile(test_mine=STRICT)
    pytester.makepyprojecttoml(f"[tool.dpaudit]\nsamples = 500\n{lines}\n")
    result = pytester.runpytest("-W", "ignore")
    assert result.parseoutcomes().get("failed") == failed


MARKED = """
@pytest.mark.dpaudit({marker})
def test_marked_{number}(dp_audit):
    dp_audit(abs, 0, 1, epsilon=1)
"""
WRONG = ("5_000", "sample=5_000", "epsilon=1")


@pytest.mark.parametrize("flags", [(), (*WORKERS, "1")])
def test_a_wrong_marker_fails_its_own_test(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]
) -> None:
    if flags:
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    marked = (MARKED.format(marker=marker, number=number) for number, marker in enumerate(WRONG))
    pytester.makepyfile("".join(["import pytest\n", *marked, "\ndef test_other():\n    pass\n"]))
    result = pytester.runpytest(*flags)
    outcomes = result.parseoutcomes()
    assert outcomes.pop("passed") == 1
    assert sum(outcomes.values()) == len(WRONG)
    for number, marker in enumerate(WRONG):
        result.stdout.fnmatch_lines([f"*_ *test_marked_{number} _*"])
        result.stdout.fnmatch_lines([f"*marker dpaudit*{marker.split('=')[0].replace('_', '')}*"])
    assert "INTERNALERROR" not in result.stdout.str()


def test_loading_it_imports_nothing_heavy() -> None:
    code = (
        "import sys, dpaudit.testing.plugin\n"
        "print({'numpy', 'scipy', 'yaml', 'click'} & {*sys.modules})"
    )
    words = [sys.executable, "-c", code]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "set()\n"


@pytest.mark.parametrize(
    ("alphas", "rate"),
    [([0.01], "1 run in 100 "), ([0.0], "all exact"), ([0.6, 0.6], "false alarms are ")],
)
def test_the_summary_has_the_rate_of_false_alarms(alphas: list[float], rate: str) -> None:
    assert rate in summary([KeptAudit("test", "", alpha) for alpha in alphas])


@pytest.mark.parametrize("flag", ["--collect-only", "-knothing"])
def test_where_no_test_runs_the_last_results_stay(project: pytest.Pytester, flag: str) -> None:
    file = project.path / "out.json"
    project.runpytest("--dpaudit-json", "out.json", flag)
    assert not file.exists()
    file.write_text("kept")
    project.runpytest("--dpaudit-json", "out.json", flag)
    assert file.read_text() == "kept"
