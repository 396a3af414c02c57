import csv
import io
import json
import math
from typing import get_args

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from stsbench.base.errors import UserError
from stsbench.render.formats import print_table, to_csv, to_json, to_latex, to_markdown, to_terminal
from stsbench.render.table import Style, Table


@pytest.fixture
def scores():
    return pd.DataFrame(
        {
            "Model": ["sentence-transformers/all-MiniLM-L6-v2", "GloVe"],
            "STS16": [78.98761, math.nan],
            "Bias": [-0.001, -1.5],
            "Pairs": [1186, 1186],
            "Note": [None, "words"],
        }
    )


def test_terminal(scores):
    assert to_terminal(scores, caption="Spearman").splitlines() == [
        "Spearman",
        "Model                                   STS16   Bias  Pairs  Note",
        "──────────────────────────────────────────────────────────────────",
        "sentence-transformers/all-MiniLM-L6-v2  78.99   0.00   1186  –",
        "GloVe                                       –  -1.50   1186  words",
    ]


def test_markdown(scores):
    assert to_markdown(scores, caption="Spearman").splitlines() == [
        "**Spearman**",
        "",
        "| Model | STS16 | Bias | Pairs | Note |",
        "| --- | ---: | ---: | ---: | --- |",
        "| sentence-transformers/all-MiniLM-L6-v2 | 78.99 | 0.00 | 1186 | – |",
        "| GloVe | – | -1.50 | 1186 | words |",
    ]


def test_latex(scores):
    assert to_latex(scores, caption="Spearman").splitlines() == [
        r"\begin{table}",
        r"\centering",
        r"\caption{Spearman}",
        r"\begin{tabular}{lrrrl}",
        r"\toprule",
        r"Model & STS16 & Bias & Pairs & Note \\",
        r"\midrule",
        r"sentence-transformers/all-MiniLM-L6-v2 & 78.99 & 0.00 & 1186 & -- \\",
        r"GloVe & -- & $-$1.50 & 1186 & words \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]


def test_csv_is_rfc_4180_and_reads_back(scores):
    text = to_csv(scores)
    assert text.count("\r\n") == 2
    assert list(csv.reader(io.StringIO(text, newline=""))) == [
        ["Model", "STS16", "Bias", "Pairs", "Note"],
        ["sentence-transformers/all-MiniLM-L6-v2", "78.98761", "-0.001", "1186", ""],
        ["GloVe", "", "-1.5", "1186", "words"],
    ]


def test_json_reads_back(scores):
    assert json.loads(to_json(scores)) == [
        {
            "Model": "sentence-transformers/all-MiniLM-L6-v2",
            "STS16": 78.98761,
            "Bias": -0.001,
            "Pairs": 1186,
            "Note": None,
        },
        {"Model": "GloVe", "STS16": None, "Bias": -1.5, "Pairs": 1186, "Note": "words"},
    ]


def test_programs_get_full_precision():
    values = [0.1 + 0.2, math.pi, 1e-300, 5e22, -2 / 3]
    table = pd.DataFrame({"x": values})
    assert [float(row) for row in to_csv(table).split("\r\n")[1:]] == values
    assert [record["x"] for record in json.loads(to_json(table))] == values


def test_json_has_null_for_whatever_has_no_value():
    values = [None, math.nan, pd.NA, pd.NaT, math.inf, -math.inf]
    assert [
        record["x"] for record in json.loads(to_json(pd.DataFrame({"x": pd.Series(values, dtype=object)})))
    ] == [None] * 6


def test_json_takes_numpy_numbers_and_dates():
    table = pd.DataFrame(
        {"n": pd.Series([np.int64(3), np.float32(0.5)], dtype=object), "on": pd.Timestamp("2024-05-01")}
    )
    assert [record["n"] for record in json.loads(to_json(table))] == [3, 0.5]
    assert json.loads(to_json(table))[0]["on"].startswith("2024-05-01")


@pytest.mark.parametrize("decimals", [0, 1, 4])
def test_readers_get_the_asked_decimals(decimals):
    for style in ("terminal", "markdown", "latex"):
        assert (
            f"{78.98765:.{decimals}f}"
            in Table(pd.DataFrame({"x": [78.98765]}), decimals=decimals).to(style).split()
        )


def test_negative_decimals_are_refused():
    with pytest.raises(ValueError, match="negative"):
        to_markdown(pd.DataFrame({"x": [1.0]}), decimals=-1)


def test_columns_are_aligned_by_what_they_hold():
    table = pd.DataFrame(
        {
            "text": ["a"],
            "flag": [True],
            "object": pd.Series([1.5], dtype=object),
            "nullable": pd.Series([None], dtype="Float64"),
            "empty": [math.nan],
            "none": pd.Series([None], dtype=object),
        }
    )
    assert to_markdown(table).splitlines()[1] == "| --- | --- | ---: | ---: | ---: | --- |"


def test_a_table_without_rows_still_has_its_header():
    assert to_markdown(pd.DataFrame({"Model": [], "Avg.": []})).splitlines()[0] == "| Model | Avg. |"
    assert to_json(pd.DataFrame({"Model": []})) == "[]"


@pytest.mark.parametrize("style", get_args(Style))
def test_every_style_renders_without_a_final_line_break(scores, style):
    text = Table(scores, "Spearman").to(style)
    assert "GloVe" in text
    assert not text.endswith(("\n", "\r"))


def test_an_unknown_style_is_named_with_the_choice(scores):
    with pytest.raises(UserError, match=r"'html'.*terminal, markdown, latex, csv, json"):
        Table(scores).to("html")


def printed(table, width, **options):
    stream = io.StringIO()
    print_table(table, Console(file=stream, width=width, **options), headline="Avg.")
    return stream.getvalue()


@pytest.fixture
def wide():
    tasks = ["STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R", "Avg."]
    return pd.DataFrame(
        {"Model": ["sentence-transformers/all-MiniLM-L6-v2"], **{task: [-78.98] for task in tasks}}
    )


@pytest.mark.parametrize("width", [20, 60, 80, 200])
def test_a_narrow_terminal_folds_text_but_never_a_number(wide, width):
    lines = printed(wide, width).splitlines()
    assert lines[0].split() == list(wide.columns)
    assert lines[2].split()[1:] == ["-78.98"] * 8
    assert "".join(line.split()[0] for line in lines[2:]) == wide["Model"][0]


def test_text_folds_to_the_width_of_the_terminal(wide):
    assert all(len(line) <= 80 for line in printed(wide, 80).splitlines())


def test_a_string_is_never_folded(wide):
    assert len(to_terminal(wide).splitlines()) == 3


def test_the_headline_column_is_bold(wide):
    row = printed(wide, 120, force_terminal=True, color_system="standard").splitlines()[2]
    assert row.count("-78.98") == 8
    assert "\x1b[1m-78.98\x1b[0m" in row
    assert row.split("\x1b[1m")[0].count("-78.98") == 7
