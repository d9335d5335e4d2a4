"""Several audits: selection, exit codes and their precedence, one failing beside others."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from dpaudit.auditing.spec import AuditSpec
from dpaudit.errors import JournalError, MechanismError, TargetError
from tests.cli.made_results import answer

TARGET = ("run", "my.module:{}", "--d1", "0", "--d2", "1", "--epsilon", "1")


def _target(name: str) -> list[str]:
    return [word.format(name) for word in TARGET]


@pytest.mark.parametrize(
    ("name", "expect", "code"),
    [
        ("laplace", None, 0),
        ("wrong", None, 1),
        ("broken", None, 3),
        ("laplace", "pass", 0),
        ("laplace", "violation", 1),
        ("wrong", "violation", 0),
        ("wrong", "pass", 1),
        ("broken", "violation", 3),
        ("broken", "pass", 3),
    ],
)
def test_exit_code_of_one_audit(
    dpaudit: Any, asked: list[AuditSpec], name: str, expect: str | None, code: int
) -> None:
    flags = ["--expect", expect] if expect else []
    assert dpaudit(*_target(name), *flags).exit_code == code


@pytest.mark.parametrize(
    ("names", "code"),
    [
        (["a", "b"], 0),
        (["a", "wrong"], 1),
        (["wrong", "broken"], 3),
        (["wrong", "broken", "missing"], 2),
        (["missing", "broken"], 2),
    ],
)
def test_two_beats_three_beats_one(
    dpaudit: Any, install_engine: Any, config: Any, names: list[str], code: int
) -> None:
    def run_audit(spec: AuditSpec, on_progress: Any = None) -> Any:
        if spec.name == "missing":
            raise TargetError("no module 'm'")
        return answer(spec)

    install_engine(run_audit)
    result = dpaudit("run", config(*names))
    assert result.exit_code == code
    assert f"\n{len(names)} audits " in result.stdout


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (TargetError("no module 'm'"), 2, "no module 'm'"),
        (MechanismError("changes its input"), 3, "changes its input"),
        (ZeroDivisionError("division"), 3, "internal error: ZeroDivisionError: division"),
    ],
)
def test_an_audit_that_cannot_run_does_not_lose_the_others(
    dpaudit: Any, install_engine: Any, config: Any, error: Exception, code: int, message: str
) -> None:
    def run_audit(spec: AuditSpec, on_progress: Any = None) -> Any:
        if spec.name == "second":
            raise error
        return answer(spec)

    install_engine(run_audit)
    result = dpaudit("run", config("first", "second", "third"))
    assert result.exit_code == code
    assert f"ERROR  second: {message}" in " ".join(result.stdout.split("\n  "))
    assert "NO VIOLATION FOUND  first " in result.stdout
    assert "NO VIOLATION FOUND  third" in result.stdout
    assert "Traceback" not in result.output


@pytest.mark.parametrize("flags", [[], ["--debug"]])
def test_a_bug_is_no_verdict_and_shows_its_traceback_only_when_asked(
    dpaudit: Any, install_engine: Any, flags: list[str]
) -> None:
    def run_audit(spec: AuditSpec, on_progress: Any = None) -> Any:
        raise KeyError("level")

    install_engine(run_audit)
    result = dpaudit(*_target("f"), *flags)
    assert (result.exit_code, result.stdout) == (3, "")
    head = "internal error[internal]: " if flags else "internal error: "
    assert f"{head}KeyError: 'level' (" in result.stderr
    assert ("Traceback" in result.stderr) is bool(flags)
    assert result.code == "internal"


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("laplace", ["laplace-1", "LAPLACE-2"]),
        ("not laplace", ["wrong"]),
        ("not", []),
        ("-2", ["LAPLACE-2"]),
    ],
)
def test_selection_by_name(
    dpaudit: Any, asked: list[AuditSpec], config: Any, pattern: str, names: list[str]
) -> None:
    result = dpaudit("run", config("laplace-1", "LAPLACE-2", "wrong"), "-k", pattern)
    assert [spec.name for spec in asked] == names
    if not names:
        assert (result.exit_code, result.stdout) == (5, "")
        assert " -k 'not'." in result.stderr
        assert "There is: laplace-1, LAPLACE-2, wrong." in " ".join(result.stderr.split())


def test_every_file_is_read_before_anything_runs(
    dpaudit: Any, asked: list[AuditSpec], config: Any, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("version: 1\naudits:\n  - {mechanism: 'm:f', sample: 5}\n")
    result = dpaudit("run", config("a"), bad)
    assert (result.exit_code, result.stdout, asked) == (2, "", [])
    assert f"{bad}:3: unknown key 'sample'. Did you mean 'samples'?" in result.stderr


def test_names_shared_by_two_files_are_told_apart(
    dpaudit: Any, asked: list[AuditSpec], config: Any
) -> None:
    one, two = config("a", "b", file="one.yaml"), config("a", file="two.yml")
    assert dpaudit("run", one, two).exit_code == 0
    assert [spec.name for spec in asked] == [f"{one}: a", "b", f"{two}: a"]


def test_a_file_given_twice_is_refused(dpaudit: Any, asked: Any, config: Any) -> None:
    path = config("a")
    result = dpaudit("run", path, path)
    assert (result.exit_code, asked) == (2, [])
    assert "is given twice" in result.stderr


def test_a_batch_is_a_line_for_each_audit_and_ends_with_what_nobody_expected(
    dpaudit: Any, asked: Any, config: Any
) -> None:
    path = config("a", "wrong", "broken")
    result = dpaudit("run", path, "-q", "--samples", "5000")
    rows, counts, wrong, broken, chance = (
        part.splitlines() for part in result.output.split("\n\n")
    )
    assert rows == [
        "NO VIOLATION FOUND  a       ε ≥ 0.983, claimed 0.5, may miss ε < 1.02",
        "VIOLATION           wrong   ε ≥ 1.21, claimed 0.5",
        "ERROR               broken",
    ]
    assert counts[1:] == [
        "VIOLATION                     -                1",
        "NO VIOLATION FOUND            1                -",
        "ERROR                         -                1",
    ]
    for lines, name in ((wrong, "wrong: VIOLATION"), (broken, "broken: ERROR")):
        assert lines[0] == name
        assert lines[-1] == f"  dpaudit run {path} -k {name.partition(':')[0]} --samples 5000"
    assert re.findall(r"\d+ %", chance[0]) == ["1 %", "2 %"]


@pytest.mark.parametrize(
    ("name", "pattern"), [("b", "b"), ("a", "'=a'"), ("not c", "'=not c'"), ("ab", "ab")]
)
def test_the_command_repeats_one_audit_alone(
    dpaudit: Any, asked: list[AuditSpec], config: Any, name: str, pattern: str
) -> None:
    path = config("a", "A a", "not c", "ab", "b") if name != "b" else config("a", "b", "c")
    dpaudit("run", path, "-q", "--epsilon", "3")
    (spec,) = (one for one in asked if one.name == name)
    assert spec.origin.command == f"dpaudit run {path} -k {pattern} --epsilon 3"
    asked.clear()
    dpaudit(*shlex.split(spec.origin.command)[1:])
    assert [(one.name, one.claim) for one in asked] == [(name, spec.claim)]


def test_the_command_has_the_flags_of_the_audit_and_a_seed_that_was_drawn(
    dpaudit: Any, asked: list[AuditSpec], tmp_path: Path
) -> None:
    flags = ["--d1", "-1", "--d2", "[1, 2]", "--param", "x=1", "--param=y=2", "--epsilon=1"]
    shown = ["-q", "--json", tmp_path / "r.json", "--report", f"text:{tmp_path}/r.txt"]
    given = ["run", "my.module:f", *flags, "--seed", "random", "--stop", "never", *shown]
    dpaudit(*given, "--journal", tmp_path / "j")
    (spec,) = asked
    assert spec.origin.command == (
        "dpaudit run my.module:f --d1 -1 --d2 '[1, 2]' --param x=1 --param y=2 --epsilon 1 "
        f"--stop never --seed {spec.sampling.seed}"
    )


def test_the_command_of_a_refused_journal_names_the_journal(
    dpaudit: Any, install_engine: Any, tmp_path: Path
) -> None:
    """Without it, the command would run another audit."""

    def run_audit(spec: AuditSpec, on_progress: Any = None) -> Any:
        raise JournalError("refused")

    install_engine(run_audit)
    path = tmp_path / "a.yaml"
    path.write_text(
        "version: 1\ndefaults: {mechanism: m:f, d1: 0, d2: 1, claim: {epsilon: 1}}\n"
        "audits:\n  - {name: one}\n  - {name: two}\n"
    )
    result = dpaudit("run", path, "--journal", tmp_path / "my j", "--resume")
    commands = [line for line in result.stdout.splitlines() if "repeat " in line]
    assert len(commands) == 2
    assert all(f"--journal '{tmp_path / 'my j'}' --resume" in line for line in commands)


@pytest.mark.parametrize(
    ("audits", "is_said"),
    [
        ("{name: a, seed: 1}, {name: b, seed: 1}", True),
        ("{name: a}, {name: b}, {name: c, seed: 7}", True),
        ("{name: a, seed: 1}, {name: b, seed: 2}", False),
        ("{name: a, seed: 1}, {name: b, seed: 1, exact: true}", False),
    ],
)
def test_shared_seeds_are_said_in_the_summary(
    dpaudit: Any, tmp_path: Path, audits: str, is_said: bool
) -> None:
    (tmp_path / "a.yaml").write_text(
        "version: 1\n"
        "defaults: {mechanism: 'mechanisms.randomized_response:randomized_response', d1: 0,\n"
        "  d2: 1, claim: {epsilon: 2}, samples: 1000}\n"
        f"audits: [{audits}]\n"
    )
    result = dpaudit("run", tmp_path / "a.yaml")
    assert result.exit_code == 0
    assert ("Audits with the same " in result.stdout) is is_said
