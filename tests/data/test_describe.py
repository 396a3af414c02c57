"""The description of your own pairs: each number is recomputed, and no sentence is printed."""

from pathlib import Path

import numpy as np
import pytest

from stsbench.data.describe import describe
from stsbench.statistics.intervals import difference_error

ROWS = [
    ("An owl naps.", "A bus leaves.", 0.0, "one"),
    ("a bus leaves .", "an owl naps .", 2.0, "one"),
    ("Rain falls.", "It rains tonight again.", 4.0, "two"),
    ("Rain falls.", "The kettle sings.", 1.0, "two"),
    ("The tram is late.", "The tram is late.", 4.0, "two"),
]


def test_each_number_is_what_a_count_by_hand_gives(tmp_path: Path) -> None:
    lines = ["sentence1\tsentence2\tscore\tsubset", *("\t".join(map(str, row)) for row in ROWS)]
    (tmp_path / "own.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    rows = describe(tmp_path / "own.tsv").rows
    about = {(row.about, row.what): row.value for row in rows.itertuples()}
    lengths = [len(side.split()) for row in ROWS for side in row[:2]]
    expected = {
        ("pairs", "all"): 5,
        ("pairs", "subsets"): 2,
        ("pairs", "repeated"): 2,
        ("pairs", "repeated with other scores"): 2,
        ("pairs", "of one sentence twice"): 1,
        ("sentences", "distinct"): 8,
        ("sentences", "distinct by letters and digits"): 6,
        ("words of a sentence", "mean"): np.mean(lengths),
        ("scores", "standard deviation"): np.std([row[2] for row in ROWS], ddof=1),
        ("scores", "% of pairs with the commonest"): 40,
        ("shared sentences", "% of pairs that share one"): 80,
        ("shared sentences", "chains of such pairs"): 3,
        ("shared sentences", "pairs of the longest chain"): 2,
        ("shared sentences", "pairs of the most frequent sentence"): 2,
        ("subset two", "mean"): 3,
    }
    assert {key: about[key] for key in expected} == pytest.approx(expected)
    assert rows.loc[rows["about"] == "histogram", "value"].sum() == 5
    # All five pairs, and three chains of them.
    smallest = rows.loc[rows["about"] == "smallest difference", "value"].to_list()
    assert smallest[1] / smallest[0] == pytest.approx(np.sqrt(5 / 3))


GRAPHS = {
    "STS12": (3108, 2063, 141),
    "STS13": (1500, 1181, 170),
    "STS14": (3750, 2708, 161),
    "STS15": (3000, 2182, 58),
    "STS16": (1186, 728, 132),
    "STS-B": (1379, 1178, 25),
    "SICK-R": (4927, 864, 368),
}


@pytest.mark.shared
@pytest.mark.parametrize("task", GRAPHS)
def test_the_graphs_of_the_sts_tasks_are_known(task: str, senteval: Path) -> None:
    from stsbench.data.benchmarks import load_sts
    from stsbench.data.tables import sentence_ids
    from stsbench.statistics.dependence import Sharing

    pairs = load_sts(task, data_dirs=[senteval]).pairs
    chains = np.bincount(Sharing.of(*(sentence_ids(pairs[f"sentence{side}"]) for side in (1, 2))).components)
    assert (chains.sum(), len(chains), chains.max()) == GRAPHS[task]
    assert describe(task, data_dirs=[senteval]).rows["value"][0] == len(pairs)


def test_the_standard_error_that_is_assumed_is_that_of_simulated_scores() -> None:
    rng = np.random.default_rng(3)
    covariance = [[1, 0.8, 0.8], [0.8, 1, 0.9], [0.8, 0.9, 1]]
    drawn = rng.multivariate_normal([0, 0, 0], covariance, size=(3000, 300))
    drawn = drawn - drawn.mean(axis=1, keepdims=True)
    drawn /= np.sqrt((drawn**2).sum(axis=1, keepdims=True))
    differences = (drawn[..., 0] * drawn[..., 1]).sum(axis=1) - (drawn[..., 0] * drawn[..., 2]).sum(axis=1)
    assert differences.std() == pytest.approx(difference_error(300, 0.8, 0.9), rel=0.05)
