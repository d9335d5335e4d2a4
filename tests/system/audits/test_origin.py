"""Whole audits that say where an outcome came from."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import dpaudit
from tests.result_files import from_json, to_json


def test_a_folder_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def leaves(x: int, rng: np.random.Generator) -> int:
        folder = tmp_path / "gone"
        folder.mkdir(exist_ok=True)
        os.chdir(folder)
        folder.rmdir()
        raise ValueError(x)

    def sometimes(x: int, rng: np.random.Generator) -> int:
        return leaves(x, rng) if rng.random() < 0.01 else x

    result = dpaudit.audit(sometimes, 0, 1, dpaudit.PureDP(1.0), samples=1_000)
    assert result.verdict is dpaudit.Verdict.VIOLATION


def test_messages_that_have_no_utf_8_are_written_all_the_same(tmp_path: Path) -> None:
    def odd(x: int, rng: np.random.Generator) -> int:
        if rng.random() < 0.5:
            raise ValueError("\udcff")
        return x

    text = to_json([dpaudit.audit(odd, 0, 1, dpaudit.PureDP(1.0), samples=1_000)])
    (tmp_path / "r.json").write_text(text, encoding="utf-8")
    (result,) = from_json((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert result.certificates[0].first_failures["ValueError"].message == "\udcff"
