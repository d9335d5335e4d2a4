"""Keys that say in which process a mechanism draws."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dpaudit.auditing.options import OPTIONS
from dpaudit.auditing.spec import AuditSpec
from dpaudit.config.building import build_spec
from dpaudit.config.yaml_files import load_config
from dpaudit.targets.target import (
    CommandTarget,
    ComposedTarget,
    ImportedTarget,
    IsolatedTarget,
    Limits,
)
from tests.raising import code, placed

BASE: dict[str, Any] = {"d1": 0, "d2": 1, "claim": {"epsilon": 1}}


def spec(**settings: Any) -> AuditSpec:
    return build_spec({**BASE, **settings})


@pytest.mark.parametrize("limit", [{"timeout": 1}, {"memory_limit": "1MB"}])
def test_a_limit_isolates(limit: dict[str, Any]) -> None:
    target = spec(mechanism="m:f", **limit).target
    assert isinstance(target, IsolatedTarget)
    assert target == spec(mechanism="m:f", isolate=True, **limit).target


def test_isolate() -> None:
    target = spec(mechanism="m:f", isolate=True, timeout="500ms", memory_limit="512MB").target
    inside = ImportedTarget(path="m:f")
    assert target == IsolatedTarget(
        target=inside, python=None, limits=Limits(timeout=0.5, memory=512_000_000)
    )
    assert target.describe() == "m:f, in a separate process"
    assert spec(mechanism="m:f", isolate=False).target == inside


@pytest.mark.parametrize("command", [["python3", "a b.py", "--x"], "python3 'a b.py' --x"])
def test_a_command(command: Any) -> None:
    one = spec(command=command, batch_arg="none", timeout=3)
    assert one.target == CommandTarget(
        words=("python3", "a b.py", "--x"), is_batch=False, limits=Limits(timeout=3.0)
    )
    assert one.name == one.target.describe() == "python3 'a b.py' --x"


def test_entries_of_compose_are_where_the_audit_says() -> None:
    entries = ["m:f", {"mechanism": "m:g", "timeout": 2}, {"command": "python3 x"}]
    target = spec(compose=entries, isolate=True, timeout=1).target
    assert isinstance(target, ComposedTarget)
    first, second, third = target.parts
    assert isinstance(first, IsolatedTarget)
    assert isinstance(second, IsolatedTarget)
    assert isinstance(third, CommandTarget)
    assert [one.limits.timeout for one in (first, second, third)] == [1.0, 2.0, 1.0]
    assert spec(compose=entries, isolate=True).name == "f + g + python3 x"


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"mechanism": "m:f", "command": "python3"}, "options-conflict"),
    ({"command": "python3", "params": {"a": 1}}, "options-conflict"),
    ({"mechanism": "m:f", "python": "python3", "isolate": False}, "options-conflict"),
    ({"compose": ["m:f", "m:g"], "command": "python3"}, "options-conflict"),
    ({"command": "python3", "batch_arg": "n"}, "option-invalid"),
    ({"command": "'"}, "option-invalid"),
    ({"command": "nosuch a"}, "program-not-found"),
    ({"mechanism": "m:f", "python": "old/bin/python"}, "program-not-found"),
    ({"mechanism": "m:f", "isolate": True, "memory_limit": "1 page"}, "option-invalid"),
]


def test_what_does_not_go_together() -> None:
    assert [(settings, code(spec, **settings)) for settings, _ in REFUSED] == REFUSED


def test_a_program_beside_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "configs"
    folder.mkdir()
    program = folder / "draw"
    program.write_text("#!/bin/sh\n")
    config = folder / "audits.yaml"
    config.write_text(
        "version: 1\n"
        "defaults: {d1: 0, d2: 1, claim: {epsilon: 1}, mechanism: 'm:f', params: {a: 1}}\n"
        "audits:\n"
        "  - {name: beside, command: ['./draw', '1']}\n"
    )
    monkeypatch.chdir(tmp_path)
    assert placed(load_config, config) == ("program-not-found", 4)
    program.chmod(0o755)
    (one,) = load_config(config)
    assert isinstance(one.target, CommandTarget)
    assert Path(one.target.words[0]).samefile(program)
    assert one.target.words[1:] == ("1",)


@pytest.mark.parametrize(
    ("text", "size"), [(7, 7), ("7", 7), ("1.5 kb", 1500), ("2GiB", 2**31), (".5MB", 500_000)]
)
def test_sizes(text: Any, size: int) -> None:
    assert OPTIONS["memory_limit"].read(text) == size
