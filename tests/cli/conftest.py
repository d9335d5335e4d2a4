"""The command line with an engine that answers at once."""

from __future__ import annotations

import linecache
import sys
import types
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from dpaudit.auditing import engine as real_engine
from dpaudit.auditing.spec import AuditSpec
from dpaudit.cli.commands import cli
from dpaudit.cli.group import exit_code as real_exit_code
from dpaudit.errors import code_of
from tests.cli.made_results import answer, engine
from tests.comparing import new_processes as new_processes
from tests.comparing import no_new_processes as no_new_processes
from tests.result_files import check_schema


class Ended(Result):
    """A command that has ended. code: of the error that ended it; None without one, and for what
    click finds wrong."""

    code: str | None = None


Invoke = Callable[..., Ended]


@pytest.fixture
def dpaudit(monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Run a command line given as words."""
    codes: list[str] = []

    def exit_code(error: Exception) -> int:
        codes.append(code_of(error))
        return real_exit_code(error)

    monkeypatch.setattr("dpaudit.cli.group.exit_code", exit_code)

    def invoke(*words: Any) -> Ended:
        given = [str(word) for word in words]
        linecache.clearcache()  # an earlier test may have shown lines of another m.py
        codes.clear()
        result = Ended(**vars(CliRunner().invoke(cli, given, prog_name="dpaudit")))
        result.code = codes[-1] if codes else None
        _check_written(given)
        return result

    return invoke


@pytest.fixture
def refused(dpaudit: Invoke) -> Callable[..., tuple[str | None, str]]:
    """Run a command that is refused: exit code 2 and one line. Return the code of the error, and
    the line."""

    def refusal(*words: Any) -> tuple[str | None, str]:
        result = dpaudit(*words)
        assert (result.exit_code, result.stdout) == (2, ""), (words, result.output)
        assert result.stderr.startswith("error: ")
        assert result.stderr.count("\n") == 1
        return result.code, result.stderr

    return refusal


@pytest.fixture(autouse=True)
def no_traces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Violations that are found in this process have no trace, but where a test asks for `traces`.

    No verdict depends on it, and a fork of a process as large as this one costs more than most of
    the audits here. That a run shows it is tested in test_trace.py, by a program of its own.
    """
    if "traces" not in request.fixturenames:
        monkeypatch.setattr(real_engine, "_traced", lambda spec, result: result)


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results are to be whole, also on a busy machine."""
    monkeypatch.setattr("dpaudit.tracing.forked_trace.TRACE_SECONDS", 60.0)


def _check_written(words: list[str]) -> None:
    """Raise for results that a command has written otherwise than their schema says."""
    if words[:1] in (["sensitivity"], ["trace"]):  # which have a JSON of their own
        return
    after = dict(pairwise(words))
    files = [after.get("--json", ""), after.get("--report", "").removeprefix("json:")]
    for file in filter(None, files):
        path = Path(file)
        if path.is_file() and path.suffix == ".json":
            check_schema(path.read_text("utf-8"))


@pytest.fixture
def install_engine(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Put a function in the place of `run_audit`."""

    def install(run_audit: Any) -> None:
        monkeypatch.setitem(sys.modules, "dpaudit.auditing.engine", engine(run_audit))

    return install


@pytest.fixture
def asked(install_engine: Callable[[Any], None]) -> list[AuditSpec]:
    """Answer every audit by hand; return the list that their specs are put into."""
    specs: list[AuditSpec] = []

    def run_audit(spec: AuditSpec, on_progress: Any = None) -> Any:
        specs.append(spec)
        return answer(spec)

    install_engine(run_audit)
    return specs


@pytest.fixture
def install_recheck(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Put a function in the place of `recheck`."""

    def install(recheck: Any) -> None:
        module = types.ModuleType("dpaudit.auditing.recheck")
        module.recheck = recheck  # type: ignore[attr-defined]  # modules take any attribute
        monkeypatch.setitem(sys.modules, "dpaudit.auditing.recheck", module)

    return install


@pytest.fixture
def config(tmp_path: Path) -> Callable[..., Path]:
    """Write a configuration file with audits of the given names."""

    def write(*names: str, file: str = "audits.yaml", more: str = "") -> Path:
        path = tmp_path / file
        audits = "".join(f"  - {{name: {name}{more}}}\n" for name in names)
        path.write_text(
            "version: 1\ndefaults: {mechanism: 'm:f', d1: 0, d2: 1, claim: {epsilon: 1}}\n"
            f"audits:\n{audits}"
        )
        return path

    return write
