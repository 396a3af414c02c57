"""Every result that is made of records: hostile names stay text in each of its formats."""

import csv
import io
import json
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import stsbench as sb
from stsbench.data.tables import StsData
from stsbench.records.export import export_results

HOSTILE = "evil\x1b[2J\x9b31m\n| $x$ <script>\\input{x}\u202e"
DRIVES = "\x1b\x9b\x07\r\u202e\u2028"

RESULTS: dict[str, Callable[[sb.RunRecord, sb.RunRecord], Any]] = {
    "record": lambda a, _: a,
    "show": lambda a, b: sb.show([a, b], subsets=True),
    "check": lambda a, b: sb.check(a, baseline=b),
    "compare": sb.compare,
    "compare methods": lambda a, b: sb.compare([a], [b]),
    "rank": lambda a, b: sb.rank([a, b]),
    "plan": lambda a, b: sb.plan(a, b, difference=1.0),
    "best_of": lambda a, b: sb.best_of([a, b]),
    "ties": lambda a, b: sb.ties([a, b]),
    "length_bias": lambda a, b: sb.length_bias([a, b]),
}


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)


@pytest.fixture
def records(toy_data: Callable[..., StsData], hash_encode: Callable[..., Any]) -> list[sb.RunRecord]:
    """Return two records whose models, tasks and subsets have hostile names; one has another task, too."""
    hostile, more = toy_data(HOSTILE), toy_data("more", seed=1)
    named = StsData(**vars(hostile) | {"pairs": hostile.pairs.assign(subset=hostile.pairs["subset"] + HOSTILE)})
    runs = [sb.evaluate(hash_encode, named), sb.evaluate(lambda texts: hash_encode(texts)[:, :4], [named, more])]
    return [
        run.model_copy(update={"model": run.model.model_copy(update={"name": f"{HOSTILE}{number}"})}).with_items(
            run.items
        )
        for number, run in enumerate(runs)
    ]


@pytest.mark.parametrize("name", RESULTS)
def test_hostile_names_stay_text_in_every_format(name: str, records: list[sb.RunRecord]) -> None:
    result = RESULTS[name](*records)
    texts = {style: result.to(style) for style in ("terminal", "markdown", "latex")} | {"": str(result)}
    for text in texts.values():
        assert "evil" in text
        assert not set(DRIVES) & set(text)
    assert "<script>" not in texts["markdown"]
    assert r"\input{x}" not in texts["latex"]
    page = _Tags()
    page.feed(result._repr_html_())
    assert "script" not in page.tags
    assert "evil" in json.dumps(json.loads(result.to("json")))
    assert len(list(csv.reader(io.StringIO(result.to("csv"))))) == len(result.frame) + 1


def test_an_export_of_a_hostile_name_stays_in_its_folder(
    toy_data: Callable[..., StsData], hash_encode: Callable[..., Any], tmp_path: Path
) -> None:
    run = sb.evaluate(hash_encode, toy_data("STS12"))
    for name in (HOSTILE, "../../up", "..", "/etc/x", "a\0b"):
        folder = export_results(run, tmp_path / "out", model=name).folder
        assert folder.resolve().is_relative_to((tmp_path / "out" / "results").resolve())
