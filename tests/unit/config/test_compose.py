"""`compose`, `range` and `exact` in configuration files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dpaudit.auditing.spec import AuditSpec
from dpaudit.config.yaml_files import load_config
from dpaudit.targets.target import ComposedTarget, ImportedTarget
from tests.raising import placed

HEAD = "version: 1\ndefaults: {d1: 0, d2: 1, claim: {epsilon: 1}}\naudits:\n"


@pytest.fixture
def load(tmp_path: Path) -> Any:
    def loaded(text: str, **overrides: Any) -> list[AuditSpec]:
        path = tmp_path / "audits.yaml"
        path.write_text(HEAD + text)
        return load_config(path, overrides)

    return loaded


def test_import_paths_and_mappings(load: Any) -> None:
    (spec,) = load(
        "  - compose:\n"
        "      - m:f\n"
        "      - {mechanism: m:Maker, init: [1], call: draw, params: {p: 2}, batch_arg: n,\n"
        "         factory: true, post_process: m:g}\n"
    )
    assert spec.name == "f + Maker"
    assert spec.target == ComposedTarget(
        parts=(
            ImportedTarget(path="m:f"),
            ImportedTarget(
                path="m:Maker",
                init=[1],
                call="draw",
                params={"p": 2},
                batch_arg="n",
                factory=True,
                post_process="m:g",
            ),
        )
    )


def test_post_process_of_the_whole_and_a_matrix(load: Any) -> None:
    specs = load(
        "  - matrix: {p: [0.1, 0.2]}\n"
        "    compose: [m:f, {mechanism: m:g, params: {p: '${p}'}}]\n"
        "    post_process: m:h\n"
    )
    assert [spec.name for spec in specs] == ["f + g[p=0.1]", "f + g[p=0.2]"]
    assert specs[1].target.post_process == "m:h"
    assert specs[1].target.parts[1].params == {"p": 0.2}


def test_range_and_exact(load: Any) -> None:
    plain, finite, exact = load(
        "  - {name: a, mechanism: m:f}\n"
        "  - {name: b, mechanism: m:f, range: [0, a, null, [1, 2], TypeError]}\n"
        "  - {name: c, mechanism: m:f, exact: true}\n"
    )
    assert (plain.statistics.range, plain.statistics.exact) == (None, False)
    assert finite.statistics.range == (0, "a", None, [1, 2], "TypeError")
    assert exact.statistics.exact


def test_defaults_of_the_other_kind_are_displaced(tmp_path: Path) -> None:
    path = tmp_path / "audits.yaml"
    path.write_text(
        "version: 1\n"
        "defaults: {mechanism: m:f, params: {p: 1}, d1: 0, d2: 1, claim: {epsilon: 1}}\n"
        "audits:\n  - compose: [m:g, m:h]\n"
    )
    assert load_config(path)[0].target.name == "m:g + m:h"
    path.write_text(
        "version: 1\n"
        "defaults: {compose: [m:g, m:h], d1: 0, d2: 1, claim: {epsilon: 1}}\n"
        "audits:\n  - {mechanism: m:f}\n"
    )
    assert load_config(path)[0].target == ImportedTarget(path="m:f")


REFUSED = [
    ("  - compose: []\n", "option-invalid", 4),
    ("  - compose:\n      - m:f\n      - 3\n", "option-invalid", 6),
    ("  - compose:\n      - m:f\n      - {params: {}}\n", "option-missing", 6),
    ("  - compose:\n      - {mechansim: m:f}\n", "key-unknown", 5),
    ("  - compose: [m:f, m:g]\n    mechanism: m:h\n", "options-conflict", 5),
    ("  - compose: [m:f, m:g]\n    factory: true\n", "options-conflict", 5),
    ("  - mechanism: m:f\n    range: 3\n", "option-invalid", 5),
    ("  - mechanism: m:f\n    exact: 1\n", "option-invalid", 5),
]


def test_wrong_audits_are_refused_with_their_line(load: Any) -> None:
    assert [(text, *placed(load, text)) for text, _, _ in REFUSED] == REFUSED
