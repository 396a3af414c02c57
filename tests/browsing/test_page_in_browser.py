"""The page in a real browser: what is chosen, what it says of that, and how it is reached."""

from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from browser import browser_or_skip, has_contrast, passes_axe

import stsbench as sb
from stsbench.statistics.dependence import Sharing, variance
from stsbench.statistics.intervals import plain_interval

pytestmark = pytest.mark.slow


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    with browser_or_skip(tmp_path / "profile") as started:
        yield started


@pytest.fixture
def runs(hash_encode: Callable[..., Any], toy_data: Callable[..., Any]) -> list[sb.RunRecord]:
    data = [toy_data("toy", pairs=60), toy_data("other", pairs=50, seed=1)]
    return [
        sb.evaluate(lambda sentences, add=add: hash_encode(sentences) + add, data, use_cache=False)
        for add in (0.0, 0.7)
    ]


def told(browser: Any) -> str:
    text: str = browser.run("return document.getElementById('told').textContent")
    return text.replace("\u2212", "-")


def rows(browser: Any) -> list[list[str]]:
    script = """
        return [...document.querySelectorAll('#rows tbody tr')].map(
          (row) => [...row.cells].map((cell) => cell.textContent));
    """
    found: list[list[str]] = browser.run(script)
    return found


def choose(browser: Any, name: str, value: str, event: str = "change") -> None:
    browser.run(
        "const [name, value, event] = arguments; const field = document.getElementById(name);"
        "field.value = value; field.dispatchEvent(new Event(event));",
        name,
        value,
        event,
    )


def test_what_is_chosen_and_what_it_makes_of_the_difference(
    browser: Any, runs: list[sb.RunRecord], tmp_path: Path
) -> None:
    explored = sb.explore(runs, tmp_path / "pairs.html", without_text=True)
    browser.open(tmp_path / "pairs.html")
    compared = sb.compare(*runs).frame.set_index("task")
    # All of the average, and all of a task, have the intervals of `compare`.
    for place, name in enumerate(("Avg.", "toy", "other")):
        choose(browser, "task", str(place))
        row = compared[compared["subset"] == ""].loc[name] if name != "Avg." else compared.loc[name]
        number, low, high = (row[column] for column in ("difference", "low", "high"))
        assert f"They make {number:.2f} [{low:.2f}, {high:.2f}] of the difference of {number:.2f}" in told(browser)
    # Some of a task: their sum, and the interval of a sum of which the others are 0.
    choose(browser, "task", "1")
    choose(browser, "verdict", "a")
    frame = explored.frame.set_index("task").loc["toy"]
    kept = (frame["residual_a"].abs() >= 25) & (frame["residual_b"].abs() < 25)
    parts = frame["gain"].where(kept, 0.0)
    centred = parts - parts.groupby(frame["subset"].to_numpy()).transform("mean")
    spread = variance(centred, Sharing.of(frame["sentence_a"], frame["sentence_b"]))
    limits = plain_interval(parts.sum(), spread)
    # Few of them make nearly all of the variance: its degrees of freedom are not those of all pairs.
    assert 0 < kept.sum() < len(frame)
    assert spread.df < 30
    expected = f"They make {parts.sum():.2f} [{limits.low:.2f}, {limits.high:.2f}]"
    assert told(browser).startswith(f"{kept.sum()} of 60 pairs. {expected}")
    assert "Chosen by which model is wrong, they do not tell which kind of pairs" in told(browser)
    # What is shown stays what it is on another task.
    choose(browser, "task", "2")
    assert browser.run("return document.getElementById('verdict').value") == "a"


def test_the_table_begins_on_the_first_screen(browser: Any, hash_encode: Any, tmp_path: Path) -> None:
    runs = []
    for name, add in (("minilm", 0.0), ("minilm (dimensions 64)", 0.7)):
        record = sb.evaluate(lambda sentences, add=add: hash_encode(sentences) + add, "sample", use_cache=False)
        model = record.model.model_copy(update={"name": name})
        runs.append(record.model_copy(update={"model": model}).with_items(record.items))
    sb.explore(runs, tmp_path / "pairs.html")
    first_row = "return document.querySelector('#rows tbody tr').getBoundingClientRect().top"
    for width in (360, 768, 1440):
        browser.resize(width, 900)
        browser.open(tmp_path / "pairs.html")
        assert browser.run(first_row) < 900, width
        assert browser.run("return document.documentElement.scrollWidth") == width


def test_sorting_filtering_and_the_address(browser: Any, runs: list[sb.RunRecord], tmp_path: Path) -> None:
    page = tmp_path / "pairs.html"
    explored = sb.explore(runs[0], page, without_text=True)
    browser.open(page)
    choose(browser, "task", "1")
    frame = explored.frame.set_index("task").loc["toy"]
    # What costs most comes first.
    influence = frame.set_index("item_id")["influence_a"]
    shown = [influence[row[0]] for row in rows(browser)]
    assert shown == pytest.approx(sorted(influence)[:50], abs=1e-6)
    heads = "return [...document.querySelectorAll('#rows thead button')].map((button) => button.textContent)"
    place = browser.run(heads).index("Gold")
    browser.run("document.querySelectorAll('#rows thead button')[arguments[0]].focus()", place)
    browser.press("\ue007")
    shown = [float(row[place]) for row in rows(browser)]
    assert shown == sorted(frame["gold"], reverse=True)[:50]
    limit = "const [low] = document.querySelectorAll('#ranges input'); low.value = 3;"
    browser.run(f"{limit} low.dispatchEvent(new Event('change'))")
    assert told(browser).startswith(f"{(frame['gold'] >= 3).sum()} of 60 pairs")
    before = rows(browser)
    browser.reload()
    assert rows(browser) == before
    browser.run("document.querySelector('#chips button').click()")
    assert told(browser).startswith("60 of 60 pairs")


def test_a_box_in_the_picture_chooses(browser: Any, runs: list[sb.RunRecord], tmp_path: Path) -> None:
    page = tmp_path / "pairs.html"
    explored = sb.explore(runs[0], page, without_text=True)
    browser.resize(1280)
    browser.open(page)
    drag = """
        const canvas = document.getElementById('picture'), box = canvas.getBoundingClientRect();
        canvas.setPointerCapture = () => {};
        const send = (name, x, y) => canvas.dispatchEvent(
          new PointerEvent(name, {clientX: box.left + x, clientY: box.top + y, pointerId: 1}));
        send('pointerdown', 100, 40); send('pointermove', 200, 90);
        send('pointerup', box.width / 2, box.height / 2);
    """
    browser.run(drag)
    frame = explored.frame
    address = browser.run("return Object.fromEntries(new URLSearchParams(location.hash.slice(1)))")
    inside = pd.Series(True, index=frame.index)
    for name in ("gold", "similarity_a"):
        low, high = map(float, address[f"in.{name}"].split("~"))
        inside &= frame[name].between(low, high)
    assert 0 < inside.sum() < len(frame)
    assert told(browser).startswith(f"{inside.sum()} of {len(frame)} pairs")


def test_a_pair_is_opened_by_the_keyboard_and_words_are_found(
    browser: Any, hash_encode: Any, tmp_path: Path
) -> None:
    page = tmp_path / "pairs.html"
    explored = sb.explore(sb.evaluate(hash_encode, "sample", use_cache=False), page)
    browser.open(page)
    choose(browser, "words", "NOT", "input")
    frame = explored.frame
    has = frame["sentence_a"].str.lower().str.contains("not") | frame["sentence_b"].str.lower().str.contains("not")
    assert told(browser).startswith(f"{has.sum()} of {len(frame)} pairs")
    browser.run("document.querySelector('#rows tbody button').focus()")
    browser.press("\ue007")
    title = browser.run("return document.activeElement.textContent")
    assert title == f"sample, item {rows(browser)[0][0]}"
    assert browser.run("return document.querySelectorAll('#pair li').length") == 5


def test_it_fits_reads_and_is_reached(browser: Any, hash_encode: Any, tmp_path: Path) -> None:
    page = tmp_path / "pairs.html"
    sb.explore(sb.evaluate(hash_encode, "sample", use_cache=False), page)
    browser.open(page)
    browser.run("document.querySelector('#rows tbody button').click()")
    for width in (360, 768, 1440):
        browser.resize(width)
        assert browser.run("return document.documentElement.scrollWidth") == width
    has_contrast(browser)
    passes_axe(browser)
    assert browser.console() == []


def test_labels_and_predictions_filter(browser: Any, hash_encode: Any, tmp_path: Path) -> None:
    page = tmp_path / "pairs.html"
    explored = sb.explore(sb.evaluate(hash_encode, "sample-questions", use_cache=False), page)
    browser.open(page)
    assert browser.run("return document.getElementById('drawing').hidden")
    frame = explored.frame
    label = sorted(frame["label"])[0]
    expected = ((frame["label"] == label) & (frame["prediction_a"] == label)).sum()
    browser.run("document.querySelector('#confusion td button').click()")
    assert told(browser).startswith(f"{expected} of {len(frame)} items")


def test_a_subset_is_chosen_and_taken_along(browser: Any, runs: list[sb.RunRecord], tmp_path: Path) -> None:
    page = tmp_path / "pairs.html"
    frame = sb.explore(runs, page, without_text=True).frame.set_index("task").loc["toy"]
    browser.open(page)
    choose(browser, "task", "1")
    pick = "const field = document.querySelector('#ranges select'); field.value = 'first';"
    browser.run(f"{pick} field.dispatchEvent(new Event('change'))")
    part = frame[frame["subset"] == "first"]
    assert told(browser).startswith(f"{len(part)} of 60 pairs. They make {part['gain'].sum():.2f} ")
    assert browser.run("return location.hash") == "#task=1&is.subset=first"
    browser.reload()
    assert browser.run("return document.querySelector('#ranges select').value") == "first"
    browser.run("document.querySelector('#rows thead button').click()")
    assert [row[0] for row in rows(browser)] == part["item_id"].tolist()


def test_a_box_to_the_edge_holds_what_lies_on_it(browser: Any, runs: list[sb.RunRecord], tmp_path: Path) -> None:
    page = tmp_path / "pairs.html"
    sb.explore(runs[0], page, without_text=True)
    browser.open(page)
    browser.run("""
        const canvas = document.getElementById('picture'), box = canvas.getBoundingClientRect();
        canvas.setPointerCapture = () => {};
        const send = (name, x, y) => canvas.dispatchEvent(
          new PointerEvent(name, {clientX: box.left + x, clientY: box.top + y, pointerId: 1}));
        send('pointerdown', 0, 0); send('pointerup', box.width, box.height);
    """)
    assert told(browser).startswith("110 of 110 pairs")


def test_the_keyboard_returns_to_the_pair_that_was_open(
    browser: Any, runs: list[sb.RunRecord], tmp_path: Path
) -> None:
    page = tmp_path / "pairs.html"
    sb.explore(runs[0], page, without_text=True)
    browser.open(page)
    browser.run("document.querySelectorAll('#rows tbody button')[7].click()")
    browser.run("document.getElementById('close').click()")
    opened = "document.querySelectorAll('#rows tbody button')[7]"
    assert browser.run(f"return document.activeElement === {opened}")


def test_quotation_marks_and_bars_leave_as_they_are(browser: Any, hash_encode: Any, tmp_path: Path) -> None:
    pairs = tmp_path / "own.csv"
    texts = ['"open', "=1+1", "a | b", "AT&amp;T ~x~ $y$"]
    rows_ = [{"sentence1": text, "sentence2": "plain", "score": float(place)} for place, text in enumerate(texts)]
    pd.DataFrame(rows_).to_csv(pairs, index=False)
    page = tmp_path / "pairs.html"
    sb.explore(sb.evaluate(hash_encode, data=pairs, use_cache=False), page, data=[pairs])
    browser.open(page)
    browser.run("""
        window.saved = [];
        URL.createObjectURL = (blob) => { window.saved.push(blob); return '#'; };
        document.getElementById('tsv').click(); document.getElementById('markdown').click();
    """)
    tsv, markdown = browser.run("return Promise.all(window.saved.map((blob) => blob.text()))")
    assert set(pd.read_csv(StringIO(tsv), sep="\t")["Sentence 1"]) == set(texts)
    head, dashes, *lines = markdown.splitlines()
    assert head.count("|") == dashes.count("|")
    assert len(lines) == len(texts)
    assert r"AT\&amp;T \~x\~ \$y\$" in markdown
    assert r"a \| b" in markdown


def test_an_address_of_somebody_else_breaks_nothing(
    browser: Any, runs: list[sb.RunRecord], tmp_path: Path
) -> None:
    page = tmp_path / "pairs.html"
    sb.explore(runs[0], page, without_text=True)
    browser.open(page)
    for address in ("task=map", "task=length", "verdict=constructor", "in.toString=1~2&wrong=none&page=-1"):
        browser.run("location.hash = arguments[0]", address)
        assert told(browser).startswith("110 of 110 pairs")
    assert browser.console() == []
