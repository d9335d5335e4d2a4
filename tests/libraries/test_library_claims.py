"""Claims that dpaudit reads from objects of libraries: equal to the libraries' own numbers.

OpenDP and python-dp are tested in tests/unit/library_claims, since every environment has them.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.libraries.conftest import environment, run

CLAIMED = Path(__file__).with_name("claimed.py")


@pytest.mark.parametrize(
    ("place", "library", "objects"),
    [
        ("diffprivlib-0.6.6", "diffprivlib", 5),
        ("jax-privacy-2.0.0", "jax_privacy", 6),
        ("opacus-1.6.0", "opacus", 3),
        ("autodp-0.2.3.1", "autodp", 2),
        ("pipeline-dp-0.3.1", "pipeline_dp", 2),
        ("tmlt-core-0.20.0", "tmlt", 3),
    ],
)
def test_a_claim_is_the_librarys_own_number_to_the_digit(
    tmp_path: Path, place: str, library: str, objects: int
) -> None:
    said = run(tmp_path, environment(place) / "python", CLAIMED, library)
    assert said.returncode == 0, said.stderr
    read = json.loads(said.stdout)
    assert len(read) == objects
    assert {name: both[0] for name, both in read.items()} == {
        name: both[1] for name, both in read.items()
    }
