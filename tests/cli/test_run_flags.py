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
    (spec,) = asked
    assert (spec.name, spec.target.path) == ("laplace", "my.module:laplace")
    assert (spec.pairs[0].d1, spec.pairs[0].d2, spec.claim) == (0, 1, PureDP(1.0))
    defaults = {"samples": 1_000_000, "confidence": 0.99, "seed": 0, "workers": "auto"}
    defaults |= {"bound": "game", "stop": "auto", "on_error": "auto", "expect": None}
    assert {name: setting(spec, name) for name in defaults} == defaults


@pytest.mark.parametrize(
    ("flags", "field", "value"),
    [
        (["--samples", "1000000"], "samples", 1_000_000),
        (["--samples", "1,000,000"], "samples", 1_000_000),
        (["--samples", "2e6"], "samples", 2_000_000),
        (["--time", "30s"], "time", 30.0),
        (["--confidence", "0.9"], "confidence", 0.9),
        (["--seed", "7"], "seed", 7),
        (["--workers", "2"], "workers", 2),
        (["--workers", "auto"], "workers", "auto"),
        (["--bound", "clopper-pearson"], "bound", "clopper-pearson"),
        (["--on-error", "fail"], "on_error", "fail"),
        (["--expect", "pass"], "expect", "pass"),
        (["--stop", "never"], "stop", "never"),
        (["--floating-point"], "floating_point", True),
        (["--timing"], "timing", True),
        (["--repeat", "3"], "tested", PureDP(3.0)),
        (["--delta", "1e-5"], "claim", ApproximateDP(1.0, 1e-5)),
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
        (["--param", "weights=[1, 2]"], "params", {"weights": [1, 2]}),
        (["--param", "text=a=b"], "params", {"text": "a=b"}),
        (["--init", "[1.0, 2.0]"], "init", [1.0, 2.0]),
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
    assert (spec.sampling.samples, spec.sampling.seed) == (5_000, 4)
    assert spec.claim == ApproximateDP(3.0, 0.1)
    assert isinstance(spec.target, ImportedTarget)
    assert spec.target.params == {"x": 1, "y": 2}


# Flags, the code they are refused with (None where click refuses them), what the message names.
REFUSED: list[tuple[list[str], str | None, str]] = [
    (["--confidence", "1"], "option-invalid", "--confidence=1.0"),
    (["--time", "soon"], "option-invalid", "--time='soon'"),
    (["--memory-limit", "much"], "option-invalid", "--memory-limit='much'"),
    (["--param", "scale"], "option-invalid", "--param 'scale'"),
    (["--d1", "{"], "yaml-invalid", "--d1: "),
    (["--d1", ""], "value-malformed", "--d1: "),
    (["--d1", "!!python/object:os.system {}"], "value-refused", "!!python"),
    (["--adjacency", "neighbours"], "adjacency-invalid", "--adjacency='neighbours'"),
]
# The same for claims, targets and combinations.
COMBINATIONS = [
    (["--repeat", "0"], "--repeat=0"),
    (["--epsilon", "-1"], "--epsilon=-1.0"),
    (["--delta", "1"], "--delta=1.0"),
    (["--delta", "0.1", "--repeat", "10"], "--repeat=10"),
    (["--timing", "--exact"], "--timing needs draws, and --exact"),
    (["--resume"], "--journal DIR"),
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
        (["m:f"], "option-missing", "--d1, --d2, --epsilon"),
        (["m:f", "m:g", "--d1", "0"], "arguments-wrong", "2 (m:f, m:g)"),
        (["m:f", "audits.yaml"], "arguments-wrong", "'audits.yaml'"),
    ]
    for words, code, named in requests:
        found, line = refused("run", *words)
        assert (found, asked) == (code, []), words
        assert named in line
