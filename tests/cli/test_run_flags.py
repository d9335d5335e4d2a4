"""Every flag of `dpaudit run` reaches the audit as the key of a file would."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dpaudit.auditing.spec import AuditSpec
from dpaudit.claims import ApproximateDP, ProbabilisticDP, PureDP
from dpaudit.targets.target import ImportedTarget

TARGET = ("run", "my.module:laplace", "--d1", "0", "--d2", "1", "--epsilon", "1")


def test_a_target_alone_takes_the_defaults_of_an_audit(dpaudit: Any, asked: Any) -> None:
    assert dpaudit(*TARGET).exit_code == 0
    spec = asked[0]
    assert (spec.name, spec.target.path) == ("laplace", "my.module:laplace")
    assert (spec.pairs[0].d1, spec.pairs[0].d2) == (0, 1)
    assert (spec.samples, spec.confidence, spec.seed) == (1_000_000, 0.99, 0)
    assert (spec.workers, spec.bound, spec.full) == ("auto", "game", False)
    assert (spec.on_error, spec.expect, spec.claim) == ("auto", None, PureDP(1.0))


@pytest.mark.parametrize(
    ("flags", "field", "value"),
    [
        (["--samples", "1000000"], "samples", 1_000_000),
        (["--samples", "1_000_000"], "samples", 1_000_000),
        (["--samples", "1,000,000"], "samples", 1_000_000),
        (["--samples", "2e6"], "samples", 2_000_000),
        (["--time", "30s"], "time", 30.0),
        (["--time", "2m"], "time", 120.0),
        (["--confidence", "0.9"], "confidence", 0.9),
        (["--seed", "7"], "seed", 7),
        (["--workers", "2"], "workers", 2),
        (["--workers", "1e1"], "workers", 10),
        (["--workers", "auto"], "workers", "auto"),
        (["--bound", "clopper-pearson"], "bound", "clopper-pearson"),
        (["--on-error", "fail"], "on_error", "fail"),
        (["--expect", "pass"], "expect", "pass"),
        (["--full"], "full", True),
        (["--floating-point"], "floating_point", True),
        (["--timing"], "timing", True),
        (["--repeat", "3"], "tested", PureDP(3.0)),
        (["--repeat", "1"], "runs", 1),
        (["--delta", "1e-5"], "claim", ApproximateDP(1.0, 1e-5)),
        (["--delta", "0"], "claim", PureDP(1.0)),
        (
            ["--delta", "0.1", "--definition", "probabilistic"],
            "claim",
            ProbabilisticDP(1.0, 0.1),
        ),
    ],
)
def test_flags_of_the_audit(
    dpaudit: Any, asked: list[AuditSpec], flags: list[str], field: str, value: Any
) -> None:
    assert dpaudit(*TARGET, *flags).exit_code == 0
    assert getattr(asked[0], field) == value


@pytest.mark.parametrize(
    ("flags", "field", "value"),
    [
        (["--param", "scale=2", "--param", "kind=fast"], "params", {"scale": 2, "kind": "fast"}),
        (["--param", "on=true"], "params", {"on": True}),
        (["--param", "weights=[1, 2]"], "params", {"weights": [1, 2]}),
        (["--param", "text=a=b"], "params", {"text": "a=b"}),
        (["--init", "[1.0, 2.0]"], "init", [1.0, 2.0]),
        (["--init", "{scale: 2}"], "init", {"scale": 2}),
        (["--call", "add_noise"], "call", "add_noise"),
        (["--factory"], "factory", True),
        (["--batch-arg", "n"], "batch_arg", "n"),
        (["--post-process", "my.module:merge"], "post_process", "my.module:merge"),
    ],
)
def test_flags_of_the_target(
    dpaudit: Any, asked: list[AuditSpec], flags: list[str], field: str, value: Any
) -> None:
    assert dpaudit(*TARGET, *flags).exit_code == 0
    target = asked[0].target
    assert isinstance(target, ImportedTarget)
    assert getattr(target, field) == value


def test_flags_of_the_pair(dpaudit: Any, asked: list[AuditSpec], tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text("[1, 2]")
    words = ["run", "m:f", "--d1", f"@{tmp_path / 'rows.json'}", "--d2", "[1, 3]"]
    result = dpaudit(*words, "--epsilon", "1", "--as", "array", "--adjacency", "replace")
    assert result.exit_code == 0, result.output
    pair = asked[0].pairs[0]
    assert pair.d1.tolist() == [1, 2]
    assert pair.adjacency is not None
    assert pair.adjacency.kind == "replace"


def test_a_random_seed_is_drawn_and_printed(dpaudit: Any, asked: list[AuditSpec]) -> None:
    result = dpaudit(*TARGET, "--seed", "random")
    assert f"--seed {asked[0].seed} repeats this run" in result.stderr
    assert f"--epsilon 1 --seed {asked[0].seed}\n" in result.stdout
    assert dpaudit(*TARGET, "--seed", "random").exit_code == 0
    assert asked[0].seed != asked[1].seed


def test_flags_override_a_file_only_where_they_are_given(
    dpaudit: Any, asked: list[AuditSpec], config: Any
) -> None:
    path = config("a", more=", samples: 5000, claim: {epsilon: 2, delta: 0.1}, params: {x: 1}")
    assert dpaudit("run", path, "--epsilon", "3", "--param", "y=2", "--seed", "4").exit_code == 0
    spec = asked[0]
    assert (spec.samples, spec.seed, spec.claim) == (5_000, 4, ApproximateDP(3.0, 0.1))
    assert isinstance(spec.target, ImportedTarget)
    assert spec.target.params == {"x": 1, "y": 2}


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--epsilon", "-1"], "--epsilon=-1.0 must be a finite number, at least 0"),
        (["--epsilon", "nan"], "--epsilon=nan must be a finite number"),
        (["--delta", "1"], "--delta=1.0 must lie in [0, 1)"),
        (["--delta", "-0.1"], "--delta=-0.1 must lie in [0, 1)"),
        (["--confidence", "1"], "--confidence=1.0 must be a number from 0.5 to below 1"),
        (["--confidence", "nan"], "--confidence=nan must be a number from 0.5 to below 1"),
        (["--samples", "99"], "--samples=99 is too few"),
        (["--samples", "1.5e0"], "--samples '1.5e0' must be a whole number"),
        (["--samples", "many"], "--samples 'many' must be a whole number"),
        (["--samples", "inf"], "--samples 'inf' must be a whole number"),
        (["--time", "soon"], "--time='soon' must be a duration"),
        (["--time", "0"], "--time=0.0 must be above 0"),
        (["--seed", "-1"], "--seed '-1' must be a whole number, at least 0, or random"),
        (["--seed", "1.5"], "--seed '1.5' must be a whole number"),
        (
            ["--workers", "0"],
            "--workers=0 must be a whole number of processes, at least 1, or auto",
        ),
        (
            ["--workers", "many"],
            "--workers='many' must be a whole number of processes, at least 1, or auto",
        ),
        (
            ["--workers", "1.5"],
            "--workers='1.5' must be a whole number of processes, at least 1, or auto",
        ),
        (["--repeat", "0"], "--repeat=0 must be a whole number of runs, at least 1"),
        (["--repeat", "some"], "--repeat 'some' must be a whole number"),
        (["--delta", "0.1", "--repeat", "10"], "--repeat=10 leaves nothing to test"),
        (["--timing", "--exact"], "--timing needs draws, and --exact makes no draws"),
        (["--attack", "a:b", "--exact"], "--attack needs draws, and --exact makes no draws"),
        (["--memory-limit", "much"], "--memory-limit='much' must be a size"),
        (["--timeout", "5s"], "--timeout needs a separate process"),
        (["--resume"], "--resume needs the journal to continue from; give --journal DIR as well"),
        (["--d1", "{"], "--d1: "),
        (["--d1", ""], "--d1: the value is empty"),
        (["--d1", "@missing.csv"], "there is no such file"),
        (["--d1", "!!python/object:os.system {}"], "is refused"),
        (["--param", "scale"], "--param 'scale' must be name=value"),
        (["--param", "a=1", "--param", "a=2"], "--param a is given more than once"),
        (["--init", "3"], "--init=3 must be a list or a mapping"),
        (["--adjacency", "neighbours"], "--adjacency='neighbours' is not known"),
        (["--bound", "bayes"], "'bayes'"),
        (["--definition", "pur"], "'pur'"),
        (["--epsilonn", "1"], "Did you mean"),
    ],
)
def test_wrong_values_are_refused_in_one_line(
    dpaudit: Any, asked: list[AuditSpec], flags: list[str], message: str
) -> None:
    result = dpaudit(*_without(flags[0]), *flags)
    assert (result.exit_code, result.stdout, asked) == (2, "", [])
    assert message in result.stderr
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1


def _without(flag: str) -> tuple[str, ...]:
    """Return the command line without a flag, which may be given once."""
    if flag not in TARGET:
        return TARGET
    place = TARGET.index(flag)
    return (*TARGET[:place], *TARGET[place + 2 :])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "there is no audits.yaml here"),
        (["--d1", "0", "--d2", "1"], "missing argument"),
        (["m:f"], "--d1, --d2, --epsilon are missing"),
        (["m:f", "--d1", "0", "--d2", "1"], "--epsilon is missing"),
        (["m:f", "m:g", "--d1", "0"], "one import path at a time"),
        (["m:f", "audits.yaml"], "not both: 'audits.yaml'"),
        (["missing.yaml"], "there is no configuration file 'missing.yaml'"),
    ],
)
def test_incomplete_requests(
    dpaudit: Any, asked: list[AuditSpec], words: list[str], message: str
) -> None:
    result = dpaudit("run", *words)
    assert (result.exit_code, asked) == (2, [])
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
