"""The page of `--report html` as people meet it: on screens, with a keyboard, on paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.ui import WebDriverWait

from dpaudit.claims import make_claim
from tests.browser.conftest import DESKTOP, PHONE, Browser
from tests.cli.made_results import PASS, VIOLATION
from tests.hostile import EVERY_KIND
from tests.specs import replace

# Seconds within which a page does what it does by itself.
SOON = 10.0
OPEN_ALL = "document.querySelectorAll('details').forEach((one) => { one.open = true; });"
NAMES = """return [...document.querySelectorAll('#all tbody tr')]
    .filter((row) => !row.hidden).map((row) => row.cells[1].textContent);"""
# Every text that is shown: its colour, and what is behind it, from the nearest that is not clear.
CONTRASTS = """
const context = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
function parts(colour) {
  context.clearRect(0, 0, 1, 1);
  context.fillStyle = colour;
  context.fillRect(0, 0, 1, 1);
  return [...context.getImageData(0, 0, 1, 1).data];
}
function luminance(colour) {
  const [red, green, blue] = parts(colour).slice(0, 3).map((one) => one / 255)
    .map((one) => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
function behind(element) {
  for (let one = element; one !== null; one = one.parentElement) {
    const colour = getComputedStyle(one).backgroundColor;
    if (parts(colour)[3] === 255) { return colour; }
  }
  return 'rgb(255, 255, 255)';
}
function ratio(one, other) {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.textContent.trim() || element.tagName === 'SCRIPT') { continue; }
  const style = getComputedStyle(element);
  const colour = element instanceof SVGElement ? style.fill : style.color;
  found.push([ratio(colour, behind(element)), walker.currentNode.textContent]);
}
const lines = [];
for (const path of document.querySelectorAll('.drawing path')) {
  const group = path.parentElement.classList;
  const style = getComputedStyle(path);
  if (group.contains('frame') || group.contains('region') || group.contains('event')) { continue; }
  const colour = group.contains('mark') ? style.fill : style.stroke;
  lines.push([ratio(colour, behind(path)), group.value]);
}
return [found, lines];
"""


def shown(browser: Browser) -> list[str]:
    names: list[str] = browser.run(NAMES)
    return names


def articles(browser: Browser) -> list[str]:
    found: list[str] = browser.run(
        "return [...document.querySelectorAll('article')].filter((one) => !one.hidden)"
        ".map((one) => one.querySelector('h3').textContent);"
    )
    return found


def head(browser: Browser, key: str) -> Any:
    return browser.driver.find_element(By.CSS_SELECTOR, f"th[data-key={key}]")


@pytest.mark.parametrize("page", ["batch", "hostile"])
def test_a_page_opens_without_errors_or_requests(
    browser: Browser, page: str, request: pytest.FixtureRequest
) -> None:
    path: Path = request.getfixturevalue(page)
    browser.open(path, fragment="#audit-1")
    browser.run(OPEN_ALL)
    assert browser.said() == []
    assert {one for one in browser.requests() if not one.startswith("data:")} <= {
        path.as_uri(),
        f"{path.as_uri()}#audit-1",
    }
    assert browser.run("return performance.getEntriesByType('resource').length") == 0


def test_nothing_that_was_planted_has_grown(browser: Browser, hostile: Path) -> None:
    browser.open(hostile)
    browser.run(OPEN_ALL)
    assert browser.driver.title == "dpaudit: 10 privacy audits: 8 not as expected"
    count = "return document.querySelectorAll(arguments[0]).length"
    assert browser.run(count, "script") == 1
    assert browser.run(count, "style") == 1
    assert browser.run(count, "img, iframe, [onload], [onerror], [onmouseover], [autofocus]") == 0
    heads = browser.run("return document.querySelector('article h3').textContent")
    assert "<script>document.title='planted'</script>" in heads
    assert "\\x1b[31m" in heads


def test_the_policy_stops_what_would_be_planted_by_other_ways(
    browser: Browser, batch: Path
) -> None:
    browser.open(batch)
    browser.run(
        """const script = document.createElement('script');
        script.textContent = "document.title = 'planted'";
        document.body.append(script);
        document.body.insertAdjacentHTML('beforeend',
          '<img src="x" onerror="document.title = 1"><p id="p" style="color: red">p</p>');"""
    )
    assert browser.driver.title.startswith("dpaudit: ")
    colours = "return [document.body, document.getElementById('p')]"
    assert len(set(browser.run(f"{colours}.map((one) => getComputedStyle(one).color)"))) == 1
    refused = [one["message"] for one in browser.said()]
    assert sum("Content Security Policy" in one for one in refused) >= 3


def test_words_and_verdicts_filter(browser: Browser, batch: Path) -> None:
    browser.open(batch)
    every = [one.name for one in EVERY_KIND]
    assert sorted(shown(browser)) == sorted(every)
    words = browser.driver.find_element(By.ID, "words")
    words.send_keys("WRONG dens")
    assert shown(browser) == articles(browser) == ["wrong-density"]
    assert browser.driver.find_element(By.ID, "found").text == f"1 of {len(every)} shown"
    words.clear()
    words.send_keys("nothing is called so")
    assert shown(browser) == articles(browser) == []
    none = browser.driver.find_element(By.ID, "none")
    assert none.text == "No audit matches."
    words.clear()
    words.send_keys(Keys.BACKSPACE)
    chosen = Select(browser.driver.find_element(By.ID, "verdict"))
    for label, names in (
        ("ERROR", {"broken", "half"}),
        ("NO VIOLATION FOUND", {"laplace", "weak"}),
        ("not as expected", set(every) - {"laplace", "full"}),
        ("all verdicts", set(every)),
    ):
        chosen.select_by_visible_text(label)
        assert set(shown(browser)) == set(articles(browser)) == names
        assert not none.is_displayed()


def test_columns_sort_up_and_down_by_mouse_and_keyboard(browser: Browser, batch: Path) -> None:
    browser.open(batch)
    every = sorted(one.name for one in EVERY_KIND)
    head(browser, "name").find_element(By.TAG_NAME, "button").click()
    assert head(browser, "name").get_attribute("aria-sort") == "ascending"
    assert shown(browser) == every
    browser.driver.switch_to.active_element.send_keys(Keys.ENTER)
    assert head(browser, "name").get_attribute("aria-sort") == "descending"
    assert shown(browser) == every[::-1]
    head(browser, "lower").find_element(By.TAG_NAME, "button").send_keys(Keys.SPACE)
    assert head(browser, "name").get_attribute("aria-sort") is None
    assert shown(browser)[-1] == "exactly"  # infinite
    for key in ("draws", "detectable"):
        head(browser, key).find_element(By.TAG_NAME, "button").click()
        assert shown(browser)[-1] in ("laplace", "weak")
    head(browser, "rank").find_element(By.TAG_NAME, "button").click()
    assert shown(browser)[-1] == "laplace"


def test_many_rows_sort_by_number_not_by_digits(browser: Browser, written: Any) -> None:
    draws = [9, 1_000, 20, 300]
    results = [replace(PASS, name=f"run {one}", seconds=float(one)) for one in draws]
    browser.open(written(results))
    for key in ("name", "seconds"):
        head(browser, key).find_element(By.TAG_NAME, "button").click()
        assert shown(browser) == ["run 9", "run 20", "run 300", "run 1000"]


def test_bounds_sort_by_their_parameter_first(browser: Browser, written: Any) -> None:
    results = [
        replace(VIOLATION, name=f"audit {place}", claim=make_claim({name: size}))
        for place, (name, size) in enumerate(
            [("rho", 0.1), ("epsilon", 1.0), ("mu", 0.2), ("mu", 3.0), ("rho", 9.0), ("epsilon", 2)]
        )
    ]
    browser.open(written(results))
    head(browser, "lower").find_element(By.TAG_NAME, "button").click()
    cells = "return [...document.querySelectorAll('#all tbody tr')]"
    found = browser.run(f"{cells}.map((one) => one.cells[3].textContent)")
    assert [one[0] for one in found] == list("εεμμρρ")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_on_a_phone_nothing_is_cut_off_without_a_hint(
    browser: Browser, batch: Path, theme: str
) -> None:
    browser.open(batch, size=PHONE, theme=theme)
    browser.run(OPEN_ALL)
    overflown = """return [...document.querySelectorAll(arguments[0])]
        .filter((one) => one.scrollWidth > one.clientWidth + 1)"""
    assert browser.run(f"{overflown}.length", "pre, .source, [aria-label^='Events of']") == 0
    images = browser.run(
        f"{overflown}.map((one) => getComputedStyle(one).backgroundImage)", ".scrolling"
    )
    assert images
    assert all(one.count("linear-gradient") == 4 for one in images)
    lines = "return [...document.querySelectorAll('.whole')]"
    assert set(browser.run(f"{lines}.map((one) => one.getClientRects().length)")) == {1}


def test_a_link_opens_its_audit(browser: Browser, batch: Path) -> None:
    browser.open(batch, still=True)
    opened = """return [...document.querySelectorAll('article > details[open]')]
        .map((one) => one.parentElement.id);"""
    first = browser.run(opened)
    assert len(first) == 3
    closed = [place for place in range(len(EVERY_KIND)) if f"audit-{place + 1}" not in first]
    # The page hears of a new fragment a little later than the click ends.
    soon = WebDriverWait(browser.driver, SOON)
    browser.driver.find_element(By.LINK_TEXT, EVERY_KIND[closed[0]].name).click()
    soon.until(lambda _: set(browser.run(opened)) == {*first, f"audit-{closed[0] + 1}"})
    soon.until(lambda _: browser.run("return document.activeElement.tagName") == "SUMMARY")
    browser.open(batch, fragment=f"#audit-{closed[1] + 1}")
    soon.until(lambda _: set(browser.run(opened)) == {*first, f"audit-{closed[1] + 1}"})


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_texts_and_lines_can_be_read_in_both_themes(
    browser: Browser, batch: Path, theme: str, size: tuple[int, int]
) -> None:
    browser.open(batch, theme=theme, size=size)
    browser.run(OPEN_ALL)
    texts, lines = browser.run(CONTRASTS)
    assert len(texts) > 500
    assert [one for one in texts if one[0] < 4.5] == []
    assert len(lines) > 100
    assert [one for one in lines if one[0] < 3] == []
    dark = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert (dark == "rgb(255, 255, 255)") is (theme == "light")


@pytest.mark.parametrize("width", [320, 1280])
def test_figures_are_whole_and_nothing_hangs_over(
    browser: Browser, hostile: Path, batch: Path, width: int
) -> None:
    for page in (batch, hostile):
        browser.open(page, size=(width, 900))
        browser.run(OPEN_ALL)
        assert browser.run("return document.documentElement.scrollWidth") <= width
    drawings = browser.run(
        """return [...document.querySelectorAll('.drawing')].map((drawing) => {
          const box = drawing.getBoundingClientRect();
          const outside = [...drawing.querySelectorAll('path, text')].filter((part) => {
            const own = part.getBoundingClientRect();
            return own.left < box.left - 1 || own.right > box.right + 1
              || own.top < box.top - 1 || own.bottom > box.bottom + 1;
          });
          return [box.width, outside.map((part) => part.textContent)];
        });"""
    )
    assert len(drawings) > 20
    assert all(wide >= 0.6 * min(width, 480) for wide, _ in drawings)
    assert [outside for _, outside in drawings if outside] == []


def test_the_keyboard_reaches_everything_and_shows_where_it_is(
    browser: Browser, batch: Path
) -> None:
    browser.open(batch)
    reached = []
    for _ in range(30):
        browser.driver.switch_to.active_element.send_keys(Keys.TAB)
        reached.append(
            browser.run(
                """const one = document.activeElement;
                return [one.className || one.id || one.tagName,
                  parseFloat(getComputedStyle(one).outlineWidth), one.textContent.trim()];"""
            )
        )
    names = [name for name, _, _ in reached]
    assert names[0] == "skip"
    assert {"words", "verdict", "BUTTON", "A", "SUMMARY"} <= set(names)
    assert [name for name, outline, _ in reached if outline < 2] == []


def test_a_screen_reader_is_told_what_everything_is(browser: Browser, batch: Path) -> None:
    browser.open(batch)
    browser.run(OPEN_ALL)
    nodes = browser.command("Accessibility.getFullAXTree")["nodes"]
    kept = [one for one in nodes if not one["ignored"]]
    named = [(one["role"]["value"], one.get("name", {}).get("value", "")) for one in kept]
    roles = {role for role, _ in named}
    assert {"banner", "main", "contentinfo", "search", "table", "figure", "status"} <= roles
    told = ("button", "link", "image", "figure", "heading", "combobox", "searchbox", "region")
    for role, name in named:
        assert role not in told or name.strip(), role
    columns = [name for role, name in named if role == "columnheader"]
    wanted = ["Verdict", "Audit", "Claim", "Shown", "May miss", "Draws", "Seed", "Time"]
    assert columns[3:11] == wanted


def test_paper_shows_all_in_dark_ink(browser: Browser, batch: Path) -> None:
    browser.open(batch, theme="dark", media="print")
    assert browser.run("return getComputedStyle(document.body).backgroundColor") == (
        "rgb(255, 255, 255)"
    )
    drawing = "return document.querySelector('.drawing').getBoundingClientRect().height"
    assert browser.run(drawing) > 100
    assert not browser.driver.find_element(By.CSS_SELECTOR, ".filter").is_displayed()
    count = "return document.querySelectorAll('article > details[open]').length"
    browser.run("window.dispatchEvent(new Event('beforeprint'))")
    assert browser.run(count) == len(EVERY_KIND)
    browser.run("window.dispatchEvent(new Event('afterprint'))")
    assert browser.run(count) == 3  # as before


def test_without_its_script_a_page_is_still_a_page(browser: Browser, batch: Path) -> None:
    browser.open(batch, script=False, still=True)
    assert not browser.driver.find_element(By.ID, "words").is_displayed()
    rows = browser.driver.find_elements(By.CSS_SELECTOR, "#all tbody tr")
    assert len(rows) == len(EVERY_KIND)
    bodies = browser.driver.find_elements(By.CSS_SELECTOR, "article .body")
    assert [one.is_displayed() for one in bodies[:4]] == [True, True, True, False]
    browser.driver.find_elements(By.CSS_SELECTOR, "article > details > summary")[3].click()
    assert bodies[3].is_displayed()
    browser.open(batch)
