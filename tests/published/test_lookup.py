"""`stsbench published`, and the training logs and seeds against their sources."""

import json
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from stsbench.cli.app import app
from stsbench.published.catalogue import (
    logged_dev_scores,
    logged_systems,
    logged_test_scores,
    row,
    rows,
    seeded_systems,
    seeds,
    source,
)
from stsbench.published.lookup import other_prints, show_row


def output(*arguments: str, error: bool = False) -> str:
    result = CliRunner().invoke(app, ["published", *arguments], catch_exceptions=False, env={"COLUMNS": "200"})
    assert result.exit_code == 0
    return result.stderr if error else result.stdout


@pytest.mark.parametrize(
    ("arguments", "keys", "values"),
    [
        (["list", "checkpoints"], "checkpoint hub hub_source pooling expected", {"checkpoint": "e5-small"}),
        (["list", "tables"], "table number title rows cells paper", {"table": "mocose-acl2022-1", "cells": 112}),
        (["list", "rows"], "row system variant label origin file line", {"row": "simcse-slides-sts/is-bert-base"}),
        (
            ["show", "mocose-acl2022-6"],
            "row column system value task split open printed file line score notes",
            {"row": "mocose-acl2022-6/batch-64", "value": 77.25, "line": 617, "printed": "77.25"},
        ),
        (["show", "mocose-acl2022-6"], "row", {"row": "mocose-acl2022-6/batch-512", "value": None, "score": None}),
        (["row", "minilm"], "elsewhere", {"column": "STS12", "value": 0.72369, "unit": "1", "score": 72.369}),
        (["row", "promptbert"], "template", {"pooling": "mask", "precision": "fp32", "spread": 0.18}),
    ],
)
def test_json_has_every_field(arguments: list[str], keys: str, values: dict[str, object]) -> None:
    records = json.loads(output(*arguments, "--json"))
    assert set(keys.split()) <= set(records[0])
    assert [record for record in records if record.items() >= values.items()]


def test_other_prints_of_a_cell_are_found() -> None:
    cell = row("esimcse-coling2022-3/bert-base-flow").cell("Avg.")
    prints = {(other.table, other.value) for other in other_prints(cell, rows().values())}
    assert prints == {("simcse-slides-sts", 66.55), ("mocose-acl2022-1", 66.55)}
    # A row lists only those that differ.
    shown = show_row("is-bert-base").frame["elsewhere"].tolist()
    assert shown == [*[""] * 7, "66.6 simcse-slides-overview/is-bert-base"]


def encoder_name(system: str) -> str:
    encoder = system.split("simcse-")[1]
    return f"{encoder}-uncased" if encoder.startswith("bert") else encoder


def test_four_models_have_a_log_and_four_have_seeds() -> None:
    for kind in ("training-logs", "seeds"):
        assert source(kind).address.startswith("https://")
    encoders = ("bert-base", "bert-large", "roberta-base", "roberta-large")
    assert logged_systems() == tuple(f"esimcse-{encoder}" for encoder in encoders)
    assert seeded_systems() == tuple(f"unsup-simcse-{encoder}" for encoder in encoders)


@pytest.mark.shared
@pytest.mark.parametrize("system", logged_systems())
def test_logs_are_the_authors(system: str, shared: Path) -> None:
    folder = shared / "published/esimcse-training-logs"
    pd.testing.assert_frame_equal(
        logged_test_scores(system), pd.read_csv(folder / f"{encoder_name(system)}.test.csv")
    )
    dev = pd.read_csv(folder / f"{encoder_name(system)}.dev.csv")
    ours = logged_dev_scores(system)
    assert ours["step"].tolist() == dev["step"].tolist()
    assert ours["STS-B"].to_numpy() == pytest.approx(dev["stsb_dev_spearman"].to_numpy(), abs=5e-7)
    assert ours["SICK-R"].to_numpy() == pytest.approx(dev["sickr_dev_spearman"].to_numpy(), abs=5e-7)


@pytest.mark.shared
@pytest.mark.parametrize("system", seeded_systems())
def test_seeds_are_the_reproduction_s(system: str, shared: Path) -> None:
    theirs = pd.read_csv(shared / f"published/simple-simcse/{encoder_name(system)}.csv")
    ours = seeds(system)
    assert len(ours) == 50
    names = {"STS-B": "stsb", "SICK-R": "sick", "Avg.": "avg", "STS-B:dev": "best-stsb", "best_step": "best-step"}
    for name in ours:
        other = names.get(name, name.lower())
        assert ours[name].to_numpy() == pytest.approx(theirs[other].to_numpy(), abs=5.1e-5)
    seven = ours[["STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R"]]
    assert ours["Avg."].to_numpy() == pytest.approx(seven.mean(axis="columns").to_numpy(), abs=1e-4)
