"""The explorer and the board in Chromium; skipped where it is absent."""

from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import small_mteb_tasks as island
from browser import browser_or_skip, passes_axe

import stsbench as sb
from stsbench.data.qrels import load_retrieval

pytestmark = pytest.mark.slow
SPACE, RIGHT = " ", "\ue014"


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    with browser_or_skip(tmp_path / "profile") as started:
        yield started


def told(browser: Any) -> str:
    text: str = browser.run("return document.getElementById('told').textContent")
    return text.replace("\u2212", "-")


def rows(browser: Any) -> list[list[str]]:
    found: list[list[str]] = browser.run(
        "return [...document.querySelectorAll('#rows tbody tr')].map("
        "(row) => [...row.cells].map((cell) => cell.firstChild?.textContent ?? ''))"
    )
    return found


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
    """Presses a button, or ticks a box, by its label with the keyboard."""
    browser.run(
        "[...document.querySelectorAll('button, input')].find((own) => own.getAttribute('aria-label')"
        " === arguments[0] || own.textContent === arguments[0]).focus()",
        label,
    )
    browser.press(SPACE)


def fits(browser: Any) -> None:
    browser.run("for (const own of document.querySelectorAll('details')) own.open = true")
    for width in (360, 768, 1440):
        browser.resize(width)
        assert browser.run("return document.documentElement.scrollWidth") == width
    passes_axe(browser)
    assert browser.console() == []


def test_the_explorer_selects_pairs_and_sums_their_gains(
    browser: Any, hash_encode: Callable[..., Any], toy_data: Callable[..., Any], tmp_path: Path
) -> None:
    data = [toy_data("toy", pairs=60), toy_data("other", pairs=50, seed=1)]
    encoders = [lambda sentences, add=add: hash_encode(sentences) + add for add in (0.0, 0.7)]
    runs = [sb.evaluate(encode, data, use_cache=False) for encode in encoders]
    explored = sb.explore(runs, tmp_path / "pairs.html", without_text=True)
    browser.open(tmp_path / "pairs.html")
    choose(browser, "task", "1")
    choose(browser, "verdict", "a")
    frame = explored.frame.set_index("task").loc["toy"]
    kept = frame[(frame["residual_a"].abs() >= 25) & (frame["residual_b"].abs() < 25)]
    assert 0 < len(kept) < len(frame)
    assert told(browser).startswith(f"{len(kept)} of 60 pairs account for {kept['gain'].sum():.2f} of")
    address = "return location.hash"
    before = browser.run(address)
    browser.reload()
    assert (browser.run(address), len(rows(browser))) == (before, len(kept))
    # An address that is not the page's own breaks nothing.
    for wrong in ("task=map", "verdict=constructor", "in.toString=1~2&wrong=none&page=-1"):
        browser.run("location.hash = arguments[0]", wrong)
        assert told(browser).startswith("All 110 pairs")
    fits(browser)


def test_a_pair_of_two_tasks_has_one_row_with_the_sum_of_its_influences(
    browser: Any, hash_encode: Any, toy_data: Callable[..., Any], tmp_path: Path
) -> None:
    data = [toy_data("toy", pairs=20), toy_data("other", pairs=20)]
    explored = sb.explore(
        sb.evaluate(hash_encode, data, use_cache=False), tmp_path / "pairs.html", without_text=True
    )
    browser.open(tmp_path / "pairs.html")
    costs = explored.frame.groupby("item_id")["influence_a"].sum()
    shown = rows(browser)
    named = "return [...document.querySelectorAll('#rows small')].map((own) => own.textContent)"
    assert browser.run(named) == ["toy, other"] * 20
    assert [costs[row[0]] for row in shown] == pytest.approx(sorted(costs), abs=1e-6)
    assert told(browser).startswith("All 40 pairs")


def test_the_explorer_shows_queries_as_such(browser: Any, tmp_path: Path) -> None:
    folder = island.write_beir(tmp_path / "island")
    run = sb.evaluate(island.by_words, load_retrieval(folder, identical_ids="keep"), use_cache=False)
    sb.explore(run, tmp_path / "queries.html", data=[folder])
    browser.open(tmp_path / "queries.html")
    heads = browser.run("return [...document.querySelectorAll('#rows th')].map((head) => head.textContent)")
    assert heads[:2] == ["Item", "Query"]
    assert "Overlap" not in browser.run("return document.getElementById('columns').textContent")
    fits(browser)


def test_the_explorer_sorts_selects_and_opens_a_pair(browser: Any, hash_encode: Any, tmp_path: Path) -> None:
    explored = sb.explore(sb.evaluate(hash_encode, "sample", use_cache=False), tmp_path / "pairs.html")
    browser.resize(1440, 900)
    browser.open(tmp_path / "pairs.html")
    top = "return document.querySelector('#rows tbody tr').getBoundingClientRect().top"
    assert browser.run(top) < 900
    frame = explored.frame
    # The most costly pairs come first.
    costs = frame.set_index("item_id")["influence_a"]
    assert [costs[row[0]] for row in rows(browser)] == pytest.approx(sorted(costs)[:50], abs=1e-6)
    browser.drag("#picture svg", (0, 0), (80, -60), (198, -90))
    within = "return new URLSearchParams(location.hash.slice(1)).get(arguments[0]).split('~')"
    (low, high), similarities = (browser.run(within, name) for name in ("in.gold", "in.similarity_a"))
    # At the right edge of the chart there is no limit.
    assert (2 < float(low) < 3, high) == (True, "")
    kept = (frame["gold"] >= float(low)) & frame["similarity_a"].between(*map(float, similarities))
    assert 0 < kept.sum() < len(frame)
    assert told(browser).startswith(f"{kept.sum()} of {len(frame)} pairs")
    browser.drag("#picture svg", (0, 0))
    assert told(browser).startswith(f"All {len(frame)} pairs")
    choose(browser, "words", "NOT", "input")
    sides = pd.concat(
        [frame[side].str.lower().str.contains("not") for side in ("sentence_a", "sentence_b")], axis=1
    )
    assert told(browser).startswith(f"{sides.any(axis=1).sum()} of {len(frame)} pairs")
    # On a phone the open pair is below its row, at the lower edge of the screen.
    browser.resize(390, 844)
    last = rows(browser)[-1][0]
    press(browser, last)
    assert browser.run("return document.activeElement.textContent") == f"sample, item {last}"
    ends = "const at = document.querySelector(arguments[0]).getBoundingClientRect(); return [at.top, at.bottom]"
    edges = [0, *browser.run(ends, "#rows tr.open"), *browser.run(ends, "#detail"), 844]
    assert edges == sorted(edges)
    passes_axe(browser)
    fits(browser)


def test_the_board_compares_sorts_and_filters(
    browser: Any, board_runs: Callable[..., Path], hash_encode: Any, tmp_path: Path
) -> None:
    root = board_runs(alpha=0.0, beta=0.5, gamma=0.53)
    sb.evaluate(hash_encode, "sample", use_cache=False, out=root / "sample")
    section, _ = sb.board(root, tmp_path / "board.html").sections
    browser.open(tmp_path / "board.html")
    sentence = "return document.querySelector('#sentence p').textContent"
    for high, low in combinations(range(3), 2):
        a, b = (section.runs[place] for place in (low, high))
        for run in (b, a):
            press(browser, f"Compare {run.name}")
        assert browser.run(sentence) == sb.compare(a.record, b.record).sentence
        for run in (a, b):
            press(browser, f"Compare {run.name}")
    press(browser, "Model")
    assert [row[1] for row in rows(browser)] == ["alpha", "beta", "gamma"]
    # The points are one tab stop; arrow keys move between them.
    stops = "return [...document.querySelectorAll('#picture path')].map((own) => own.tabIndex)"
    assert browser.run(stops) == [0, -1, -1]
    browser.run("document.querySelector('#picture path').focus()")
    browser.press(RIGHT)
    assert browser.run(stops) == [-1, 0, -1]
    assert browser.run("return document.activeElement.getAttribute('aria-label')").startswith("beta: ")
    choose(browser, "alike", value=True)
    tied = {section.runs[place].name for place in section.ties["Avg."]}
    assert {row[1] for row in rows(browser)} == tied < {"alpha", "beta", "gamma"}
    browser.reload()
    assert {row[1] for row in rows(browser)} == tied
    choose(browser, "words", "a ET", "input")
    assert [row[1] for row in rows(browser)] == ["beta"]
    fits(browser)
