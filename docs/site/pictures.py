"""Write the pictures of README.md and docs, light and dark: reports and figures in Chromium.

Run it by `make pictures`. It needs Chromium and chromedriver. Each page is that of an audit which
README.md or a page of docs shows.
"""

from __future__ import annotations

import base64
import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from tests.documents import blocks

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run")
# Pixels of a picture for one CSS pixel, and colours: a picture is below 120 kB.
SCALE, COLOURS = 1.5, 64
# matplotlib draws on white; a dark page has the same hues on black.
DARK_FIGURE = (
    "<style>@media (prefers-color-scheme: dark) {html {filter: invert(1) hue-rotate(180deg)}}"
)
DARK_FIGURE += "body {margin: 0; background: white}</style>"


class Picture(NamedTuple):
    """A part of a page.

    command: `dpaudit` with these arguments writes the page to the last of them.
    document: the page of docs whose files the command needs.
    width, height: size in CSS pixels; the whole element if height is 0.
    """

    document: str
    command: str
    selector: str
    width: int
    height: int = 0


COUNT = "run mine.py:noisy_count --d1 [1,2,3] --d2 [1,2] --epsilon 1 --report html:page.html"
FIRST = "run counts.py:noisy_count --d1 [0,1,1] --d2 [0,1] --epsilon 1 --report html:page.html"
CANARIES = "bound --canaries run.csv --mu 1 --report html:page.html"
ALL = {
    "report": Picture("index.md", COUNT, "details", 960, 655),
    "event": Picture("guides/start.md", FIRST, "figure[aria-labelledby^=outputs]", 760),
    "figures": Picture("index.md", COUNT, ".figures", 1200, 648),
    "tradeoff": Picture(
        "index.md", "explain tradeoff --epsilon 1 --mu 1 --figure page.svg", "img", 720
    ),
    "canaries": Picture("guides/canaries.md", CANARIES, ".figures", 1200, 632),
}


def main() -> None:
    """Write all pictures, or those whose names are given."""
    PICTURES.mkdir(exist_ok=True)
    names = sys.argv[1:] or list(ALL)
    driver = _chromium()
    try:
        for name in names:
            with tempfile.TemporaryDirectory() as folder:
                page = _page(ALL[name], Path(folder))
                for theme in ("light", "dark"):
                    screenshot = _screenshot(driver, page, ALL[name], theme)
                    image = Image.open(io.BytesIO(screenshot)).convert("RGB").quantize(COLOURS)
                    image.save(PICTURES / f"{name}-{theme}.png", optimize=True)
    finally:
        driver.quit()


def _page(picture: Picture, folder: Path) -> Path:
    """Run the command of a picture in a folder with the files of its document."""
    for block in blocks(ROOT / "docs" / picture.document):
        if block.file is not None:
            (folder / block.file).write_text(block.text, encoding="utf-8")
    if (folder / "train.py").exists():
        _run(folder, "train.py")
    _run(folder, "-m", "dpaudit", *picture.command.split())
    if (folder / "page.svg").exists():
        (folder / "page.html").write_text(f"{DARK_FIGURE}<img width=720 src=page.svg>", "utf-8")
    return folder / "page.html"


def _run(folder: Path, *words: str) -> None:
    ended = subprocess.run([sys.executable, *words], cwd=folder, check=False)  # noqa: S603  # this interpreter
    if ended.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(words)}: exit code {ended.returncode}")


def _chromium() -> webdriver.Chrome:
    programs = [shutil.which(name) for name in ("chromium", "chromedriver")]
    if None in programs:
        raise SystemExit("make pictures needs: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = str(programs[0])
    for flag in FLAGS:
        options.add_argument(flag)
    return webdriver.Chrome(options=options, service=Service(str(programs[1])))


def _screenshot(driver: webdriver.Chrome, page: Path, picture: Picture, theme: str) -> bytes:
    metrics = {"width": picture.width, "height": 900, "deviceScaleFactor": SCALE, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    feature = {"name": "prefers-color-scheme", "value": theme}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    driver.get(page.as_uri())
    box = driver.execute_script(
        "const box = document.querySelector(arguments[0]).getBoundingClientRect();"
        "return {x: box.x + scrollX, y: box.y + scrollY, width: box.width, height: box.height}",
        picture.selector,
    )
    clip = {**box, "height": picture.height or box["height"], "scale": 1}
    settings = {"clip": clip, "captureBeyondViewport": True}
    return base64.b64decode(driver.execute_cdp_cmd("Page.captureScreenshot", settings)["data"])


if __name__ == "__main__":
    main()
