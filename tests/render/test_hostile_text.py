"""Text comes from models and data: in every format it must read as it stands, and do nothing."""

import csv
import html
import io
import json
import re

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.console import Console

from stsbench.render.formats import print_table, to_csv, to_json, to_latex, to_markdown, to_terminal
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


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_shows_text_as_it_stands(text):
    assert table_of(to_markdown(frame(text))) == ["Model", "Avg.", text, "78.90"]


@given(text=lines)
def test_markdown_shows_any_line_as_it_stands(text):
    assert table_of(to_markdown(frame(text))) == ["Model", "Avg.", text, "78.90"]


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_shows_names_and_captions_as_they_stand(text):
    markdown = to_markdown(pd.DataFrame({text: [1]}), caption=text)
    caption, _, table = markdown.partition("\n\n")
    assert table_of(table) == [text, "1"]
    page = MarkdownIt("commonmark").render(caption)
    assert html.unescape(page.strip()) == f"<p><strong>{text}</strong></p>"


def test_markdown_dollars_are_no_mathematics():
    assert "\\$" in to_markdown(frame("$x$"))


def test_markdown_keeps_underscores_inside_words_readable():
    assert "| cls_before_pooler |" in to_markdown(frame("cls_before_pooler"))


@pytest.mark.parametrize("text", HOSTILE)
def test_terminal_shows_text_as_it_stands(text):
    assert to_terminal(frame(text)).splitlines()[-1].removesuffix("78.90").rstrip() == text
    assert to_terminal(pd.DataFrame({text: [1]}), caption=text).splitlines()[0] == text


@pytest.mark.parametrize("text", HOSTILE)
def test_csv_and_json_keep_text_as_it_is(text):
    table = pd.DataFrame({text: [text, "two\r\nlines", "\x1b[2J"]})
    assert list(csv.reader(io.StringIO(to_csv(table), newline=""))) == [
        [text],
        [text],
        ["two\r\nlines"],
        ["\x1b[2J"],
    ]
    assert json.loads(to_json(table)) == [{text: text}, {text: "two\r\nlines"}, {text: "\x1b[2J"}]


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


def test_latex_row_break_finds_no_argument_in_the_next_cell():
    assert not re.search(r"(\\\\|rule)\s*[\[*]", to_latex(frame("[2em]", "*", "[x]")))


@pytest.mark.parametrize("style", ["terminal", "markdown", "latex"])
def test_a_cell_is_one_line_and_cannot_drive_a_terminal(style):
    texts = ["two\r\nlines\u2028more", "\x1b[2J\x1b]0;title\x07", "\x9b31m", "\u202eabc", "\ud800", "\x00"]
    shown = Table(frame(*texts), "\x1b[2J\n").to(style)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e\ud800]", shown)
    assert "two lines more" in shown
    assert len(shown.splitlines()) == len(Table(frame(*"abcdef"), "c").to(style).splitlines())
    shown.encode()


def test_console_gets_no_control_characters_and_no_markup():
    stream = io.StringIO()
    hostile = pd.DataFrame({"[bold]n[/bold]": ["\x1b[31mred", "[red]x[/red]"]})
    print_table(hostile, Console(file=stream, width=60), caption="[blink]c[/blink]")
    for text in ("[bold]n[/bold]", r"\x1b[31mred", "[red]x[/red]", "[blink]c[/blink]"):
        assert text in stream.getvalue()
    assert "\x1b" not in stream.getvalue()
