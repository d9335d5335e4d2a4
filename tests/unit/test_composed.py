"""Records made of smaller records: fields are read, made and replaced as if there were no parts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Any

import pytest

from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.certificate import Certificate
from dpaudit.composed import composed, flat_fields, flat_hints, part, parts, replace, value_of
from tests.cli.made_results import CERTIFICATE


@dataclass(frozen=True)
class Inner:
    first: int
    second: str = "two"


@dataclass(frozen=True)
class Outer:
    name: str
    inner: Inner = field(metadata=part(Inner))
    last: float = 0.5


ONE = Outer("one", Inner(1))


def test_a_part_stands_for_its_fields() -> None:
    assert list(flat_fields(Outer)) == ["name", "first", "second", "last"]
    assert flat_hints(Outer) == {"name": str, "first": int, "second": str, "last": float}
    assert [value_of(ONE, name) for name in flat_fields(Outer)] == ["one", 1, "two", 0.5]


def test_records_are_made_of_fields_or_of_whole_parts() -> None:
    assert composed(Outer, name="one", first=1) == ONE
    assert composed(Outer, name="one", inner=Inner(1)) == ONE
    for wrong in ({"name": "one"}, {"name": "one", "first": 1, "third": 3}):
        with pytest.raises(TypeError):
            composed(Outer, **wrong)


def test_fields_of_parts_and_of_the_record_are_replaced_together() -> None:
    assert replace(ONE, second="2", last=1.0) == Outer("one", Inner(1, "2"), 1.0)
    assert replace(ONE, inner=Inner(3), second="2").inner == Inner(3, "2")
    assert replace(ONE.inner, first=2) == Inner(2)
    with pytest.raises(TypeError):
        replace(ONE, third=3)


@pytest.mark.parametrize("kind", [AuditSpec, Certificate])
def test_no_name_belongs_to_two_parts(kind: Any) -> None:
    names = [one.name for one in fields(kind)]
    names += [one.name for inner in parts(kind).values() for one in fields(inner)]
    assert [name for name, often in Counter(names).items() if often > 1] == []


def test_every_field_of_a_part_is_an_attribute_of_the_certificate() -> None:
    for name in flat_fields(Certificate):
        assert getattr(CERTIFICATE, name) is value_of(CERTIFICATE, name)
