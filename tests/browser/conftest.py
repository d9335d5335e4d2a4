"""A real Chromium without a window, and the pages that it opens."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from dpaudit.certificates.result import AuditResult
from tests.hostile import EVERY_KIND, planted
from tests.result_files import reported

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
DESKTOP, PHONE = (1280, 900), (390, 800)


class Browser:
    """Chromium, and what tests ask of it."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(
        self,
        page: Path,
        *,
        fragment: str = "",
        size: tuple[int, int] = DESKTOP,
        theme: str = "light",
        media: str = "",
        still: bool = False,
        script: bool = True,
    ) -> None:
        """Open a page in a new tab.

        still: as for a reader who asks for reduced motion.
        """
        self.driver.get("about:blank")
        self.command("Emulation.setScriptExecutionDisabled", value=not script)
        metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False}
        self.command("Emulation.setDeviceMetricsOverride", **metrics)
        features = [
            {"name": "prefers-color-scheme", "value": theme},
            {"name": "prefers-reduced-motion", "value": "reduce" if still else "no-preference"},
        ]
        self.command("Emulation.setEmulatedMedia", media=media, features=features)
        for kind in ("browser", "performance"):
            self.driver.get_log(kind)
        self.driver.get(page.as_uri() + fragment)

    def command(self, name: str, **parameters: Any) -> Any:
        return self.driver.execute_cdp_cmd(name, parameters)

    def run(self, script: str, *given: Any) -> Any:
        """Return what a function's body returns."""
        return self.driver.execute_script(script, *given)

    def said(self) -> list[Any]:
        """Return what the console shows since the page was opened."""
        return list(self.driver.get_log("browser"))

    def requests(self) -> list[str]:
        """Return what was asked for since the page was opened."""
        events = [
            json.loads(one["message"])["message"] for one in self.driver.get_log("performance")
        ]
        sent = [one["params"] for one in events if one["method"] == "Network.requestWillBeSent"]
        return [one["request"]["url"] for one in sent]


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    options = webdriver.ChromeOptions()
    options.binary_location = _program("chromium")
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(_program("chromedriver")))
    try:
        yield Browser(driver)
    finally:
        driver.quit()


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Sequence[AuditResult]], Path]:
    def write(results: Sequence[AuditResult]) -> Path:
        path = tmp_path_factory.mktemp("page") / "out.html"
        path.write_text(reported("html", results), encoding="utf-8")
        return path

    return write


@pytest.fixture(scope="session")
def batch(written: Any) -> Path:
    """The page of an audit of every kind."""
    path: Path = written(EVERY_KIND)
    return path


@pytest.fixture(scope="session")
def hostile(written: Any) -> Path:
    """The same with markup in every text."""
    path: Path = written([planted(one) for one in EVERY_KIND])
    return path


def _program(name: str) -> str:
    found = shutil.which(name)
    assert found, f"{name} is not installed; on Debian: apt-get install chromium chromium-driver"
    return found
