"""The wording of every format, in one golden file each.

`make generated` writes them. Other tests compare numbers, places and
names, so that a sentence can be worded better."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

from dpaudit.reports import comparison, trace_report
from dpaudit.reports.formats import FORMATS
from dpaudit.reports.text import render
from dpaudit.version import __version__
from tests import generated
from tests.cli.made_results import ERROR, PASS, VIOLATION
from tests.cli.test_compare import every_change
from tests.hostile import EXACT, ONE_RUN, TRACE
from tests.result_files import reported
from tests.specs import replace

FOLDER = Path(__file__).with_name("golden")
REPEATED = replace(
    VIOLATION, command="dpaudit run a.yaml -k wrong", source="mechanisms/laplace.py:71", trace=TRACE
)
AUDITS = [REPEATED, PASS, ERROR, EXACT, ONE_RUN]


def page() -> str:
    """Return the words of a page, without its pictures."""
    text = reported("html", AUDITS).partition("<body")[2]
    for hidden in ("svg", "style", "script"):
        text = re.sub(rf"<{hidden}\b.*?</{hidden}>", "", text, flags=re.DOTALL)
    words = html.unescape(re.sub(r"<[^>]*>|^[^<]*>", "\n", text))
    lines = (" ".join(line.split()) for line in words.splitlines())
    return "\n".join(line for line in lines if line) + "\n"


GOLDEN: dict[str, Callable[[], str]] = {
    "text.txt": lambda: "\n".join(f"{render(one)}\n" for one in AUDITS),
    "verbose.txt": lambda: "\n".join(f"{render(one, verbose=1)}\n" for one in AUDITS),
    "batch.txt": lambda: reported("text", AUDITS),
    "trace.txt": lambda: trace_report.render(TRACE, verbose=1),
    "compare.txt": lambda: comparison.render(every_change()),
    "markdown.md": lambda: reported("markdown", AUDITS),
    "junit.xml": lambda: reported("junit", AUDITS),
    "sarif.json": lambda: reported("sarif", AUDITS),
    "github.txt": lambda: reported("github", AUDITS),
    "html.txt": page,
}


def written(name: str) -> str:
    """Return what the file should hold: in an empty folder, without its name, version and date."""
    with TemporaryDirectory() as folder, chdir(folder):
        text = GOLDEN[name]().replace(Path.cwd().as_uri(), "FOLDER")
    text = text.replace(__version__, "VERSION")
    return re.sub(r"\d+ [A-Z][a-z]+ \d{4}, \d\d:\d\d UTC", "DATE", text)


def test_every_format_has_a_golden_file() -> None:
    names = {Path(name).stem for name in GOLDEN} - {"verbose", "batch", "trace", "compare"}
    assert names == set(FORMATS) - {"json"}  # whose words are those of the record


def test_the_wording_is_that_of_the_golden_files() -> None:
    for name in GOLDEN:
        generated.check(FOLDER / name, written(name))


if __name__ == "__main__":
    for name in GOLDEN:
        (FOLDER / name).write_text(written(name), "utf-8")
