"""The board in a real browser: what two runs are told, sorting, filtering, folding, the address, its looks."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from browser import browser_or_skip, has_contrast, passes_axe

import stsbench as sb
from stsbench.records.store import save_run

pytestmark = pytest.mark.slow

Runs = Callable[..., Path]
KNOWN = {"alpha": 0.0, "beta": 0.5, "gamma": 0.53, "delta": 0.56}


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    with browser_or_skip(tmp_path / "profile") as started:
        yield started


def rows(browser: Any) -> list[list[str]]:
    script = """
        return [...document.querySelectorAll('#rows tbody tr')].map(
          (row) => [...row.cells].map((cell) => cell.firstChild?.textContent ?? ''));
    """
    found: list[list[str]] = browser.run(script)
    return found


def names(browser: Any) -> list[str]:
    return [row[1] for row in rows(browser)]


def choose(browser: Any, name: str, value: str | bool, event: str = "change") -> None:
    browser.run(
        "const [name, value, event] = arguments; const field = document.getElementById(name);"
        "if (field.type === 'checkbox') field.checked = value; else field.value = value;"
        "field.dispatchEvent(new Event(event));",
        name,
        value,
        event,
    )


def press(browser: Any, label: str) -> None:
    """Press a button by its label, by the keyboard."""
    script = """
        const button = [...document.querySelectorAll('button')].find(
          (own) => own.getAttribute('aria-label') === arguments[0] || own.textContent === arguments[0]);
        button.focus();
    """
    browser.run(script, label)
    browser.press("\ue007")


def told(browser: Any) -> list[str]:
    found: list[str] = browser.run(
        "return [...document.querySelectorAll('#sentence p')].map((p) => p.textContent)"
    )
    return found


def test_any_two_runs_are_told_what_compare_says(browser: Any, board_runs: Runs, tmp_path: Path) -> None:
    root = board_runs(**KNOWN)
    (section,) = sb.board(root, tmp_path / "board.html").sections
    browser.resize(1440, 500)  # the table lies below, and what is said of two stands above it
    browser.open(tmp_path / "board.html")
    assert "Choose two runs" in told(browser)[0]
    for high, low in combinations(range(len(KNOWN)), 2):
        a, b = (section.runs[place] for place in (low, high))
        for run in (b, a):
            press(browser, f"Compare {run.name}")
        assert told(browser)[0] == sb.compare(a.record, b.record).sentence
        assert browser.run("return document.getElementById('two').getBoundingClientRect().top") >= 0
        assert told(browser)[-1] == f"stsbench compare {root / a.name} {root / b.name}"
        before = told(browser)
        browser.reload()
        assert told(browser) == before
        for run in (a, b):
            press(browser, f"Compare {run.name}")
    assert "Choose two runs" in told(browser)[0]


def test_numbered_groups_are_compared_whole(browser: Any, board_runs: Runs, tmp_path: Path) -> None:
    page = tmp_path / "board.html"
    board = sb.board(board_runs(alpha=0.0, beta=0.5, gamma=0.53))
    groups = dict(zip(range(3), (("1", "10"), ("2",), ("10",)), strict=True))
    sections = [replace(board.sections[0], letters={"Avg.": groups})]
    replace(board, sections=tuple(sections)).save(page)
    names = [run.name for run in sections[0].runs]
    browser.open(page)
    for other, apart in ((1, True), (2, False)):
        for name in (names[0], names[other]):
            press(browser, f"Compare {name}")
        assert ("Avg. tells them apart" in told(browser)[1]) == apart
        for name in (names[0], names[other]):
            press(browser, f"Compare {name}")


def test_it_sorts_and_filters_and_the_address_keeps_it(browser: Any, board_runs: Runs, tmp_path: Path) -> None:
    board = sb.board(board_runs(**KNOWN), tmp_path / "board.html")
    (section,) = board.sections
    browser.open(tmp_path / "board.html")
    assert names(browser) == [run.name for run in section.runs]
    press(browser, "Model")
    assert names(browser) == sorted(KNOWN)
    press(browser, "toy")
    toy = {run.name: run.scores[0][0] for run in section.runs}
    assert names(browser) == sorted(toy, key=lambda name: -(toy[name] or 0))
    choose(browser, "words", "a ET", "input")
    assert names(browser) == ["beta"]
    choose(browser, "words", "", "input")
    choose(browser, "alike", value=True)
    alike = {section.runs[place].name for place in section.alike["Avg."]}
    assert set(names(browser)) == alike < set(KNOWN)
    browser.reload()
    assert set(names(browser)) == alike
    choose(browser, "alike", value=False)
    middle = sorted(toy.values())[2]
    low = "const [low] = document.querySelectorAll('#ranges input'); low.value = arguments[0];"
    browser.run(f"{low} low.dispatchEvent(new Event('change'))", str(middle))
    assert set(names(browser)) == {name for name, score in toy.items() if score >= middle - 1e-4}
    columns = "return [...document.querySelectorAll('#rows thead button')].map((own) => own.textContent)"
    assert "Seconds" not in browser.run(columns)
    browser.run(
        "[...document.querySelectorAll('#choose label')].find((own) => own.textContent.trim() === 'Seconds')"
        ".querySelector('input').click()"
    )
    assert "Seconds" in browser.run(columns)
    browser.reload()
    assert "Seconds" in browser.run(columns)


def test_seeds_fold_into_one_line(
    browser: Any, board_runs: Runs, as_seeds: Callable[..., None], tmp_path: Path
) -> None:
    root = board_runs(**KNOWN)
    as_seeds(root, "alpha", "beta", "gamma")
    (section,) = sb.board(root, tmp_path / "board.html").sections
    browser.open(tmp_path / "board.html")
    choose(browser, "fold", value=True)
    (fold,) = section.folds
    lines = {row[0]: row for row in rows(browser)}
    assert len(rows(browser)) == 2
    assert [float(cell) for cell in lines["seeds"][4:6]] == [round(score[0], 2) for score in fold.scores[:2]]


def test_the_picture_holds_what_the_table_holds(browser: Any, board_runs: Runs, tmp_path: Path) -> None:
    sb.board(board_runs(**KNOWN), tmp_path / "board.html")
    browser.open(tmp_path / "board.html")
    dots = "return [...document.querySelectorAll('#picture circle')].map((dot) => dot.getAttribute('aria-label'))"
    assert len(browser.run(dots)) == len(KNOWN)
    choose(browser, "words", "beta", "input")
    (label,) = browser.run(dots)
    assert label.startswith(f"beta: Avg. {rows(browser)[0][2]} [")


def test_the_picture_is_against_the_cost_that_most_runs_say(
    browser: Any, board_runs: Runs, tmp_path: Path
) -> None:
    root = board_runs(**KNOWN)
    for place, name in enumerate(KNOWN):
        record = sb.load_run(root / name)
        # The vectors of all but two came from the cache.
        cost = {"weight_bytes": 3_000_000 * 4**place} | ({"encoded": 0} if place > 1 else {})
        changed = record.model_copy(update={"encoding": record.encoding | cost})
        save_run(changed.with_items(record.items, root / name), root / name, overwrite=True)
    sb.board(root, tmp_path / "board.html")
    browser.open(tmp_path / "board.html")
    assert browser.run("return document.getElementById('across').value") == "weight_mb"
    # So far apart they stand on a scale of powers, whose marks are round.
    marks = "document.querySelectorAll('#picture text[text-anchor=middle]')"
    assert browser.run(f"return [...{marks}].map((mark) => mark.textContent)")[:3] == ["5", "10", "20"]
    assert browser.run("return document.querySelectorAll('#picture circle').length") == len(KNOWN)
    choose(browser, "across", "ms")
    assert browser.run("return document.querySelectorAll('#picture circle').length") == 2


def test_what_stands_apart_is_one_step_away(
    browser: Any, board_runs: Runs, hash_encode: Any, toy_data: Any, tmp_path: Path
) -> None:
    root = board_runs(alpha=0.0, beta=0.4)
    sb.evaluate(hash_encode, toy_data("toy", pairs=60), use_cache=False, out=root / "one")
    sb.board(root, tmp_path / "board.html")
    browser.open(tmp_path / "board.html")
    assert (
        browser.run("return document.getElementById('apart').textContent") == "1 run stands apart: without other."
    )
    press(browser, "1 run")
    assert len(rows(browser)) == 1


def test_it_fits_reads_and_is_reached(
    browser: Any, board_runs: Runs, as_seeds: Callable[..., None], hash_encode: Any, tmp_path: Path
) -> None:
    root = board_runs(**KNOWN)
    as_seeds(root, "alpha", "beta")
    sb.evaluate(hash_encode, "sample", use_cache=False, out=root / "sample")
    sb.board(root, tmp_path / "board.html")
    browser.open(tmp_path / "board.html")
    browser.run("for (const own of document.querySelectorAll('details')) own.open = true")
    for run in ("gamma", "delta"):
        press(browser, f"Compare {run}")
    for width in (360, 768, 1440):
        browser.resize(width)
        assert browser.run("return document.documentElement.scrollWidth") == width
    has_contrast(browser)
    passes_axe(browser)
    assert browser.console() == []
