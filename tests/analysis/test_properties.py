"""What a rotation, a scale or another order of pairs must not change; and analyses of the run's own similarity."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from own_runs import OWN_SIMILARITY, options_of, write_pairs, write_words
from scipy.stats import ortho_group

import stsbench as sb
from stsbench.analysis import ANALYSES, analysis
from stsbench.scoring.statistic import Correlation
from stsbench.scoring.subjects import scored_tasks
from stsbench.statistics.neighbours import SIMILARITIES

Encode = Callable[[list[str]], NDArray[np.float64]]

MOVED = {
    "dimensions": ("share", "without top", "standardised", "ranks", "manhattan"),
    "compress": ("leading", "random", "fp16", "int8", "binary"),
    "length-collapse": ("norm",),
}
"""Words in the rows that a rotation or a scale may change."""

TOLERANCE = {"compress": 0.05, "ties": 0.5, "stability": 0.2}
"""Rounding of float32 breaks ties of similarities."""


@pytest.mark.parametrize("name", [name for name in ANALYSES if name != "repetition-bias"])
def test_a_rotation_and_a_scale_change_no_number_of_the_geometry_of_vectors(
    name: str, hash_encode: Encode, tmp_path: Path
) -> None:
    turn = 4 * ortho_group.rvs(8, random_state=3)
    parameters = analysis(name).parameters
    options = {key: value for key, value in options_of(name, tmp_path).items() if key != "data"}
    options |= {"task": "sample"} if "task" in parameters else {}
    options |= {"tasks": ["sample"]} if "tasks" in parameters else {}
    encoders = (hash_encode, lambda texts: hash_encode(texts) @ turn)
    frames = [analysis(name).verb(encode, **options).frame.drop(columns="model") for encode in encoders]
    words = frames[0].apply(lambda row: " ".join(map(str, row)), axis=1)
    kept = ~words.str.contains("|".join((*MOVED.get(name, ()), "dimensions 64")))
    if name == "ties":
        kept &= frames[0]["precision"] == "as recorded"
    assert kept.any()
    found, expected = (frame[kept].select_dtypes("number").to_numpy(float) for frame in frames)
    assert found == pytest.approx(expected, abs=TOLERANCE.get(name, 1e-5), nan_ok=True)


@pytest.mark.parametrize("kind", SIMILARITIES)
@pytest.mark.parametrize("name", [name for name in OWN_SIMILARITY if name != "threshold"])
def test_an_analysis_of_similarities_uses_those_of_the_run(name: str, kind: str, tmp_path: Path) -> None:
    write_words(tmp_path / "words.txt")
    pairs = write_pairs(tmp_path / "a" / "pairs.tsv", pairs=150)
    protocol = sb.protocol(similarity=kind)
    run = sb.evaluate(str(tmp_path / "words.txt"), [pairs], protocol=protocol, intervals=sb.Intervals(None))
    result = analysis(name).verb(run, **options_of(name, tmp_path))
    ((_, (task,)),) = [scored_tasks("a", run)]
    others = [other for other in SIMILARITIES if other != kind]
    renamed = task.pairs.drop(columns=others).assign(cosine=task.pairs[kind])
    cosines = task._replace(pairs=renamed, statistic=Correlation("spearman", "all", "cosine"))
    expected = analysis(name)(**options_of(name, tmp_path)).compute({result.frame["model"].iloc[0]: [cosines]})
    columns = ["model", "similarity"]
    pd.testing.assert_frame_equal(result.frame.drop(columns=columns), expected.frame.drop(columns=columns))
    assert set(result.frame["similarity"]) == {kind}
    assert (f"Similarity: {kind}" in str(result)) == (kind != "cosine")
