"""The page in a real browser: the system's Chromium, driven by its ChromeDriver; skipped where they are absent."""

from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from browser import browser_or_skip, has_contrast, passes_axe, wait_for

import stsbench as sb
from stsbench.render import page as page_of

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with browser_or_skip(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture
def page(
    make_record: Callable[..., sb.RunRecord],
    hostile: sb.RunRecord,
    as_published: Callable[..., sb.RunRecord],
    tmp_path: Path,
) -> Path:
    """Return a page with a bit of everything: hostile names, figures, a published row, verdicts."""
    known = as_published("esimcse-coling2022-3/esimcse-bert-base", "ffgcc/esimcse-bert-base-uncased", STS12=-1.0)
    runs = [make_record("simcse-seed1", seed=1), make_record("simcse-seed2", seed=2), hostile, known]
    return sb.report(runs, tmp_path / "out")


def test_the_page_works_in_a_browser(browser: Any, page: Path) -> None:
    browser.open(page)
    assert browser.console() == []
    images = "return [...document.images].map((image) => image.naturalWidth > 0 && image.alt !== '')"
    assert all(browser.run(images))
    drawings = (
        "return [...document.querySelectorAll('.drawing svg')].map((svg) => svg.getBoundingClientRect().width)"
    )
    widths = browser.run(drawings)
    assert widths
    # The strip among the published models stands in a column of its own.
    assert min(widths) > 250
    assert browser.run("return document.title").startswith("Report on")
    _opens_what_is_folded(browser, page)
    _sorts(browser)
    _tells_intervals(browser)
    _tells_numbers_of_figures(browser)
    _switches_theme(browser)
    _never_overflows(browser)
    has_contrast(browser)
    passes_axe(browser)
    assert browser.console() == []


@pytest.fixture
def whole_page(hash_encode: Callable[..., Any], tmp_path: Path) -> Path:
    """Return the page of a run of the seven tasks, or of the sample where their data is not here."""
    record = sb.evaluate(hash_encode, use_cache=False)
    return sb.report(record, tmp_path / "whole")


def test_the_answer_stands_on_the_first_screen(browser: Any, whole_page: Path) -> None:
    browser.open(whole_page)
    shown = """
        const end = (found) => found ? Math.round(found.getBoundingClientRect().bottom) : 0;
        const part = document.getElementById('in-short');
        return [end(part.querySelector('.short')), end(part.querySelector('.drawing')), end(part)];
    """
    for width in (768, 1440):
        browser.resize(width, 900)
        assert all(end <= 900 for end in browser.run(shown)), width
    assert "scores" in browser.run("return document.querySelector('#in-short li').textContent")
    assert "numbers that were looked at" in browser.run("return document.querySelector('#in-short').textContent")
    # On a phone the picture and the first sentence; letters of the picture are never tiny.
    browser.resize(360, 900)
    first = "return document.querySelector('#in-short li').getBoundingClientRect().bottom"
    assert browser.run(first) <= 900
    drawn = "return document.querySelector('#in-short .drawing').getBoundingClientRect()"
    if browser.run("return document.querySelector('#in-short .drawing') !== null"):
        assert browser.run(f"{drawn}.bottom") < browser.run(first)
        for width in (360, 768):
            browser.resize(width, 900)
            assert browser.run(f"{drawn}.width") > 290
    browser.resize(360)
    assert browser.run("return document.documentElement.scrollWidth") == 360


def test_an_option_stands_on_one_line(browser: Any, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    said = "measure with --tasks SICK-R:all, not --tasks=a, a--b or --out FOLDER"
    page.write_text(_sentences(said), encoding="utf-8")
    browser.open(page)
    told = """const codes = [...document.querySelectorAll('li code')];
              return codes.map((code) => [code.textContent, code.getClientRects().length])"""
    for width in range(130, 360, 10):
        browser.resize(width)
        codes = browser.run(told)
        assert [text for text, _ in codes] == ["--tasks SICK-R:all", "--tasks", "--out"]
        assert {lines for _, lines in codes} == {1}
    assert browser.run("return document.querySelector('li').textContent") == said


def _sentences(text: str) -> str:
    """Return a page with a sentence in our looks."""
    css = files("stsbench.render").joinpath("templates", "page.css").read_text(encoding="utf-8")
    return f"<!doctype html><title>a</title><style>{css}</style><ul><li>{page_of.as_sentence(text)}</li></ul>"


def _opens_what_is_folded(browser: Any, page: Path) -> None:
    """Open a paper by the keyboard, another by a link to it; a link into an open one leaves it open."""
    state = "return [...document.querySelectorAll('main details')].map((fold) => fold.open)"
    first, *others = browser.run(state)
    assert first
    assert not any(others)
    browser.run("document.querySelectorAll('main summary')[1].focus()")
    browser.press("\ue007")
    assert browser.run(state)[:2] == [True, True]
    browser.run("document.querySelectorAll('main details')[1].open = false")
    names = browser.run("return [...document.querySelectorAll('main details')].map((of) => of.parentElement.id)")
    browser.run("location.hash = arguments[0]", names[2])
    wait_for(browser, "return document.querySelectorAll('main details')[2].open")
    assert browser.run(state)[:3] == [True, False, True]
    # The tests that follow look at a table of any paper.
    browser.run("for (const fold of document.querySelectorAll('main details')) fold.open = true")


def _sorts(browser: Any) -> None:
    """Sort a table with a column of numbers by the keyboard: high first, then low first, no value last."""
    shown = """
        const table = document.querySelector('#esimcse-coling2022-3 table');
        const head = [...table.tHead.rows[0].cells].findIndex((cell) => cell.textContent.trim() === 'STS12');
        const values = [...table.tBodies[0].rows].map((row) => row.cells[head].dataset.key);
        return [table.tHead.rows[0].cells[head].getAttribute('aria-sort'), values];
    """
    focus = """
        const heads = [...document.querySelectorAll('#esimcse-coling2022-3 th')];
        heads.find((cell) => cell.textContent.trim() === 'STS12').querySelector('button').focus();
    """
    order, before = browser.run(shown)
    assert order == "none"
    for wanted in ("descending", "ascending"):
        browser.run(focus)
        browser.press("\ue007")
        order, values = browser.run(shown)
        numbers = [float(value) for value in values if value]
        assert order == wanted
        assert numbers == sorted(numbers, reverse=wanted == "descending")
        assert sorted(values) == sorted(before)
        assert "" not in values[: len(numbers)]
    by_text = """
        const head = document.querySelector('#esimcse-coling2022-3 th');
        head.querySelector('button').click();
        const rows = document.querySelector('#esimcse-coling2022-3 tbody').rows;
        return [head.getAttribute('aria-sort'), [...rows].map((row) => row.cells[0].dataset.key),
                document.querySelectorAll('#esimcse-coling2022-3 th:not([aria-sort=none])').length];
    """
    order, names, marked = browser.run(by_text)
    assert (order, marked) == ("ascending", 1)
    assert [name.casefold() for name in names[:1]] == [min(name.casefold() for name in names)]


def _tells_intervals(browser: Any) -> None:
    browser.run("document.querySelector('#scores-sts .hint').focus()")
    tip = "const tip = document.getElementById('tip'); return [tip.hidden, tip.textContent]"
    hidden, told = browser.run(tip)
    assert not hidden
    assert "95 % interval" in told
    browser.press("\ue00c")
    assert browser.run(tip)[0]


def _tells_numbers_of_figures(browser: Any) -> None:
    """A figure is one stop for the keyboard; from there arrows go from number to number, and each is told."""
    stops = """return [...document.querySelectorAll('.drawing svg')].map((svg) =>
                      [...svg.querySelectorAll('.mark')].filter((mark) => mark.tabIndex === 0).length)"""
    assert set(browser.run(stops)) == {1}
    browser.run(
        "document.querySelector('#training-loss, .drawing:has(.mark + .mark)').querySelector('.mark').focus()"
    )
    here = """const mark = document.activeElement, all = [...mark.closest('svg').querySelectorAll('.mark')];
              const tip = document.getElementById('tip');
              return [all.indexOf(mark), mark.getAttribute('aria-label'), tip.hidden ? '' : tip.textContent]"""
    first, second = browser.run(here), browser.press("\ue014") or browser.run(here)
    assert (first[0], second[0]) == (0, 1)
    for _, label, told in (first, second):
        assert label
        assert told == label
    assert first[1] != second[1]
    browser.press("\ue012")
    assert browser.run(here) == first
    assert set(browser.run(stops)) == {1}
    browser.press("\ue00c")


def _switches_theme(browser: Any) -> None:
    look = """return [getComputedStyle(document.body).backgroundColor,
                      document.getElementById('theme').textContent]"""
    browser.prefer("light")
    wait_for(browser, "return document.getElementById('theme').textContent === 'Dark'")
    light = browser.run(look)
    browser.prefer("dark")
    # The page is told of the change a moment later.
    wait_for(browser, "return document.getElementById('theme').textContent === 'Light'")
    dark = browser.run(look)
    assert light[0] != dark[0]
    # The button says what it leads to.
    assert [light[1], dark[1]] == ["Dark", "Light"]
    # Figures go with the page: what was white is dark.
    figure = """return [...document.querySelectorAll('.drawing svg, .small')].map(
                       (drawn) => getComputedStyle(drawn).filter)"""
    assert set(browser.run(figure)) == {"invert(1) hue-rotate(180deg)"}
    browser.run("document.getElementById('theme').click()")
    assert browser.run(look) == light
    assert set(browser.run(figure)) == {"none"}
    browser.reload()
    assert browser.run(look) == light
    browser.run("localStorage.clear()")
    browser.reload()
    assert browser.run(look) == dark


def _never_overflows(browser: Any) -> None:
    for width in (1280, 360):
        browser.resize(width)
        whole, seen = browser.run("return [document.documentElement.scrollWidth, innerWidth]")
        assert (seen, whole) == (width, width)
