from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit.claims import ApproximateDP, ProbabilisticDP, PureDP
from dpaudit.config.building import build_spec
from dpaudit.config.yaml_files import check_config, load_config
from dpaudit.errors import ClaimError
from dpaudit.inputs.adjacency import Adjacency
from dpaudit.inputs.yaml_values import parse_yaml
from dpaudit.targets.target import ImportedTarget
from tests.raising import code, placed, refusal

AUDIT = """version: 1
audits:
  - name: one
    mechanism: mechanisms.laplace:laplace
    d1: 0
    d2: 1
    claim: {epsilon: 1}
"""


@pytest.fixture
def load(tmp_path: Path) -> Any:
    def loaded(text: str, **overrides: Any) -> Any:
        path = tmp_path / "audits.yaml"
        path.write_text(text)
        return load_config(path, overrides)

    return loaded


def audit_with(*lines: str) -> str:
    return AUDIT + "".join(f"    {line}\n" for line in lines)


def test_smallest_audit(load: Any) -> None:
    (spec,) = load(AUDIT)
    assert spec.name == "one"
    assert spec.target == ImportedTarget(path="mechanisms.laplace:laplace")
    assert (spec.pairs[0].d1, spec.pairs[0].d2) == (0, 1)
    assert spec.pairs[0].label == "d1 = 0, d2 = 1"
    assert spec.claim == PureDP(1.0)
    assert (
        spec.sampling.samples,
        spec.statistics.confidence,
        spec.sampling.seed,
        spec.sampling.time,
    ) == (1_000_000, 0.99, 0, None)
    assert spec.sampling.workers == "auto"


def test_every_key(load: Any) -> None:
    (spec,) = load(
        """
version: 1
audits:
  - name: all
    mechanism: my.noise:Noise
    params: {shift: 2}
    init: [1.0, 1e-3]
    call: add
    factory: true
    batch_arg: count
    post_process: my.noise:after
    as: array
    adjacency: l1:2
    pairs:
      - {d1: [0, 1], d2: [0, 2]}
      - {d1: [0], d2: [4], adjacency: {linf: 4}, name: far}
    claim: {definition: probabilistic, epsilon: 1, delta: 1e-5}
    time: 2m
    confidence: 0.95
    seed: 7
    workers: 2
    bound: clopper-pearson
    stop: never
    on_error: fail
    expect: violation
"""
    )
    assert spec.target == ImportedTarget(
        path="my.noise:Noise",
        params={"shift": 2},
        init=[1.0, 0.001],
        call="add",
        factory=True,
        batch_arg="count",
        post_process="my.noise:after",
    )
    assert [pair.adjacency for pair in spec.pairs] == [Adjacency("l1", 2), Adjacency("linf", 4)]
    assert [pair.label for pair in spec.pairs] == ["d1 = [0, 1], d2 = [0, 2]", "far"]
    assert all(isinstance(pair.d1, np.ndarray) for pair in spec.pairs)
    assert spec.claim == ProbabilisticDP(1.0, 1e-5)
    assert (spec.sampling.time, spec.statistics.confidence, spec.sampling.seed) == (120.0, 0.95, 7)
    assert (spec.sampling.workers, spec.statistics.bound, spec.sampling.full) == (
        2,
        "clopper-pearson",
        True,
    )
    assert (spec.sampling.on_error, spec.requirements.expect) == ("fail", "violation")


@pytest.mark.parametrize("text", ["100000", "100_000", "1e5", "1.0e+5"])
def test_numbers_of_draws(load: Any, text: str) -> None:
    samples = load(audit_with(f"samples: {text}"))[0].sampling.samples
    assert (samples, type(samples)) == (100_000, int)


def test_random_seed_is_drawn(load: Any) -> None:
    seeds = {load(audit_with("seed: random"))[0].sampling.seed for _ in range(3)}
    assert len(seeds) == 3


def test_defaults_are_replaced_key_by_key(load: Any) -> None:
    specs = load(
        """
version: 1
defaults: {mechanism: "a.b:f", d1: 0, d2: 1, samples: 5000, claim: {epsilon: 1, delta: 0.1}}
audits:
  - name: x
  - {name: y, claim: {epsilon: 2}, samples: 6000}
  - {name: z, pairs: [{d1: 5, d2: 6}]}
"""
    )
    assert [spec.claim for spec in specs] == [
        ApproximateDP(1, 0.1),
        PureDP(2),
        ApproximateDP(1, 0.1),
    ]
    assert [spec.sampling.samples for spec in specs] == [5000, 6000, 5000]
    assert [spec.pairs[0].d1 for spec in specs] == [0, 0, 5]


def test_overrides_win_and_add_to_claim_and_params(load: Any) -> None:
    text = audit_with("params: {epsilon: 1, shift: 2}").replace(
        "{epsilon: 1}\n    params", "{epsilon: 1, delta: 0.2}\n    params"
    )
    (spec,) = load(text, claim={"epsilon": 3}, params={"shift": 9}, samples=2000, seed=5)
    assert spec.claim == ApproximateDP(3, 0.2)
    assert spec.target.params == {"epsilon": 1, "shift": 9}
    assert (spec.sampling.samples, spec.sampling.seed) == (2000, 5)
    pairs = AUDIT.replace("d1: 0", "pairs: [{d1: 0, d2: 1}]").replace("    d2: 1\n", "")
    assert load(pairs, d1=8, d2=9)[0].pairs[0].d1 == 8


def test_null_is_a_dataset_and_no_value_elsewhere(load: Any) -> None:
    text = AUDIT.replace("d1: 0", "d1: null") + "    samples: null\n"
    (spec,) = load(text)
    assert spec.pairs[0].d1 is None
    assert spec.sampling.samples == 1_000_000


def test_files_beside_the_configuration(
    load: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rows.json").write_text("[1, 2]")
    (tmp_path / "noise.py").write_text("def draw(x): return x")
    text = AUDIT.replace("mechanisms.laplace:laplace", "noise.py:draw").replace(
        "d1: 0", "d1: '@rows.json'"
    )
    (spec,) = load(text, post_process="noise.py:draw")
    assert spec.pairs[0].d1 == [1, 2]
    assert spec.pairs[0].label == "d1 = @rows.json, d2 = 1"
    assert spec.target.path == spec.target.post_process == f"{tmp_path / 'noise.py'}:draw"
    monkeypatch.chdir(tmp_path)
    assert load(text)[0].target.path == "noise.py:draw"


def _without(line: str) -> str:
    return AUDIT.replace(f"    {line}\n", "")


REFUSED: list[tuple[str, str, int | None]] = [
    ("", "file-empty", None),
    ("- 1", "configuration-shape", None),
    ("audits: [{}]", "version-unknown", None),
    ("version: 2\naudits: [{}]", "version-unknown", 1),
    ("version: 1\naudits: [3]", "configuration-shape", 2),
    ("version: 1\naudit: []", "key-unknown", 2),
    ("version: 1\naudits: [", "yaml-invalid", 3),
    ("version: 1\nversion: 1", "key-twice", 2),
    (f"version: 1\na: 1{'0' * 5000}", "value-refused", 2),
    (audit_with("sample: 3"), "key-unknown", 8),
    (audit_with("true: 3"), "key-unknown", 3),
    (audit_with("samples: 1000.5"), "option-invalid", 8),
    (audit_with("seed: soon"), "option-invalid", 8),
    (audit_with("time: soon"), "option-invalid", 8),
    (audit_with("attacks: [absent]"), "attack-not-found", 8),
    (audit_with("params: [1]"), "option-invalid", 8),
    (audit_with("adjacency: near"), "adjacency-invalid", 8),
    (audit_with("adjacency: l1:0.5"), "pair-not-neighbours", 6),
    (_without("d2: 1"), "option-missing", 3),
    (_without("claim: {epsilon: 1}"), "option-missing", 3),
    (AUDIT.replace("d1: 0", "d1: !!python/object/apply:os.getcwd []"), "value-refused", 5),
    (AUDIT.replace("d2: 1", "d2: '@none.json'"), "file-not-found", 6),
    (AUDIT.replace("{epsilon: 1}", "1"), "option-invalid", 7),
    (AUDIT.replace("{epsilon: 1}", "{definition: 3}"), "option-invalid", 7),
    (AUDIT.replace("audits:", "defaults:\n  samples: many\naudits:"), "option-invalid", 3),
    (AUDIT + "".join(AUDIT.splitlines(keepends=True)[2:]), "name-not-unique", 8),
]


def test_bad_files_are_refused_with_their_line(load: Any) -> None:
    found = [(text, *placed(load, text)) for text, _, _ in REFUSED]
    assert found == REFUSED


def test_bad_parameters_of_a_claim(load: Any) -> None:
    epsilons = [f"\n      epsilon: {value}" for value in ("-1", ".nan", ".inf", "one", "null")]
    deltas = [f"{{epsilon: 1, delta: {value}}}" for value in ("1", "-0.1", ".nan")]
    for claim in epsilons + deltas:
        error = refusal(load, AUDIT.replace("{epsilon: 1}", claim))
        assert isinstance(error, ClaimError)
        assert re.search(r"audits\.yaml:[78]: ", str(error))


def test_missing_and_unreadable_file(tmp_path: Path) -> None:
    assert code(load_config, tmp_path / "none.yaml") == "file-not-found"
    assert code(load_config, tmp_path) == "file-unreadable"
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00\x01")
    assert code(load_config, tmp_path / "binary.yaml") == "file-unreadable"


CONFIGS = Path(__file__).parents[3] / "configs"
# The other files need libraries that `make gallery`, `make watch` and `make all-libraries` install.
WITH_LIBRARIES = {"gallery", "watch", "opacus", "jax"}
READABLE = sorted(
    path
    for path in CONFIGS.rglob("*.yaml")
    if WITH_LIBRARIES.isdisjoint((path.parent.name, path.stem))
)


@pytest.mark.parametrize("path", READABLE, ids=lambda path: path.stem)
def test_configurations_of_the_project_can_be_read(path: Path) -> None:
    specs = load_config(path)
    assert specs
    assert all(spec.requirements.expect for spec in specs)


def test_a_claim_may_be_for_a_group() -> None:
    audit = {"mechanism": "m:f", "d1": 0, "d2": 3}
    assert build_spec({**audit, "claim": {"epsilon": 0.5, "group": 3}}).claim == PureDP(1.5)
    assert "group=0" in str(refusal(build_spec, {**audit, "claim": {"epsilon": 0.5, "group": 0}}))


def bomb(levels: int, indent: str = "") -> str:
    """Lines of which each repeats the one before ten times."""
    lines = [f"{indent}a0: &a0 [0, 1]"]
    lines += [
        f"{indent}a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, levels + 1)
    ]
    return "\n".join(lines) + "\n"


def test_aliases_that_stand_for_billions_are_refused(load: Any) -> None:
    audit = AUDIT.replace("    d1: 0\n", "    d1:\n" + bomb(9, "      "))
    assert code(load, audit) == "value-refused"


def test_some_aliases_are_what_yaml_has_them_for() -> None:
    rows = ", ".join(map(str, range(10_000)))
    value = parse_yaml(f"rows: &rows [{rows}]\nagain: [{', '.join(['*rows'] * 20)}]\n")
    assert value["again"] == [list(range(10_000))] * 20
    assert parse_yaml(bomb(3))["a3"][9][9][9] == [0, 1]


MISREAD = """version: 1
defaults: &usual
  d1: [é, None]
audits:
- {<<: *usual, name: a, mechanism: "mechanisms.laplace:laplace", claim: {epsilon: 1}, d2: [1, 2]}
- name: b
  mechanism: mechanisms.laplace:laplace
  claim: {epsilon: 1}
  params: {scale: 1/2, mode: "1/2"}
  pairs:
  - {d1: None, d2: "None"}
  - {d1: 'nan', d2: nan}
  - {d1: !!str None, d2: None or none}
  - {d1: data.csv, d2: [null, .nan, north, 1]}
- mechanism: mechanisms.laplace:laplace
  claim: {epsilon: 1}
  adjacency: add-remove
  search: {space: {table: {nan: {category: [a, None]}}}}
- mechanism: mechanisms.laplace:laplace
  d1: 0
  d2: ${x}
  matrix: {x: ["(1, 2)", (1, 2)]}
  claim: {epsilon: 1}
"""


def test_values_that_became_text_are_refused_with_their_lines(load: Any, tmp_path: Path) -> None:
    assert code(load, MISREAD) == "value-misread"
    (tmp_path / "all.yaml").write_text(MISREAD)
    said = [
        str(one).partition("all.yaml:")[2] for one in check_config(tmp_path / "all.yaml").problems
    ]
    lines = [one.partition(" is ")[0] for one in said if "is text here" in one or "read as" in one]
    assert lines == [
        "3: d1: None",
        "9: params: 1/2",
        "11: d1: None",
        "12: d2: nan",
        "18: category: None",
        "22: matrix: (1",
    ]
