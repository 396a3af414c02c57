"""Wrong numbers planted in what a person brings: vectors, scores and results. None passes for right."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stsbench as sb
from stsbench.data.own_pairs import load_pairs
from stsbench.data.tables import StsData
from stsbench.encoders.vector_files import SavedVectors
from stsbench.scoring.import_results import import_results, read_similarities

NUMBERS = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf, "huge": 1e39, "complex": 1 + 2j}
WRITTEN = ("nan", "inf", "-Infinity", "1e999", "1+2j", "", "four", "0x1p3", "1,5")
SCORE_NAMES = ("score", "gold", "label", "similarity", "Score", "GOLD")


def spoiled_vectors() -> Iterator[tuple[str, Any, int]]:
    """Yield numbers that are none, and where among the vectors they stand."""
    for name, number in NUMBERS.items():
        for place in (0, 5, 17, 40, 63):
            yield f"{name} at {place}", number, place


def refused(attempt: Callable[[], object]) -> bool:
    """Return whether it is told in one sentence."""
    try:
        attempt()
    except sb.UserError as error:
        return len(str(error).splitlines()) == 1
    return False


def with_number(vectors: Any, number: Any, place: int) -> Any:
    changed = np.array(vectors, dtype=complex if isinstance(number, complex) else float)
    changed.flat[place % changed.size] = number
    return changed


def planted(toy_data: Callable[..., StsData], encode: Callable[..., Any], folder: Path) -> dict[str, bool]:
    """Return for each planted number whether it was refused."""
    told: dict[str, bool] = {}
    data = toy_data()
    once = sb.Intervals(None)
    sentences = sorted({*data.pairs["sentence1"], *data.pairs["sentence2"]})
    (folder / "s.txt").write_text("".join(f"{sentence}\n" for sentence in sentences), encoding="utf-8")
    for name, number, place in spoiled_vectors():

        def spoiled(texts: list[str], number: Any = number, place: int = place) -> Any:
            return with_number(encode(texts), number, place)

        told[f"a function's vectors: {name}"] = refused(
            lambda spoiled=spoiled: sb.evaluate(spoiled, data, intervals=once, use_cache=False)
        )
        np.save(folder / "v.npy", with_number(encode(sentences), number, place))
        saved = SavedVectors(folder / "v.npy", folder / "s.txt")
        told[f"saved vectors: {name}"] = refused(
            lambda saved=saved: sb.evaluate(saved, data, intervals=once, use_cache=False)
        )
        if abs(number) != 1e39:  # as a similarity it is a number like others
            np.save(folder / "s.npy", with_number(np.arange(30), number, place))
            told[f"saved similarities: {name}"] = refused(lambda: read_similarities(folder / "s.npy"))
    rows = [f"owl number {number}\tbus number {number}\t" for number in range(8)]
    for written in WRITTEN:
        for line in (0, 3, 7):
            scores = [written if number == line else str(number / 2) for number in range(8)]
            lines = [row + score for row, score in zip(rows, scores, strict=True)]
            (folder / "pairs.tsv").write_text("sentence1\tsentence2\tscore\n" + "\n".join(lines) + "\n")
            told[f"own pairs: {written!r} in line {line}"] = refused(lambda: load_pairs(folder / "pairs.tsv"))
    for one in SCORE_NAMES:
        for other in SCORE_NAMES:
            if one.lower() < other.lower():
                body = "".join(f"{row}{number / 2}\t{9 - number}\n" for number, row in enumerate(rows))
                (folder / "two.tsv").write_text(f"sentence1\tsentence2\t{one}\t{other}\n{body}")
                told[f"two score columns: {one}, {other}"] = refused(lambda: load_pairs(folder / "two.tsv"))
    return told


def test_over_a_hundred_wrong_values_are_planted_and_none_passes(
    toy_data: Callable[..., StsData], hash_encode: Callable[..., Any], tmp_path: Path
) -> None:
    told = planted(toy_data, hash_encode, tmp_path)
    assert len(told) > 100
    assert [name for name, is_told in told.items() if not is_told] == []


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999", "2.0", "-1.5", '"0.5"', "true"])
@pytest.mark.parametrize("name", ["cosine_spearman", "cosine_pearson"])
def test_no_score_of_another_program_that_is_no_correlation_passes_unseen(
    name: str, value: str, tmp_path: Path
) -> None:
    scores = {"cosine_spearman": 0.5, "cosine_pearson": 0.6, "main_score": 0.5, "hf_subset": "default"}
    content = json.dumps(
        {
            "task_name": "STS13",
            "dataset_revision": "0" * 40,
            "mteb_version": "1.14.0",
            "scores": {"test": [scores]},
        }
    )
    number = json.dumps(scores[name])
    (tmp_path / "STS13.json").write_text(content.replace(f'"{name}": {number}', f'"{name}": {value}'))
    if value != "NaN":
        assert refused(lambda: import_results(tmp_path / "STS13.json", model="mine"))
        return
    # Which is how that program writes an undefined one.
    record, metric = import_results(tmp_path / "STS13.json", model="mine"), name.partition("_")[2]
    assert [number.value for number in record.scores[0].numbers if number.statistic == metric] == [None]
    if metric == record.protocol.metric:
        assert any(f"the {metric} of STS13 is NaN in the file" in note for note in record.notes)
