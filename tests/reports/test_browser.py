"""The report in Chromium, driven by its ChromeDriver; skipped where they are absent."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import browser_or_skip, passes_axe, wait_for

import stsbench as sb

pytestmark = pytest.mark.slow
ENTER, ESCAPE, LEFT, RIGHT = "\ue007", "\ue00c", "\ue012", "\ue014"
ROW, CHECKPOINT = "esimcse-coling2022-3/esimcse-bert-base", "ffgcc/esimcse-bert-base-uncased"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with browser_or_skip(tmp_path_factory.mktemp("profile")) as started:
        yield started


def test_the_page_works_in_a_browser(
    browser: Any,
    make_record: Callable[..., sb.RunRecord],
    hostile: sb.RunRecord,
    as_published: Callable[..., sb.RunRecord],
    tmp_path: Path,
) -> None:
    runs = [make_record("simcse-seed1", seed=1), make_record("simcse-seed2", seed=2), hostile]
    browser.open(sb.report(runs[:2], tmp_path / "two", analyse=False))
    browser.resize(1440, 900)
    # The summary is on the first screen.
    assert browser.run("return document.getElementById('summary').getBoundingClientRect().bottom") <= 900
    browser.open(sb.report([*runs, as_published(ROW, CHECKPOINT, STS12=-1.0)], tmp_path / "out"))
    _folds(browser)
    _shows_tooltips(browser)
    _sorts(browser)
    for width in (1280, 360):
        browser.resize(width)
        assert browser.run("return [document.documentElement.scrollWidth, innerWidth]") == [width, width]
    passes_axe(browser)
    assert browser.console() == []


def _folds(browser: Any) -> None:
    """A link to a folded section opens it; Enter on its heading closes it again."""
    opened = "return document.querySelector('#checks details').open"
    assert not browser.run(opened)
    browser.run("location.hash = 'check-1'")
    wait_for(browser, opened)
    browser.run("document.querySelector('#checks summary').focus()")
    browser.press(ENTER)
    assert not browser.run(opened)
    browser.run("for (const fold of document.querySelectorAll('main details')) fold.open = true")


def _sorts(browser: Any) -> None:
    """A click on a heading sorts the table, a second one the other way round; missing values stay at the end."""
    click = """const table = document.querySelector("#compare-1-1 table"), [place] = arguments;
        const head = table.tHead.rows[0].cells[place];
        head.firstElementChild.click();
        const keys = [...table.tBodies[0].rows].map((row) => row.cells[place].dataset.key);
        return [head.getAttribute("aria-sort"), keys]"""
    for column, key, orders in ((1, str, "ascending descending"), (2, float, "descending ascending")):
        for order in orders.split():
            shown, keys = browser.run(click, column)
            known = [key(text) for text in keys if text]
            assert (shown, known) == (order, sorted(known, reverse=order == "descending"))
            assert (len(known), all(keys[: len(known)])) == (4 if key is str else 7, True)


def _shows_tooltips(browser: Any) -> None:
    tip = "const tip = document.getElementById('tip'); return tip.hidden ? '' : tip.textContent"
    browser.run("document.querySelector('#scores-sts .hint').focus()")
    assert "95 % interval" in browser.run(tip)
    browser.press(ESCAPE)
    assert browser.run(tip) == ""
    # A figure is one tab stop; arrow keys move between its points.
    browser.run("document.querySelector('.drawing:has(.mark + .mark) .mark').focus()")
    first = browser.run(tip)
    browser.press(RIGHT)
    assert browser.run(tip) not in {"", first}
    browser.press(LEFT)
    assert browser.run(tip) == first
    browser.press(ESCAPE)
