"""One table of options: what comes of it agrees, and errors spell an option as it was written."""

from __future__ import annotations

import inspect
import math
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

import dpaudit
from dpaudit.api import MoreOptions
from dpaudit.auditing.options import DEFAULTS, OPTIONS, SWITCH, flag_of, owned
from dpaudit.auditing.spec import AuditSpec
from dpaudit.cli.bound import bound
from dpaudit.cli.run import run
from dpaudit.config.building import build_spec
from dpaudit.config.loading import load_config
from dpaudit.errors import UsageError

SECTIONS = ["Usual", "What to audit", "Claim", "Budget", "Processes", "Attacks", "Output"]
ROWS = np.arange(1_000)
SETTINGS: dict[str, Any] = {"mechanism": "m:f", "d1": 0, "d2": 1, "claim": {"epsilon": 1}}


def _help(command: click.Command) -> str:
    context = click.Context(command, info_name="x", max_content_width=80, terminal_width=80)
    return command.get_help(context)


def test_every_flag_of_run_is_an_option_and_the_other_way_round() -> None:
    flags = {one.opts[-1] for one in run.params if isinstance(one, click.Option)}
    assert flags == {one.flag for one in OPTIONS.values() if one.flag}


def test_fields_of_an_audit_have_the_defaults_of_the_table() -> None:
    needed = ("name", "pairs", "claim")
    found = {one.name: one.default for one in fields(AuditSpec) if one.name in DEFAULTS}
    assert found == {name: found[name] if name in needed else DEFAULTS[name] for name in found}
    assert {one.name for one in owned("audit")} <= set(found)


def test_keywords_of_python_are_options() -> None:
    parameters = inspect.signature(dpaudit.audit).parameters
    spelled_out = {name: one.default for name, one in parameters.items() if name in DEFAULTS}
    assert set(parameters) - set(spelled_out) == {"on_progress", "more"}
    assert set(MoreOptions.__annotations__) <= set(OPTIONS)
    assert not set(MoreOptions.__annotations__) & set(spelled_out)
    for name in ("params", "samples", "time", "confidence", "seed", "workers"):
        assert spelled_out[name] == DEFAULTS[name]
    only_in_files = {"expect"}
    assert {one.name for one in owned("audit")} - only_in_files <= {
        *spelled_out,
        *MoreOptions.__annotations__,
    }


@pytest.mark.parametrize("command", [run, bound])
def test_help_has_sections_and_examples_at_the_end(command: click.Command) -> None:
    text = _help(command)
    titles = [line[:-1] for line in text.splitlines() if line.endswith(":") and line[0] != " "]
    assert titles[0] == "Usual options"
    assert [title for title in SECTIONS if title in titles] == titles[1:]
    assert text.index("Examples:") > text.index("--debug")


def test_the_ten_usual_options_come_first() -> None:
    usual = _help(run).partition("Usual options:")[2].partition("What to audit:")[0]
    flags = [line.split()[0] for line in usual.splitlines() if line.startswith("  --")]
    assert flags == [
        *("--d1", "--d2", "--param", "--epsilon", "--delta"),
        *("--samples", "--time", "--confidence", "--seed", "--json"),
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
    ending = "makes no draws; give one of them"
    flags, both, python = (
        "".join(one.value.spelled(flag_of)) for one in (from_flags, from_both, from_python)
    )
    assert flags == f"--floating-point needs draws, and --exact {ending}"
    assert both == f"{file}:4: floating_point needs draws, and --exact {ending}"
    assert str(from_python.value) == f"floating_point needs draws, and exact {ending}"
    assert python == flags  # a keyword, until somebody knows that it was a flag


def test_a_mistyped_keyword_is_refused() -> None:
    mistyped: Any = {"sampels": 5_000}
    with pytest.raises(TypeError, match=r"argument 'sampels'. Did you mean 'samples'\?"):
        dpaudit.audit(abs, 0, 1, dpaudit.PureDP(1), **mistyped)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("samples", 99, "samples=99 is too few to certify anything; give at least 100"),
        ("samples", 10**30, "samples=1.00e+30 is more than can be counted exactly"),
        ("samples", True, "samples=True must be an integer"),
        ("time", 0, "time=0 must be above 0 seconds, and finite"),
        ("confidence", 1, "confidence=1 must be a number from 0.5 to below 1, such as 0.99"),
        ("confidence", 0.05, "confidence=0.05 must be a number from 0.5 to below 1, such as 0.99"),
        ("confidence", 10**400, "confidence=1.00e+400 must be a number from 0.5 to below 1"),
        ("confidence", 1e-40, "confidence=1e-40 must be a number from 0.5 to below 1"),
        ("confidence", math.nan, "confidence=nan must be a number from 0.5 to below 1"),
        ("seed", -1, "seed=-1 must be an integer, at least 0"),
        ("workers", 0, "workers=0 must be a whole number of processes, at least 1, or auto"),
        ("workers", "many", "workers='many' must be a whole number of processes, at least 1, or"),
        ("workers", True, "workers=True must be a whole number of processes"),
        ("bound", "gamme", "bound='gamme' is not known; known: game, clopper-pearson. Did you"),
        ("range", (), "range=() must list at least two outputs"),
    ],
)
def test_values_that_no_audit_can_have(name: str, value: Any, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        OPTIONS[name].verify(value)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"params": [1]}, "params=[1] must be a mapping of keyword arguments"),
        ({"params": {1: 2}}, "params={1: 2} must be a mapping of keyword arguments"),
        ({"rng_arg": 5}, "rng_arg=5 must be the name of the parameter"),
        ({"journal": 5}, "journal=5 must be the path of a folder"),
        ({"python": 5}, "python=5 must be the path of the Python interpreter"),
        ({"timeout": "1s", "isolate": True}, "timeout='1s' must be a number of seconds"),
        ({"memory_limit": "1GB", "isolate": True}, "memory_limit='1GB' must be a whole number of"),
        ({"on_progress": 5}, "on_progress=5 must be a function"),
        ({"attacks": "logistic"}, "attacks='logistic' must be a list of attacks"),
        ({"range": "ab"}, "range='ab' must be a list of all possible outputs"),
        ({"isolate": "yes"}, "isolate='yes' must be true or false"),
        ({"full": "x"}, "full='x' must be true or false"),
        ({"resume": 1}, "resume=1 must be true or false"),
        ({"name": ""}, "name='' must be a text"),
        ({"name": 5}, "name=5 must be a text"),
        ({"time": 1, "samples": 4_000}, "give either samples or time, not both"),
        ({"time": 1, "samples": 1_000_000}, "give either samples or time, not both"),
    ],
)
def test_keywords_of_another_type(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        dpaudit.audit(abs, 0, 1, dpaudit.PureDP(1), **given)
    assert str(caught.value).startswith(message)


def test_every_switch_takes_only_bools() -> None:
    switches = [one for one in owned("audit", "mechanism", "run") if one.kind is SWITCH]
    assert len(switches) > 5
    for one in switches:
        one.verify(True)
        for value in (1, "yes", None):
            with pytest.raises(UsageError, match="must be true or false"):
                one.verify(value)


def test_a_list_that_nobody_gave_and_one_of_another_type() -> None:
    OPTIONS["attacks"].verify(None)
    OPTIONS["attacks"].verify([abs])
    OPTIONS["range"].verify({0, 1})


@pytest.mark.parametrize(
    ("outcomes", "given", "message"),
    [
        (5, {}, "outcomes_d1=5 must be a list or an array"),
        (None, {}, "outcomes_d1=None must be a list or an array"),
        ("a.csv", {}, "outcomes_d1='a.csv' must be a list or an array"),
        (iter([]), {}, "outcomes_d1=<list_iterator"),
        ({1: 2}, {}, "outcomes_d1={1: 2} must be a list or an array"),
        (np.array(5), {}, "outcomes_d1=array(5) must be a list or an array"),
        (ROWS, {"claim": 1.0}, "claim=1.0 is not a claim; give one such as PureDP(1.0)"),
        (ROWS, {"name": ""}, "name='' must be a text"),
        (ROWS, {"bound": "gamme"}, "bound='gamme' is not known"),
        (ROWS, {"coin_flipped": "x"}, "coin_flipped='x' must be true or false"),
        (ROWS, {"scores": 1}, "scores=1 must be true or false"),
    ],
)
def test_recorded_outputs_of_another_type(
    outcomes: Any, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        dpaudit.bound(outcomes, ROWS + 1, **{"claim": dpaudit.PureDP(1), **given})
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("counts", "given", "message"),
    [
        (("a", 1, 1), {}, "canaries='a' must be a whole number"),
        ((1000, 100.5, 75), {}, "guesses=100.5 must be a whole number"),
        ((1000, 100, True), {}, "correct=True must be a whole number"),
        ((1000, 100, 75), {"claim": 1.0}, "claim=1.0 is not a claim"),
        ((1000, 100, 75), {"name": 5}, "name=5 must be a text"),
    ],
)
def test_guesses_of_another_type(counts: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        dpaudit.bound_guesses(*counts, **{"claim": dpaudit.PureDP(1), **given})
    assert str(caught.value).startswith(message)
