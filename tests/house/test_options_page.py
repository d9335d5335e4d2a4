"""docs/options.md is what the table of options gives; `make generated` writes it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from dpaudit.api import MoreOptions, audit
from dpaudit.auditing.option_parsing import Option, Section
from dpaudit.auditing.options import OPTIONS
from tests import generated

PAGE = Path(__file__).parents[2] / "docs" / "options.md"
KEYWORDS = {*inspect.signature(audit).parameters, *MoreOptions.__annotations__}
INTRODUCTION = """# Options

Each option of an audit once: as a flag of `dpaudit run`, as a key of an audit in a
[configuration file](configuration.md), and as a keyword of `dpaudit.audit`. Python takes objects
where files have words: a claim is also `ApproximateDP(1, 1e-5)`, times are in seconds, sizes in
bytes, and functions are themselves. This page is made from the declarations in `dpaudit/auditing/`.
"""
HEAD = "| command line | file | Python | what | default |\n|---|---|---|---|---|"


def page() -> str:
    return "\n".join([INTRODUCTION, *map(_section, get_args(Section))])


def _section(title: Section) -> str:
    rows = [_row(one) for one in OPTIONS.values() if one.help.section == title]
    return "\n".join([f"## {title}", "", HEAD, *rows, ""])


def _row(one: Option) -> str:
    flags = ", ".join(f"`{flag}`" for flag in (one.flag, one.help.short) if flag)
    keys = {"claim": f"`claim: {{{one.name}: …}}`", "run": ""}
    keyword = f"`{one.name}`" if one.name in KEYWORDS else ""
    more = f" ([more]({one.help.more}))" if one.help.more else ""
    text = one.help.text + more
    cells = (flags, keys.get(one.of, f"`{one.name}`"), keyword, text, one.default_words)
    return f"| {' | '.join(cells)} |"


def test_the_page_is_what_the_table_gives() -> None:
    generated.check(PAGE, page())


def test_every_link_leads_somewhere() -> None:
    for one in OPTIONS.values():
        file, _, anchor = one.help.more.partition("#")
        if file:
            headings = list(anchors((PAGE.parent / file).read_text(encoding="utf-8")))
            assert not anchor or anchor in headings, one.help.more


def anchors(text: str) -> Iterator[str]:
    """Yield what the headings of a document can be linked by."""
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        yield re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
