"""Programs end, whatever they do."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest

from dpaudit.processes.child import Child, Ended

CLOSES = """
import os, sys, time
print("a line", flush=True)
sys.stderr.write("last words")
sys.stderr.flush()
os.close(1)
{}
time.sleep(600)
"""


def program(body: str) -> Child:
    return Child([sys.executable, "-c", CLOSES.format(body)])


@pytest.mark.parametrize("body", ["", "while True: os.write(2, b'x' * 1000)"])
def test_a_program_that_closes_its_output_and_stays(body: str) -> None:
    child = program(body)
    assert child.wait(partial(child.line, 100)) == b"a line"
    # How much of the flood was read follows the load of the machine.
    with pytest.raises(Ended, match="closed its output: " + ("" if body else "last words")):
        child.wait(partial(child.line, 100))
    assert not child.is_alive


def test_a_program_has_its_grace_after_its_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpaudit.processes.child._GRACE_SECONDS", 60.0)
    file = tmp_path / "ended"
    child = program(f"time.sleep(0.4); open({str(file)!r}, 'w').close(); os._exit(0)")
    assert child.wait(partial(child.line, 100)) == b"a line"
    child.close()
    assert file.exists()
