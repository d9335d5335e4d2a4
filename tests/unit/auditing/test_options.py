"""The table of options agrees with flags, keys and keywords; errors spell options as written."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner

import dpaudit
from dpaudit.api import MoreOptions
from dpaudit.auditing.options import DEFAULTS, OPTIONS, flag_of, owned
from dpaudit.auditing.spec import AuditSpec
from dpaudit.cli.bound import bound
from dpaudit.cli.run import run
from dpaudit.config.building import build_spec
from dpaudit.config.loading import load_config
from dpaudit.errors import UsageError
from dpaudit.testing.assertions import AssertionOptions
from tests.specs import RECORDS

SECTIONS = ["Usual", "What to audit", "Claim", "Budget", "Processes", "Attacks", "Output"]
ROWS = np.arange(1_000)
SETTINGS: dict[str, Any] = {"mechanism": "m:f", "d1": 0, "d2": 1, "claim": {"epsilon": 1}}


def _help(command: click.Command, words: str = "--help-all") -> str:
    return CliRunner().invoke(command, [words]).stdout


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
    assert keywords == {**wanted, **journaled, **only_here}
    assert set(MoreOptions.__annotations__) == set(keywords) - set(searched)
    of_claims = {one.name for one in owned("claim")} - {"from", "group", "definition"}
    assert set(AssertionOptions.__annotations__) == {
        *keywords, *of_claims, "guarantees", "search",
    }  # fmt: skip


@pytest.mark.parametrize("command", [run, bound])
def test_help_has_sections_and_examples_at_the_end(command: click.Command) -> None:
    text = _help(command)
    titles = [line[:-1] for line in text.splitlines() if line.endswith(":") and line[0] != " "]
    assert titles[0] == "Usual options"
    assert [title for title in SECTIONS if title in titles] == titles[1:]
    assert text.index("Examples:") > text.index("--debug")


def test_the_ten_usual_options_come_first() -> None:
    usual = _help(run, "--help").partition("Usual options:")[2].partition("Examples:")[0]
    flags = [line.split()[0] for line in usual.splitlines() if line.startswith("  --")]
    assert flags == [
        *("--d1", "--d2", "--param", "--epsilon", "--delta"),
        *("--samples", "--time", "--seed", "--confidence", "--json"),
    ]
    assert "Default: 0." in usual


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


def test_a_mistyped_keyword_is_refused() -> None:
    mistyped: Any = {"sampels": 5_000}
    with pytest.raises(TypeError, match="argument 'sampels'"):
        dpaudit.audit(abs, 0, 1, dpaudit.PureDP(1), **mistyped)


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
        ("confidence", 10**400, "1.00e+400"),
        ("confidence", 1e-40, "1e-40"),
        ("confidence", math.nan, "nan"),
        ("seed", -1, "-1"),
        ("workers", 0, "0"),
        ("workers", "many", "'many'"),
        ("workers", True, "True"),
        ("bound", "gamme", "'gamme'"),
        ("range", (), "()"),
        ("require_rare", 0, "0"),
        ("require_rare", math.inf, "inf"),
        ("require_rare", "abc", "'abc'"),
        ("require_power", 1, "1"),
    ):
        error = refused(OPTIONS[name].read, value)
        assert error.code == "option-invalid"
        assert str(error).startswith(f"{name}={shown} ")


def test_keywords_of_another_type() -> None:
    for given in (
        {"params": [1]},
        {"params": {1: 2}},
        {"rng_arg": 5},
        {"journal": 5},
        {"python": 5},
        {"timeout": "1 week"},
        {"memory_limit": "much"},
        {"on_progress": 5},
        {"attacks": "logistic"},
        {"range": "ab"},
        {"isolate": "yes"},
        {"stop": "x"},
        {"resume": 1},
        {"name": ""},
        {"name": 5},
    ):
        error = refused(dpaudit.audit, abs, 0, 1, dpaudit.PureDP(1), **given)
        (name, value), *_ = given.items()
        assert error.code == "option-invalid"
        assert str(error).startswith(f"{name}={value!r} ")
    for samples in (4_000, 1_000_000):
        error = refused(dpaudit.audit, abs, 0, 1, dpaudit.PureDP(1), time=1, samples=samples)
        assert error.code == "options-conflict"


def test_every_switch_takes_only_bools() -> None:
    switches = [option for option in owned("audit", "mechanism", "run") if option.type is bool]
    assert len(switches) > 5
    for option in switches:
        option.read(True)
        for value in (1, "yes", None):
            assert refused(option.read, value).code == "option-invalid"


def test_collections_of_other_types_are_lists() -> None:
    OPTIONS["attacks"].read(None)
    OPTIONS["attacks"].read([abs])
    OPTIONS["range"].read({0, 1})


def test_recorded_outputs_and_guesses_of_another_type() -> None:
    claim = dpaudit.PureDP(1)
    unread: tuple[Any, ...] = (5, None, "a.csv", iter([]), {1: 2}, np.array(5))
    for outcomes in unread:
        error = refused(dpaudit.bound, outcomes, ROWS + 1, claim)
        assert str(error).startswith("outcomes_d1=")
    for name, value in (
        *(("claim", 1.0), ("name", ""), ("bound", "gamme"), ("coin_flipped", "x"), ("scores", 1)),
    ):
        error = refused(dpaudit.bound, ROWS, ROWS + 1, **{"claim": claim, name: value})
        assert str(error).startswith(f"{name}={value!r} ")
    for counts, named in (
        (("a", 1, 1), "canaries='a' "),
        ((1000, 100.5, 75), "guesses=100.5 "),
        ((1000, 100, True), "correct=True "),
    ):
        assert str(refused(dpaudit.bound_guesses, *counts, claim)).startswith(named)
    assert refused(dpaudit.bound_guesses, 1000, 100, 75, 1.0).code == "option-invalid"
