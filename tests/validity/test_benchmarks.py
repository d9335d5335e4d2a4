"""Benchmarks that audit refute what they plant."""

from __future__ import annotations

from benchmarks.rare_leaks import REPRESENTATION_DRAWS, pure_audits, run_commands


def test_orders_of_text_keys_are_refuted_by_the_command() -> None:
    audits = run_commands("key_order", seeds=2)
    assert (audits.refuted, audits.count) == (2, 2)
    assert audits.draws <= REPRESENTATION_DRAWS


def test_a_frequent_leak_is_refuted() -> None:
    audits = pure_audits("value", p=0.2, times=1_000, seeds=2)
    assert (audits.refuted, audits.count) == (2, 2)
