"""Records as MTEB's results: the layout, the same scores back, and MTEB itself where it is installed."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mteb_task import scored_by_mteb
from scipy.stats import spearmanr
from typer.testing import CliRunner

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.cli.app import app
from stsbench.data.tables import StsData
from stsbench.records.export import export_results
from stsbench.records.items import ITEMS
from stsbench.records.parts import Score
from stsbench.records.scores import Scores
from stsbench.scoring.evaluate import import_results

Toy = Callable[..., StsData]


@pytest.fixture
def record(hash_encode: Callable[..., Any], toy_data: Toy) -> sb.RunRecord:
    """Return a record of three of MTEB's tasks, one of them twice over, and of two that it has not."""
    sets = [
        toy_data("STS12"),
        toy_data("STS-B", seed=1),
        toy_data("STS-B", seed=2, split="dev"),
        toy_data("SICK-R", seed=3),
        toy_data("own", seed=4),
    ]
    return sb.evaluate(hash_encode, sets)


def pooled(score: Score) -> dict[str, float | None]:
    """Return the correlations over all pairs, by metric."""
    return {number.statistic: number.value for number in score.numbers if number.aggregation == "all"}


def test_what_is_written_is_read_back_to_the_same_scores(record: sb.RunRecord, tmp_path: Path) -> None:
    exported = export_results(record, tmp_path, model="owner/my model")
    assert exported.folder == tmp_path / "results" / "owner__my_model" / "no_revision_available"
    assert sorted(path.name for path in exported.folder.iterdir()) == [
        "STS12.json",
        "STSBenchmark.json",
        "model_meta.json",
    ]
    back = import_results(exported.folder)
    ours, theirs = ({(score.task, score.split): pooled(score) for score in run.scores} for run in (record, back))
    assert theirs == {key: ours[key] for key in (("STS12", "test"), ("STS-B", "test"), ("STS-B", "dev"))}
    assert (back.model.name, back.model.use.revision) == ("owner/my model", None)
    assert any("own and SICK-R" in note or "SICK-R:test and own" in note for note in exported.notes)
    assert any("9,927" in note for note in exported.notes)


@pytest.mark.parametrize("use", [{}, {"dimensions": 6, "whiten": 4}, {"normalize": True, "whiten": 0}], ids=str)
def test_what_the_export_states_the_import_knows(
    use: dict[str, Any], hash_encode: Callable[..., Any], toy_data: Toy, tmp_path: Path
) -> None:
    run = sb.evaluate(
        sb.load(hash_encode, **use), [toy_data("STS12"), toy_data("STS-B", seed=1)], out=tmp_path / "run"
    )
    back = import_results(export_results(run, tmp_path).folder, out=tmp_path / "back")
    assert sb.load_run(tmp_path / "back") == back
    for ours, theirs in zip(run.signatures, back.signatures, strict=True):
        assert theirs == replace(ours, version="-")
    use = replace(run.model.use, prompt=None, device="-")
    assert back.model == run.model.model_copy(update={"kind": "imported", "use": use})
    assert back.notes[-1] == "text and data are those of the signatures that stsbench exported."
    checked = sb.check(run, baseline=back)
    assert checked.passed
    assert not any("does not say" in note for note in checked.notes)
    shown = Scores([run, back]).table()[0].frame
    spearman = pooled(run.scores[0])["spearman"]
    assert shown["STS12"].iloc[[0, 3]].tolist() == [pytest.approx(100 * (spearman or 0))] * 2
    with pytest.raises(sb.UserError, match=r"was imported, with scores alone, .* `stsbench check RUN --baseline"):
        sb.compare(run, back)
    with pytest.raises(sb.UserError, match="was imported, with scores alone"):
        sb.rank([run, back])


def test_what_scores_of_one_model_state_otherwise_or_in_short_is_not_known(
    hash_encode: Callable[..., Any], toy_data: Toy, tmp_path: Path
) -> None:
    one = sb.evaluate(hash_encode, toy_data("STS12"))
    export_results(one, tmp_path)
    folder = export_results(
        sb.evaluate(sb.load(hash_encode, whiten=4), toy_data("STS-B", seed=1)), tmp_path
    ).folder
    back = import_results(folder)
    assert {(signature.use.pooling, signature.text) for signature in back.signatures} == {
        ("-", one.scores[0].text)
    }
    assert {signature.data for signature in back.signatures} != {"-"}
    (folder / "STSBenchmark.json").unlink()

    def state(signature: str) -> None:
        content = json.loads((folder / "STS12.json").read_text(encoding="utf-8"))
        content["scores"]["test"][0]["stsbench_signature"] = signature
        (folder / "STS12.json").write_text(json.dumps(content), encoding="utf-8")

    state(str(replace(one.signatures[0], use=replace(one.signatures[0].use, template="promptbert#1a2b"))))
    of_template = import_results(folder)
    assert (of_template.signatures[0].use.pooling, of_template.model.use.template) == ("-", None)
    state(str(replace(one.signatures[0], task="STS13")))
    with pytest.raises(sb.UserError, match="its signature is of STS13:test, and the score of STS12:test"):
        import_results(folder)
    state("avg")
    with pytest.raises(sb.UserError, match=r"STS12\.json is not as its program writes it"):
        import_results(folder)


def test_the_other_similarities_are_those_of_the_pair_table(record: sb.RunRecord, tmp_path: Path) -> None:
    folder = export_results(record, tmp_path).folder
    (entry,) = json.loads((folder / "STS12.json").read_text(encoding="utf-8"))["scores"]["test"]
    rows = record.items[record.items["task"] == "STS12"]
    for similarity in ("cosine", "manhattan", "euclidean"):
        expected = spearmanr(rows["gold"], rows[similarity]).statistic
        assert entry[f"{similarity}_spearman"] == pytest.approx(expected)
    assert entry["main_score"] == entry["cosine_spearman"] == entry["spearman"] == record.scores[0].value
    assert entry["stsbench_signature"] == record.scores[0].signature


def test_sick_on_all_its_pairs_is_mtebs_and_an_undefined_score_stays_undefined(
    hash_encode: Callable[..., Any], toy_data: Toy, tmp_path: Path
) -> None:
    run = sb.evaluate(hash_encode, toy_data("SICK-R", split="all"), protocol=sb.protocol("senteval"))
    exported = export_results(run, tmp_path)
    back = import_results(exported.folder)
    assert (back.scores[0].task, back.scores[0].split) == ("SICK-R", "all")
    # Over all pairs, not over subsets as this record's protocol has it.
    assert back.scores[0].value == run.scores[0].number("spearman", "all").value != run.scores[0].value
    assert not exported.notes
    exported = export_results(
        sb.evaluate(lambda texts: np.ones((len(texts), 2)), toy_data("STS12")), tmp_path / "b"
    )
    assert math.isnan(exported.frame["score"].iloc[0])
    assert import_results(exported.folder).scores[0].value is None


def test_other_scores_are_not_replaced_unasked(record: sb.RunRecord, tmp_path: Path, toy_data: Toy) -> None:
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


def test_a_record_without_a_task_of_mtebs_or_an_impossible_name_is_an_error(
    record: sb.RunRecord, hash_encode: Callable[..., Any], toy_data: Toy, tmp_path: Path
) -> None:
    run = sb.evaluate(hash_encode, replace(toy_data("STS12"), split="test~overlap"))
    with pytest.raises(UserError, match=r"no score that is one of MTEB's: .*STS12:test~overlap"):
        export_results(run, tmp_path)
    with pytest.raises(UserError, match="is no text"):
        export_results(record, tmp_path / "mteb", model="half\udcff")
    assert not list(tmp_path.iterdir())


def test_without_the_pair_table_the_records_own_similarity_is_written_and_the_lack_told(
    hash_encode: Callable[..., Any], toy_data: Toy, tmp_path: Path
) -> None:
    saved = sb.evaluate(hash_encode, toy_data("STS12"), out=tmp_path / "run")
    (tmp_path / "run" / ITEMS).unlink()
    exported = export_results(tmp_path / "run", tmp_path)
    (entry,) = json.loads((exported.folder / "STS12.json").read_text(encoding="utf-8"))["scores"]["test"]
    assert entry["main_score"] == saved.scores[0].value
    assert not any(name.startswith(("euclidean", "manhattan")) for name in entry)
    assert any("items.parquet is missing" in note for note in exported.notes)
    command = ["export", str(tmp_path / "run"), "--json", "--out"]
    told = CliRunner().invoke(app, [*command, str(tmp_path / "again")])
    assert "items.parquet is missing" in told.stderr  # to programs too: rows cannot hold it
    assert json.loads(told.stdout)
    assert not CliRunner().invoke(app, [*command, str(tmp_path / "quiet"), "--quiet"]).stderr


def test_mteb_loads_what_was_written_and_prints_the_same_scores(record: sb.RunRecord, tmp_path: Path) -> None:
    mteb = pytest.importorskip("mteb", reason="needs mteb, in an environment of its own")
    export_results(record, tmp_path, model="owner/model")
    found = mteb.ResultCache(tmp_path).load_results(
        tasks=["STS12", "STSBenchmark"], include_remote=False, validate_and_filter=True
    )
    (model,) = found.model_results
    assert model.model_name == "owner/model"
    ours = {part.task: part.value for part in record.scores if part.split == "test"}
    assert {result.task_name: result.get_score() for result in model.task_results} == {
        "STS12": ours["STS12"],
        "STSBenchmark": ours["STS-B"],
    }


def test_a_task_of_mtebs_scores_our_encoder_as_we_do(
    hash_encode: Callable[..., Any], toy_data: Toy, tmp_path: Path
) -> None:
    data = toy_data("STS12")
    theirs = scored_by_mteb(data, hash_encode)
    exported = export_results(sb.evaluate(hash_encode, data), tmp_path)
    (ours,) = json.loads((exported.folder / "STS12.json").read_text(encoding="utf-8"))["scores"]["test"]
    for name in ("main_score", "spearman", "pearson", "cosine_pearson", "manhattan_spearman", "euclidean_pearson"):
        assert ours[name] == pytest.approx(theirs[name], abs=1e-6), name
