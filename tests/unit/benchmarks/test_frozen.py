"""What guards a refactoring sees every change of a result, and none of what differs anyway."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from benchmarks import frozen
from benchmarks.frozen import Place, compare, differences
from benchmarks.frozen_set import FOLDER, JSON, MATERIAL, ROOT, Run, every_run
from dpaudit.config.loading import load_config


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
        ("exit_code", 1, "exit_code: kept 0, is 1"),
        (
            "result/audits/1/epsilon_lower",
            0.2500000000000003,
            'result.audits."second".epsilon_lower: kept 0.25, is 0.2500000000000003',
        ),
        (
            "result/audits/0/certificates/0/fixed/correct",
            91,
            'result.audits."first".certificates[0].fixed.correct: kept 90, is 91',
        ),
        (
            "result/audits/2/certificates/1/fixed",
            {"correct": 1},
            'result.audits."third".certificates[1].fixed: kept null, is {"correct": 1}',
        ),
        ("result/audits/0/draws", 1000.0, 'result.audits."first".draws: kept 1000, is 1000.0'),
        ("result/audits/0/draws", True, 'result.audits."first".draws: kept 1000, is true'),
        ("result/audits/0/new", 1, 'result.audits."first".new: kept missing, is 1'),
        ("said/0", "two", 'said[0]: kept "one", is "two"'),
        ("said", ["one", "two"], "said: kept 1 entries, is 2 entries"),
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


def test_a_field_that_is_gone_is_told_unless_it_is_ignored() -> None:
    present = record()
    del present["result"]["audits"][0]["draws"], present["result"]["audits"][0]["seconds"]
    (found,) = differences(record(), present)
    assert str(found) == 'result.audits."first".draws: kept 1000, is missing'


def test_an_audit_that_is_missing_is_told_alone() -> None:
    present = record()
    del present["result"]["audits"][0]
    (found,) = differences(record(), present)
    assert found.path == 'result.audits."first"'
    assert found.present == "missing"


def test_numbers_are_compared_without_the_words_around_them() -> None:
    def numbers_differ(path: str, value: Any) -> bool:
        kept, present = record(), record()
        for one in (kept, present):
            one["result"]["audits"][0] |= {"event": "output ≥ 2", "verdict": "violation"}
        *way, last = path.split("/")
        inner: Any = present
        for step in way:
            inner = inner[int(step) if step.isdigit() else step]
        inner[last] = value
        return bool(differences(*map(frozen.numbers_of, (kept, present))))

    assert not numbers_differ("result/audits/0/event", "outputs of at least 2")
    assert not numbers_differ("said", ["another sentence", "and one more"])
    assert numbers_differ("result/audits/0/verdict", "pass")
    assert numbers_differ("result/audits/0/epsilon_lower", 0.5)
    assert numbers_differ("result/audits/0/event", None)
    assert numbers_differ("exit_code", 1)


def test_another_order_of_audits_is_a_change() -> None:
    present = record()
    present["result"]["audits"].reverse()
    (found,) = differences(record(), present)
    assert found.path == "result.audits"


def test_entries_of_equal_names_are_compared_by_place() -> None:
    kept = [{"name": "twice", "draws": 1}, {"name": "twice", "draws": 2}]
    present = copy.deepcopy(kept)
    present[1]["draws"] = 3
    assert list(map(str, differences(kept, present))) == ["[1].draws: kept 2, is 3"]


def test_what_was_renamed_is_found_under_its_name_of_today(monkeypatch: pytest.MonkeyPatch) -> None:
    place = "result.audits.certificates.fixed.correct"
    monkeypatch.setitem(frozen.RENAMED, place, ("right", "a plainer word"))
    monkeypatch.setitem(frozen.REWORDED, "one", ("uno", "another language"))
    present = record()
    present["said"] = ["uno"]
    for audit in present["result"]["audits"]:
        audit["certificates"][0]["fixed"] = {"right": 90}
    assert differences(record(), present) == []
    present["result"]["audits"][0]["certificates"][0]["fixed"]["right"] = 91
    assert len(differences(record(), present)) == 1


def test_times_are_taken_out_of_texts_and_nothing_else() -> None:
    text = "  seed        0\n  time        0.26 s\n  versions    a 1,\n              b 2\n  p  1\n"
    assert frozen._timeless(text) == "  seed        0\n  p  1\n"
    said = "one (1 of 2): 1,000 of 5,000 draws, 120/s, 29 s left\nwarning: few draws, 3 of 5\n"
    assert frozen._timeless(said) == "warning: few draws, 3 of 5\n"


def kept(folder: Path, content: dict[str, Any], names: list[str]) -> Place:
    (folder / "runs").mkdir()
    for name in names:
        (folder / "runs" / f"{name}.json").write_text(frozen._json(content), encoding="utf-8")
    surroundings = {**frozen._surroundings(), "commit": "1", "quick": False}
    (folder / "manifest.json").write_text(frozen._json(surroundings), encoding="utf-8")
    return Place(folder)


@pytest.mark.parametrize(
    ("names", "code", "told"),
    [
        (["one"], 0, "no difference"),
        ([], 1, "kept null"),
        (["one", "two"], 1, "two: kept a result, is not run"),
    ],
)
def test_the_exit_code_says_whether_anything_differs(
    names: list[str],
    code: int,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = Run("one", ("list", "attacks"), quick=True)
    monkeypatch.setattr(frozen, "every_run", lambda: [run])
    monkeypatch.setattr(Place, "run", lambda self, run: record())
    place = kept(tmp_path, record(), names)
    assert compare(place, quick=False, jobs=1, show=5) == code
    assert told in capsys.readouterr().out


def test_what_needs_a_module_that_is_not_there_is_named_and_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run("one", ("list", "attacks"), needs=("no_such_module",))
    monkeypatch.setattr(frozen, "every_run", lambda: [run])
    assert compare(kept(tmp_path, record(), ["one"]), quick=False, jobs=1, show=5) == 1
    assert "not run: one, without no_such_module" in capsys.readouterr().out


def test_nothing_kept_is_no_comparison(tmp_path: Path) -> None:
    assert compare(Place(tmp_path), quick=True, jobs=1, show=5) == 2


def test_a_folder_with_other_things_is_not_emptied(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(SystemExit, match=r"holds thesis\.tex, which is not from here"):
        frozen._empty(tmp_path)


def test_a_journal_is_cut_within_a_record() -> None:
    records = [b"00000000 {}\n", b"00000000 {123}\n", b"00000000 {12}\n", b"00000000 {}\n"]
    content = b"".join(records)
    place = frozen._cut(content, 0.3)
    assert len(records[0]) < place < len(records[0] + records[1])


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


def test_every_configuration_of_seeds_is_in_the_set() -> None:
    words = {word for run in every_run() for word in run.words}
    seeds = (ROOT / "configs" / "seeds").glob("*.yaml")
    assert {str(file.relative_to(ROOT)) for file in seeds} <= words
