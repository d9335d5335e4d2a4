from __future__ import annotations

import math
from typing import Any

import pytest

from dpaudit.adapters.pmf import MAX_OUTCOMES, law_table
from dpaudit.errors import TargetError
from dpaudit.targets.target import AnyTarget, CallableTarget, ComposedTarget, ImportedTarget

RESPONSE = ImportedTarget(path="mechanisms.randomized_response:randomized_response")


def stating(pmf: Any, **extra: Any) -> CallableTarget:
    def mechanism(dataset: Any) -> Any:
        raise AssertionError("nothing is drawn")

    mechanism.pmf = pmf  # type: ignore[attr-defined]  # functions take any attribute
    return CallableTarget(function=mechanism, **extra)


class Coin:
    def __init__(self, heads: float) -> None:
        self.heads = heads

    def toss(self, dataset: int) -> str:
        raise AssertionError("nothing is drawn")

    def __call__(self, dataset: int) -> str:
        return self.toss(dataset)

    def pmf(self, dataset: int) -> dict[str, float]:
        heads = self.heads if dataset else 1 - self.heads
        return {"heads": heads, "tails": 1 - heads}


def test_both_laws_side_by_side_in_order() -> None:
    assert law_table(RESPONSE, 0, 1) == (("0", 0.75, 0.25), ("1", 0.25, 0.75))
    target = ImportedTarget(path=RESPONSE.path, params={"p": 0.0})
    assert law_table(target, 0, 1) == (("0", 0.5, 0.5), ("1", 0.5, 0.5))


@pytest.mark.parametrize(
    "target",
    [
        CallableTarget(function=Coin(0.75)),
        CallableTarget(function=Coin(0.75).toss),
        ImportedTarget(path=f"{__file__}:Coin", init=[0.75], call="toss"),
        ImportedTarget(path=f"{__file__}:Coin", init=[0.75], factory=True),
    ],
)
def test_an_object_a_method_a_class_and_a_factory(target: AnyTarget) -> None:
    assert law_table(target, 0, 1) == (("'heads'", 0.25, 0.75), ("'tails'", 0.75, 0.25))


def test_outcomes_of_probability_zero_and_of_one_law_only() -> None:
    laws = {0: {"a": 1.0, "b": 0.0}, 1: {"c": 0.5, "a": 0.5}}
    assert law_table(stating(laws.get), 0, 1) == (("'a'", 1.0, 0.5), ("'c'", 0.0, 0.5))


def test_post_processing_maps_the_law() -> None:
    law = {0: 0.25, 1: 0.25, 2: 0.5}
    target = stating(lambda dataset: law, post_process=lambda output: output % 2)
    assert law_table(target, 0, 1) == (("0", 0.75, 0.75), ("1", 0.25, 0.25))


def test_an_exception_of_post_processing_is_an_outcome() -> None:
    law = {0: 0.25, 2: 0.75}
    target = stating(lambda dataset: law, post_process=lambda output: 1 / output)
    assert law_table(target, 0, 1) == (
        ("raised ZeroDivisionError", 0.25, 0.25),
        ("0.5", 0.75, 0.75),
    )


def test_a_composition_has_the_product_of_the_laws() -> None:
    target = ComposedTarget(parts=(RESPONSE, RESPONSE))
    assert law_table(target, 0, 1)[0] == ("(0, 0)", 0.5625, 0.0625)
    summed = ComposedTarget(parts=(RESPONSE, RESPONSE), post_process="builtins:sum")
    assert law_table(summed, 0, 1) == (
        ("0", 0.5625, 0.0625),
        ("1", 0.375, 0.375),
        ("2", 0.0625, 0.5625),
    )


def test_an_exception_of_one_part_is_not_processed_further() -> None:
    """As in sampling: a composition of which one part raises has no output to process."""
    inverse = stating(lambda dataset: {0: 0.25, 2: 0.75}, post_process=lambda output: 1 / output)
    target = ComposedTarget(parts=(inverse, RESPONSE), post_process="builtins:len")
    assert law_table(target, 0, 1) == (("raised ZeroDivisionError", 0.25, 0.25), ("2", 0.75, 0.75))


def test_the_last_function_gets_all_outcomes() -> None:
    table = law_table(RESPONSE, 0, 1, then=lambda outcomes: [value == 0 for value in outcomes])
    assert table == (("True", 0.75, 0.25), ("False", 0.25, 0.75))


HALF = stating(lambda dataset: dict.fromkeys(range(1_024), 1 / 1_024))


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (stating(lambda dataset: [0.5, 0.5]), "d1 .*list"),
        (stating(lambda dataset: {0: 0.5, 1: 0.4}), "d1 .*0.9"),
        (stating(lambda dataset: {0: 1.0 + 2e-9}), "d1 .*0, 1"),
        (stating(lambda dataset: {0: math.nan, 1: 1.0}), "d1 .*nan"),
        (stating(lambda dataset: {0: True}), "d1 .*True"),
        (stating({0: {0: 1.0}}.__getitem__), "d2 .*KeyError: 1"),
        (ImportedTarget(path="mechanisms.laplace:laplace"), "mechanisms.laplace:laplace"),
        (ComposedTarget(parts=(HALF, HALF)), f"{MAX_OUTCOMES:,}"),
    ],
)
def test_a_missing_or_invalid_pmf_is_an_error(target: AnyTarget, words: str) -> None:
    with pytest.raises(TargetError, match=words):
        law_table(target, 0, 1)


def test_rounding_of_the_sum_is_accepted() -> None:
    law = {**dict.fromkeys(range(10), 0.1), 10: 5e-10}
    assert len(law_table(stating(lambda dataset: law), 0, 1)) == 11
