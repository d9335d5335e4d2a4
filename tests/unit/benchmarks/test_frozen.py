"""What guards a refactoring sees every change of a result, and none of what differs anyway."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import frozen
from benchmarks.frozen import Place, compare, differences
from benchmarks.frozen_set import FOLDER, JSON, MATERIAL, Run, every_run
from dpaudit.config.yaml_files import load_config


def record() -> dict[str, Any]:
    audits = [
        {
            "name": name,
            "epsilon_lower": 0.25,
            "draws": 1000,
            "seconds": 0.1,
            "versions": {"numpy": "2.0"},
            "certificates": [{"fixed": {"correct": 90}}, {"fixed": None}],
        }
        for name in ("first", "second", "third")
    ]
    result = {"version": 2, "count": 3, "digest": "sha256:1", "audits": audits}
    return {"command": ["run"], "exit_code": 0, "result": result, "printed": [], "said": ["one"]}


def changed(path: str, value: Any) -> list[str]:
    """Return the differences, in words, from a record in which one value is another."""
    present = record()
    *way, last = (int(one) if one.isdigit() else one for one in path.split("/"))
    inner: Any = present
    for step in way:
        inner = inner[step]
    inner[last] = value
    return list(map(str, differences(record(), present)))


def test_equal_records_do_not_differ() -> None:
    assert differences(record(), record()) == []


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        (
            "result/audits/1/epsilon_lower",
            0.2500000000000003,
            'result.audits."second".epsilon_lower: kept 0.25, is 0.2500000000000003',
        ),
        ("result/audits/0/draws", 1000.0, 'result.audits."first".draws: kept 1000, is 1000.0'),
        ("result/audits/0/new", 1, 'result.audits."first".new: kept missing, is 1'),
        ("result", None, None),
    ],
)
def test_a_change_is_told_with_its_place_and_both_values(
    path: str, value: Any, told: str | None
) -> None:
    found = changed(path, value)
    assert len(found) == 1
    assert told is None or found == [told]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("result/digest", "sha256:2"),
        ("result/audits/0/seconds", 7.5),
        ("result/audits/1/versions", {"numpy": "3.0"}),
    ],
)
def test_what_differs_anyway_is_ignored(path: str, value: Any) -> None:
    assert changed(path, value) == []


@pytest.mark.parametrize(
    ("names", "code", "message"),
    [
        (["one"], 0, "no difference"),
        ([], 1, "kept null"),
        (["one", "two"], 1, "two: kept a result, is not run"),
    ],
)
def test_the_exit_code_says_whether_anything_differs(
    names: list[str],
    code: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(frozen, "every_run", lambda: [Run("one", ("list", "attacks"), quick=True)])
    monkeypatch.setattr(Place, "run", lambda self, run: record())
    (tmp_path / "runs").mkdir()
    for name in names:
        (tmp_path / "runs" / f"{name}.json").write_text(frozen._json(record()), encoding="utf-8")
    surroundings = {**frozen._surroundings(), "commit": "1", "quick": False}
    (tmp_path / "manifest.json").write_text(frozen._json(surroundings), encoding="utf-8")
    assert compare(Place(tmp_path), quick=False, jobs=1, show=5) == code
    assert message in capsys.readouterr().out


def test_every_run_has_a_name_of_its_own_and_finds_what_it_needs() -> None:
    runs = every_run()
    names = [run.name for run in runs]
    assert len(set(names)) == len(names)
    assert any(run.quick for run in runs)
    assert {run.words.count(JSON) for run in runs} == {0, 1}
    assert all((FOLDER in run.words) == (run.journals is not None) for run in runs)


@pytest.mark.parametrize("file", sorted(MATERIAL.glob("*.yaml")), ids=lambda file: file.stem)
def test_the_audits_can_be_read(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(MATERIAL)
    assert load_config(Path(file.name))
