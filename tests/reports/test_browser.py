"""The page in a real browser: the system's Chromium, driven by its ChromeDriver; skipped where they are absent."""

import json
import os
from collections.abc import Callable, Iterator
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import stsbench as sb

pytestmark = pytest.mark.slow


def _beside(name: str) -> ModuleType:
    # Test files are imported each on its own: what stands beside one is not on the path.
    spec = spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


driver = _beside("browser")


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    if driver.browser_here() is None:
        pytest.skip("needs chromium and chromedriver (Debian: chromium, chromium-driver)")
    with driver.started(tmp_path / "profile") as started:
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
    loaded = browser.run(images)
    assert loaded
    assert all(loaded)
    assert browser.run("return document.title").startswith("Report on")
    _sorts(browser)
    _tells_intervals(browser)
    _switches_theme(browser)
    _never_overflows(browser)
    _has_contrast(browser)
    _passes_axe(browser)
    assert browser.console() == []


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


def _switches_theme(browser: Any) -> None:
    look = """return [getComputedStyle(document.body).backgroundColor,
                      document.getElementById('theme').textContent]"""
    browser.prefer("light")
    driver.wait_for(browser, "return document.getElementById('theme').textContent === 'Dark'")
    light = browser.run(look)
    browser.prefer("dark")
    # The page is told of the change a moment later.
    driver.wait_for(browser, "return document.getElementById('theme').textContent === 'Light'")
    dark = browser.run(look)
    assert light[0] != dark[0]
    # The button says what it leads to.
    assert [light[1], dark[1]] == ["Dark", "Light"]
    browser.run("document.getElementById('theme').click()")
    assert browser.run(look) == light
    browser.reload()
    assert browser.run(look) == light
    browser.run("localStorage.clear()")
    browser.reload()
    assert browser.run(look) == dark


def _never_overflows(browser: Any) -> None:
    for width in (360, 1280):
        browser.resize(width)
        whole, seen = browser.run("return [document.documentElement.scrollWidth, innerWidth]")
        assert (seen, whole) == (width, width)


_CONTRAST = """
    const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
    const channels = (colour) => {
      canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
      return [...canvas.getImageData(0, 0, 1, 1).data];
    };
    const light = (colour) => {
      const [r, g, b] = channels(colour).map((value) => value / 255)
        .map((value) => value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = (element) => {
      for (let at = element; at; at = at.parentElement) {
        const colour = getComputedStyle(at).backgroundColor;
        if (channels(colour)[3] === 255) return colour;
      }
      return 'white';
    };
    const poor = [];
    for (const element of document.querySelectorAll('body *:not(script)')) {
      if (![...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim())) continue;
      const [a, b] = [light(getComputedStyle(element).color), light(behind(element))];
      const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      if (ratio < 4.5) poor.push([element.className, element.textContent.slice(0, 40), ratio]);
    }
    return poor;
"""


def _has_contrast(browser: Any) -> None:
    """Every text has the contrast of WCAG 2.1, level AA: 4.5, in both themes."""
    for theme in ("light", "dark"):
        browser.prefer(theme)
        assert browser.run(_CONTRAST) == []


def _passes_axe(browser: Any) -> None:
    """Run axe-core: the `axe.min.js` that STSBENCH_AXE names, or the one of the package axe-core-python."""
    path = os.environ.get("STSBENCH_AXE")
    if (package := find_spec("axe_core_python")) and package.origin and not path:
        path = str(Path(package.origin).with_name("axe.min.js"))
    if not path:
        return
    for theme in ("light", "dark"):
        browser.prefer(theme)
        browser.run(f"{Path(path).read_text(encoding='utf-8')}\nwindow.axe = axe;")
        violations = "found.violations.map((one) => [one.id, one.nodes[0].html])"
        found = browser.run(f"return axe.run().then((found) => {violations})")
        assert found == [], json.dumps(found)
