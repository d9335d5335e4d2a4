"""The first exceptions of an audit are the same for any number of workers."""

from __future__ import annotations

from typing import Any

from dpaudit.auditing.engine import run_audit
from dpaudit.config.building import build_spec
from tests.cli.test_what_is_said_of_inputs import folder as folder


def test_equal_seeds_give_equal_lines_with_any_workers() -> None:
    def certificate(workers: int, *, isolate: bool = False) -> Any:
        spec = build_spec(
            {
                "mechanism": "m.py:sometimes",
                "d1": 0,
                "d2": 1,
                "claim": {"epsilon": 5},
                "samples": 1_000,
                "workers": workers,
                "isolate": isolate,
            }
        )
        (found,) = run_audit(spec).certificates
        return found

    alone, several = certificate(1), certificate(2)
    assert alone.first_failures["ValueError"].where == "m.py:12"
    assert (alone.failures, alone.first_failures) == (several.failures, several.first_failures)
    assert certificate(1, isolate=True).first_failures == alone.first_failures
