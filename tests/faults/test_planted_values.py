"""Wrong numbers in what users bring: vectors, similarities, pairs and results of other programs are refused."""

import json
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stsbench as sb
from stsbench.data.tables import StsData, load_pairs
from stsbench.encoders.simple import SavedVectors
from stsbench.scoring.import_results import import_results, read_similarities

NUMBERS = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf, "huge": 1e39, "complex": 1 + 2j}
CELLS = ("nan", "inf", "-Infinity", "1e999", "1+2j", "", "four", "0x1p3", "1,5")
ROWS = [f"owl number {number}\tbus number {number}\t" for number in range(8)]


def is_refused(attempt: Callable[[], object]) -> bool:
    """Returns whether a call raises an error of one sentence."""
    try:
        attempt()
    except sb.UserError as error:
        return len(str(error).splitlines()) == 1
    return False


def attempts(data: StsData, encode: Callable[..., Any], folder: Path) -> Iterator[tuple[str, bool]]:
    """Yields planted numbers and whether each is refused."""
    options: dict[str, Any] = {"intervals": sb.Intervals(None), "use_cache": False}
    sentences = sorted({*data.pairs["sentence1"], *data.pairs["sentence2"]})
    (folder / "s.txt").write_text("".join(f"{sentence}\n" for sentence in sentences), encoding="utf-8")
    for name, number in NUMBERS.items():
        for place in (0, 5, 17, 40, 63):

            def spoiled(values: Any, number: Any = number, place: int = place) -> Any:
                changed = np.array(values, dtype=complex if isinstance(number, complex) else float)
                changed.flat[place % changed.size] = number
                return changed

            at = f"{name} at {place}"
            encoder = lambda texts, spoiled=spoiled: spoiled(encode(texts))  # noqa: E731
            yield f"function: {at}", is_refused(lambda encoder=encoder: sb.evaluate(encoder, data, **options))
            np.save(folder / "v.npy", spoiled(encode(sentences)))
            saved = SavedVectors(folder / "v.npy", folder / "s.txt")
            yield f"vectors: {at}", is_refused(lambda saved=saved: sb.evaluate(saved, data, **options))
            if name != "huge":  # a valid similarity
                np.save(folder / "s.npy", spoiled(np.arange(30)))
                yield f"similarities: {at}", is_refused(lambda: read_similarities(folder / "s.npy"))
    for cell in CELLS:
        for line in (0, 3, 7):
            rows = [f"{row}{cell if number == line else number / 2}" for number, row in enumerate(ROWS)]
            (folder / "pairs.tsv").write_text("\n".join(["sentence1\tsentence2\tscore", *rows, ""]))
            yield f"pairs: {cell!r} in line {line}", is_refused(lambda: load_pairs(folder / "pairs.tsv"))
    for pair in combinations(("score", "gold", "label", "similarity"), 2):
        rows = [f"{row}{number / 2}\t{9 - number}" for number, row in enumerate(ROWS)]
        (folder / "two.tsv").write_text("\n".join(["\t".join(("sentence1", "sentence2", *pair)), *rows, ""]))
        yield f"two score columns: {pair}", is_refused(lambda: load_pairs(folder / "two.tsv"))


def test_over_a_hundred_wrong_values_are_refused(
    toy_data: Callable[..., StsData], hash_encode: Callable[..., Any], tmp_path: Path
) -> None:
    results = dict(attempts(toy_data(), hash_encode, tmp_path))
    assert len(results) > 100
    assert [name for name, refused in results.items() if not refused] == []


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999", "2.0", "-1.5", '"0.5"', "true"])
@pytest.mark.parametrize("name", ["cosine_spearman", "cosine_pearson"])
def test_an_mteb_score_that_is_no_correlation_is_refused_or_undefined(
    name: str, value: str, tmp_path: Path
) -> None:
    scores: dict[str, Any] = {"cosine_spearman": 0.5, "cosine_pearson": 0.6, "main_score": 0.5}
    meta = {"task_name": "STS13", "dataset_revision": "0" * 40, "mteb_version": "1.14.0"}
    content = json.dumps({**meta, "scores": {"test": [{**scores, name: "X", "hf_subset": "default"}]}})
    path = tmp_path / "STS13.json"
    path.write_text(content.replace('"X"', value))
    if value != "NaN":
        assert is_refused(lambda: import_results(path, model="mine"))
        return
    # MTEB writes an undefined correlation as NaN.
    record, metric = import_results(path, model="mine"), name.partition("_")[2]
    assert [number.value for number in record.scores[0].numbers if number.statistic == metric] == [None]
    if metric == record.protocol.metric:
        assert any(f"the {metric} of STS13 is NaN in the file" in note for note in record.notes)
