"""Writing the results of 1,000 audits in every format, in seconds of processor time; and 50 of them
as a page that Chromium opens, where it is installed.

python -m benchmarks.reports [--audits 1000]
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from dpaudit.certificates.result import AuditResult
from dpaudit.reports.formats import FORMATS
from dpaudit.reports.json import read_document

RECORDED = Path(__file__).parents[1] / "configs/gallery/results.json"
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
OPENINGS, BATCH = 9, 50


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=1_000)
    audits = parser.parse_args().audits
    recorded = read_document(RECORDED.read_text("utf-8")).results
    results = (recorded * -(-audits // len(recorded)))[:audits]
    total = 0.0
    for name in FORMATS:
        seconds, text = written(name, results)
        total += seconds
        print(f"{name:<9} {seconds:6.2f} s  {len(text.encode()) / 1e6:7.2f} MB")
    print(f"{'together':<9} {total:6.2f} s for {audits:,} audits (wanted: < 20)")
    _, text = written("html", results[:BATCH])
    print(f"a page of {BATCH}: {len(text.encode()) / 1e6:.2f} MB (wanted: < 3)")
    if shutil.which("chromium") and shutil.which("chromedriver"):
        print(f"Chromium opens it in {opened(text):.2f} s (wanted: < 1)")


def written(name: str, results: Sequence[AuditResult]) -> tuple[float, str]:
    """Return the processor time that a format takes, and its text."""
    start = time.process_time()
    entries = [FORMATS[name].entry(result) for result in results]
    text = FORMATS[name].document(entries, len(results))
    return time.process_time() - start, text


def opened(text: str) -> float:
    """Return the seconds until a page is loaded, in the median."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "out.html"
        page.write_text(text, encoding="utf-8")
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or ""
        for flag in (*FLAGS, f"--user-data-dir={folder}/profile"):
            options.add_argument(flag)
        driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        try:
            found = []
            for _ in range(OPENINGS):
                driver.get("about:blank")
                start = time.perf_counter()
                driver.get(page.as_uri())
                found.append(time.perf_counter() - start)
            return median(found)
        finally:
            driver.quit()


if __name__ == "__main__":
    main()
