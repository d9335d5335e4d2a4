"""The site: `make docs` builds it from these pages, from the commands and from docstrings."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

import dpaudit

DOCS = Path(__file__).parent.resolve()
sys.path.append(str(DOCS / "site"))

project = "dpaudit"
version = release = dpaudit.__version__
language = "en"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "generated"]
exclude_patterns = ["site"]
nitpicky = True
# Errors that docstrings name and `dpaudit` does not.
_UNNAMED = ("ClaimError", "DatasetError", "TargetError", "TrainingError")
nitpick_ignore = [("py:exc", name) for name in _UNNAMED]

# Slugs of headings are those of GitHub, where the pages are read too.
myst_heading_anchors = 4
myst_enable_extensions = ["deflist"]
# Pages that show a file of another folder; what links to the file means the page.
PAGES = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/RESULTS.md": "measurements.md",
    "tests/README.md": "tests.md",
}

_PICTURE = re.compile(
    r'<picture>\s*<source media="\(prefers-color-scheme: dark\)" srcset="(?P<dark>\S+)">'
    r'\s*<img alt="(?P<alt>[^"]+)" src="(?P<light>\S+)"[^>]*>\s*</picture>'
)

# Docstrings say the types, in words; single backticks are code in them.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False
toc_object_entries_show_parents = "hide"
napoleon_google_docstring = False
napoleon_use_param = False
napoleon_use_rtype = False
napoleon_custom_sections = [("Attributes", "params_style")]
default_role = "code"
smartquotes_action = "D"  # dashes; quotes stay as they are
maximum_signature_line_length = 80

html_theme = "furo"
html_title = "dpaudit"
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_static_path = ["site/static"]
html_css_files = ["dpaudit.css"]
# Nothing is fetched from elsewhere: the fonts are those of the reader.
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"

linkcheck_anchors = False
linkcheck_ignore = ["dpaudit.schema.json"]  # which is made with the page


def setup(app: Sphinx) -> None:
    app.connect("source-read", _link_pages)
    app.connect("source-read", _name_files)
    app.connect("source-read", _show_pictures)
    app.connect("source-read", _list_pages)
    app.connect("doctree-read", _name_tables_of_options)
    app.connect("include-read", _link_pages)
    app.connect("autodoc-process-docstring", _link_documents)
    app.connect("autodoc-process-signature", _leave_out_constructors)


def _link_pages(_: Sphinx, page: str | Path, *event: Any) -> None:
    """Let links to files, as they are in the repository, lead to pages."""
    text: list[str] = event[-1]
    folder = (DOCS / page).parent
    text[0] = re.sub(r"\]\(([\w./-]+\.md)", lambda link: f"](/{_page(folder / link[1])}", text[0])


def _page(file: Path) -> str:
    """A page as the site names it, of a file in the repository."""
    path = file.resolve()
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS).as_posix()
    return PAGES[path.relative_to(DOCS.parent).as_posix()]


def _name_files(*event: Any) -> None:
    """Let a block that the tests write to a file have its name above it."""
    text: list[str] = event[-1]
    text[0] = re.sub(
        r"<!-- file: (\S+) -->\n+```(\w+)\n", r"```{code-block} \2\n:caption: \1\n\n", text[0]
    )


def _show_pictures(*event: Any) -> None:
    """Let a picture have the theme of the page: <picture> follows the theme of the system alone."""
    text: list[str] = event[-1]
    text[0] = _PICTURE.sub(
        lambda found: "\n\n".join(
            f"```{{image}} {found[theme]}\n:alt: {found['alt']}\n:class: only-{theme}\n```"
            for theme in ("light", "dark")
        ),
        text[0],
    )


def _list_pages(_: Sphinx, page: str, text: list[str]) -> None:
    """Let the list of all pages, contents.md, be the sidebar."""
    if page != "index":
        return
    text[0] += "\n```{toctree}\n:hidden:\n\nAll pages </contents.md>\n```\n"
    contents = (DOCS / "contents.md").read_text("utf-8")
    parts = re.split(r"^## (.*)$", contents, flags=re.MULTILINE)[1:]
    for caption, links in zip(parts[::2], parts[1::2], strict=True):
        pages = re.findall(r"^- \[([^]]+)\]\(([\w./-]+\.md)\)", links, re.MULTILINE)
        entries = [f"{name} </{_page(DOCS / file)}>" for name, file in pages]
        lines = [f":caption: {caption}", ":hidden:", "", *entries]
        text[0] += "\n".join(["", "```{toctree}", *lines, "```", ""])


def _name_tables_of_options(app: Sphinx, document: nodes.document) -> None:
    """Let the style sheet show the tables of options as lists on phones."""
    if app.env.docname == "options":
        for table in document.findall(nodes.table):
            table["classes"].append("options")


def _link_documents(*event: Any) -> None:
    """Let documents that a docstring names be links."""
    lines: list[str] = event[-1]
    lines[:] = [re.sub(r"docs/([\w/-]+)\.md", r":doc:`/\1`", line) for line in lines]


def _leave_out_constructors(*event: Any) -> tuple[str, None] | None:
    """Leave the constructor of results out: only audits make results."""
    _, what, _, made, *_ = event
    is_result = what == "class" and made.__module__.startswith("dpaudit.certificates.")
    return ("", None) if is_result else None
