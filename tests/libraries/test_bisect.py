"""`dpaudit bisect` installs released packages, by uv or pip."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.libraries.conftest import ROOT, environment, run


def test_the_releases_of_opendp_with_a_biased_sampler_are_found(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "mechanisms", tmp_path / "mechanisms")
    words = (
        *("bisect", "mechanisms.opendp_laplace:integer_vector", "--factory"),
        *("--init", "{scale: 3.0}", "--d1", "0", "--d2", "1", "--epsilon", "0.33333333333333337"),
        *("--package", "opendp", "--versions", "0.14.1,0.14.2,99.0", "--found-in", "0.14.1"),
        *("--samples", "100000", "--confidence", "0.9999", "--json", "-"),
    )
    said = run(tmp_path, environment("pipeline-dp-0.3.1") / "dpaudit", *words)
    assert said.returncode == 1, said.stderr
    result = json.loads(said.stdout)
    answers = {one["release"]: one["answer"] for one in result["tested"]}
    assert answers == {"0.14.1": "refuted", "0.14.2": "not refuted", "99.0": "cannot tell"}
    assert result["tested"][0]["epsilon_lower"] > 1 / 3
