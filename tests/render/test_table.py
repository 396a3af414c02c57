import io
import json
import math

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from stsbench.base.errors import UserError
from stsbench.render.formats import print_table, to_csv, to_json, to_markdown, to_terminal
from stsbench.render.table import Table


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


TERMINAL = """\
Spearman
Model                                   STS16   Bias  Pairs  Note
──────────────────────────────────────────────────────────────────
sentence-transformers/all-MiniLM-L6-v2  78.99   0.00   1186  –
GloVe                                       –  -1.50   1186  words"""
MARKDOWN = """\
**Spearman**

| Model | STS16 | Bias | Pairs | Note |
| --- | ---: | ---: | ---: | --- |
| sentence-transformers/all-MiniLM-L6-v2 | 78.99 | 0.00 | 1186 | – |
| GloVe | – | -1.50 | 1186 | words |"""
LATEX = r"""\begin{table}
\centering
\caption{Spearman}
\begin{tabular}{lrrrl}
\toprule
Model & STS16 & Bias & Pairs & Note \\
\midrule
sentence-transformers/all-MiniLM-L6-v2 & 78.99 & 0.00 & 1186 & -- \\
GloVe & -- & $-$1.50 & 1186 & words \\
\bottomrule
\end{tabular}
\end{table}"""
CSV = "Model,STS16,Bias,Pairs,Note\r\nsentence-transformers/all-MiniLM-L6-v2,78.98761,-0.001,1186,\r\n"
CSV += "GloVe,,-1.5,1186,words"


@pytest.mark.parametrize(
    ("style", "text"), [("terminal", TERMINAL), ("markdown", MARKDOWN), ("latex", LATEX), ("csv", CSV)]
)
def test_a_table_in_every_style(scores, style, text):
    assert Table(scores, "Spearman").to(style) == text


def test_programs_get_full_precision_and_null_for_missing_values(scores):
    first, second = json.loads(Table(scores).to("json"))
    assert list(first) == list(scores)
    assert (first["STS16"], first["Note"], second["STS16"], second["Pairs"]) == (78.98761, None, None, 1186)
    values = [0.1 + 0.2, math.pi, 1e-300, 5e22, -2 / 3]
    table = pd.DataFrame({"x": values})
    assert [float(row) for row in to_csv(table).split("\r\n")[1:]] == values
    assert [record["x"] for record in json.loads(to_json(table))] == values
    missing = pd.Series([None, math.nan, pd.NA, pd.NaT, math.inf, -math.inf], dtype=object)
    assert [record["x"] for record in json.loads(to_json(pd.DataFrame({"x": missing})))] == [None] * 6
    numbers = pd.Series([np.int64(3), np.float32(0.5)], dtype=object)
    rows = json.loads(to_json(pd.DataFrame({"n": numbers, "on": pd.Timestamp("2024-05-01")})))
    assert [row["n"] for row in rows] == [3, 0.5]
    assert rows[0]["on"].startswith("2024-05-01")
    assert to_markdown(pd.DataFrame({"Model": [], "Avg.": []})).splitlines()[0] == "| Model | Avg. |"
    assert to_json(pd.DataFrame({"Model": []})) == "[]"


def test_mistakes_are_named(scores):
    with pytest.raises(ValueError, match="negative"):
        to_markdown(scores, decimals=-1)
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
    assert width < 80 or all(len(line) <= width for line in lines)
    assert len(to_terminal(wide).splitlines()) == 3  # a string is not folded


def test_the_headline_column_is_bold(wide):
    row = printed(wide, 120, force_terminal=True, color_system="standard").splitlines()[2]
    assert row.count("-78.98") == 8
    assert "\x1b[1m-78.98\x1b[0m" in row
    assert row.split("\x1b[1m")[0].count("-78.98") == 7
