"""Results as HTML fragments, plain values, axes, frames and files."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import dpaudit
from dpaudit.certificates.result import Progress
from dpaudit.progress_bar import notebook_bar
from dpaudit.reports.json import read_document


def laplace(x: int, size: int, rng: np.random.Generator) -> Any:
    return x + rng.laplace(scale=0.5, size=size)


@pytest.fixture(scope="module")
def refuted() -> dpaudit.AuditResult:
    return dpaudit.audit(laplace, 0, 1, epsilon=1.0, samples=20_000, name="<b>&")


def test_a_fragment_escapes_text_and_is_small(refuted: dpaudit.AuditResult) -> None:
    page = refuted._repr_html_()
    assert "<b>&amp;" not in page
    assert "&lt;b&gt;&amp;" in page
    assert "<svg" in page
    assert len(page.encode()) < 40_000


def test_every_ending_has_a_fragment() -> None:
    def fails(x: int) -> int:
        raise ValueError("no <i>")

    exact = dpaudit.audit(laplace, 0, 0, epsilon=1.0, samples=1_000)
    guesses = dpaudit.bound_guesses(1_000, 100, 75, epsilon=0.5)
    failed = dpaudit.audit(fails, 0, 1, epsilon=1.0, samples=1_000)
    for result in (exact, guesses, failed):
        assert result.verdict.value in result._repr_html_()


def test_a_result_is_neither_true_nor_false(refuted: dpaudit.AuditResult) -> None:
    with pytest.raises(TypeError, match="refuted"):
        bool(refuted)
    assert refuted.refuted
    assert not dpaudit.audit(laplace, 0, 1, epsilon=3.0, samples=1_000).refuted


def test_a_dict_is_the_entry_of_a_result_file(refuted: dpaudit.AuditResult, tmp_path: Path) -> None:
    refuted.save(tmp_path / "result.json")
    text = (tmp_path / "result.json").read_text("utf-8")
    assert json.loads(text)["audits"] == [refuted.to_dict()]
    assert read_document(text).results[0].epsilon_lower == refuted.epsilon_lower


@pytest.mark.parametrize(
    ("suffix", "beginning"),
    [("html", "<!doctype html>"), ("md", "###"), ("xml", "<?xml"), ("txt", "VIOLATION")],
)
def test_the_suffix_chooses_the_format(
    refuted: dpaudit.AuditResult, tmp_path: Path, suffix: str, beginning: str
) -> None:
    refuted.save(tmp_path / f"result.{suffix}")
    text = (tmp_path / f"result.{suffix}").read_text("utf-8")
    assert text.lower().startswith(beginning.lower())
    with pytest.raises(dpaudit.UsageError) as raised:
        refuted.save(tmp_path / "result.doc")
    assert raised.value.code == "report-format-unknown"


def test_a_plot_has_both_inputs_and_the_event(refuted: dpaudit.AuditResult) -> None:
    figure = Figure()
    axes = refuted.plot(figure.subplots())
    labels = axes.get_legend_handles_labels()[1]
    assert labels[:2] == ["d1", "d2"]
    assert {"event for d1", "event for d2"} & set(labels)
    named = dataclasses.replace(refuted, name="$^$")  # invalid in the formulas of matplotlib
    named.plot(figure.subplots())
    figure.canvas.draw()
    guesses = dpaudit.bound_guesses(1_000, 100, 75, epsilon=0.5)
    with pytest.raises(dpaudit.UsageError):
        guesses.plot(axes)


def test_a_frame_has_a_row_for_each_audit(refuted: dpaudit.AuditResult) -> None:
    passed = dpaudit.audit(laplace, 0, 1, epsilon=3.0, samples=1_000)
    frame = dpaudit.to_frame([refuted, passed])
    assert list(frame["verdict"]) == ["VIOLATION", "NO VIOLATION FOUND"]
    assert list(frame["epsilon_lower"]) == [refuted.epsilon_lower, passed.epsilon_lower]
    assert len(dpaudit.to_frame(refuted)) == 1
    assert dpaudit.to_frame([dpaudit.bound_guesses(9, 9, 5, epsilon=1.0)])["event"].isna().all()
    with pytest.raises(dpaudit.UsageError) as raised:
        dpaudit.to_frame([refuted.to_dict()])  # type: ignore[list-item]
    assert raised.value.code == "option-invalid"


def test_a_notebook_has_a_bar_that_goes_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    with notebook_bar() as nothing:
        assert nothing is None
    shown: list[str] = []

    def display(page: dict[str, str], raw: bool, display_id: bool = False) -> SimpleNamespace:
        shown.append(page["text/html"])
        return SimpleNamespace(update=display)

    shell = SimpleNamespace()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    with notebook_bar() as nothing:  # a terminal of IPython
        assert nothing is None
    shell.kernel = object()
    with notebook_bar() as show:
        assert show is not None
        show(Progress("<a>", "0, 1", 50, 100, 1.0, 1.0, 0.5, 1.0))
        show(Progress("<a>", "0, 1", 100, 100, 1.0, 1.0, 0.5, 0.0))
    assert [page[:5] for page in shown] == ["&lt;a", "&lt;a", ""]
    assert 'value="0.500"' in shown[0]
