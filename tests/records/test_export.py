"""Records as MTEB's results: the layout, the same scores back, and MTEB itself where it is installed."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr
from small_mteb_tasks import scored_by_mteb

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.data.tables import StsData
from stsbench.records.export import export_results
from stsbench.records.kinds import ITEMS
from stsbench.scoring.import_results import import_results

Toy = Callable[..., StsData]
Encode = Callable[..., Any]


@pytest.fixture
def record(hash_encode: Encode, toy_data: Toy) -> sb.RunRecord:
    """Return a record with three scores of MTEB's tasks, and two that MTEB does not have."""
    names = [("STS12", "test"), ("STS-B", "test"), ("STS-B", "dev"), ("SICK-R", "test"), ("own", "test")]
    return sb.evaluate(hash_encode, [toy_data(name, seed=n, split=split) for n, (name, split) in enumerate(names)])


def entry_of(folder: Path, task: str = "STS12") -> dict[str, Any]:
    (entry,) = json.loads((folder / f"{task}.json").read_text(encoding="utf-8"))["scores"]["test"]
    return dict(entry)


def test_the_same_scores_are_read_back(record: sb.RunRecord, tmp_path: Path) -> None:
    exported = export_results(record, tmp_path, model="owner/my model")
    assert exported.folder == tmp_path / "results" / "owner__my_model" / "no_revision_available"
    names = [path.name for path in exported.folder.iterdir()]
    assert sorted(names) == ["STS12.json", "STSBenchmark.json", "model_meta.json"]
    for metric in ("pearson", "spearman"):
        back = import_results(exported.folder, metric=metric)
        theirs = {(score.task, score.split): score.value for score in back.scores}
        assert theirs == {
            (score.task, score.split): number.value
            for score in record.scores[:3]
            if (number := score.number(metric, "all"))
        }
    assert (back.model.name, back.model.use.revision) == ("owner/my model", None)
    assert any("SICK-R and own" in note for note in exported.notes)
    for verb in (lambda: sb.compare(record, back), lambda: sb.rank([record, back])):
        with pytest.raises(UserError, match=r"are not comparable on STS12|was imported with scores only"):
            verb()
    # The other similarities are those of the items.
    entry = entry_of(exported.folder)
    rows = record.items[record.items["task"] == "STS12"]
    for similarity in ("cosine", "manhattan", "euclidean"):
        expected = spearmanr(rows["gold"], rows[similarity]).statistic
        assert entry[f"{similarity}_spearman"] == pytest.approx(expected)
    assert entry["main_score"] == entry["cosine_spearman"] == entry["spearman"] == record.scores[0].value
    assert entry["stsbench_signature"] == record.scores[0].signature


def test_correlations_are_over_all_pairs_and_an_undefined_one_stays_undefined(
    hash_encode: Encode, toy_data: Toy, tmp_path: Path
) -> None:
    run = sb.evaluate(hash_encode, toy_data("SICK-R", split="all"), protocol=sb.protocol("senteval"))
    exported = export_results(run, tmp_path)
    (score,) = import_results(exported.folder).scores
    assert (score.task, score.split) == ("SICK-R", "all")
    # The protocol's own aggregation is over subsets.
    assert score.value == run.scores[0].number("spearman", "all").value != run.scores[0].value
    assert not exported.notes
    sb.evaluate(lambda texts: np.ones((len(texts), 2)), toy_data("STS12"), out=tmp_path / "run")
    (tmp_path / "run" / ITEMS).unlink()
    exported = export_results(tmp_path / "run", tmp_path / "b")
    assert any("items.parquet is missing" in note for note in exported.notes)
    assert not any(name.startswith("manhattan") for name in entry_of(exported.folder))
    assert math.isnan(exported.frame["score"].iloc[0])
    assert import_results(exported.folder).scores[0].value is None


def test_other_scores_are_replaced_only_on_request(record: sb.RunRecord, tmp_path: Path, toy_data: Toy) -> None:
    folder = export_results(record, tmp_path).folder
    before = (folder / "STS12.json").read_bytes()
    assert export_results(record, tmp_path).folder == folder
    other = sb.evaluate(lambda texts: [[len(text), text.count("a")] for text in texts], toy_data("STS12"))
    renamed = other.model_copy(update={"model": record.model})
    with pytest.raises(UserError, match=r"holds STS12\.json with other content"):
        export_results(renamed, tmp_path)
    assert (folder / "STS12.json").read_bytes() == before
    export_results(renamed, tmp_path, overwrite=True)
    assert (folder / "STS12.json").read_bytes() != before
    view = other.scores[0].model_copy(update={"split": "test~overlap"})
    with pytest.raises(UserError, match=r"no score of an MTEB task: .*STS12:test~overlap"):
        export_results(other.model_copy(update={"scores": (view,)}), tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_mteb_loads_the_files_and_prints_the_same_scores(record: sb.RunRecord, tmp_path: Path) -> None:
    mteb = pytest.importorskip("mteb", reason="needs mteb, in an environment of its own")
    export_results(record, tmp_path, model="owner/model")
    options = {"tasks": ["STS12", "STSBenchmark"], "include_remote": False, "validate_and_filter": True}
    (model,) = mteb.ResultCache(tmp_path).load_results(**options).model_results
    assert model.model_name == "owner/model"
    ours = {part.task: part.value for part in record.scores if part.split == "test"}
    scores = {result.task_name: result.get_score() for result in model.task_results}
    assert scores == {"STS12": ours["STS12"], "STSBenchmark": ours["STS-B"]}


def test_a_task_of_mteb_scores_our_encoder_as_we_do(hash_encode: Encode, toy_data: Toy, tmp_path: Path) -> None:
    data = toy_data("STS12")
    theirs = scored_by_mteb(data, hash_encode)
    ours = entry_of(export_results(sb.evaluate(hash_encode, data), tmp_path).folder)
    for name in ("main_score", "spearman", "pearson", "cosine_pearson", "manhattan_spearman", "euclidean_pearson"):
        assert ours[name] == pytest.approx(theirs[name], abs=1e-6), name
