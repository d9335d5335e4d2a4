"""The table of options agrees with flags, keys and keywords; errors spell options as written."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest

import dpaudit
from dpaudit.api import MoreOptions
from dpaudit.auditing.options import DEFAULTS, OPTIONS, flag_of, owned
from dpaudit.auditing.spec import AuditSpec
from dpaudit.cli.run import run
from dpaudit.config.building import build_spec
from dpaudit.config.yaml_files import load_config
from dpaudit.errors import UsageError
from dpaudit.testing.assertions import AssertionOptions
from tests.specs import RECORDS

SETTINGS: dict[str, Any] = {"mechanism": "m:f", "d1": 0, "d2": 1, "claim": {"epsilon": 1}}


def test_every_flag_of_run_is_an_option_and_the_other_way_round() -> None:
    flags = {one.opts[-1] for one in run.params if isinstance(one, click.Option)} - {"--help-all"}
    assert flags == {one.flag for one in OPTIONS.values() if one.flag}


def test_fields_of_an_audit_have_the_defaults_of_the_table() -> None:
    needed = ("name", "pairs", "claim")
    found = {
        name: one.default
        for name, one in {
            field.name: field for kind in (AuditSpec, *RECORDS.values()) for field in fields(kind)
        }.items()
        if name in DEFAULTS
    }
    assert found == {name: found[name] if name in needed else DEFAULTS[name] for name in found}
    assert {one.name for one in owned("audit")} <= set(found)


def test_keywords_of_python_are_the_declared_options() -> None:
    """An editor shows those of `audit`; those of the others are typed dictionaries."""
    audited, searched = (
        inspect.signature(call).parameters for call in (dpaudit.audit, dpaudit.search)
    )
    keywords = {name: one.default for name, one in audited.items() if one.kind is one.KEYWORD_ONLY}
    of_files = {"mechanism", "expect", "init", "call", "factory", "command"}
    only_here = {"on_progress": None, "adjacency": None, "name": None, "repeat": 1}
    declared = {one.name: one.default for one in owned("audit", "mechanism")}
    journaled = {name: DEFAULTS[name] for name in ("journal", "resume")}
    wanted = {name: default for name, default in declared.items() if name not in of_files}
    of_claims = {one.name for one in owned("claim")} - {"from", "group", "definition"}
    claimed = dict.fromkeys([*of_claims, "guarantees"])
    assert keywords == {**wanted, **journaled, **only_here, **claimed}
    assert set(MoreOptions.__annotations__) == set(keywords) - set(searched)
    assert set(AssertionOptions.__annotations__) == {*keywords, "search"}


def test_a_message_spells_an_option_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "audits.yaml"
    file.write_text("version: 1\naudits:\n  - {mechanism: m:f, d1: 0, d2: 1, claim: {epsilon: 1},\n"
                    "     floating_point: true}\n")  # fmt: skip
    with pytest.raises(UsageError) as from_flags:
        build_spec({**SETTINGS, "floating_point": True, "exact": True})
    with pytest.raises(UsageError) as from_both:
        load_config(file, {"exact": True})
    with pytest.raises(UsageError) as from_python:
        dpaudit.audit(abs, 0, 1, dpaudit.PureDP(1), floating_point=True, exact=True)
    flags, both, python = (
        "".join(error.value.spelled(flag_of)) for error in (from_flags, from_both, from_python)
    )
    assert flags == python
    assert flags.startswith("--floating-point ")
    assert " --exact " in flags
    assert both.startswith(f"{file}:4: floating_point ")
    assert " --exact " in both
    assert str(from_python.value).startswith("floating_point ")
    assert " exact " in str(from_python.value)
    assert from_flags.value.code == from_python.value.code == "options-conflict"


def refused(call: Callable[..., Any], *values: Any, **given: Any) -> UsageError:
    with pytest.raises(UsageError) as error:
        call(*values, **given)
    return error.value


def test_values_out_of_range() -> None:
    for name, value, shown in (
        ("samples", 99, "99"),
        ("samples", 10**30, "1.00e+30"),
        ("samples", True, "True"),
        ("time", 0, "0"),
        ("confidence", 1, "1"),
        ("confidence", 0.05, "0.05"),
        ("confidence", math.nan, "nan"),
        ("seed", -1, "-1"),
        ("workers", "many", "'many'"),
        ("bound", "gamme", "'gamme'"),
        ("range", (), "()"),
        ("require_rare", 0, "0"),
        ("require_power", 1, "1"),
    ):
        error = refused(OPTIONS[name].read, value)
        assert error.code == "option-invalid"
        assert str(error).startswith(f"{name}={shown} ")


def test_keywords_of_another_type() -> None:
    for given in (
        {"params": [1]},
        {"journal": 5},
        {"timeout": "1 week"},
        {"memory_limit": "much"},
        {"on_progress": 5},
        {"range": "ab"},
        {"isolate": "yes"},
        {"stop": "x"},
        {"resume": 1},
        {"name": ""},
    ):
        error = refused(dpaudit.audit, abs, 0, 1, dpaudit.PureDP(1), **given)
        (name, value), *_ = given.items()
        assert error.code == "option-invalid"
        assert str(error).startswith(f"{name}={value!r} ")
    error = refused(dpaudit.audit, abs, 0, 1, dpaudit.PureDP(1), time=1, samples=4_000)
    assert error.code == "options-conflict"


def test_every_switch_takes_only_bools() -> None:
    switches = [option for option in owned("audit", "mechanism", "run") if option.type is bool]
    assert len(switches) > 5
    for option in switches:
        option.read(True)
        for value in (1, "yes", None):
            assert refused(option.read, value).code == "option-invalid"
