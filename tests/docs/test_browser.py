"""The built site in a real browser. `.ci/run` builds it first: `sphinx-build -n -W docs build/docs`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import browser_or_skip

SITE = Path(__file__).resolve().parents[2] / "build" / "docs"
WIDTHS = (360, 1280)
PAGES = (
    "index.html",
    "tutorial.html",
    "why-numbers-differ.html",
    "definitions/statistics.html",
    "definitions/geometry.html",
    "how-to/check.html",
    "examples/index.html",
    "published-conflicts.html",
    *sorted(f"notebooks/{page.name}" for page in (SITE / "notebooks").glob("*.html")),
    "reference/commands/run.html",
    "reference/api/stsbench.html",
)


CUT_OFF = """
    const scrolls = (element) => ['auto', 'scroll'].includes(getComputedStyle(element).overflowX);
    const reachable = (element) => {
        for (let place = element; place && place.tagName !== 'ARTICLE'; place = place.parentElement) {
            if (scrolls(place)) return true;
        }
        return false;
    };
    return [...document.querySelectorAll('article *')].filter((element) => {
        const box = element.getBoundingClientRect();
        return box.width > 0 && box.right > window.innerWidth + 1 && !reachable(element);
    }).map((element) => element.outerHTML.slice(0, 200));
"""
"""What reaches beyond the screen although nothing around it scrolls."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if not (SITE / "index.html").is_file():
        pytest.skip("needs the built site: sphinx-build docs build/docs")
    with browser_or_skip(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_every_screen_and_asks_for_nothing_from_elsewhere(browser: Any, name: str) -> None:
    # Loaded once: neither theme nor width takes more than its style.
    browser.open(SITE / name)
    for theme in ("light", "dark"):
        browser.prefer(theme)
        for width in WIDTHS:
            browser.resize(width)
            assert browser.run("return document.documentElement.scrollWidth") <= width, (theme, width)
            assert browser.run(CUT_OFF) == [], (theme, width)
    errors = [line for line in browser.console() if "favicon" not in line]
    assert errors == []
    asked = browser.run("return performance.getEntriesByType('resource').map((one) => one.name)")
    assert [address for address in asked if not address.startswith(("file:", "data:"))] == []
    loaded = browser.run("return [...document.images].map((image) => image.complete && image.naturalWidth > 0)")
    assert all(loaded)


def test_formulas_are_drawn_by_the_browser_itself(browser: Any) -> None:
    browser.open(SITE / "definitions" / "statistics.html")
    heights = browser.run(
        "return [...document.querySelectorAll('math')].map((m) => m.getBoundingClientRect().height)"
    )
    assert len(heights) > 20
    assert max(heights) > 40  # a fraction under a root is more than a line of text
    assert browser.run("return document.querySelectorAll('script[src*=athjax]').length") == 0
