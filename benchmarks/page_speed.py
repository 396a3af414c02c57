"""How large the pages that people look into are, how fast they open, sort and filter, and how long a board takes.

    python benchmarks/page_speed.py [--parts explore,board] [--records 1000] [--tasks sts] [--run FOLDER]

`explore`: a page of the seven STS tasks' 18,850 pairs in Chromium, of a run (`--run`) or of a model that counts
letters. Size, time until the first table stands, and the time of a sort and of a filter on all pairs, each until
the table and the picture are drawn. Goals: under 8 MB, 1.5 s, 100 ms and 100 ms.

`board`: a thousand records of models that count letters on `--tasks`, twenty of which count in their own ways and
the others are these under other names, of which all is computed again; a board of them, and the same board again
with one more record. Goals: under 20 s and under 3 MB; then its opening, a sort, a filter.

Prints medians of `--rounds`, least to most.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

DISTINCT = 20
"""Records of a board that are measured."""

SORT = """
    const heads = [...document.querySelectorAll('#rows thead button')];
    const button = heads.find((own) => own.textContent === arguments[0]);
    const start = performance.now();
    button.click();
    return performance.now() - start;
"""
"""A click on the heading of a column, until its handler has drawn everything."""

FILTER = """
    const field = document.getElementById('words') ?? document.querySelector('#ranges input');
    field.value = arguments[0];
    const start = performance.now();
    field.dispatchEvent(new Event(field.id === 'words' ? 'input' : 'change'));
    return performance.now() - start;
"""
"""Words that are typed, likewise."""

OPENED = """
    const [page] = performance.getEntriesByType('navigation');
    return page.domComplete;
"""
"""Milliseconds from the address to the table: the page's script runs while it is read."""


def letters(number: int) -> Callable[[list[str]], Any]:
    """Return an encoder that counts letters, each with a weight of its own."""
    import numpy as np

    weights = np.random.default_rng(number).uniform(0.5, 1.5, size=26)

    def count(texts: list[str]) -> Any:
        counts = [[text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]
        return np.array(counts) * weights + 0.01

    count.__module__, count.__qualname__ = "__main__", f"letters {number}"
    return count


def renamed(run: Path, copy: Path) -> None:
    """Copy a record under another name of its model, as if that had been measured."""
    shutil.copytree(run, copy)
    record = json.loads((run / "run.json").read_text(encoding="utf-8"))
    record["model"]["name"] = copy.name
    (copy / "run.json").write_text(json.dumps(record), encoding="utf-8")


def shown(name: str, values: list[float], unit: str, goal: str) -> None:
    spread = f"({min(values):.1f} to {max(values):.1f})" if len(values) > 1 else ""
    print(f"  {name:24} {median(values):9.1f} {unit} {spread}; goal: under {goal}", flush=True)


def in_browser(page: Path, columns: list[str], words: list[str], rounds: int, opened: str) -> None:
    """Print how fast a page opens, sorts and filters."""
    from browser import browser_here, started  # type: ignore[import-not-found]

    if browser_here() is None:
        print("  no chromium or chromedriver here: the page was not opened")
        return
    times: dict[str, list[float]] = {"open": [], "sort": [], "filter": []}
    with tempfile.TemporaryDirectory() as profile, started(Path(profile)) as browser:
        browser.resize(1440)
        for _ in range(rounds):
            browser.open(page)
            times["open"].append(browser.run(OPENED))
            times["sort"] += [browser.run(SORT, column) for column in columns]
            times["filter"] += [browser.run(FILTER, word) for word in words]
    for name, goal in (("open", opened), ("sort", "100"), ("filter", "100")):
        shown(name, times[name], "ms", goal)


def explore(options: argparse.Namespace, work: Path) -> None:
    """Measure the page of all pairs of the seven STS tasks."""
    import stsbench as sb

    run = options.run or sb.evaluate(letters(0), "sts", intervals=sb.Intervals(None))
    start = time.perf_counter()
    explored = sb.explore(run, work / "pairs.html")
    seconds = time.perf_counter() - start
    page = work / "pairs.html"
    print(f"explore: {len(explored.frame):,} pairs, made in {seconds:.1f} s")
    shown("size", [page.stat().st_size / 1e6], "MB", "8")
    # All pairs at once: the average stands first.
    in_browser(page, ["Gold", "Off by", "Overlap"], ["man", "a dog", ""], options.rounds, "1500")


def board(options: argparse.Namespace, work: Path) -> None:
    """Measure a board of many records, and the same again."""
    import stsbench as sb

    runs = work / "runs"
    for number in range(min(options.records, DISTINCT)):
        sb.evaluate(letters(number), options.tasks, use_cache=False, out=runs / f"run-{number}")
    for number in range(DISTINCT, options.records):
        renamed(runs / f"run-{number % DISTINCT}", runs / f"run-{number}")
    page = work / "board.html"
    print(f"board: {options.records:,} records of {options.tasks}")
    for name, goal in (("made", "20"), ("made again", "20"), ("with one more record", "20")):
        if name == "with one more record":
            sb.evaluate(letters(options.records), options.tasks, use_cache=False, out=runs / "one-more")
        page.unlink(missing_ok=True)
        os.sync()  # Nobody's thousand records were written a second ago.
        start, working = time.perf_counter(), sum(os.times()[:4])
        sb.board(runs, page)
        shown(name, [time.perf_counter() - start], "s ", goal)
        print(f"    of computing, by all processes {sum(os.times()[:4]) - working:.1f} s")
    shown("size", [page.stat().st_size / 1e6], "MB", "3")
    in_browser(page, ["Model", "Measured", "ms a sentence"], ["run-9", "12", ""], options.rounds, "1500")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="explore,board")
    parser.add_argument("--records", type=int, default=1000)
    parser.add_argument("--tasks", default="sts")
    parser.add_argument("--run", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for part in options.parts.split(","):
        with tempfile.TemporaryDirectory() as made:
            from stsbench.base.files import cache_at

            # Nothing is known before, and nothing of this is left.
            with cache_at(Path(made) / "cache"):
                {"explore": explore, "board": board}[part](options, Path(made))
    print(f"  load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
