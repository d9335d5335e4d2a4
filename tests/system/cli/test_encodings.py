"""New programs whose streams have other encodings than UTF-8."""

from __future__ import annotations

import json
import os
import subprocess

from tests.cli.test_main import ANSWERING, ROOT, TARGET, _command


def test_what_programs_read_is_utf_8_and_a_terminal_without_greek_gets_its_verdict() -> None:
    words = (*TARGET[:-1], "12", "--samples", "1000", "--json", "-")
    plain = _encoded("ascii", *words)
    assert plain.returncode == 0
    assert plain.stdout == _encoded("utf-8", *words).stdout
    assert json.loads(plain.stdout)["audits"][0]["event"] == "output ≤ 0.13"
    said = plain.stderr.decode("ascii")
    assert "?" not in said
    assert "cannot refute eps = 12 even if" in said
    for one in ("eps at least", "P(E) <= e^eps Q(E)", "99 % Clopper-Pearson"):
        assert one in said


def _encoded(encoding: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    command = _command(ANSWERING, *words)
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=60)
