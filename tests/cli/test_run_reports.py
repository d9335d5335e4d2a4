"""`--report FORMAT:FILE`: several at once, kept up to date, refused before the work."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree as XML

import pytest

from dpaudit.auditing.spec import AuditSpec
from dpaudit.reports.html import page
from tests.cli.made_results import answer
from tests.result_files import from_json

TARGET = ("run", "m:laplace", "--d1", "0", "--d2", "1", "--epsilon", "1")


def test_several_reports_of_a_batch(dpaudit: Any, asked: Any, config: Any, tmp_path: Path) -> None:
    text, xml, json = (tmp_path / name for name in ("r.txt", "r.xml", "r.json"))
    reports = ("--report", f"text:{text}", "--report", f"junit:{xml}", "--json", json)
    result = dpaudit("run", config("a", "wrong"), *reports)
    assert text.read_text("utf-8").startswith("NO VIOLATION FOUND  a      ε ≥ 0.983")
    assert [one.get("name") for one in XML.parse(xml).iter("testcase")] == ["a", "wrong"]
    assert [one.name for one in from_json(json.read_text("utf-8"))] == ["a", "wrong"]
    assert result.stdout.startswith("NO VIOLATION FOUND  a ")


def test_a_report_on_standard_output_sends_the_words_to_stderr(dpaudit: Any, asked: Any) -> None:
    result = dpaudit(*TARGET, "--report", "junit:-")
    assert XML.fromstring(result.stdout.encode()).tag == "testsuites"
    assert "NO VIOLATION FOUND  laplace" in result.stderr


def test_what_cannot_be_written_is_refused_before_the_work(
    refused: Any, asked: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to("real")
    requests: list[tuple[tuple[str, ...], str, str]] = [
        (("--report", "r.xml"), "report-format-unknown", "'r.xml'"),
        (("--report", "junt:r.xml"), "report-format-unknown", "Did you mean 'junit'?"),
        (("--report", "junit:"), "report-format-unknown", "'junit:'"),
        (("--report", "text:no/where.txt"), "cannot-write", "'no'"),
        (("--report", "text:-", "--json", "-"), "options-conflict", "'-'"),
        (("--report", "text:r.txt", "--json", "./r.txt"), "options-conflict", "r.txt"),
        (
            ("--report", "text:r", "--report", f"junit:../{tmp_path.name}/r"),
            "options-conflict",
            "r",
        ),
        (("--report", "text:link", "--report", "junit:real"), "options-conflict", "real"),
    ]
    for flags, code, named in requests:
        found, line = refused(*TARGET, *flags)
        assert (found, asked) == (code, []), flags
        assert named in line
        assert [one.name for one in tmp_path.iterdir()] == ["link"]


def test_a_format_alone_is_for_standard_output(dpaudit: Any, asked: Any) -> None:
    result = dpaudit(*TARGET, "--report", "markdown")
    assert result.stdout.startswith("### dpaudit: 1 privacy audit, as expected\n")
    assert "NO VIOLATION FOUND  laplace" in result.stderr


def test_a_summary_of_github_is_added_to_what_is_there(
    dpaudit: Any, asked: Any, config: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("# Built\n", encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    assert dpaudit("run", config("a", "wrong")).stdout.startswith("NO VIOLATION FOUND  a ")
    text = summary.read_text("utf-8")
    assert text.startswith("# Built\n### dpaudit: 2 privacy audits: 1 not as expected\n")
    assert text.count("###") == 2
    own = tmp_path / "own.md"
    dpaudit("run", config("a"), "--report", f"markdown:{own}")
    assert summary.read_text("utf-8") == text
    assert own.exists()


@pytest.mark.parametrize("place", ["no/where.md", "."])
def test_a_summary_that_cannot_be_written_is_left_out(
    dpaudit: Any, asked: Any, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", place)
    assert dpaudit(*TARGET).exit_code == 0


def test_a_folder_that_is_gone_when_the_work_is_done_is_no_wrong_request(
    dpaudit: Any, install_engine: Any, config: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()

    def run_audit(spec: AuditSpec, on_progress: Any = None) -> Any:
        folder.rmdir()
        return answer(spec)

    install_engine(run_audit)
    result = dpaudit("run", config("a"), "--report", f"junit:{folder / 'r.xml'}")
    assert (result.exit_code, result.code) == (3, "cannot-write")


def test_saved_results_are_written_in_other_formats(dpaudit: Any, tmp_path: Path) -> None:
    saved, xml, words = (tmp_path / name for name in ("r.json", "r.xml", "r.md"))
    asked = ("bound", "--guesses", "1000", "100", "99", "--epsilon", "1")
    assert dpaudit(*asked, "--json", saved).exit_code == 1
    reports = ("--report", f"junit:{xml}", "--report", f"markdown:{words}", "--report", "github")
    result = dpaudit("report", saved, *reports)
    assert result.exit_code == 0
    assert len(list(XML.parse(xml).iter("failure"))) == 1
    assert "1 not as expected" in words.read_text("utf-8")
    assert result.stdout.startswith("::error title=VIOLATION%3A ")
    assert "VIOLATION" in result.stderr
    assert "Rechecked: " in result.stderr


def test_a_page_that_cannot_be_made_is_refused_before_the_work(
    dpaudit: Any, asked: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "find_spec", lambda module: None)
    result = dpaudit(*TARGET, "--report", f"html:{tmp_path / 'r.html'}")
    assert (result.exit_code, asked) == (2, [])
    assert "needs Jinja2 and matplotlib, which are not installed" in result.stderr
    assert "pip install jinja2 matplotlib" in result.stderr
