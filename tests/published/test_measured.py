"""Training logs and seeds against the files that they were taken from."""

from pathlib import Path

import pandas as pd
import pytest

from stsbench.published.measured import (
    logged_dev_scores,
    logged_systems,
    logged_test_scores,
    seeded_systems,
    seeds,
    source,
)


def original(system: str) -> str:
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
    pd.testing.assert_frame_equal(logged_test_scores(system), pd.read_csv(folder / f"{original(system)}.test.csv"))
    dev = pd.read_csv(folder / f"{original(system)}.dev.csv")
    ours = logged_dev_scores(system)
    assert ours["step"].tolist() == dev["step"].tolist()
    assert ours["STS-B"].to_numpy() == pytest.approx(dev["stsb_dev_spearman"].to_numpy(), abs=5e-7)
    assert ours["SICK-R"].to_numpy() == pytest.approx(dev["sickr_dev_spearman"].to_numpy(), abs=5e-7)


@pytest.mark.shared
@pytest.mark.parametrize("system", seeded_systems())
def test_seeds_are_the_reproduction_s(system: str, shared: Path) -> None:
    theirs = pd.read_csv(shared / f"published/simple-simcse/{original(system)}.csv")
    ours = seeds(system)
    assert len(ours) == 50
    names = {"STS-B": "stsb", "SICK-R": "sick", "Avg.": "avg", "STS-B:dev": "best-stsb", "best_step": "best-step"}
    for name in ours:
        other = names.get(name, name.lower())
        assert ours[name].to_numpy() == pytest.approx(theirs[other].to_numpy(), abs=5.1e-5)


@pytest.mark.parametrize("system", seeded_systems())
def test_a_seed_s_average_is_the_mean_of_its_seven_tasks(system: str) -> None:
    scores = seeds(system)
    seven = scores[["STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R"]]
    assert scores["Avg."].to_numpy() == pytest.approx(seven.mean(axis="columns").to_numpy(), abs=1e-4)
