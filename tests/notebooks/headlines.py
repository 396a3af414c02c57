"""The headline tables of executed notebooks as a reader sees them, and what each must show.

That is computed with NumPy and SciPy from what the notebook left on disk: the record, the items table, the cache
of embeddings.
"""

import json
import math
import xml.etree.ElementTree as ET
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, spearmanr
from scipy.stats import t as student

import stsbench as sb
from stsbench.data.benchmarks import load_sample
from stsbench.encoders.plan import embed
from stsbench.published.catalogue import encoder_errors, error_correlations, seeds, systems
from stsbench.published.catalogue import row as published_row
from stsbench.published.catalogue import rows as rows_by_name

Rows = list[dict[str, str]]


def headline_cell(node):
    """Return the one cell that is tagged as the notebook's headline."""
    (cell,) = [cell for cell in node.cells if "headline" in cell.metadata.get("tags", ())]
    return cell


def headline_rows(node):
    """Return the rows of the headline table by the names of their columns, as printed."""
    (html,) = [output["data"]["text/html"] for output in headline_cell(node).outputs if "data" in output]
    table = ET.fromstring(html[html.index("<table") : html.index("</table>") + len("</table>")])
    (names,) = [[cell.text or "" for cell in row] for row in table.findall("thead/tr")]
    # A frame's index stands in front, in cells of heads; the table of a result has none.
    rows = [[cell.text or "" for cell in row if cell.tag == "td"] for row in table.findall("tbody/tr")]
    return [dict(zip(names[-len(row) :], row, strict=True)) for row in rows]


def shows(text, value, decimals):
    """Return whether a cell shows a value, rounded to so many decimals."""
    whole, _, digits = text.partition(".")
    if not whole or len(digits) != decimals:
        return False
    # Values in the middle of two roundings may come out either way, as they were computed in another order.
    return abs(float(text) - value) <= 0.5 * 10**-decimals + 1e-6


def reproduced(rows, folder):
    record = recorded(folder / "runs" / "minilm-sample")
    with_limits(rows, record, record["model"]["name"])


def with_limits(rows, record, name):
    """Hold three rows against a record: the scores, and below them the limits of their intervals."""
    (score,) = record["scores"]
    first, *others = score["numbers"]
    subsets = [number for number in others if number["subset"] and number["statistic"] == "spearman"]
    numbers = {score["task"]: first} | {number["subset"]: number for number in subsets}
    scores = {column: number["value"] for column, number in numbers.items()}
    limits = {column: number["interval"] for column, number in numbers.items()}
    lower, upper = ({column: ends[place] for column, ends in limits.items()} for place in (0, 1))
    assert [row["model"].strip() for row in rows] == [name, "2.5 %", "97.5 %"]
    for row, expected in zip(rows, (scores, lower, upper), strict=True):
        assert list(row) == ["model", *expected]
        for column, value in expected.items():
            assert shows(row[column], 100 * value, 2), column


def length_bias(rows, folder):
    expected: dict[tuple[str, str], float] = {}
    for name in ("minilm-sample", "letters-sample"):
        pairs = pd.read_parquet(folder / "runs" / name / "items.parquet")
        model = recorded(folder / "runs" / name)["model"]["name"].removeprefix("__main__:")
        short = (pairs["words_a"] - pairs["words_b"]).abs() <= 3
        parts = {"<= 3": pairs[short], "> 3": pairs[~short], "all": pairs}
        found = {group: 100 * spearmanr(part["gold"], part["cosine"]).statistic for group, part in parts.items()}
        found["gap"] = found["<= 3"] - found["> 3"]
        expected |= {(model, group): value for group, value in found.items()}
    assert [(row["model"], row["group"]) for row in rows] == list(expected)
    for row in rows:
        assert list(row) == ["model", "group", "sample"]
        assert shows(row["sample"], expected[row["model"], row["group"]], 2), row


def geometry(rows, folder):
    expected = places(folder)
    assert len(rows) == len(expected)
    assert len({row["model"] for row in rows}) == len(expected)
    for row, (name, numbers) in zip(rows, expected.items(), strict=True):
        assert list(row) == ["model", *numbers]
        for column, value in numbers.items():
            right = row[column] == str(value) if isinstance(value, int) else shows(row[column], value, 3)
            assert right, (name, column)


@cache
def places(folder):
    """Return the numbers of the three views, from the vectors in the cache that the notebook left."""
    pairs = load_sample().pairs
    texts, close = [*pairs["sentence1"], *pairs["sentence2"]], (pairs["gold"] > 4).to_numpy()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STSBENCH_CACHE", str(folder / "cache"))
        mean, first = (vectors_of(pooling, texts) for pooling in ("avg", "cls_before_pooler"))
    found: dict[str, dict[str, float | int]] = {}
    for name, vectors in {"mean": mean, "first": first, "whitened": whitened(mean, 64)}.items():
        units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        left, right = np.split(units, 2)
        cosines = (units @ units.T)[np.triu_indices(len(units), k=1)]
        found[name] = {
            "alignment": float(((left - right)[close] ** 2).sum(axis=1).mean()),
            "uniformity": float(np.log(np.exp(-2 * (2 - 2 * cosines)).mean())),
            "mean_cosine": float(cosines.mean()),
            "sts": 100 * headline(folder / "runs" / f"{name}-sample"),
            "positive_pairs": int(close.sum()),
            "sentences": len(texts),
        }
    return found


def trained(rows, folder):
    (made,) = folder.glob("stsbench-*")
    models = {"minilm": "before", "simcse": "simcse", "esimcse": "esimcse"}
    for place, (model, name) in enumerate(models.items()):
        with_limits(rows[3 * place : 3 * place + 3], recorded(made / name), model)
    assert len(rows) == 3 * len(models)


def diagnosed(rows, folder):
    ours, theirs = (100 * headline(folder / "runs" / f"{whose}-sample") for whose in ("ours", "theirs"))
    claim = round(theirs, 2)
    # The sample's subsets are of one size: the plain mean is the weighted one, and comes first.
    by_setting = {"claimed": claim, "your setting": ours, "aggregation mean": theirs}
    changes = {"claimed": "–", "your setting": "0", "aggregation mean": "1"}
    assert [row["setting"] for row in rows] == list(by_setting)
    for row in rows:
        score = by_setting[row["setting"]]
        assert list(row) == ["setting", "changes", "sample", "off"]
        assert row["changes"] == changes[row["setting"]]
        assert shows(row["sample"], score, 2), row
        if row["setting"] == "claimed":
            assert row["off"] == "–"
        else:
            assert shows(row["off"], abs(score - claim), 2), row


def gains(rows, _):
    assert [row["system"] for row in rows] == [expected["system"] for expected in expected_gains()]
    for row, expected in zip(rows, expected_gains(), strict=True):
        assert list(row) == list(expected)
        for column, value in expected.items():
            is_right = shows(row[column], value, 2) if isinstance(value, float) else row[column] == value
            assert is_right, (row, column)


@cache
def expected_gains():
    """Return all higher averages than SimCSE's, by the rule for one difference at a time."""
    errors = encoder_errors().query("task == 'Avg. STS'")
    near = list(zip(errors["score"], errors["error"], strict=True))
    correlations = error_correlations().query("task == 'Avg. STS'")
    found: list[dict[str, str | float]] = []
    for system in systems().values():
        backbone = next((name for name in BACKBONES if name in system.name), None)
        if not system.row or backbone is None or system.name.startswith(("sup-simcse", "unsup-simcse")):
            continue
        printed = published_row(system.name)
        is_supervised = system.kind == "supervised" or printed.row.group == "supervised"
        simcse = rows_by_name().get(systems()[f"{'sup' if is_supervised else 'unsup'}-simcse-{backbone}"].row)
        both = (printed, simcse) if simcse else ()
        averages = [cell for of in both for cell in of.cells if cell.setting.task == "Avg. STS"]
        if len(averages) < 2 or averages[0].value <= averages[1].value or averages[0].setting.metric != "spearman":
            continue
        a, b = (cell.value for cell in averages)
        s, t = (nearest_error(near, score) for score in (a, b))
        smallest = [
            (norm if math.isinf(df) else student(df)).ppf(0.975) * math.sqrt(s * s + t * t - 2 * r * s * t)
            for r, df in zip(correlations["correlation"], correlations["df"], strict=True)
        ]
        gaps = [abs(c - d) for c, d in combinations(seeds(f"unsup-simcse-{backbone}")["Avg."], 2)]
        found.append(
            {
                "system": system.title,
                "average": a,
                "SimCSE": b,
                "gain": a - b,
                "smallest": float(min(smallest)),
                "to": float(max(smallest)),
                "answer": "significant" if a - b - 0.01 > max(smallest) else "depends",
                "two seeds": "" if is_supervised else float(np.quantile(gaps, 0.95)),
            }
        )
    return sorted(found, key=lambda row: round(-row["gain"], 6))


BACKBONES = ("roberta-base", "roberta-large", "bert-base", "bert-large")


def nearest_error(near, score):
    nearest, error = min(near, key=lambda known: abs(known[0] - score))
    return error * (1 - (score / 100) ** 2) / (1 - (nearest / 100) ** 2)


HEADLINES = (reproduced, length_bias, geometry, trained, diagnosed, gains)
"""For each notebook, in order, what fails unless its headline table says what is on disk."""


def recorded(folder):
    record: dict[str, Any] = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    return record


def headline(folder):
    (score,) = recorded(folder)["scores"]
    value: float = score["numbers"][0]["value"]
    return value


def vectors_of(pooling, texts):
    """Return the unit vectors that the notebook left in its cache."""
    found = embed(sb.load("minilm", pooling=pooling), texts)
    assert found.cost.encoded == 0
    (vectors,) = found.vectors.values()
    return vectors[found.rows].astype(np.float64)


def whitened(vectors, dimensions):
    """Return the directions of most variance, each scaled to variance 1; signs do not matter to distances."""
    centred = vectors - vectors.mean(axis=0)
    values, directions = np.linalg.eigh(np.cov(centred, rowvar=False))
    return centred @ (directions[:, -dimensions:] / np.sqrt(values[-dimensions:]))
