"""Write the pictures of README.md: the HTML report of its first example, light and dark.

Run it by `make pictures`. It needs Chromium and chromedriver.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

PICTURES = Path(__file__).parents[1] / "pictures"
MECHANISM = """\
def noisy_count(rows, rng):
    return len(rows) + rng.laplace(scale=0.5)
"""
AUDIT = ("run", "mine.py:noisy_count", "--d1", "[1, 2, 3]", "--d2", "[1, 2]", "--epsilon", "1")
# Size of the picture in CSS pixels: a page of README is about 900 wide.
WIDTH, HEIGHT = 960, 1000
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run")


def main() -> None:
    """Audit the example, open its page in Chromium, and save a picture for each theme."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        page = _report(Path(folder))
        driver = _chromium()
        try:
            for theme in ("light", "dark"):
                _picture(driver, page, theme).replace(PICTURES / f"report-{theme}.png")
        finally:
            driver.quit()


def _report(folder: Path) -> Path:
    (folder / "mine.py").write_text(MECHANISM, encoding="utf-8")
    command = [sys.executable, "-m", "dpaudit", *AUDIT, "--quiet", "--report", "html:report.html"]
    audit = subprocess.run(command, cwd=folder, check=False)  # noqa: S603
    if audit.returncode != 1:
        raise SystemExit("the example of README.md is not refuted")
    return folder / "report.html"


def _chromium() -> webdriver.Chrome:
    programs = [shutil.which(name) for name in ("chromium", "chromedriver")]
    if None in programs:
        raise SystemExit("make pictures needs: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = str(programs[0])
    for flag in FLAGS:
        options.add_argument(flag)
    return webdriver.Chrome(options=options, service=Service(str(programs[1])))


def _picture(driver: webdriver.Chrome, page: Path, theme: str) -> Path:
    metrics = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1.5, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    feature = {"name": "prefers-color-scheme", "value": theme}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    driver.get(page.as_uri())
    driver.execute_script("document.querySelector('details').scrollIntoView({behavior: 'instant'})")
    path = page.with_name(f"{theme}.png")
    driver.save_screenshot(str(path))
    return path


if __name__ == "__main__":
    main()
