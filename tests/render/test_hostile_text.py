"""Names of models and data stay text in every format of tables and results, and in JUnit files."""

import csv
import html
import io
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.console import Console

import stsbench as sb
from stsbench.data.tables import StsData
from stsbench.records.export import export_results
from stsbench.render.formats import (
    Case,
    print_table,
    to_csv,
    to_json,
    to_junit,
    to_latex,
    to_markdown,
    to_terminal,
)
from stsbench.render.table import Table

HOSTILE = [
    "a|b",
    "a\\|b",
    "ends in a backslash\\",
    "<script>alert(1)</script>",
    "AT&amp;T",
    "$\\alpha_1$",
    "[red]x[/red]",
    "[link](javascript:alert(1)) ![image](x)",
    "**bold** __init__ ~~gone~~ `code` _x_",
    ":smile: 100% {a} #1 ^2 ~",
    "- [ ] item",
]

lines = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x24F, exclude_categories=["Cc", "Cf", "Zs"]), min_size=1
)


def frame(*texts):
    # As objects, because the string type of pandas cannot hold a lone surrogate.
    return pd.DataFrame({"Model": pd.Series(texts, dtype=object), "Avg.": 78.9})


def table_of(markdown):
    """Cells of a rendered Markdown table as the browser shows them; fails on any markup inside one."""
    page = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(markdown)
    cells = re.findall(r"<t[hd](?: [^>]*)?>(.*?)</t[hd]>", page, flags=re.DOTALL)
    assert not any("<" in cell for cell in cells)
    return [html.unescape(cell) for cell in cells]


@given(text=lines)
def test_markdown_shows_any_line_as_it_stands(text):
    assert table_of(to_markdown(frame(text))) == ["Model", "Avg.", text, "78.90"]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_shown_unchanged(text):
    assert table_of(to_markdown(frame(text))) == ["Model", "Avg.", text, "78.90"]
    markdown = to_markdown(pd.DataFrame({text: [1]}), caption=text)
    caption, _, table = markdown.partition("\n\n")
    assert table_of(table) == [text, "1"]
    page = MarkdownIt("commonmark").render(caption)
    assert html.unescape(page.strip()) == f"<p><strong>{text}</strong></p>"
    assert to_terminal(frame(text)).splitlines()[-1].removesuffix("78.90").rstrip() == text
    assert to_terminal(pd.DataFrame({text: [1]}), caption=text).splitlines()[0] == text
    rows = [text, "two\r\nlines", "\x1b[2J"]
    written = to_csv(pd.DataFrame({text: rows}))
    assert list(csv.reader(io.StringIO(written, newline=""))) == [[cell] for cell in (text, *rows)]
    assert json.loads(to_json(pd.DataFrame({text: rows}))) == [{text: cell} for cell in rows]


def test_markdown_has_no_mathematics_and_words_stay_readable_and_latex_rows_take_no_argument():
    assert "\\$" in to_markdown(frame("$x$"))
    assert "| cls_before_pooler |" in to_markdown(frame("cls_before_pooler"))
    assert not re.search(r"(\\\\|rule)\s*[\[*]", to_latex(frame("[2em]", "*", "[x]")))


ESCAPED = re.compile(r"\\text[a-z]+(?:\\space)? ?|\\space |\\[{}$&#%_]|\{\}(?=[\[*])|\$-\$")


@pytest.mark.parametrize("text", HOSTILE)
def test_latex_escapes_everything_that_it_would_act_on(text):
    for latex in (to_latex(frame(text)), to_latex(pd.DataFrame({text: [1]}), caption=text)):
        rows = [row for row in latex.splitlines() if not row.startswith(("\\begin", "\\end", "\\centering"))]
        for row in rows:
            cell = (
                row.removeprefix("\\caption{")
                .removesuffix("}")
                .removesuffix(" & 78.90 \\\\")
                .removesuffix(" \\\\")
            )
            if cell not in {"\\toprule", "\\midrule", "\\bottomrule", "Model & Avg."}:
                assert not re.search(r"[\\{}$&#%_^~]", ESCAPED.sub("", cell)), cell


@pytest.mark.parametrize("style", ["terminal", "markdown", "latex"])
def test_a_cell_is_one_line_and_cannot_drive_a_terminal(style):
    texts = ["two\r\nlines\u2028more", "\x1b[2J\x1b]0;title\x07", "\x9b31m", "\u202eabc", "\ud800", "\x00"]
    shown = Table(frame(*texts), "\x1b[2J\n").to(style)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e\ud800]", shown)
    assert "two lines more" in shown
    assert len(shown.splitlines()) == len(Table(frame(*"abcdef"), "c").to(style).splitlines())
    shown.encode()
    stream = io.StringIO()
    hostile = pd.DataFrame({"[bold]n[/bold]": ["\x1b[31mred", "[red]x[/red]"]})
    print_table(hostile, Console(file=stream, width=60), caption="[blink]c[/blink]")
    for text in ("[bold]n[/bold]", r"\x1b[31mred", "[red]x[/red]", "[blink]c[/blink]"):
        assert text in stream.getvalue()
    assert "\x1b" not in stream.getvalue()


EVIL = "evil\x1b[2J\x9b31m\n| $x$ <script>\\input{x}\u202e"
DRIVES = "\x1b\x9b\x07\r\u202e\u2028"

RESULTS: dict[str, Callable[[sb.RunRecord, sb.RunRecord], Any]] = {
    "record": lambda a, _: a,
    "show": lambda a, b: sb.show([a, b], subsets=True),
    "check": lambda a, b: sb.check(b, baseline=a),
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
    hostile, more = toy_data(EVIL), toy_data("more", seed=1)
    named = StsData(**vars(hostile) | {"pairs": hostile.pairs.assign(subset=hostile.pairs["subset"] + EVIL)})
    runs = [sb.evaluate(hash_encode, named), sb.evaluate(lambda texts: hash_encode(texts)[:, :4], [named, more])]
    return [
        run.model_copy(update={"model": run.model.model_copy(update={"name": f"{EVIL}{number}"})}).with_items(
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
    for name in (EVIL, "../../up", "..", "/etc/x", "a\0b"):
        folder = export_results(run, tmp_path / "out", model=name).folder
        assert folder.resolve().is_relative_to((tmp_path / "out" / "results").resolve())


CASES = [
    Case("STS12", "passed"),
    Case("STS13", "failed", "1 & 2 < 3"),
    Case("SICK-R", "error", "split"),
    Case("Avg.", "skipped", "not measured"),
]


def test_junit_counts_its_cases_and_tells_why() -> None:
    (suite,) = ET.fromstring(to_junit("a row", CASES))
    assert suite.attrib == {"name": "a row", "tests": "4", "failures": "1", "errors": "1", "skipped": "1"}
    found = {case.attrib["name"]: [(node.tag, node.attrib["message"]) for node in case] for case in suite}
    assert found == {
        "STS12": [],
        "STS13": [("failure", "1 & 2 < 3")],
        "SICK-R": [("error", "split")],
        "Avg.": [("skipped", "not measured")],
    }


@pytest.mark.parametrize("name", ["a\x00b", "<&>\"'", "\ud800", "\x1b[31mred", "模型"])
def test_junit_is_valid_xml_whatever_the_names(name: str) -> None:
    (suite,) = ET.fromstring(to_junit(name, [Case(name, "failed", name)]).encode())
    assert len(suite) == 1
