from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dpaudit.config.settings import substitute
from dpaudit.config.yaml_files import load_config
from tests.raising import placed, refusal

HEAD = """version: 1
defaults: {mechanism: "mechanisms.laplace:laplace", d1: 0, d2: 1}
audits:
"""


@pytest.fixture
def load(tmp_path: Path) -> Any:
    def loaded(body: str) -> Any:
        path = tmp_path / "audits.yaml"
        path.write_text(HEAD + body)
        return load_config(path)

    return loaded


def test_matrix_expands_names_params_and_claims(load: Any) -> None:
    specs = load(
        "  - name: laplace\n"
        "    matrix: {epsilon: [0.1, 1, 4]}\n"
        "    params: {epsilon: '${epsilon}'}\n"
        "    claim: {epsilon: '${epsilon}'}\n"
    )
    assert [spec.name for spec in specs] == [
        "laplace[epsilon=0.1]",
        "laplace[epsilon=1]",
        "laplace[epsilon=4]",
    ]
    assert [spec.claim.epsilon for spec in specs] == [0.1, 1.0, 4.0]
    assert [spec.target.params for spec in specs] == [{"epsilon": e} for e in (0.1, 1, 4)]


def test_several_axes_are_a_product_in_the_order_of_the_file(load: Any) -> None:
    specs = load(
        "  - matrix: {shift: [[1], {a: 2}], epsilon: [1, 2]}\n"
        "    init: ['${shift}', 'x${epsilon}']\n"
        "    d1: '${shift}'\n"
        "    claim: {epsilon: '${epsilon}'}\n"
    )
    assert [spec.name for spec in specs] == [
        "laplace[shift=[1],epsilon=1]",
        "laplace[shift=[1],epsilon=2]",
        "laplace[shift={'a': 2},epsilon=1]",
        "laplace[shift={'a': 2},epsilon=2]",
    ]
    assert [spec.target.init for spec in specs][1:3] == [[[1], "x2"], [{"a": 2}, "x1"]]
    assert [spec.pairs[0].d1 for spec in specs] == [[1], [1], {"a": 2}, {"a": 2}]


REFUSED = [
    (
        "  - matrix: {epsilon: [1]}\n    claim:\n      epsilon: '${epsilom}'\n    d1: '${epsilon}'",
        "matrix-invalid",
        6,
    ),
    ("  - claim: {epsilon: '${e}'}", "matrix-invalid", 4),
    ("  - claim: {epsilon: 1}\n    matrix: [1]", "matrix-invalid", 5),
    ("  - claim: {epsilon: 1}\n    matrix: {e: 1}", "matrix-invalid", 5),
    ("  - claim: {epsilon: 1}\n    matrix: {e: []}", "matrix-invalid", 5),
    ("  - claim: {epsilon: 1}\n    matrix: {e: [1]}", "matrix-invalid", 5),
    ("  - claim: {epsilon: '${e}'}\n    matrix: {e: [1, 1]}", "name-not-unique", 4),
]


def test_bad_matrices_are_refused_with_their_line(load: Any) -> None:
    assert [(body, *placed(load, body)) for body, _, _ in REFUSED] == REFUSED
    assert "Did you mean 'epsilon'?" in str(refusal(load, REFUSED[0][0]))


def test_dollar_dollar_stands_for_the_text() -> None:
    assert substitute("$${e} costs $3 or ${e}", {"e": 4}) == "${e} costs $3 or 4"
    assert substitute("$${e}", {"e": 4}) == "${e}"
    assert substitute(["${e}", {"k": "${e}"}], {"e": [1]}) == [[1], {"k": [1]}]


def test_a_matrix_of_too_many_combinations_is_counted_not_expanded(load: Any) -> None:
    axis = list(range(1000))
    body = (
        "  - name: laplace\n"
        f"    matrix: {{epsilon: {axis}, a: {axis}, b: {axis}}}\n"
        "    params: {a: '${a}', b: '${b}'}\n"
        "    claim: {epsilon: '${epsilon}'}\n"
    )
    assert placed(load, body) == ("matrix-invalid", 5)
    assert "1,000,000,000" in str(refusal(load, body))
