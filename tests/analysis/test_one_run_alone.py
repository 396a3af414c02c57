"""The results of a run do not depend on the runs beside it, for every analysis."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from own_runs import OWN_SIMILARITY, analyse, write_pairs, write_words

import stsbench as sb
from stsbench.analysis import ANALYSES
from stsbench.analysis.base import Analysis
from stsbench.base.errors import UserError
from stsbench.data.benchmarks import load_sample
from stsbench.data.own_pairs import load_pairs
from stsbench.data.tables import StsData

A, B = "first.txt", "second.txt"
"""The names of the two models; that of the second without its ending where it is not a file of word vectors."""


@dataclass(frozen=True)
class World:
    """A folder with two files of word vectors and files of pairs, and the run of the first on one of them."""

    folder: Path
    run: sb.RunRecord

    def measure(self, *tasks: StsData, **protocol: str) -> sb.RunRecord:
        """Return a run of the second model."""
        return sb.evaluate(str(self.folder / B), list(tasks), protocol=sb.protocol(**protocol))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("world")
    for seed, name in enumerate((A, B)):
        write_words(folder / name, seed)
    pairs = write_pairs(folder / "a" / "pairs.tsv", pairs=200)
    return World(folder, sb.evaluate(str(folder / A), [pairs]))


def other_tasks(world: World) -> sb.RunRecord:
    return world.measure(write_pairs(world.folder / "other" / "other.tsv", seed=1), load_sample())


def more_tasks(world: World) -> sb.RunRecord:
    pairs = load_pairs(world.folder / "a" / "pairs.tsv")
    return world.measure(pairs, write_pairs(world.folder / "more" / "more.tsv", seed=2))


def other_gold_range(world: World) -> sb.RunRecord:
    return world.measure(write_pairs(world.folder / "range" / "pairs.tsv", seed=3, top=5.0))


def other_gold(world: World) -> sb.RunRecord:
    """Return a run on the same sentences in the same order, whose gold scores are reversed."""
    lines = (world.folder / "a" / "pairs.tsv").read_text(encoding="utf-8").splitlines()[1:]
    gold = [line.rsplit("\t", 1)[1] for line in lines][::-1]
    path = world.folder / "gold" / "pairs.tsv"
    path.parent.mkdir(exist_ok=True)
    rows = [f"{line.rsplit(chr(9), 1)[0]}\t{score}\n" for line, score in zip(lines, gold, strict=True)]
    path.write_text("sentence1\tsentence2\tscore\n" + "".join(rows), encoding="utf-8")
    return world.measure(load_pairs(path))


def other_similarity(world: World) -> sb.RunRecord:
    return world.measure(load_pairs(world.folder / "a" / "pairs.tsv"), similarity="dot")


def fewer_items(world: World) -> sb.RunRecord:
    return world.measure(write_pairs(world.folder / "few" / "pairs.tsv", pairs=40))


def given_similarities(world: World) -> sb.RunRecord:
    path = world.folder / "second.npy"
    np.save(path, np.random.default_rng(4).uniform(size=200))
    return sb.import_results(path, gold=world.folder / "a" / "pairs.tsv")


def imported(world: World) -> sb.RunRecord:
    path = world.folder / "STS16.json"
    scores = {"main_score": 0.6, "cosine_spearman": 0.6, "hf_subset": "default"}
    content = {"task_name": "STS16", "mteb_version": "1.14.0", "scores": {"test": [scores]}}
    path.write_text(json.dumps(content), encoding="utf-8")
    return sb.import_results(path, model="second")


BESIDE: dict[str, Callable[[World], sb.RunRecord]] = {
    make.__name__: make
    for make in (
        *(other_tasks, more_tasks, other_gold_range, other_gold),
        *(other_similarity, fewer_items, given_similarities, imported),
    )
}


@pytest.fixture(scope="module")
def others(world: World) -> dict[str, sb.RunRecord]:
    return {name: make(world) for name, make in BESIDE.items()}


def is_refused(name: str, beside: str) -> bool:
    """Return whether an analysis cannot be made of the second run, whatever stands beside it."""
    match beside:
        case "imported":
            return True
        case "given_similarities":
            return name not in OWN_SIMILARITY
        case _:
            return (name, beside) == ("density", "other_tasks")


@pytest.fixture(scope="module")
def alone_of(world: World, others: dict[str, sb.RunRecord]) -> Callable[[str], Analysis]:
    """Return what gives an analysis of the first run alone, with all files there, once for all tests."""
    return cache(lambda name: analyse(name, world.folder, world.run))


def rows_of(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that are about the first model alone."""
    rows = frame[frame["model"] == A]
    rows = rows[rows["against"] == ""] if "against" in rows else rows
    return rows.reset_index(drop=True)


def tables_of(result: Analysis) -> list[pd.DataFrame]:
    return [rows_of(table.frame) for table in result.table() if "model" in table.frame]


def is_in(table: pd.DataFrame, others: list[pd.DataFrame]) -> bool:
    """Return whether one of the tables has the rows of a table, perhaps with further columns."""
    with_columns = [other for other in others if set(table) <= set(other)]
    return any(table.equals(other[list(table)].astype(table.dtypes)) for other in with_columns)


def drawn(result: Analysis) -> str:
    """Return the words of a figure, and what its marks are called."""
    figure = result.plot()
    labels = [str(artist.get_label()) for artist in figure.findobj()]
    texts = [artist.get_text() for artist in figure.findobj(lambda artist: hasattr(artist, "get_text"))]
    return "\n".join([*labels, *texts])


OF_RECORDS = ("pair-kinds", "length-bias", "density", "dimensions", "length-collapse")
"""Analyses that use a run's own items, gold scores or tasks; the others use the model alone, so three runs do."""

CASES = [
    (name, beside)
    for name in ANALYSES
    for beside in (BESIDE if name in OF_RECORDS else ("more_tasks", "other_similarity", "imported"))
]


@pytest.mark.parametrize(("name", "beside"), CASES)
def test_a_run_has_the_same_rows_alone_and_beside_another(
    name: str,
    beside: str,
    world: World,
    others: dict[str, sb.RunRecord],
    alone_of: Callable[[str], Analysis],
) -> None:
    runs = (others[beside], world.run)
    if is_refused(name, beside):
        with pytest.raises(UserError, match="second"):
            analyse(name, world.folder, *runs)
        return
    alone, together = alone_of(name), analyse(name, world.folder, *runs)
    assert len(rows_of(alone.frame)) == len(alone.frame)
    pd.testing.assert_frame_equal(rows_of(together.frame), rows_of(alone.frame), check_exact=True)
    assert all(is_in(table, tables_of(together)) for table in tables_of(alone))
    assert "second" in str(together)
    if beside in {"other_tasks", "more_tasks"}:
        # A figure of one model does not name it.
        assert A in drawn(together) or set(together.frame["model"]) == {A}
