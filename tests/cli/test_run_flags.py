"""Every flag of `dpaudit run` reaches the audit as the key of a file would."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dpaudit.auditing.spec import AuditSpec
from dpaudit.claims import ApproximateDP, ProbabilisticDP, PureDP
from dpaudit.targets.target import ImportedTarget
from tests.specs import setting

TARGET = ("run", "my.module:laplace", "--d1", "0", "--d2", "1", "--epsilon", "1")


def test_a_target_alone_takes_the_defaults_of_an_audit(dpaudit: Any, asked: Any) -> None:
    assert dpaudit(*TARGET).exit_code == 0
    spec = asked[0]
    assert (spec.name, spec.target.path) == ("laplace", "my.module:laplace")
    assert (spec.pairs[0].d1, spec.pairs[0].d2) == (0, 1)
    assert (spec.sampling.samples, spec.statistics.confidence, spec.sampling.seed) == (
        1_000_000,
        0.99,
        0,
    )
    assert (spec.sampling.workers, spec.statistics.bound, spec.sampling.full) == (
        "auto",
        "game",
        False,
    )
    assert (spec.sampling.on_error, spec.requirements.expect, spec.claim) == (
        "auto",
        None,
        PureDP(1.0),
    )


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
        (["--stop", "never"], "stop", "never"),
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
    assert setting(asked[0], field) == value


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
    assert f"--seed {asked[0].sampling.seed} repeats this run" in result.stderr
    assert f"--epsilon 1 --seed {asked[0].sampling.seed}\n" in result.stdout
    assert dpaudit(*TARGET, "--seed", "random").exit_code == 0
    assert asked[0].sampling.seed != asked[1].sampling.seed


def test_flags_override_a_file_only_where_they_are_given(
    dpaudit: Any, asked: list[AuditSpec], config: Any
) -> None:
    path = config("a", more=", samples: 5000, claim: {epsilon: 2, delta: 0.1}, params: {x: 1}")
    assert dpaudit("run", path, "--epsilon", "3", "--param", "y=2", "--seed", "4").exit_code == 0
    spec = asked[0]
    assert (spec.sampling.samples, spec.sampling.seed, spec.claim) == (
        5_000,
        4,
        ApproximateDP(3.0, 0.1),
    )
    assert isinstance(spec.target, ImportedTarget)
    assert spec.target.params == {"x": 1, "y": 2}


# Flags, the code they are refused with (None where click refuses them), what the message names.
REFUSED: list[tuple[list[str], str | None, str]] = [
    (["--confidence", "1"], "option-invalid", "--confidence=1.0"),
    (["--confidence", "nan"], "option-invalid", "--confidence=nan"),
    (["--samples", "99"], "option-invalid", "--samples=99"),
    (["--samples", "1.5e0"], "option-invalid", "--samples='1.5e0'"),
    (["--samples", "many"], "option-invalid", "--samples='many'"),
    (["--samples", "inf"], "option-invalid", "--samples='inf'"),
    (["--time", "soon"], "option-invalid", "--time='soon'"),
    (["--time", "0"], "option-invalid", "--time='0'"),
    (["--seed", "-1"], "option-invalid", "--seed=-1"),
    (["--seed", "1.5"], "option-invalid", "--seed='1.5'"),
    (["--workers", "0"], "option-invalid", "--workers=0"),
    (["--workers", "many"], "option-invalid", "--workers='many'"),
    (["--workers", "1.5"], "option-invalid", "--workers='1.5'"),
    (["--repeat", "some"], "option-invalid", "--repeat='some'"),
    (["--memory-limit", "much"], "option-invalid", "--memory-limit='much'"),
    (["--init", "3"], "option-invalid", "--init=3"),
    (["--param", "scale"], "option-invalid", "--param 'scale'"),
    (["--param", "a=1", "--param", "a=2"], "options-conflict", "--param a"),
    (["--d1", "{"], "yaml-invalid", "--d1: "),
    (["--d1", ""], "value-malformed", "--d1: "),
    (["--d1", "@missing.csv"], "file-not-found", "missing.csv"),
    (["--d1", "!!python/object:os.system {}"], "value-refused", "!!python"),
    (["--adjacency", "neighbours"], "adjacency-invalid", "--adjacency='neighbours'"),
    (["--bound", "bayes"], None, "'bayes'"),
    (["--epsilonn", "1"], None, "'--epsilon'"),
]
# The same for claims, targets and combinations.
COMBINATIONS = [
    (["--repeat", "0"], "--repeat=0"),
    (["--epsilon", "-1"], "--epsilon=-1.0"),
    (["--epsilon", "nan"], "--epsilon=nan"),
    (["--delta", "1"], "--delta=1.0"),
    (["--delta", "-0.1"], "--delta=-0.1"),
    (["--delta", "0.1", "--repeat", "10"], "--repeat=10"),
    (["--timing", "--exact"], "--timing needs draws, and --exact"),
    (["--attack", "a:b", "--exact"], "--attack needs draws, and --exact"),
    (["--resume"], "--journal DIR"),
    (["--definition", "pur"], "'pur'"),
]


def test_wrong_values_are_refused_in_one_line(refused: Any, asked: list[AuditSpec]) -> None:
    for flags, code, named in REFUSED:
        found, line = refused(*_without(flags[0]), *flags)
        assert (found, asked) == (code, []), flags
        assert named in line
    for flags, named in COMBINATIONS:
        _, line = refused(*_without(flags[0]), *flags)
        assert named in line


def _without(flag: str) -> tuple[str, ...]:
    """Return the command line without a flag, which may be given once."""
    if flag not in TARGET:
        return TARGET
    place = TARGET.index(flag)
    return (*TARGET[:place], *TARGET[place + 2 :])


def test_incomplete_requests(
    refused: Any, asked: list[AuditSpec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a folder without audits.yaml
    requests: list[tuple[list[str], str | None, str]] = [
        ([], "option-missing", "audits.yaml"),
        (["--d1", "0", "--d2", "1"], None, "argument"),
        (["m:f"], "option-missing", "--d1, --d2, --epsilon"),
        (["m:f", "--d1", "0", "--d2", "1"], "option-missing", "--epsilon"),
        (["m:f", "m:g", "--d1", "0"], "arguments-wrong", "2 (m:f, m:g)"),
        (["m:f", "audits.yaml"], "arguments-wrong", "'audits.yaml'"),
        (["missing.yaml"], "file-not-found", "'missing.yaml'"),
    ]
    for words, code, named in requests:
        found, line = refused("run", *words)
        assert (found, asked) == (code, []), words
        assert named in line
